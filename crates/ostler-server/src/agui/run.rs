//! One run: what is new is said to the agent, what the agent says goes to the client, until one of them has to wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ostler::proto::api::{Content as ApiContent, ContentBlock};
use ostler::proto::message::{System, TurnResult, User};
use ostler::{Message, Options};
use ostler_agui::event::{Body, Event};
use ostler_agui::history::{self, Unseen};
use ostler_agui::input::RunAgentInput;
use ostler_agui::message::{Message as UiMessage, MessageBody};
use ostler_agui::prompt;
use ostler_agui::translate::{Settings, Translator};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::{Approvals, Busy, Config, Disconnect, Memory};
use super::desk::Desk;
use super::frontend_tools::{self, FrontendTools};
use super::outlet::Outlet;
use super::session::{Earlier, Session, Setup};
use super::thread::{Thread, Work};
use super::{interrupts, shared_state};

/// How long the engine may take to stop once it was told to.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// A run that is to be carried.
pub(super) struct Run {
    pub(super) config: Arc<Config>,
    pub(super) thread: Arc<Thread>,
    pub(super) caller: String,
    pub(super) input: RunAgentInput,
    /// The whole server ends.
    pub(super) shutdown: CancellationToken,
}

/// Why a run ends without the agent having ended it.
struct Failure {
    message: String,
    code: &'static str,
}

impl Failure {
    fn new(message: impl Into<String>, code: &'static str) -> Self {
        Self { message: message.into(), code }
    }
}

/// What the client wants.
enum Wish<'a> {
    /// Nothing that was not done.
    Nothing,
    /// To go on with a turn that waited, which has answers now; and then to say this.
    GoOn { then: Vec<&'a UiMessage> },
    /// A new turn: with what was said before, where the agent does not know it, and what is said now.
    Turn { before: &'a [UiMessage], now: Vec<&'a UiMessage>, earlier: Option<Earlier> },
}

impl Run {
    /// Carries the run to its end, which is told in any case.
    pub(super) async fn carry(self, outlet: &mut Outlet) {
        let mut translator = Translator::new(self.settings(&BTreeSet::new(), None));
        outlet.send([translator.start()]).await;
        let work = Arc::clone(&self.thread.work);
        let waited = match self.config.busy {
            Busy::Wait(limit) => limit,
            Busy::Refuse => Duration::ZERO,
        };
        let Ok(mut work) = tokio::time::timeout(waited, work.lock_owned()).await else {
            let words = "another run on this thread goes on; wait for it, or stop it";
            return outlet.send(translator.fail(words, "run_in_progress")).await;
        };
        let running = self.thread.begin();
        // Now that nobody else changes the thread, it is known which ids and calls it has.
        translator = Translator::new(self.settings(&work.client_calls, Some(&work)));
        if let Err(failure) = self.work(&mut work, &mut translator, outlet, &running.stop).await {
            outlet.send(translator.fail(&failure.message, failure.code)).await;
        }
        self.remember(&mut work, &translator);
    }

    fn settings(&self, client_calls: &BTreeSet<String>, work: Option<&Work>) -> Settings {
        let tools = FrontendTools::new(&self.input.tools);
        let mut settings = Settings::new(&self.input.thread_id, &self.input.run_id);
        settings.taken = self.input.messages.iter().map(|message| message.id.clone()).collect();
        settings.taken.extend(work.iter().flat_map(|work| work.known.replies()).map(str::to_owned));
        settings.client_tools = tools.names.keys().cloned().collect();
        settings.tool_names = tools.names;
        settings.hidden_tools.insert(shared_state::TOOL.to_owned());
        settings.answered_by_client.clone_from(client_calls);
        settings.reported = work.map(|work| work.reported.clone()).unwrap_or_default();
        settings.quiet = self.config.quiet;
        settings
    }

