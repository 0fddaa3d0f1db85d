//! `/clear`: another session takes the place of this one, with the same host, settings and permissions.

use std::sync::{Arc, Mutex};

use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::ConversationReset;
use ostler_proto::{Extra, SessionId};

use serde_json::json;

use super::Session;
use super::prompt::Start;
use super::{report, tasks};
use crate::agents::Past;
use crate::compact::Gauge;
use crate::drive::World;
use crate::hooks::Event;
use crate::host::Host;
use crate::ids::fresh_uuid;
use crate::model::ledger::Spent;

impl Session {
    /// Begins again. What ran in the background ends: nobody would know what its end is about.
    pub(super) async fn clear(&mut self) {
        let World { host, cx, .. } = &self.world;
        tasks::end_all(host, &cx.tasks).await;
        // Not waited for: an answer of the host would come through this very task.
        let ended = Event::new(HookEvent::SessionEnd, json!({"reason": "clear"}));
        host.hooks().tell(host, &cx.cwd, ended);
        let new_id = SessionId::from(uuid::Uuid::new_v4().to_string());
        let reset = ConversationReset {
            new_conversation_id: new_id.clone(),
            trigger: Some("clear".to_owned()),
            user_message_uuid: self.totals.prompt(),
            timestamp: Some(jiff::Timestamp::now().to_string()),
            session_id: host.session_id.clone(),
            uuid: fresh_uuid(),
            extra: Extra::default(),
        };
        host.send(ToHost::ConversationReset(reset)).await;
        self.setup.begin_anew(new_id);
        self.world = self.setup.world();
        self.conversation = Vec::new();
        let memory = self.world.memory.iter().map(|file| file.path.clone()).collect();
        self.start = Some(Start { source: "clear", memory, title: None });
        self.world.host.send(report::init(&self.world)).await;
    }
}

impl super::Setup {
    fn begin_anew(&mut self, session_id: SessionId) {
        let base = &mut self.base;
        let transcript = base.host.transcript.as_ref().and_then(|old| old.another(&session_id));
        let hooks = base.host.hooks().kept_in(transcript.as_ref().map(|it| it.path()));
        base.host = Host {
            session_id,
            transcript,
            spent: Spent::new(base.host.spent.prices().clone()),
            hooks: Arc::new(Mutex::new(hooks)),
            ..base.host.clone()
        };
        base.cx.tasks = base.cx.tasks.emptied();
        base.gauge = Gauge::default();
        base.past = Past::default();
    }
}
