//! What every session's engine is fitted with, in this order: its skill, its space, its way to the model. Whoever comes
//! later has the last word, so a skill cannot widen what the space allows.

use std::sync::Arc;

use async_trait::async_trait;
use ostler::Options;

use crate::fault::Fallible;
use crate::proxy::Proxy;
use crate::runs::options::{Shape, Shaped};
use crate::runs::record::Session;
use crate::spaces::Spaces;

pub(crate) struct Outfit {
    pub(crate) skill: Arc<dyn Shape>,
    pub(crate) spaces: Arc<Spaces>,
    pub(crate) proxy: Arc<Proxy>,
}

#[async_trait]
impl Shape for Outfit {
    async fn shape(&self, session: &Session, options: Options) -> Fallible<Shaped> {
        let Shaped { mut options, guard } = self.skill.shape(session, options).await?;
        self.spaces.fitting(session).await?.apply(&mut options)?;
        let pass = self.proxy.admit(&session.id);
        if let Some(pass) = &pass {
            pass.give_to(&mut options.engine.env.variables);
        }
        Ok(Shaped { options, guard: Some(Box::new((guard, pass))) })
    }

    /// What the space says now: whoever is put out of it, or whose folder has been led elsewhere, does not go on with an
    /// engine that was started before.
    async fn stamp(&self, session: &Session) -> Fallible<String> {
        Ok(self.spaces.fitting(session).await?.stamp())
    }
}
