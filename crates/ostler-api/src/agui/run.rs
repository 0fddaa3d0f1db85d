//! One run: new messages go to the agent, and the events of the log go to the client, until one of them has to wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ostler_agui::event::{Body, Event};
use ostler_agui::input::RunAgentInput;
use ostler_agui::message::{Message as UiMessage, MessageBody};
use ostler_agui::prompt;
use ostler_agui::translate::{Settings, Translator};
use ostler_base::error::{ApiError, Fallible};
use ostler_core::app::App;
use ostler_core::approvals::record::Approval;
use ostler_core::config::agui::{Approvals, Busy, Memory};
use ostler_core::log_writers;
use ostler_core::model::run::{Begin, RunState, Session};
use ostler_core::runs::NewRun;
use ostler_door::revocation::Credential;
use ostler_door::users::Caller;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::asks::Asks;
use super::client_tool_calls::ClientToolCalls;
use super::endpoint::AgUi;
use super::frontend_tools::{self, FrontendTools};
use super::interrupts::{self, Said};
use super::outlet::Outlet;
use super::page::Page;
use super::run_request::RunRequest;
use super::shared_state;
use super::thread::{Thread, ThreadLock};

/// A run to perform.
pub(super) struct Run {
    pub(super) agui: AgUi,
    pub(super) session: Session,
    pub(super) thread_lock: Arc<ThreadLock>,
    pub(super) caller: Caller,
    /// The caller's credential, if the server's own guard checked it.
    pub(super) credential: Option<Credential>,
    pub(super) input: RunAgentInput,
}

/// Why a run ends without a result of the agent.
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) code: String,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>, code: &str) -> Self {
        Self { message: message.into(), code: code.to_owned() }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        let detail = error.detail();
        Self::new(detail.message.clone(), &detail.code)
    }
}

impl From<ostler_store::Error> for Failure {
    fn from(error: ostler_store::Error) -> Self {
        ApiError::from(error).into()
    }
}

/// A run that is streamed to a client.
pub(super) struct RunStream<'a> {
    pub(super) agui: &'a AgUi,
    pub(super) session: Session,
    pub(super) caller: &'a Caller,
    pub(super) input: &'a RunAgentInput,
    pub(super) thread: Thread,
    pub(super) tool_calls: ClientToolCalls,
    pub(super) asks: Asks,
    /// The active run of the session.
    pub(super) live: Option<ostler_core::model::run::Run>,
    /// The run that was sent last, if the server stopped during it and no run has resumed it.
    pub(super) cut_off: Option<String>,
    pub(super) translator: Translator,
    pub(super) outlet: &'a mut Outlet,
    pub(super) stop: CancellationToken,
    /// Whether the client only follows the run.
    pub(super) looks_on: bool,
    /// Calls that were open when the run began: earlier runs have sent them.
    pub(super) waited: BTreeSet<String>,
    /// Changes of the state up to this event are not sent to this client, which brought its own state.
    pub(super) state_from: u64,
}

impl Run {
    /// Performs the run to its end, which is sent in any case.
    pub(super) async fn carry(self, outlet: &mut Outlet) {
        let mut translator = Translator::new(settings(&self.agui, &self.input, None));
        outlet.send([translator.start()]).await;
        let waited = match self.agui.config().busy {
            Busy::Wait(limit) => limit,
            Busy::Refuse => Duration::ZERO,
        };
        let word = Arc::clone(&self.thread_lock.word).lock_owned();
        let Ok(_word) = tokio::time::timeout(waited, word).await else {
            let words = "another run on this thread is in progress; wait for it, or stop it";
            return outlet.send(translator.fail(words, "run_in_progress")).await;
        };
        // It may have waited for minutes.
        if let Some(Err(error)) = self.credential.as_ref().map(Credential::check) {
            let detail = error.detail();
            return outlet.send(translator.fail(&detail.message, &detail.code)).await;
        }
        let running = self.thread_lock.begin();
        // No other run changes the thread now, so its content is known.
        let mut run_stream = match self.run_stream(outlet, running.stop.clone()).await {
            Ok(run_stream) => run_stream,
            Err(failure) => {
                return outlet.send(translator.fail(&failure.message, &failure.code)).await;
            }
        };
        if let Err(failure) = run_stream.work().await {
            run_stream.fail(&failure).await;
        }
        if let Err(error) = run_stream.remember().await {
            tracing::error!(session = self.session.id, %error, "a thread could not be stored");
        }
    }