    async fn work(
        &self,
        work: &mut Work,
        translator: &mut Translator,
        outlet: &mut Outlet,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let Some(answered) = self.take_answers(work) else {
            // Nothing is done as long as something is left open.
            return self.ask_again(translator, outlet).await;
        };
        self.take_state(outlet).await;
        let wish = self.wish(work, answered);
        if let Wish::Turn { .. } = wish {
            self.give_up_turn(work, translator, outlet).await?;
        }
        match wish {
            Wish::Nothing if self.desk().is_waiting() => self.wait_again(translator, outlet).await,
            Wish::Nothing => {
                outlet.send(translator.nothing_to_do()).await;
                Ok(())
            }
            Wish::GoOn { then } => {
                let turns = if then.is_empty() { 1 } else { 2 };
                if turns > 1 {
                    self.say(work, &[], &then).await?;
                }
                self.follow(work, translator, outlet, stop, turns).await
            }
            Wish::Turn { before, now, earlier } => {
                self.prepare(work, translator, earlier).await?;
                self.say(work, before, &now).await?;
                self.follow(work, translator, outlet, stop, 1).await
            }
        }
    }

    fn desk(&self) -> &Desk {
        &self.thread.desk
    }

    // --- what the client brings

    /// Hands the answers of the client to whom they are for: whether there were any. `None` when a question stays
    /// without one.
    fn take_answers(&self, work: &mut Work) -> Option<bool> {
        let open = self.desk().open_asks();
        let resume = self.input.resume.as_deref().unwrap_or_default();
        let mut answers = Vec::new();
        for ask in &open {
            let answer = match (&self.config.approvals, &ask.by_call) {
                (Approvals::Interrupt, _) => {
                    let entry = resume.iter().find(|entry| entry.interrupt_id == ask.id);
                    Some(entry.and_then(|entry| interrupts::answer(ask, entry))?)
                }
                (Approvals::Tool(_), None) => None,
                (Approvals::Tool(_), Some(call)) => {
                    self.tool_message(call).map(|(message, said)| {
                        work.known.heard(message, None);
                        interrupts::understood(ask, &said)
                            .unwrap_or_else(|| interrupts::unclear(ask))
                    })
                }
            };
            answers.extend(answer.map(|answer| (ask.id.clone(), answer)));
        }
        let answered = !answers.is_empty();
        for (id, answer) in answers {
            self.desk().answer_ask(&id, answer);
        }
        Some(answered)
    }

    fn tool_message(&self, call: &str) -> Option<(&UiMessage, Value)> {
        self.input.messages.iter().find_map(|message| match &message.body {
            MessageBody::Tool { tool_call_id, content, .. } if tool_call_id == call => {
                Some((message, frontend_tools::said(content)))
            }
            _ => None,
        })
    }

    /// The state is what the client holds, and it is told where that is not so.
    async fn take_state(&self, outlet: &mut Outlet) {
        let desk = self.desk();
        let state =
            shared_state::begin(self.input.state.clone(), &desk.state(), &self.config.server_keys);
        let differs = self.input.state.as_ref().is_some_and(|held| *held != state);
        desk.set_state(state.clone());
        if differs {
            outlet.send([Event::from(Body::StateSnapshot { snapshot: state })]).await;
        }
    }

