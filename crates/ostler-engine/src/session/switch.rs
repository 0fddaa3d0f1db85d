//! Changes the model at the host's request. Hooks run first and may object; no turn begins meanwhile.

use ostler_proto::RequestId;
use ostler_proto::control::SetModel;
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::User;
use serde_json::{Value, json};

use super::Session;
use super::control::{failure, success};
use crate::drive::model_switch::ModelSwitch;
use crate::hooks::Event;
use crate::ids::fresh_uuid;

/// A request for another model.
#[derive(Clone, Debug)]
pub(super) struct ModelRequest {
    request_id: Option<RequestId>,
    switch: ModelSwitch,
    /// It is part of another request, which is answered elsewhere.
    is_silent: bool,
}

/// The hooks' part in a change of the model.
#[derive(Debug)]
pub(super) enum ModelHookResult {
    /// They answered before the change; an objection is an error.
    Answered(Box<ModelRequest>, Result<(), String>),
    /// They were notified after the change.
    Notified,
}

impl Session {
    /// Changes the model from the next turn on.
    pub(super) async fn set_model(&mut self, request_id: Option<RequestId>, set: &SetModel) {
        self.want_model(request_id, set.model.clone(), false).await;
    }

    /// Changes the model because of a change of settings.
    pub(super) async fn change_model(&mut self, model: Option<&str>) {
        self.want_model(None, model.map(str::to_owned), true).await;
    }

    /// Why settings cannot use a model.
    pub(super) fn model_trouble(&self, model: Option<&str>) -> Option<String> {
        let requested = model.filter(|name| !matches!(*name, "" | "default"));
        self.setup.unpriced(&self.meant_model(requested))
    }

    /// The full name of a requested model; without one, of the model at the session's start.
    fn meant_model(&self, requested: Option<&str>) -> String {
        let base = &self.setup.base;
        match requested {
            Some(name) => base.aliases.full_name(Some(name), &base.model_name),
            None => base.model.name().to_owned(),
        }
    }

    async fn want_model(
        &mut self,
        request_id: Option<RequestId>,
        model: Option<String>,
        is_silent: bool,
    ) {
        let requested = model.filter(|name| !matches!(name.as_str(), "" | "default"));
        let to = self.meant_model(requested.as_deref());
        if let Some(error) = self.setup.unpriced(&to) {
            return self.keep_model(request_id, is_silent, error).await;
        }
        let base = &self.setup.base;
        let from = base.model_name.as_ref().to_owned();
        let switch = ModelSwitch { from, to, requested, source: "sdk" };
        let wanted = ModelRequest { request_id, switch, is_silent };
        self.wanted_models.push_back(wanted);
        self.hear_of_models().await;
    }

    /// Handles the next request for a model, unless hooks still run for the one before.
    async fn hear_of_models(&mut self) {
        while self.switches.is_empty()
            && let Some(mut wanted) = self.wanted_models.pop_front()
        {
            // An earlier request may have changed it.
            wanted.switch.from = self.setup.base.model_name.as_ref().to_owned();
            let hooks = self.context.hooks.clone();
            let is_same = wanted.switch.from == wanted.switch.to;
            if is_same || !hooks.any_for(&HookEvent::PreModelSwitch) {
                self.take_model(wanted, is_same).await;
                continue;
            }
            let event = Event::new(HookEvent::PreModelSwitch, wanted.switch.fields(&self.context));
            self.switches.spawn(async move {
                let verdict = hooks.run(event).await;
                let answer = match verdict.block.or(verdict.stop) {
                    Some(reason) => Err(reason),
                    None => Ok(()),
                };
                ModelHookResult::Answered(Box::new(wanted), answer)
            });
        }
    }

    /// Handles the result of hooks.
    pub(super) async fn heard_of_model(&mut self, heard: Option<ModelHookResult>) {
        match heard {
            Some(ModelHookResult::Answered(wanted, Ok(()))) => {
                self.take_model(*wanted, false).await
            }
            Some(ModelHookResult::Answered(wanted, Err(reason))) => {
                let ModelRequest { request_id, switch, is_silent } = *wanted;
                let reason = if reason.is_empty() { "it gives no reason" } else { &reason };
                let error = format!("A hook keeps the model {}: {reason}", switch.from);
                self.keep_model(request_id, is_silent, error).await;
            }
            Some(ModelHookResult::Notified) | None => {}
        }
        self.hear_of_models().await;
    }

    /// Sends the host why the model stays.
    async fn keep_model(&self, request_id: Option<RequestId>, is_silent: bool, error: String) {
        if is_silent {
            self.context.outbox.inform(error, "warning", Some("model_kept")).await;
        } else {
            let response = ToHost::ControlResponse(failure(request_id, error, None));
            self.context.outbox.send(response).await;
        }
    }

    async fn take_model(&mut self, wanted: ModelRequest, is_same: bool) {
        let ModelRequest { request_id, switch, is_silent } = wanted;
        let fields = switch.fields(&self.context);
        self.setup.base.model_name = switch.to.as_str().into();
        self.context = self.setup.context();
        let words =
            format!("<local-command-stdout>Set model to `{}`</local-command-stdout>", switch.to);
        let notice = User { uuid: Some(fresh_uuid()), ..User::prompt(words.as_str()) };
        self.context.outbox.send_replay(notice).await;
        if !is_silent {
            let payload: Value = json!({"model": switch.to});
            let response = success(request_id, payload);
            self.context.outbox.send(ToHost::ControlResponse(response)).await;
        }
        let hooks = self.context.hooks.clone();
        if is_same || !hooks.any_for(&HookEvent::PostModelSwitch) {
            return;
        }
        self.switches.spawn(async move {
            let event = Event::new(HookEvent::PostModelSwitch, fields);
            let verdict = hooks.run(event).await;
            // Their text is for the new model, which answers the next prompt.
            hooks.say(verdict.context);
            ModelHookResult::Notified
        });
    }
}
