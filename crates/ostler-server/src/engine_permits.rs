//! A limit on the engines of one user. It counts every engine: those of runs, those that wait for people, those that are
//! kept for the next prompt, and those that were started to suggest files.

use async_trait::async_trait;

use crate::fault::Fallible;
use crate::runs::options::{Shape, Shaped};
use crate::runs::record::Session;
use crate::security::permits::UserLimit;

/// Gives each engine a permit of its user, for as long as the engine is there.
pub(crate) struct EnginePermits(pub(crate) UserLimit);

#[async_trait]
impl Shape for EnginePermits {
    async fn shape(&self, session: &Session, shaped: &mut Shaped) -> Fallible<()> {
        shaped.guards.push(Box::new(self.0.take(&session.owner)?));
        Ok(())
    }
}
