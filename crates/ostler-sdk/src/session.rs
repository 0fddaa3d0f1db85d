//! The task of a session: reads the engine's frames, answers its requests, sends the host's prompts and requests.
//!
//! The task does not wait for the reader of the messages, so requests of the engine are answered however slowly
//! messages are read. Only a reader that is very far behind makes the engine wait ([`inbox`]).

mod answer;
mod inbox;
mod quiet;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{BoxStream, SelectAll, StreamExt as _};
use ostler_proto::build;
use ostler_proto::control::{AskEngine, ControlRequest, McpMessage, Success};
use ostler_proto::frame::{Frame as _, ToEngine, ToHost};
use ostler_proto::message::system::{Informational, Init, MirrorError};
use ostler_proto::message::{System, User};
use ostler_proto::peer::{CallError, Peer};
use ostler_proto::{Extra, RequestId, SessionId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use self::answer::{Answered, Callbacks, Unasked};
pub(crate) use self::inbox::Inbox;
use self::inbox::Outlet;
use self::quiet::Quiet;
use crate::error::Error;
use crate::mcp::InProcessServer;
use crate::message::Message;
use crate::options::{MessageListener, Options};
use crate::session_store::{ConfigFolder, Mirror, Unstored};
use crate::transport::{Link, Said, StderrListener};
use crate::version::{EngineVersion, NEWER_ENGINE};

/// How many frames are received in a row before other events are handled.
const AT_ONCE: usize = 256;
/// How many frames may wait for the engine before prompts and requests have to wait.
const OUTBOX: usize = 64;

/// How many lines of the engine's output that are not frames are reported, including the note that there are more.
const MOST_NOISE: usize = 20;
/// The tag of the reports about such lines.
const NOISE: &str = "engine_output_not_json";

/// How long an engine may take to clean up after its session was dropped or cancelled.
const LAST_CHANCE: Duration = Duration::from_secs(2);

/// Reports to the host whether its prompts will be sent.
pub(crate) type Accepted = oneshot::Sender<Result<(), Error>>;

/// A command of the host to its session.
pub(crate) enum Command {
    /// Send a prompt.
    Say(Box<User>, Accepted),
    /// Send the prompts of a stream as they arrive.
    Feed(BoxStream<'static, User>, Accepted),
    /// Add in-process servers, for when the engine connects to them.
    Serve(Vec<Arc<dyn InProcessServer>>),
    /// Send a request.
    Ask(Box<AskEngine>, oneshot::Sender<Result<Success, CallError>>),
    /// Warn the host that the engine is newer than the tested versions.
    WarnOfVersion(String),
    /// Close the input as soon as the session is quiet.
    CloseWhenQuiet,
    /// Close the input.
    Close,
}

/// Starts the task of a session. It ends when the inbox is dropped. The folder exists as long as the engine runs.
pub(crate) fn run(
    link: Link,
    options: &Options,
    folder: Option<Arc<ConfigFolder>>,
    version: Arc<OnceLock<EngineVersion>>,
) -> (mpsc::Sender<Command>, Inbox) {
    let (commands, commanded) = mpsc::channel(OUTBOX);
    let (messages, inbox) = inbox::channel();
    let store = options.session.store.clone();
    let mut session = Session {
        link,
        peer: Peer::new("sdk-"),
        callbacks: Callbacks::new(options),
        notifications: SelectAll::new(),
        cancelled: options.engine.cancellation.clone().unwrap_or_default(),
        answering: JoinSet::new(),
        outbox: VecDeque::new(),
        feeding: SelectAll::new(),
        messages,
        listener: options.engine.messages.clone(),
        stderr: options.engine.stderr.clone(),
        id: SessionId::default(),
        quiet: Quiet::default(),
        closes_when_quiet: false,
        has_commander: true,
        is_open: true,
        is_gone: false,
        last_turn_failed: false,
        version,
        version_warning: None,
        is_refused: false,
        n_noise: 0,
        mirror: store.map(|store| Mirror::start(store, folder.clone())),
        flushing: None,
        held_result: None,
        _folder: folder,
    };
    session.serve(&options.tools.in_process);
    tokio::spawn(session.run(commanded));
    (commands, inbox)
}

struct Session {
    link: Link,
    peer: Peer<oneshot::Sender<Result<Success, CallError>>, Work>,
    callbacks: Callbacks,
    /// Notifications of servers in this process.
    notifications: SelectAll<BoxStream<'static, Unasked>>,
    /// Fires when the host cancels the session.
    cancelled: CancellationToken,
    /// Callbacks that are running. Dropping the set ends them.
    answering: JoinSet<Answered>,
    /// Frames for the engine.
    outbox: VecDeque<ToEngine>,
    feeding: SelectAll<BoxStream<'static, User>>,
    messages: Outlet,
    listener: Option<MessageListener>,
    stderr: Option<StderrListener>,
    /// The session's id, from the engine.
    id: SessionId,
    quiet: Quiet,
    closes_when_quiet: bool,
    /// Whether a handle still exists that can send commands.
    has_commander: bool,
    /// Whether the engine's input is open.
    is_open: bool,
    /// Whether the engine has ended. Not all of its output may have been read.
    is_gone: bool,
    last_turn_failed: bool,
    /// The engine's version, once it has reported it.
    version: Arc<OnceLock<EngineVersion>>,
    /// A warning about the version. It is sent after the first `init`, which hosts expect before other messages.
    version_warning: Option<String>,
    /// Whether the engine is too old.
    is_refused: bool,
    /// How many lines of the engine's output were not frames.
    n_noise: usize,
    /// Writes to the session's store, if it has one.
    mirror: Option<Mirror>,
    /// Set while the store is written. Nothing is read from the engine meanwhile.
    flushing: Option<oneshot::Receiver<()>>,
    /// The result that the host receives after the flush, because it may then resume the session on another machine.
    held_result: Option<ToHost>,
    /// The folder of a resumed session. The last field, so that the engine ends before the folder is removed.
    _folder: Option<Arc<ConfigFolder>>,
}

/// A callback that is running.
struct Work {
    abort: AbortHandle,
    cancelled: CancellationToken,
}

/// The events that the task of a session waits for.
#[expect(clippy::large_enum_variant, reason = "taken apart at once")]
enum Event {
    Received(Option<Result<Said, Error>>),
    /// The engine can take a frame.
    CanSend,
    Answered(Answered),
    Commanded(Option<Command>),
    Fed(Option<User>),
    /// A server in this process sent a notification.
    Notified(Option<Unasked>),
    Cancelled,
    /// The engine has ended. Its output may not have been read completely.
    Gone,
    /// The reader has caught up.
    Taken,
    /// The inbox was dropped.
    Unread,
    /// The store was written, or writing it failed.
    Flushed,
    /// The store refused lines.
    Unstored(Unstored),
}

impl Session {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            if self.closes_when_quiet && self.feeding.is_empty() && self.is_quiet() {
                self.close();
            }
            match self.next(&mut commands).await {
                Event::Received(frame) => {
                    let is_open = self.receive_all(frame);
                    if self.is_refused {
                        self.messages.send();
                        return self.abandoned().await;
                    }
                    if !is_open {
                        return self.ended().await;
                    }
                }
                Event::CanSend => self.send_next(),
                // An answer to a request that the engine cancelled is not sent.
                Event::Answered(Answered { id, response, problem }) => {
                    if let Some(problem) = problem {
                        self.report(problem, "callback_failed");
                    }
                    if self.peer.served(&id).is_some() {
                        self.send(ToEngine::ControlResponse(response));
                    }
                }
                Event::Commanded(Some(command)) => self.obey(command),
                // All handles are dropped, but the inbox is still read.
                Event::Commanded(None) => {
                    self.has_commander = false;
                    self.closes_when_quiet = true;
                }
                Event::Fed(Some(prompt)) => self.say(prompt),
                // Streams that have ended were removed from their set.
                Event::Fed(None) | Event::Notified(None) => {}
                Event::Notified(Some(notification)) => self.pass_on(notification),
                Event::Cancelled => {
                    self.messages.put(Err(Error::Cancelled));
                    self.messages.send();
                    return self.abandoned().await;
                }
                Event::Gone => self.is_gone = true,
                Event::Taken => {}
                Event::Unread => return self.abandoned().await,
                Event::Flushed => self.flushed(),
                Event::Unstored(unstored) => self.report_unstored(unstored),
            }
        }
    }

    async fn next(&mut self, commands: &mut mpsc::Receiver<Command>) -> Event {
        let has_room = self.outbox.len() < OUTBOX;
        self.messages.send();
        let is_full = self.messages.is_full();
        let is_flushing = self.flushing.is_some();
        tokio::select! {
            frame = self.link.from_engine.next(), if !is_full && !is_flushing => Event::Received(frame),
            () = flushed(&mut self.flushing), if is_flushing => Event::Flushed,
            Some(unstored) = next_unstored(&mut self.mirror) => Event::Unstored(unstored),
            _ = self.link.to_engine.reserve(), if !self.outbox.is_empty() => Event::CanSend,
            Some(answered) = next_answer(&mut self.answering) => Event::Answered(answered),
            command = commands.recv(), if has_room && self.has_commander => Event::Commanded(command),
            prompt = self.feeding.next(), if has_room && !self.feeding.is_empty() => Event::Fed(prompt),
            notified = self.notifications.next(), if has_room && !self.notifications.is_empty() => {
                Event::Notified(notified)
            }
            () = self.cancelled.cancelled() => Event::Cancelled,
            () = self.link.engine.gone(), if !self.is_gone => Event::Gone,
            () = self.messages.taken(), if is_full => Event::Taken,
            () = self.messages.unread() => Event::Unread,
        }
    }

    /// Sends the oldest frame of the outbox.
    fn send_next(&mut self) {
        if let Some(frame) = self.outbox.pop_front() {
            // If the engine no longer reads, its output or its end reports that.
            let _ = self.link.to_engine.try_send(frame);
        }
        self.close_if_asked();
    }

    fn obey(&mut self, command: Command) {
        match command {
            // The sender may have stopped waiting.
            Command::Say(_, accepted) | Command::Feed(_, accepted) if !self.takes_prompts() => {
                let reason = "its input is closed, so the prompt was not sent; start a new session";
                let _ = accepted.send(Err(Error::Closed(reason.to_owned())));
            }
            Command::Say(prompt, accepted) => {
                self.say(*prompt);
                let _ = accepted.send(Ok(()));
            }
            Command::Feed(prompts, accepted) => {
                self.feeding.push(prompts);
                let _ = accepted.send(Ok(()));
            }
            Command::WarnOfVersion(text) => self.version_warning = Some(text),
            Command::CloseWhenQuiet => self.closes_when_quiet = true,
            Command::Close => self.close(),
            Command::Serve(servers) => self.serve(&servers),
            Command::Ask(_, answer) if !self.is_open => {
                let reason = "the engine's input is closed".to_owned();
                // The caller may have stopped waiting.
                let _ = answer.send(Err(CallError::Closed { id: RequestId::default(), reason }));
            }
            Command::Ask(request, answer) => self.ask(*request, answer),
        }
    }

    fn ask(&mut self, request: AskEngine, answer: oneshot::Sender<Result<Success, CallError>>) {
        match self.peer.ask(answer) {
            Ok(id) => self.send(ToEngine::ControlRequest(ControlRequest::new(id, request))),
            // The caller may have stopped waiting.
            Err((answer, error)) => _ = answer.send(Err(error)),
        }
    }

    fn serve(&mut self, servers: &[Arc<dyn InProcessServer>]) {
        for server in servers {
            let notifications = self.callbacks.serve(server.as_ref());
            self.notifications.push(notifications);
        }
    }

    /// Sends a server's notification to the engine. No caller waits for the answer.
    fn pass_on(&mut self, (server_name, message): Unasked) {
        if self.is_open {
            let message = McpMessage { server_name, message, extra: Extra::default() };
            self.ask(AskEngine::McpMessage(message), oneshot::channel().0);
        }
    }

    /// Whether a prompt would still reach the engine.
    fn takes_prompts(&self) -> bool {
        self.is_open && !self.is_gone && !self.link.to_engine.is_closed()
    }

    fn say(&mut self, prompt: User) {
        self.quiet.prompted();
        self.send(ToEngine::User(Box::new(prompt)));
    }

    fn send(&mut self, frame: ToEngine) {
        if self.is_open {
            self.outbox.push_back(frame);
        }
    }

    /// Closes the engine's input once everything was sent.
    fn close(&mut self) {
        self.is_open = false;
        // Later prompts of these streams could not be sent.
        self.feeding.clear();
        self.close_if_asked();
    }

    fn close_if_asked(&mut self) {
        if !self.is_open && self.outbox.is_empty() {
            // Dropping the sender closes the input. The new channel has no receiver.
            self.link.to_engine = mpsc::channel(1).0;
        }
    }

    fn is_quiet(&self) -> bool {
        self.is_open
            && self.quiet.is_quiet()
            && self.outbox.is_empty()
            && self.peer.working() == 0
            && self.peer.waiting() == 0
    }

    /// Handles a frame, and those that are ready after it. False when the engine's output has ended.
    fn receive_all(&mut self, first: Option<Result<Said, Error>>) -> bool {
        let mut ready = Some(first);
        let mut n_received = 0;
        while let Some(frame) = ready {
            if self.is_refused {
                return true;
            }
            match frame {
                Some(Ok(Said::Frame(frame))) => {
                    n_received += 1;
                    self.receive(frame);
                }
                Some(Ok(Said::Noise(text))) => {
                    n_received += 1;
                    self.noise(&text);
                }
                Some(Ok(Said::Pieces(deltas))) => {
                    n_received += deltas.len();
                    match self.listener {
                        Some(_) => deltas.for_each(|delta| self.delta(delta)),
                        None => self.messages.send_pieces(deltas),
                    }
                }
                Some(Err(error)) => self.messages.put(Err(error)),
                None => return false,
            }
            // Frames that are not ready yet are received by the main loop.
            let can_receive = !self.messages.is_full() && self.flushing.is_none();
            ready = match n_received < AT_ONCE && can_receive {
                true => self.link.from_engine.next().now_or_never(),
                false => None,
            };
        }
        true
    }

    fn receive(&mut self, frame: ToHost) {
        match (&mut self.mirror, frame) {
            (Some(mirror), ToHost::TranscriptMirror(lines)) => {
                mirror.add(lines);
                if mirror.is_full() {
                    self.flushing = Some(mirror.flush());
                }
            }
            (Some(mirror), result @ ToHost::Result(_)) => {
                self.flushing = Some(mirror.flush());
                self.held_result = Some(result);
            }
            (_, frame) => self.take(frame),
        }
    }

    /// Continues after the store was written.
    fn flushed(&mut self) {
        self.flushing = None;
        while let Some(unstored) = self.mirror.as_mut().and_then(Mirror::unstored) {
            self.report_unstored(unstored);
        }
        if let Some(result) = self.held_result.take() {
            self.take(result);
        }
    }

    /// Reports to the host that its store lacks lines. The session continues.
    fn report_unstored(&mut self, Unstored { key, reason }: Unstored) {
        if let Some(listener) = &self.stderr {
            let text = format!("the session store does not have all lines: {reason}");
            // A panic of the listener must not end the session.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(&text)));
        }
        let error = build!(MirrorError {
            error: reason,
            session_id: key.session_id.clone(),
            key,
            uuid: uuid::Uuid::new_v4().to_string().into()
        });
        self.deliver(Message::System(System::MirrorError(error)));
    }

    fn take(&mut self, frame: ToHost) {
        self.quiet.heard(&frame);
        if let ToHost::ControlRequest(_) | ToHost::ControlResponse(_) = &frame {
            // The host can read all earlier messages before a callback runs or a request returns.
            self.messages.send();
        }
        match frame {
            ToHost::ControlRequest(request) => self.asked(request),
            ToHost::ControlCancelRequest(cancel) => {
                if let Some(work) = self.peer.cancelled(&cancel) {
                    work.cancelled.cancel();
                    work.abort.abort();
                }
            }
            ToHost::ControlResponse(answer) => {
                if let Some((waiting, result)) = self.peer.answered(answer) {
                    if let Ok(success) = &result {
                        self.asked_before(success);
                    }
                    let _ = waiting.send(result);
                }
            }
            ToHost::System(System::SessionStateChanged(state))
                if state.sdk_host_only == Some(true) => {}
            frame => {
                match &frame {
                    ToHost::Result(result) => self.last_turn_failed = result.is_error,
                    ToHost::System(System::Init(init)) => {
                        self.id.clone_from(&init.session_id);
                        self.judge_version(init);
                    }
                    _ => {}
                }
                if self.is_refused {
                    return;
                }
                let is_init = matches!(&frame, ToHost::System(System::Init(_)));
                if let Some(message) = Message::from_frame(frame) {
                    self.deliver(message);
                }
                if let Some(warning) = self.version_warning.take_if(|_| is_init) {
                    self.report(warning, NEWER_ENGINE);
                }
            }
        }
    }

    /// Checks the version of an engine that did not report it in its answer to `initialize`.
    fn judge_version(&mut self, init: &Init) {
        let Some(version) = EngineVersion::of_init(init) else { return };
        if self.version.get().is_some() {
            return;
        }
        match version.judge() {
            Ok(warning) => {
                // It is not set elsewhere once the engine has answered `initialize`.
                let _ = self.version.set(version);
                self.version_warning = warning;
            }
            Err(error) => {
                self.messages.put(Err(error));
                self.is_refused = true;
            }
        }
    }

    fn delta(&mut self, delta: Result<ToHost, ostler_proto::DecodeError>) {
        match delta.map(Message::from_frame) {
            Ok(Some(message)) => self.deliver(message),
            Ok(None) => {}
            Err(error) => self.messages.put(Err(error.into())),
        }
    }

    /// Reports a line of the engine's output that is not a frame, up to [`MOST_NOISE`] times.
    fn noise(&mut self, text: &str) {
        self.n_noise += 1;
        match self.n_noise {
            1..MOST_NOISE => {
                self.report(format!("the engine wrote a line that is not JSON: {text}"), NOISE);
            }
            MOST_NOISE => {
                let text =
                    "the engine writes more lines that are not JSON; they are no longer reported";
                self.report(text.to_owned(), NOISE);
            }
            _ => {}
        }
    }

    /// Reports a problem to the host: as a message, and to the stderr listener.
    fn report(&mut self, problem: String, tag: &str) {
        if let Some(listener) = &self.stderr {
            // A panic of the listener must not end the session.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(&problem)));
        }
        let remark = build!(Informational {
            content: problem,
            level: "warning".to_owned(),
            tag: Some(tag.to_owned()),
            session_id: self.id.clone()
        });
        if let Some(message) = Message::from_frame(ToHost::System(System::Informational(remark))) {
            self.deliver(message);
        }
    }

    fn deliver(&mut self, message: Message) {
        if let Some(listener) = &self.listener {
            // A panic of the listener must not end the session.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(&message)));
        }
        self.messages.put(Ok(message));
    }

    /// Answers the requests that the engine sent earlier and that are still unanswered.
    fn asked_before(&mut self, success: &Success) {
        let pending = [
            &success.pending_permission_requests,
            &success.pending_user_dialog_requests,
            &success.pending_elicitation_requests,
        ];
        for question in pending.into_iter().flatten().flatten() {
            match ToHost::from_line(&question.to_string()) {
                Ok(ToHost::ControlRequest(request)) => self.asked(request),
                // Other frames are not answered: the engine keeps waiting and does not take that for a yes.
                Ok(_) => {}
                Err(error) => self.messages.put(Err(error.into())),
            }
        }
    }

    fn asked(&mut self, request: ControlRequest<ostler_proto::control::AskHost>) {
        let id = request.request_id.unwrap_or_default();
        // A request that is being answered is not passed to the callback again.
        if self.peer.is_serving(&id) {
            return;
        }
        let cancelled = CancellationToken::new();
        let answer = self.callbacks.answer(id.clone(), request.request, cancelled.clone());
        let abort = self.answering.spawn(answer);
        if let Err(work) = self.peer.serve(id, Work { abort, cancelled }) {
            work.abort.abort();
        }
    }

    /// Ends the engine, with everything that it started, after the inbox was dropped or the session cancelled. The
    /// engine is first asked to end, because some engines start processes that only they can end.
    async fn abandoned(mut self) {
        self.answering.shutdown().await;
        self.link.to_engine = mpsc::channel(1).0;
        self.link.from_engine = futures::stream::empty().boxed();
        self.link.engine.terminate();
        // Dropping the engine ends processes that are still running.
        let _ = tokio::time::timeout(LAST_CHANCE, self.link.engine.ended()).await;
    }

    /// Finishes the session after the engine has closed its output.
    async fn ended(mut self) {
        if let Some(mirror) = &mut self.mirror {
            let stored = mirror.flush();
            tokio::select! {
                _ = stored => {}
                () = self.messages.unread() => {}
            }
            self.flushed();
        }
        self.messages.send();
        for (waiting, error) in self.peer.close("the engine has ended") {
            let _ = waiting.send(Err(error));
        }
        self.link.to_engine = mpsc::channel(1).0;
        let end = tokio::select! {
            end = self.link.engine.ended() => Some(end),
            () = self.messages.unread() => None,
        };
        let Some(end) = end else { return self.abandoned().await };
        match end {
            // If the last turn failed, the host knows the reason already.
            Err(Error::Exited { .. }) if self.last_turn_failed => {}
            Err(error) => self.messages.put(Err(error)),
            Ok(()) => {}
        }
        self.messages.send();
    }
}

/// Waits until the store was written, or the task that writes it has ended.
async fn flushed(flushing: &mut Option<oneshot::Receiver<()>>) {
    if let Some(flushing) = flushing {
        let _ = flushing.await;
    }
}

/// The next lines that could not be stored; `None` without a store.
async fn next_unstored(mirror: &mut Option<Mirror>) -> Option<Unstored> {
    mirror.as_mut()?.next_unstored().await
}

/// The next answer that is ready. Callbacks that were aborted are skipped.
async fn next_answer(answering: &mut JoinSet<Answered>) -> Option<Answered> {
    loop {
        if let Ok(answer) = answering.join_next().await? {
            return Some(answer);
        }
    }
}
