//! Messages from the server: answers, notifications, and its own requests.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::elicitation::{self, MOST_QUESTIONS};
use super::options::Event;
use super::session::Shared;
use crate::rpc::{self, Failure, Message};

/// The error code of a request to the model that was not permitted.
pub(super) const REFUSED: i64 = -1;

pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    outgoing: mpsc::WeakSender<Value>,
    /// Questions being answered. They end with the connection.
    questions: JoinSet<()>,
}

impl Dispatcher {
    pub(super) fn new(shared: Arc<Shared>, outgoing: mpsc::WeakSender<Value>) -> Self {
        Self { shared, outgoing, questions: JoinSet::new() }
    }

    /// Handles one message. Meaningless ones are ignored: a waiting request has its own timeout.
    pub(super) fn handle(&mut self, mut message: Value) {
        if let Value::Array(batch) = message {
            return batch.into_iter().filter(Value::is_object).for_each(|item| self.handle(item));
        }
        let id = message.get("id").cloned();
        match (message.get("method").is_some(), id) {
            (false, Some(id)) => self.shared.answered(&id, &mut message),
            (false, None) => {}
            (true, _) => match rpc::open(message) {
                Ok(Message::Request { id, method, params }) => self.request(id, &method, params),
                Ok(Message::Notification { method, params }) => self.notification(method, params),
                Ok(Message::Response) => {}
                Err((id, failure)) => self.reply(rpc::answer(&id, Err(failure))),
            },
        }
    }

    fn notification(&self, method: String, params: Value) {
        let event = match method.as_str() {
            "notifications/progress" => return self.shared.progressed(&params),
            "notifications/tools/list_changed" => {
                let mut known = self.shared.known_tools.lock();
                *known = None;
                Event::ToolsChanged
            }
            "notifications/resources/list_changed" => Event::ResourcesChanged,
            "notifications/prompts/list_changed" => Event::PromptsChanged,
            "notifications/elicitation/complete" => {
                let id = params["elicitationId"].as_str().unwrap_or_default();
                Event::ElicitationComplete(id.to_owned())
            }
            _ => Event::Other { method, params },
        };
        self.shared.notify_listener(event);
    }

    fn request(&mut self, id: Value, method: &str, params: Value) {
        while self.questions.try_join_next().is_some() {}
        match method {
            "ping" => self.reply(rpc::answer(&id, Ok(json!({})))),
            "elicitation/create" => self.answer(id, move |shared: Arc<Shared>| async move {
                Ok(elicitation::answer(&shared.server, &shared.options, &params).await)
            }),
            "sampling/createMessage" if self.shared.options.on_sampling.is_some() => {
                self.answer(id, move |shared: Arc<Shared>| async move {
                    let refused = |message| Failure { code: REFUSED, message };
                    shared.options.sample(params).await.map_err(refused)
                });
            }
            "roots/list" if self.shared.options.roots.is_some() => {
                self.reply(rpc::answer(&id, Ok(self.shared.options.root_list())));
            }
            _ => {
                let message = format!("this client does not offer the method `{method}`");
                self.reply(rpc::answer(&id, Err(Failure { code: -32601, message })));
            }
        }
    }

    /// Answers a question of the server next to everything else.
    fn answer<F, Fut>(&mut self, id: Value, work: F)
    where
        F: FnOnce(Arc<Shared>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        if self.questions.len() >= MOST_QUESTIONS {
            let failure =
                Failure { code: -32000, message: "too many questions at once".to_owned() };
            return self.reply(rpc::answer(&id, Err(failure)));
        }
        let (shared, outgoing) = (Arc::clone(&self.shared), self.outgoing.clone());
        self.questions.spawn(async move {
            let result = work(shared).await;
            if let Some(outgoing) = outgoing.upgrade() {
                outgoing.send(rpc::answer(&id, result)).await.ok();
            }
        });
    }

    fn reply(&self, message: Value) {
        if let Some(outgoing) = self.outgoing.upgrade() {
            // A server that asks faster than it reads gets no answer.
            outgoing.try_send(message).ok();
        }
    }
}