    /// Sends the conversation of the thread, and its new events. It takes no part in the thread: another run may be
    /// active.
    pub(super) async fn connect(self, outlet: &mut Outlet) {
        let mut translator = Translator::new(settings(&self.agui, &self.input, None));
        outlet.send([translator.start()]).await;
        let failure = match self.run_stream(outlet, CancellationToken::new()).await {
            Ok(mut run_stream) => {
                run_stream.translator = translator;
                run_stream.looks_on = true;
                if let Err(failure) = run_stream.attach().await {
                    run_stream.fail(&failure).await;
                }
                return;
            }
            Err(failure) => failure,
        };
        outlet.send(translator.fail(&failure.message, &failure.code)).await;
    }

    async fn run_stream<'a>(
        &'a self,
        outlet: &'a mut Outlet,
        stop: CancellationToken,
    ) -> Result<RunStream<'a>, Failure> {
        let sessions = &self.agui.app().sessions;
        let session = sessions.find(&self.caller, &self.session.id).await?;
        let thread = Thread::find(&sessions.records, &session).await?;
        let thread = thread.unwrap_or_else(|| Thread::of(&session));
        let asks = Asks::of(self.agui.app(), &self.caller, &session.id).await?;
        let live = sessions.live_run(&session.id).await?;
        let cut_off = match (&live, &thread.run) {
            (None, Some(run)) => {
                let last = sessions.find_run(&self.caller, run).await.ok();
                last.filter(|run| run.state == RunState::Interrupted).map(|run| run.id)
            }
            _ => None,
        };
        let translator = Translator::new(settings(&self.agui, &self.input, Some(&thread)));
        let tool_calls = self.agui.thread_tool_calls().of(&session.id);
        let asked = asks.open().iter().filter_map(|ask| ask.tool_use_id.clone());
        Ok(RunStream {
            agui: &self.agui,
            waited: thread
                .open_calls
                .iter()
                .cloned()
                .chain(asked)
                .chain(tool_calls.waiting_calls())
                .collect(),
            tool_calls,
            session,
            caller: &self.caller,
            input: &self.input,
            thread,
            asks,
            live,
            cut_off,
            translator,
            outlet,
            stop,
            looks_on: false,
            state_from: 0,
        })
    }
}

pub(super) fn settings(agui: &AgUi, input: &RunAgentInput, thread: Option<&Thread>) -> Settings {
    let tools = FrontendTools::new(&input.tools);
    let mut settings = Settings::new(&input.thread_id, &input.run_id);
    settings.taken = input.messages.iter().map(|message| message.id.clone()).collect();
    settings.client_tools = tools.names.keys().cloned().collect();
    settings.tool_names = tools.names;
    settings.hidden_tools.insert(shared_state::TOOL.to_owned());
    settings.quiet = agui.config().quiet;
    if let Some(thread) = thread {
        settings.taken.extend(thread.known.replies().map(str::to_owned));
        settings.answered_by_client.clone_from(&thread.client_calls);
        settings.reported.clone_from(&thread.reported);
    }
    settings
}

