//! A session as this program's user has it: a client of the SDK on an engine that already runs in this process.
//!
//! The SDK answers the engine by callbacks. Here a callback puts its question into a channel and waits: the terminal takes
//! questions and messages from one place, in the order in which the engine sent them.

use std::future;
use std::sync::{Mutex, PoisonError};
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
use tokio::sync::{mpsc, oneshot};

use crate::connection;
use crate::debug::Debug;
use crate::signals::{Signals, Told};

/// Setup hooks run before the engine answers for the first time. How long they may take is set where they are.
const START_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// Questions that wait until the user has answered others; the callbacks of more wait to ask.
const QUESTIONS: usize = 16;

/// What the engine wants to know from the user, and where the answer goes. A question that is dropped stays open until
/// the engine withdraws it.
pub(crate) enum Question {
    /// May this tool run?
    Permission(Box<PermissionRequest>, oneshot::Sender<Decision>),
    /// The agent asks.
    Agent(Box<QuestionRequest>, oneshot::Sender<Answers>),
    /// An MCP server asks.
    Server(Box<ElicitationRequest>, oneshot::Sender<Elicited>),
}

/// What comes from the engine.
#[expect(clippy::large_enum_variant, reason = "made in one place and taken apart in the next")]
pub(crate) enum Event {
    Message(Message),
    Question(Question),
}

/// A client, and the questions that its callbacks have been asked.
pub(crate) struct Session {
    client: Client,
    questions: Questions,
    /// To see the end of the engine. Weak, because the SDK decides when the engine's input ends.
    engine: mpsc::WeakSender<ToEngine>,
}

impl Session {
    /// Takes over an engine that runs, unless a signal comes first. The user answers its questions if `asks_user`; nobody
    /// does otherwise.
    ///
    /// # Errors
    /// When the engine does not introduce itself.
    pub(crate) async fn connect(
        connection: Connection,
        debug: Debug,
        asks_user: bool,
        signals: &mut Signals,
    ) -> Result<Result<Self, Told>, Error> {
        let to_engine = connection.to_engine.clone();
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let mut options = Options::new().transport(Started::new(connection, debug));
        options.engine.start_timeout = Some(START_TIMEOUT);
        if asks_user {
            options = with_callbacks(options, questions);
        }
        let connected = tokio::select! {
            client = Client::connect(options) => Ok(client?),
            told = signals.next() => Err(told),
        };
        match connected {
            Ok(client) => {
                let questions = Questions { asked, next: None };
                Ok(Ok(Self { client, questions, engine: to_engine.downgrade() }))
            }
            Err(told) => {
                connection::ended(to_engine).await;
                Ok(Err(told))
            }
        }
    }

    pub(crate) async fn send(&self, prompt: &str) -> Result<(), Error> {
        self.client.send(prompt).await
    }

    /// No more prompts come; the engine finishes what it does.
    pub(crate) async fn end_input(&self) -> Result<(), Error> {
        self.client.end_input().await
    }

    pub(crate) fn handle(&self) -> Handle {
        self.client.handle()
    }

    /// What comes next; `None` once the engine has ended. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        self.questions.or(&mut self.client).await
    }

    /// What comes up to the result of the prompt that was sent last, and that too. Without such a prompt, up to the
    /// next result.
    pub(crate) fn turn(&mut self) -> Turn<'_> {
        Turn { messages: self.client.turn(), questions: &mut self.questions }
    }

    /// Ends the engine, whatever it is doing, and waits until everything it ran has ended.
    pub(crate) async fn end(self) {
        let engine = self.engine.upgrade();
        drop(self.client);
        if let Some(engine) = engine {
            connection::ended(engine).await;
        }
    }
}

/// One turn.
pub(crate) struct Turn<'a> {
    messages: ostler::Turn<'a>,
    questions: &'a mut Questions,
}

impl Turn<'_> {
    /// What comes next; `None` after the result. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Error> {
        self.questions.or(&mut self.messages).await
    }
}

struct Questions {
    asked: mpsc::Receiver<Question>,
    /// Taken out of the channel, but not handed on.
    next: Option<Question>,
}

impl Questions {
    /// The next message or question. A message that was sent before a question comes before it: the user reads what a
    /// question is about.
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
        // The SDK hands messages on before it calls back, but on another thread than this one.
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

/// Puts a question to the user. It has no end of its own: the engine withdraws what is not answered.
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
        // Should nobody take it, the program is about to end.
        let _ = questions.send(question).await;
        match answered.await {
            Ok(answer) => answer,
            Err(_) => future::pending().await,
        }
    }
}

/// An engine that runs already, for one client.
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
        let link = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let twice = || Error::Options("this engine has a client already".to_owned());
        future::ready(link.ok_or_else(twice)).boxed()
    }
}

/// Its frames end when it does, so there is nothing else to wait for.
struct InThisProcess;

impl Engine for InThisProcess {
    fn ended(&mut self) -> BoxFuture<'_, Result<(), Error>> {
        future::ready(Ok(())).boxed()
    }
}
