//! What happens in a session, added to its record in the same commit.

use ostler_base::error::Fallible;

use super::session_totals::SessionTotals;
use super::{NewRun, Sessions};
use crate::model::run::Session;
use crate::records::Kept as _;

impl Sessions {
    /// A session as it is to be after something has happened, to be written along with that; `None` if it is gone.
    pub(super) async fn session_put(
        &self,
        id: &str,
        change: impl Fn(&mut Session),
    ) -> Fallible<Option<ostler_store::Put>> {
        let Some((mut session, version)) = self.records.find::<Session>(id).await? else {
            return Ok(None);
        };
        change(&mut session);
        session.put(ostler_store::Expected::Version(version)).map(Some)
    }

    /// A prompt was said in a session.
    pub(super) fn prompted(&self, session: &mut Session, new: &NewRun) {
        session.touch(self.clock.now());
        session.tally.runs += 1;
        session.said(&new.prompt);
    }

    /// More was said in a run that works. It is in the log; that it is not found by a search is no reason to fail.
    pub(super) async fn steered(&self, session: &str, text: &str) {
        let now = self.clock.now();
        let noted = self.records.update::<Session, ()>(session, |session| {
            session.touch(now);
            session.said(text);
            Ok(())
        });
        if let Err(error) = noted.await {
            tracing::warn!(session, %error, "what was said is not in the session's record");
        }
    }
}

/// Whether a session's record or its sums were changed by somebody else in between, so that they have to be read again.
pub(super) fn is_behind(error: &ostler_store::Error) -> bool {
    let of_session = [Session::KIND, SessionTotals::KIND];
    matches!(error, ostler_store::Error::Conflict { kind, .. } if of_session.contains(&kind.as_str()))
}