    /// `answered`: the turn has got answers that it waited for.
    fn wish(&self, work: &mut Work, answered: bool) -> Wish<'_> {
        let messages = &self.input.messages;
        let waiting = self.desk().waiting_calls();
        let goes_on = work.session.as_ref().is_some_and(|session| session.busy);
        if work.known.is_empty() && !goes_on {
            return self.first_wish(work);
        }
        match work.known.compare(messages, |call| waiting.iter().any(|id| id == call)) {
            // A turn that goes on by itself is told to the end: its client may have gone before.
            Unseen::Nothing | Unseen::Again { .. } if goes_on => {
                if answered || !self.desk().is_waiting() {
                    Wish::GoOn { then: Vec::new() }
                } else {
                    Wish::Nothing
                }
            }
            Unseen::Nothing => Wish::Nothing,
            Unseen::New(new) => self.heard(work, new, answered),
            Unseen::Again { kept, from } | Unseen::Rewritten { kept, from } => {
                self.go_back(work, kept, from)
            }
        }
    }

    /// A conversation that is new here, however long it is.
    fn first_wish(&self, work: &mut Work) -> Wish<'_> {
        let messages = &self.input.messages;
        let from = history::begin(messages);
        let now: Vec<_> = messages[from..].iter().filter(|it| is_user(it)).collect();
        let ends_with_tool =
            matches!(messages.last().map(|it| &it.body), Some(MessageBody::Tool { .. }));
        if now.is_empty() && !ends_with_tool {
            return Wish::Nothing;
        }
        messages.iter().for_each(|message| work.known.heard(message, None));
        Wish::Turn { before: &messages[..from], now, earlier: None }
    }

    /// New messages in a conversation that is known.
    fn heard<'a>(&'a self, work: &mut Work, new: Vec<&'a UiMessage>, answered: bool) -> Wish<'a> {
        let here = work.here.clone();
        let mut now = Vec::new();
        let mut goes_on = answered;
        for message in new {
            work.known.heard(message, here.as_deref());
            match &message.body {
                MessageBody::Tool { tool_call_id, content, error } => {
                    let output = frontend_tools::output(content, error.as_deref());
                    goes_on |= self.desk().answer_call(tool_call_id, output);
                }
                _ => now.push(message),
            }
        }
        // What the user says beside the answers comes when the turn is done with them. One that would wait for more is
        // given up: the user has moved on.
        if now.is_empty() || (goes_on && !self.desk().is_waiting()) {
            return Wish::GoOn { then: now };
        }
        let earlier = work.engine_session.clone();
        let earlier = earlier.map(|session| Earlier { session, up_to: None });
        let before: &[UiMessage] = if earlier.is_some() { &[] } else { self.before(now[0]) };
        Wish::Turn { before, now, earlier }
    }

    fn before(&self, message: &UiMessage) -> &[UiMessage] {
        let place = self.input.messages.iter().position(|it| it.id == message.id);
        &self.input.messages[..place.unwrap_or_default()]
    }

    /// The user went back in the conversation.
    fn go_back(&self, work: &mut Work, kept: usize, from: usize) -> Wish<'_> {
        let messages = &self.input.messages;
        let place = work.known.go_back(kept);
        // The engine finds the place again; where it cannot, it is told what was said.
        let earlier =
            place.as_deref().and_then(|place| place.split_once(' ')).map(|(session, message)| {
                Earlier { session: session.to_owned(), up_to: Some(message.to_owned()) }
            });
        let from = if earlier.is_some() { from } else { from.max(history::begin(messages)) };
        let now: Vec<_> = messages[from..].iter().filter(|it| is_user(it)).collect();
        now.iter().for_each(|message| work.known.heard(message, place.as_deref()));
        work.session = None;
        work.engine_session = None;
        let before: &[UiMessage] = if earlier.is_some() { &[] } else { &messages[..from] };
        Wish::Turn { before, now, earlier }
    }

    // --- the engine

    /// A turn that waits for what the client will not answer any more is stopped before another begins.
    async fn give_up_turn(
        &self,
        work: &mut Work,
        translator: &mut Translator,
        outlet: &mut Outlet,
    ) -> Result<(), Failure> {
        let Some(session) = work.session.as_mut().filter(|session| session.busy) else {
            return Ok(());
        };
        let stopped = async {
            session.client.interrupt().await?;
            while let Some(message) = session.client.next().await {
                match message? {
                    Message::Result(_) => return Ok(()),
                    message => outlet.send(translate(translator, &message)).await,
                }
            }
            Err(ostler::Error::Closed("the engine has ended".to_owned()))
        };
        match tokio::time::timeout(STOP_GRACE, stopped).await {
            Ok(Ok(())) => session.busy = false,
            // What does not stop is let go of; the conversation is on disk.
            _ => work.session = None,
        }
        Ok(())
    }

    fn setup(&self) -> Setup {
        let asked = self.input.forwarded_props.as_ref().and_then(|props| props.get("model"));
        let asked = asked.and_then(Value::as_str).map(str::to_owned);
        Setup {
            tools: FrontendTools::new(&self.input.tools),
            surroundings: prompt::surroundings(&self.with_state()),
            shares_state: self.input.state.is_some(),
            model: asked.filter(|model| self.config.models.contains(model)),
            approvals: self.config.approvals.clone(),
        }
    }

    /// The input with the state as it is on this side.
    fn with_state(&self) -> RunAgentInput {
        let state = self.input.state.is_some().then(|| self.desk().state());
        RunAgentInput { state, ..self.input.clone() }
    }

    /// Has an engine there that is as the client wants it.
    async fn prepare(
        &self,
        work: &mut Work,
        translator: &mut Translator,
        earlier: Option<Earlier>,
    ) -> Result<(), Failure> {
        let setup = self.setup();
        let mut options: Options = (self.config.options)(&self.caller);
        options.session.ephemeral |= self.config.memory == Memory::None;
        let fits = work.session.as_ref().is_some_and(|session| session.mark == setup.mark());
        if fits || (work.session.is_some() && options.session.ephemeral) {
            return Ok(());
        }
        if let Some(session) = work.session.take() {
            // What cannot be ended well is ended all the same.
            session.client.close().await.ok();
        }
        translator.engine_begins();
        work.agents_work = false;
        let session = Session::connect(options, &setup, self.desk(), earlier).await;
        let session = session.map_err(|error| {
            Failure::new(format!("the agent does not start: {error}"), "agent_unavailable")
        })?;
        work.session = Some(session);
        Ok(())
    }

    async fn say(
        &self,
        work: &mut Work,
        before: &[UiMessage],
        now: &[&UiMessage],
    ) -> Result<(), Failure> {
        let mut blocks = prompt::retold(before).blocks;
        for message in now {
            if let MessageBody::User { content } = &message.body {
                blocks.append(&mut prompt::blocks(content).blocks);
            }
        }
        if now.is_empty() {
            blocks.push(ContentBlock::text("Go on with what the tools answered."));
        }
        if blocks.is_empty() {
            return Err(Failure::new(
                "there is nothing in the message that the agent can use",
                "empty_message",
            ));
        }
        let session = work.session.as_mut().ok_or_else(|| gone(None))?;
        let prompt = User::prompt(ApiContent::Blocks(blocks));
        session.client.send(prompt).await.map_err(|error| gone(Some(&error)))?;
        session.busy = true;
        Ok(())
    }

    // --- the turn

    /// Tells what the agent does until its turn is over, or waits.
    async fn follow(
        &self,
        work: &mut Work,
        translator: &mut Translator,
        outlet: &mut Outlet,
        stop: &CancellationToken,
        mut turns: u32,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + self.config.run_limit;
        let mut stopping: Option<Instant> = None;
        let mut quiet_since = Instant::now();
        while !translator.is_over() {
            if let Some(end) = self.waits(translator, quiet_since) {
                outlet.send(self.desk().take_untold()).await;
                return self.wait(translator, outlet, end).await;
            }
            let session = work.session.as_mut().ok_or_else(|| gone(None))?;
            let stops_with_client = self.config.disconnect == Disconnect::Stop;
            let settle = quiet_since + self.config.settle;
            let mut wants_stop = false;
            tokio::select! {
                message = session.client.next() => {
                    quiet_since = Instant::now();
                    match message {
                        Some(Ok(Message::Result(result)))
                            if stopping.is_none() && others_follow(&result, turns, work.agents_work) =>
                        {
                            turns = turns.saturating_sub(1);
                        }
                        Some(Ok(message)) => {
                            work.agents_work = agents_work(&message).unwrap_or(work.agents_work);
                            self.hear(work, translator, outlet, &message).await;
                        }
                        Some(Err(error)) => return Err(self.lost(work, Some(&error))),
                        None => return Err(self.lost(work, None)),
                    }
                }
                () = self.desk().changed() => quiet_since = Instant::now(),
                () = tokio::time::sleep_until(settle), if self.desk().is_waiting() && settle > Instant::now() => {}
                () = stop.cancelled(), if stopping.is_none() => wants_stop = true,
                () = outlet.closed(), if stops_with_client && stopping.is_none() => wants_stop = true,
                () = tokio::time::sleep_until(stopping.unwrap_or(deadline)) => {
                    return self.overdue(work, translator, outlet, stopping.is_some()).await;
                }
                () = self.shutdown.cancelled() => {
                    work.session = None;
                    return Err(Failure::new("the server is shutting down", "shutdown"));
                }
            }
            if !translator.is_over() {
                outlet.send(self.desk().take_untold()).await;
            }
            if wants_stop {
                translator.stopping();
                stopping = Some(Instant::now() + STOP_GRACE);
                if let Some(session) = &work.session {
                    let handle = session.client.handle();
                    // Its answer comes with the messages, which must be read meanwhile.
                    tokio::spawn(async move { handle.interrupt_all().await });
                }
            }
        }
        Ok(())
    }

    async fn hear(
        &self,
        work: &mut Work,
        translator: &mut Translator,
        outlet: &mut Outlet,
        message: &Message,
    ) {
        if let Some(session) = message.session_id().filter(|id| !id.as_str().is_empty()) {
            work.engine_session = Some(session.to_string());
        }
        match message {
            Message::Assistant(said) if said.parent_tool_use_id.is_none() => {
                work.here = Some(format!("{} {}", said.session_id, said.uuid));
            }
            // Turns that were to follow will not be followed; the next run goes on with a session that knows none.
            Message::Result(result)
                if result.queued_turn_count.is_some_and(|queued| queued > 0) =>
            {
                work.session = None;
            }
            Message::Result(_) => {
                if let Some(session) = &mut work.session {
                    session.busy = false;
                }
            }
            _ => {}
        }
        outlet.send(self.desk().take_untold()).await;
        outlet.send(translate(translator, message)).await;
    }

    fn lost(&self, work: &mut Work, error: Option<&ostler::Error>) -> Failure {
        work.session = None;
        gone(error)
    }

    /// The run has taken too long, or the engine does not stop.
    async fn overdue(
        &self,
        work: &mut Work,
        translator: &mut Translator,
        outlet: &mut Outlet,
        stopping: bool,
    ) -> Result<(), Failure> {
        // Dropping the session ends the engine; the conversation is on disk.
        work.session = None;
        if stopping {
            outlet.send(translator.cancelled("interrupted")).await;
            return Ok(());
        }
        Err(Failure::new("the run took too long and was stopped", "timeout"))
    }

    // --- waiting

    /// Whether the turn can only go on with the client's help.
    fn waits(&self, translator: &Translator, quiet_since: Instant) -> Option<Waits> {
        let desk = self.desk();
        let (calls, asks) = (desk.waiting_calls(), desk.open_asks());
        if calls.is_empty() && asks.is_empty() {
            return None;
        }
        let about: BTreeSet<String> = asks.iter().map(|ask| ask.question.call_id()).collect();
        let waiting = |id: &str| about.contains(id) || calls.iter().any(|call| call == id);
        let all = translator.only_waits(&waiting, &|_| true);
        let settled = quiet_since.elapsed() >= self.config.settle;
        let begun = desk.begun();
        let rest_is_quiet = settled && translator.only_waits(&waiting, &|id| begun.contains(id));
        (all || rest_is_quiet).then_some(Waits { calls, has_asks: !asks.is_empty() })
    }

    async fn wait(
        &self,
        translator: &mut Translator,
        outlet: &mut Outlet,
        waits: Waits,
    ) -> Result<(), Failure> {
        let Approvals::Tool(name) = &self.config.approvals else {
            if waits.has_asks {
                return self.ask_again(translator, outlet).await;
            }
            return self.wait_for(translator, outlet, waits.calls).await;
        };
        let mut calls = waits.calls;
        for ask in self.desk().open_asks() {
            let call = ask.by_call.clone().unwrap_or_else(|| format!("call-{}", ask.id));
            if ask.by_call.is_none() {
                self.desk().asked_by_call(&ask.id, &call);
                let events = translator.call_client(&call, name, &interrupts::arguments(&ask));
                outlet.send(events).await;
            }
            calls.push(call);
        }
        self.wait_for(translator, outlet, calls).await
    }

    async fn wait_for(
        &self,
        translator: &mut Translator,
        outlet: &mut Outlet,
        calls: Vec<String>,
    ) -> Result<(), Failure> {
        // First the calls of this run, in their order; then those of earlier ones.
        let mut pending = translator.unanswered();
        pending.extend(calls.into_iter().filter(|id| !pending.contains(id)).collect::<Vec<_>>());
        outlet.send(translator.wait_for_calls(pending)).await;
        Ok(())
    }

    /// Ends with what is asked.
    async fn ask_again(
        &self,
        translator: &mut Translator,
        outlet: &mut Outlet,
    ) -> Result<(), Failure> {
        let asks = self.desk().open_asks();
        let interrupts = asks
            .iter()
            .map(|ask| interrupts::interrupt(ask, translator.owner(&ask.question.call_id())))
            .collect();
        outlet.send(translator.interrupt(interrupts)).await;
        Ok(())
    }

    /// Ends with what the client still has to answer.
    async fn wait_again(
        &self,
        translator: &mut Translator,
        outlet: &mut Outlet,
    ) -> Result<(), Failure> {
        let asks = self.desk().open_asks();
        let waits = Waits { calls: self.desk().waiting_calls(), has_asks: !asks.is_empty() };
        self.wait(translator, outlet, waits).await
    }

    fn remember(&self, work: &mut Work, translator: &Translator) {
        work.known.said(translator.message_ids());
        work.reported.clone_from(translator.reported());
        work.client_calls.extend(self.desk().waiting_calls());
        let waits = work.session.as_ref().is_some_and(|session| session.busy);
        if self.config.memory == Memory::None && !waits {
            work.forget();
        }
    }
}