impl RunStream<'_> {
    pub(super) fn app(&self) -> &App {
        self.agui.app()
    }

    async fn work(&mut self) -> Result<(), Failure> {
        let Some(answered) = self.take_answers().await? else {
            // Nothing else is done while a question is open.
            return self.ask_again().await;
        };
        self.take_state().await?;
        match self.run_request(answered) {
            RunRequest::Nothing if self.is_waiting() => self.wait_again().await,
            RunRequest::Nothing => {
                let end = self.translator.nothing_to_do();
                self.outlet.send(end).await;
                Ok(())
            }
            RunRequest::GoOn { then } => self.go_on(&then).await,
            RunRequest::TakeUp(run) => {
                self.turn_to_log().await?;
                let run = self.app().sessions.resume(self.caller, &run).await?;
                self.follow(vec![run.id]).await
            }
            RunRequest::Turn { before, now, begin } => {
                self.give_up_turn().await?;
                self.take_turn(&before, &now, begin).await
            }
        }
    }

    /// Continues a turn that had to wait, and then sends the next messages.
    async fn go_on(&mut self, then: &[&UiMessage]) -> Result<(), Failure> {
        let mut runs: Vec<String> = self.live.iter().map(|run| run.id.clone()).collect();
        if !then.is_empty() {
            self.save().await?;
            let next = self.new_run(&[], then, Begin::Here)?;
            runs.push(self.submit(next).await?);
        }
        self.follow(runs).await
    }

    async fn take_turn(
        &mut self,
        before: &[UiMessage],
        now: &[&UiMessage],
        begin: Begin,
    ) -> Result<(), Failure> {
        let page = self.page().await;
        let begin = match begin {
            _ if page.forgets => Begin::Blank,
            // The setup of an engine is decided when it starts.
            Begin::Here if page != self.thread.page => Begin::Anew,
            begin => begin,
        };
        self.thread.page = page;
        // Calls of earlier turns get no more results.
        self.thread.open_calls.clear();
        self.thread.client_calls.clear();
        self.thread.asked_by_call.clear();
        self.tool_calls.clear();
        self.turn_to_log().await?;
        let next = self.new_run(before, now, begin)?;
        // The engine's setup is read from the store.
        self.save().await?;
        let run = self.submit(next).await?;
        self.follow(vec![run]).await
    }

    async fn submit(&mut self, new: NewRun) -> Result<String, Failure> {
        let run = self.app().sessions.submit(&self.session, new).await?;
        self.thread.run = Some(run.id.clone());
        Ok(run.id)
    }

    fn new_run(
        &self,
        before: &[UiMessage],
        now: &[&UiMessage],
        begin: Begin,
    ) -> Result<NewRun, Failure> {
        let mut blocks = prompt::retold(before).blocks;
        for message in now {
            if let MessageBody::User { content } = &message.body {
                blocks.append(&mut prompt::blocks(content).blocks);
            }
        }
        if now.is_empty() {
            let words = "Continue with the results of the tools.";
            blocks.push(ostler::proto::api::ContentBlock::text(words));
        }
        if blocks.is_empty() {
            let words = "there is nothing in the message that the agent can use";
            return Err(Failure::new(words, "empty_message"));
        }
        let spoken = now.iter().filter_map(|message| match &message.body {
            MessageBody::User { content } => Some(content.text()),
            _ => None,
        });
        let prompt = spoken.collect::<Vec<_>>().join("\n\n");
        // A conversation that begins again contains the earlier messages.
        let retold = if begin == Begin::Blank { before } else { &[] };
        let said = retold.iter().chain(now.iter().copied()).map(|message| json!(message)).collect();
        Ok(NewRun { content: Some(blocks), said, begin, ..NewRun::text(prompt) })
    }

    /// Skips the earlier events of the log.
    async fn turn_to_log(&mut self) -> Fallible<()> {
        let stream = log_writers::stream(&self.session.id)?;
        self.thread.told = self.app().sessions.log.head(&stream).await?;
        Ok(())
    }

    // --- what the client sends

    /// Passes the client's answers on, and returns whether there were any. `None` if a question stays open.
    async fn take_answers(&mut self) -> Result<Option<bool>, Failure> {
        let mut answers = Vec::new();
        for ask in self.asks.open() {
            let answer = match &self.agui.config().approvals {
                Approvals::Interrupt => {
                    let resume = self.input.resume.as_deref().unwrap_or_default();
                    let entry = resume.iter().find(|entry| entry.interrupt_id == ask.id);
                    match entry.and_then(|entry| interrupts::answer(ask, entry)) {
                        Some(answer) => Some(answer),
                        None => return Ok(None),
                    }
                }
                Approvals::Tool(_) => self.said_by_tool(ask),
            };
            answers.extend(answer.map(|answer| (ask.clone(), answer)));
        }
        let answered = !answers.is_empty();
        let mut is_open = false;
        for (ask, answer) in answers {
            is_open |= !self.answer(&ask, answer).await?;
        }
        if is_open {
            return Ok(None);
        }
        if answered {
            // An answer resumes a run that was interrupted by the end of the server.
            self.live = self.app().sessions.live_run(&self.session.id).await?;
            self.cut_off = None;
        }
        Ok(Some(answered))
    }

    /// The answer of the client's own tool to a question, if it was asked.
    fn said_by_tool(&self, ask: &Approval) -> Option<Said> {
        if !self.thread.asked_by_call.contains(&ask.id) {
            return None;
        }
        let call = Asks::call_for(ask);
        let content = self.input.messages.iter().find_map(|message| match &message.body {
            MessageBody::Tool { tool_call_id, content, .. } if *tool_call_id == call => {
                Some(content)
            }
            _ => None,
        })?;
        let said = interrupts::understood(ask, &frontend_tools::said(content));
        Some(said.unwrap_or_else(|| interrupts::no(ask, "The application's answer was invalid.")))
    }

    /// Answers a question; returns whether it is answered now. An earlier answer of another client counts, too.
    async fn answer(&mut self, ask: &Approval, said: Said) -> Result<bool, Failure> {
        let app = self.app().clone();
        let answered = match said {
            Said::Decision(request) => app.decide(self.caller, "agui", &ask.id, request).await,
            Said::Answers(request) => app.answer(self.caller, "agui", &ask.id, request).await,
        };
        match answered {
            Ok(_) => {}
            Err(error) if error.detail().code == "already_answered" => {}
            Err(error) if error.status().is_client_error() => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.asks.settled(&ask.id);
        Ok(true)
    }

    /// Takes over the client's state, and sends the differences that the client must not have.
    async fn take_state(&mut self) -> Result<(), Failure> {
        let stream = log_writers::stream(&self.session.id)?;
        self.state_from = self.app().sessions.log.head(&stream).await?;
        let held = self.input.state.clone();
        let keys = &self.agui.config().server_keys;
        let state = shared_state::begin(held.clone(), &self.thread.state, keys);
        self.tool_calls.set_state(state.clone()).await;
        self.thread.state = state.clone();
        if held.is_some_and(|held| held != state) {
            self.outlet.send([Event::from(Body::StateSnapshot { snapshot: state })]).await;
        }
        Ok(())
    }

    async fn page(&self) -> Page {
        let config = self.agui.config();
        let asked = self.input.forwarded_props.as_ref().and_then(|props| props.get("model"));
        let asked = asked.and_then(Value::as_str).map(str::to_owned);
        let state = match self.input.state {
            Some(_) => Some(self.tool_calls.state().await),
            None => None,
        };
        let shares_state = state.is_some();
        let seen = RunAgentInput { state, ..self.input.clone() };
        Page {
            tools: self.input.tools.clone(),
            surroundings: prompt::surroundings(&seen),
            shares_state,
            model: asked.filter(|_| self.app().config.model_by_request),
            asked_by: match &config.approvals {
                Approvals::Tool(name) => Some(name.clone()),
                Approvals::Interrupt => None,
            },
            forgets: config.memory == Memory::None,
        }
    }

    // --- what is stored

    async fn save(&self) -> Fallible<()> {
        self.app().sessions.records.save(&self.thread).await
    }

    async fn remember(&mut self) -> Fallible<()> {
        self.thread.known.said(self.translator.message_ids());
        self.thread.reported.clone_from(self.translator.reported());
        self.thread.client_calls.extend(self.tool_calls.waiting_calls());
        self.thread.open_calls.extend(self.translator.unanswered());
        self.thread.state = self.tool_calls.state().await;
        if self.agui.config().memory == Memory::None && !self.is_waiting() {
            self.thread = Thread::of(&self.session);
        }
        self.save().await
    }

    pub(super) async fn fail(&mut self, failure: &Failure) {
        let end = self.translator.fail(&failure.message, &failure.code);
        self.outlet.send(end).await;
    }
}
