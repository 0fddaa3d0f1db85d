//! The open questions of a thread, according to the log.

use std::collections::BTreeSet;

use ostler_base::error::Fallible;
use ostler_core::app::App;
use ostler_core::approvals::record::Approval;
use ostler_door::users::Caller;

/// The open questions of a session.
pub(super) struct Asks {
    open: Vec<Approval>,
    /// Those that this run has answered: the log may still report that they were asked.
    settled: BTreeSet<String>,
}

impl Asks {
    pub(super) async fn of(app: &App, caller: &Caller, session: &str) -> Fallible<Self> {
        let open = app.approvals.pending_in(caller, session).await?;
        Ok(Self { open, settled: BTreeSet::new() })
    }

    /// The open questions, oldest first.
    pub(super) fn open(&self) -> &[Approval] {
        &self.open
    }

    /// Applies the state of a question from the log.
    pub(super) fn heard(&mut self, ask: Approval) {
        self.open.retain(|known| known.id != ask.id);
        if ask.is_pending() && !self.settled.contains(&ask.id) {
            self.open.push(ask);
        }
    }

    /// Marks a question as answered.
    pub(super) fn settled(&mut self, id: &str) {
        self.open.retain(|known| known.id != id);
        self.settled.insert(id.to_owned());
    }

    /// The id of the call with which a client's own tool is asked.
    pub(super) fn call_for(ask: &Approval) -> String {
        format!("call-{}", ask.id)
    }
}