/// What a turn waits for.
struct Waits {
    calls: Vec<String>,
    has_asks: bool,
}

/// Whether the run goes on after a turn: something else was said meanwhile, or a subagent works in the background and
/// will report.
fn others_follow(result: &TurnResult, turns: u32, agents_work: bool) -> bool {
    let queued = result.queued_turn_count.map_or(turns > 1, |queued| queued > 0);
    !result.is_error && (queued || agents_work)
}

/// Whether subagents work in the background, where a message says so.
fn agents_work(message: &Message) -> Option<bool> {
    let Message::System(System::BackgroundTasksChanged(changed)) = message else { return None };
    let mut tasks = changed.tasks.iter();
    Some(tasks.any(|task| task.task_type.as_str() == "local_agent"))
}

fn is_user(message: &UiMessage) -> bool {
    matches!(message.body, MessageBody::User { .. })
}

fn gone(error: Option<&ostler::Error>) -> Failure {
    let message = match error {
        Some(error) => format!("the agent has ended: {error}"),
        None => "the agent has ended".to_owned(),
    };
    Failure::new(message, "agent_gone")
}

fn translate(translator: &mut Translator, message: &Message) -> Vec<Event> {
    match message {
        Message::Assistant(said) => translator.assistant(said),
        Message::User(said) => translator.user(said),
        Message::System(system) => translator.system(system),
        Message::Result(result) => translator.result(result),
        Message::StreamEvent(event) => translator.stream_event(event),
        _ => Vec::new(),
    }
}
