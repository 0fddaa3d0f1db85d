//! Names of users in responses: records have ids, and a name that was used again belongs to several ids.

use axum::Json;
use ostler_core::app::App;
use ostler_core::approvals::audit::Audited;
use ostler_core::approvals::record::Approval;
use ostler_core::approvals::rule::Granted;
use ostler_core::hooks::record::HookView;
use ostler_core::model::run::Run;
use ostler_core::model::space::Space;
use ostler_core::schedules::ScheduleView;
use ostler_core::schedules::record::Firing;
use ostler_core::tasks::record::TaskView;
use ostler_door::users::Users;

use super::listing::Listing;

/// A response that contains users.
pub(super) trait NamesUsers {
    /// Replaces each id by the name.
    fn name_users(&mut self, users: &Users);
}

/// A response with names of users.
pub(super) fn named<T: NamesUsers>(app: &App, mut value: T) -> Json<T> {
    value.name_users(&app.guard.users);
    Json(value)
}

/// A list with names of users.
pub(super) fn named_list<T: NamesUsers>(app: &App, items: Vec<T>) -> Json<Listing<T>> {
    named(app, Listing { items })
}

impl<T: NamesUsers> NamesUsers for Listing<T> {
    fn name_users(&mut self, users: &Users) {
        self.items.iter_mut().for_each(|item| item.name_users(users));
    }
}

/// For types in which exactly these fields are ids of users.
macro_rules! names_users {
    ($($type:ty: $($field:ident).+ $(, $more:ident)*;)*) => {
        $(impl NamesUsers for $type {
            fn name_users(&mut self, users: &Users) {
                self.$($field).+ = users.name_of(&self.$($field).+);
                $(self.$more = users.name_of(&self.$more);)*
            }
        })*
    };
}

names_users! {
    Audited: owner, by;
    Firing: owner;
    Granted: owner, by;
    HookView: owner;
    Run: owner;
    TaskView: task.owner;
}

impl NamesUsers for ScheduleView {
    fn name_users(&mut self, users: &Users) {
        self.schedule.owner = users.name_of(&self.schedule.owner);
        if let Some(last) = &mut self.last {
            last.name_users(users);
        }
    }
}

impl NamesUsers for Approval {
    fn name_users(&mut self, users: &Users) {
        self.owner = users.name_of(&self.owner);
        if let Some(answer) = &mut self.answer {
            answer.by = users.name_of(&answer.by);
        }
    }
}

impl NamesUsers for Space {
    fn name_users(&mut self, users: &Users) {
        self.owner = users.name_of(&self.owner);
        self.widened_by = self.widened_by.take().map(|id| users.name_of(&id));
        let members = std::mem::take(&mut self.members);
        // A removed member has no access. If another member has the name now, the name means that one.
        let (gone, there): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|(id, _)| users.is_removed(id));
        let named = gone.into_iter().chain(there).map(|(id, role)| (users.name_of(&id), role));
        self.members = named.collect();
    }
}
