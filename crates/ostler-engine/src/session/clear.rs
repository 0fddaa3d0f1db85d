//! `/clear`: another session takes the place of this one, with the same host, settings and permissions.

use ostler_proto::SessionId;
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::ConversationReset;

use serde_json::json;

use super::Session;
use super::prompt::SessionStartInfo;
use super::{report, tasks};
use crate::agents::FinishedSubagents;
use crate::compact::ContextUsage;
use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::ids::fresh_uuid;
use crate::mcp::Announced;
use crate::model::ledger::Ledger;
use crate::outbox::Outbox;

impl Session {
    /// Begins again. What ran in the background ends: its notice would be about an unknown conversation.
    pub(super) async fn clear(&mut self) {
        let TurnContext { outbox, hooks, cx, .. } = &self.context;
        tasks::end_all(outbox, &cx.tasks).await;
        // Not waited for: an answer of the host would come through this very task.
        let ended = Event::new(HookEvent::SessionEnd, json!({"reason": "clear"}));
        hooks.tell(ended);
        let new_id = SessionId::from(uuid::Uuid::new_v4().to_string());
        let reset = build!(ConversationReset {
            new_conversation_id: new_id.clone(),
            trigger: Some("clear".to_owned()),
            user_message_uuid: self.totals.prompt(),
            timestamp: Some(jiff::Timestamp::now().to_string()),
            session_id: outbox.session_id.clone(),
            uuid: fresh_uuid(),
        });
        outbox.send(ToHost::ConversationReset(reset)).await;
        self.setup.begin_next_session(new_id);
        self.context = self.setup.context();
        self.conversation = Vec::new();
        let memory = self.context.memory.iter().map(|file| file.path.clone()).collect();
        self.start = Some(SessionStartInfo { source: "clear", memory, title: None });
        self.context.outbox.send(report::init(&self.context)).await;
    }
}

impl super::Setup {
    fn begin_next_session(&mut self, session_id: SessionId) {
        let base = &mut self.base;
        let old = base.outbox.transcript.as_ref();
        let transcript = old.and_then(|old| old.another(&session_id));
        let path = transcript.as_ref().map(|it| it.path());
        base.outbox = Outbox { session_id, transcript, ..base.outbox.clone() };
        base.records.ledger = Ledger::new(base.records.ledger.prices().clone());
        base.hooks = base.hooks.for_next_session(base.hook_scope(), path);
        base.cx.tasks = base.cx.tasks.emptied();
        base.context_usage = ContextUsage::default();
        base.announced = Announced::default();
        base.nested = base.nested.unread();
        base.finished_subagents = FinishedSubagents::default();
    }
}
