//! `/clear`: another session takes the place of this one, with the same host, settings and permissions.

use std::sync::{Arc, Mutex};

use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::ConversationReset;
use ostler_proto::{Extra, SessionId};

use serde_json::json;

use super::Session;
use super::prompt::SessionStartInfo;
use super::{report, tasks};
use crate::agents::FinishedSubagents;
use crate::compact::ContextUsage;
use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::host::Host;
use crate::ids::fresh_uuid;
use crate::model::ledger::Ledger;

impl Session {
    /// Begins again. What ran in the background ends: nobody would know what its end is about.
    pub(super) async fn clear(&mut self) {
        let TurnContext { host, cx, .. } = &self.context;
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
        self.context = self.setup.context();
        self.conversation = Vec::new();
        let memory = self.context.memory.iter().map(|file| file.path.clone()).collect();
        self.start = Some(SessionStartInfo { source: "clear", memory, title: None });
        self.context.host.send(report::init(&self.context)).await;
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
            ledger: Ledger::new(base.host.ledger.prices().clone()),
            hooks: Arc::new(Mutex::new(hooks)),
            ..base.host.clone()
        };
        base.cx.tasks = base.cx.tasks.emptied();
        base.context_usage = ContextUsage::default();
        base.finished_subagents = FinishedSubagents::default();
    }
}
