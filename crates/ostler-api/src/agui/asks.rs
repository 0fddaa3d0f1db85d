//! What is asked on a thread and not answered, as the log tells it.

use std::collections::BTreeSet;

use ostler_base::error::Fallible;
use ostler_core::app::App;
use ostler_core::approvals::record::Approval;
use ostler_door::users::Caller;

/// The open questions of a session.
pub(super) struct Asks {
    open: Vec<Approval>,
    /// Those that this run has answered: that they were asked may still be to come in the log.
    settled: BTreeSet<String>,
}

impl Asks {
    pub(super) async fn of(app: &App, caller: &Caller, session: &str) -> Fallible<Self> {
        let open = app.approvals.pending_in(caller, session).await?;
        Ok(Self { open, settled: BTreeSet::new() })
    }

    /// What is open, oldest first.
    pub(super) fn open(&self) -> &[Approval] {
        &self.open
    }

    /// The log says how a question stands.
    pub(super) fn heard(&mut self, ask: Approval) {
        self.open.retain(|known| known.id != ask.id);
        if ask.is_pending() && !self.settled.contains(&ask.id) {
            self.open.push(ask);
        }
    }

    /// A question is answered.
    pub(super) fn settled(&mut self, id: &str) {
        self.open.retain(|known| known.id != id);
        self.settled.insert(id.to_owned());
    }

    /// The call by which a client's own tool is asked.
    pub(super) fn call_for(ask: &Approval) -> String {
        format!("call-{}", ask.id)
    }
}
