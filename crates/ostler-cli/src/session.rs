//! A session for the user of this program: a client of the SDK, connected to an engine that already runs in this
//! process.
//!
//! The SDK answers the engine by callbacks. Here a callback puts its question into a channel and waits, so the terminal
//! gets questions and messages from one place, in the order in which the engine sent them.

use std::future;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use ostler::transport::{Engine, Link, Start, Transport};
use ostler::{
    Answers, Client, Decision, ElicitationRequest, Elicited, Error, Handle, Message, Options,
    PermissionRequest, QuestionRequest,
};
use ostler_engine::session::Connection;
use ostler_proto::frame::ToEngine;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::connection;
use crate::debug::Debug;
use crate::signals::{Signals, StopRequest};

/// Practically unlimited: Setup hooks run before the engine's first answer, and they have their own time limits.
const START_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// How many questions can wait for the user. Callbacks with more questions wait for room.
const QUESTIONS: usize = 16;

/// A question of the engine to the user, and where the answer goes. A question that is dropped stays open until the
/// engine withdraws it.
pub(crate) enum Question {
    /// A tool call needs approval.
    Permission(Box<PermissionRequest>, oneshot::Sender<Decision>),
    /// The agent asks a question.
    Agent(Box<QuestionRequest>, oneshot::Sender<Answers>),
    /// An MCP server asks a question.
    Server(Box<ElicitationRequest>, oneshot::Sender<Elicited>),
}

#[expect(clippy::large_enum_variant, reason = "made in one place and taken apart in the next")]
pub(crate) enum Event {
    Message(Message),
    Question(Question),
}

/// A client, and the questions that its callbacks received.
pub(crate) struct Session {
    client: Client,
    questions: Questions,
    /// To notice the end of the engine. Weak, because the SDK decides when the engine's input ends.
    engine: mpsc::WeakSender<ToEngine>,
}

impl Session {
    /// Connects to a running engine, unless a signal arrives first. The user answers its questions only if `asks_user`.
    ///
    /// # Errors
    /// When the engine does not answer `initialize`.
    pub(crate) async fn connect(
        connection: Connection,
        debug: Debug,
        asks_user: bool,
        signals: &mut Signals,
    ) -> Result<Result<Self, StopRequest>, Error> {
        let to_engine = connection.to_engine.clone();
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let mut options = Options::new().transport(Started::new(connection, debug));
        options.engine.start_timeout = Some(START_TIMEOUT);
        if asks_user {
            options = with_callbacks(options, questions);
        }
        let connected = tokio::select! {
            client = Client::connect(options) => Ok(client?),
            signal = signals.next() => Err(signal),
        };
        match connected {
            Ok(client) => {
                let questions = Questions { asked, next: None };
                Ok(Ok(Self { client, questions, engine: to_engine.downgrade() }))
            }
            Err(signal) => {
                connection::ended(to_engine).await;
                Ok(Err(signal))
            }
        }
    }

    pub(crate) async fn send(&self, prompt: &str) -> Result<(), Error> {
        self.client.send(prompt).await
    }

    /// Ends the input; the engine finishes its work.
    pub(crate) async fn end_input(&self) -> Result<(), Error> {
        self.client.end_input().await
    }

    pub(crate) fn handle(&self) -> Handle {
        self.client.handle()
    }

    /// The next event; `None` once the engine has ended. Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        self.questions.or(&mut self.client).await
    }

    /// The events up to and including the result of the last prompt. Without a prompt, up to the next result.
    pub(crate) fn turn(&mut self) -> Turn<'_> {
        Turn { messages: self.client.turn(), questions: &mut self.questions }
    }

    /// Ends the engine, whatever it is doing, and waits until its tools and tasks have ended.
    pub(crate) async fn end(self) {
        let engine = self.engine.upgrade();
        drop(self.client);
        if let Some(engine) = engine {
            connection::ended(engine).await;
        }
    }
}

pub(crate) struct Turn<'a> {
    messages: ostler::Turn<'a>,
    questions: &'a mut Questions,
}

impl Turn<'_> {
    /// The next event; `None` after the result. Nothing is lost if the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        self.questions.or(&mut self.messages).await
    }
}

struct Questions {
    asked: mpsc::Receiver<Question>,
    /// A question taken out of the channel but not yet returned.
    next: Option<Question>,
}

impl Questions {
    /// The next message or question. A message sent before a question comes first, so the user reads what the question
    /// is about.
    async fn or<M>(&mut self, messages: &mut M) -> Result<Option<Event>, Error>
    where
        M: stream::Stream<Item = Result<Message, Error>> + Unpin,
    {
        if self.next.is_none() {
            tokio::select! {
                biased;
                message = messages.next() => return Ok(message.transpose()?.map(Event::Message)),
                Some(question) = self.asked.recv() => self.next = Some(question),
            }
        }
        // The SDK passes messages on before it calls back, but on another thread.
        let sent_before = tokio::task::unconstrained(messages.next()).now_or_never();
        match sent_before {
            Some(message) => Ok(message.transpose()?.map(Event::Message)),
            None => Ok(self.next.take().map(Event::Question)),
        }
    }
}

fn with_callbacks(options: Options, questions: mpsc::Sender<Question>) -> Options {
    let (to_agent, to_server) = (questions.clone(), questions.clone());
    options
        .on_permission(move |request| {
            put(questions.clone(), |answer| Question::Permission(Box::new(request), answer))
        })
        .on_question(move |request| {
            put(to_agent.clone(), |answer| Question::Agent(Box::new(request), answer))
        })
        .on_elicitation(move |request| {
            put(to_server.clone(), |answer| Question::Server(Box::new(request), answer))
        })
}

/// Asks the user a question. It has no time limit: the engine withdraws a question that takes too long.
fn put<A>(
    questions: mpsc::Sender<Question>,
    ask: impl FnOnce(oneshot::Sender<A>) -> Question,
) -> impl Future<Output = A> + Send + 'static
where
    A: Send + 'static,
{
    let (answer, answered) = oneshot::channel();
    let question = ask(answer);
    async move {
        // If the receiver is gone, the program is about to end.
        let _ = questions.send(question).await;
        match answered.await {
            Ok(answer) => answer,
            Err(_) => future::pending().await,
        }
    }
}

/// A transport to one engine that already runs, for one client.
struct Started(Mutex<Option<Link>>);

impl Started {
    fn new(connection: Connection, debug: Debug) -> Self {
        let Connection { to_engine, mut from_engine } = connection;
        let frames = stream::poll_fn(move |cx| from_engine.poll_recv(cx));
        let noted = frames.inspect(move |frame| debug.note('>', frame)).map(Ok).boxed();
        Self(Mutex::new(Some(Link::new(to_engine, noted, InThisProcess))))
    }
}

impl Transport for Started {
    fn start(&self, _: Start) -> BoxFuture<'static, Result<Link, Error>> {
        let link = self.0.lock().take();
        let twice = || Error::Options("this engine already has a client".to_owned());
        future::ready(link.ok_or_else(twice)).boxed()
    }
}

/// The frames end when the engine does, so there is nothing else to wait for.
struct InThisProcess;

impl Engine for InThisProcess {
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>> {
        future::ready(Ok(())).boxed()
    }
}
