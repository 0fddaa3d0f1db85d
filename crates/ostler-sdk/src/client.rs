//! [`Client`]: a session that stays open for any number of prompts.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::{BoxStream, Stream, StreamExt as _};
use ostler_proto::message::{TurnResult, User};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::{self, answer_schema};
use crate::error::Error;
use crate::handle::Handle;
use crate::message::Message;
use crate::options::{IntoOptions, Options};
use crate::pending::{self, Pending};
use crate::process::Process;
use crate::session::{self, Command, Inbox};
use crate::session_store::{ConfigFolder, Resumable, load_for_resume};
use crate::transport::Transport;
use crate::version::EngineVersion;

/// How long an engine may take to answer `initialize`.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an engine may take to end after its input was closed.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// A session that stays open.
///
/// Dropping it ends the engine at once, with everything that it started; [`Client::close`] lets the engine finish.
///
/// ```no_run
/// # async fn example() -> Result<(), ostler_sdk::Error> {
/// use ostler_sdk::{Client, Options};
///
/// let mut client = Client::connect(Options::new()).await?;
/// // The short way: send a prompt and wait for the result.
/// println!("{}", client.prompt("Which tests fail?").await?.result.unwrap_or_default());
/// // The long way: send a prompt and read all messages up to the result.
/// client.send("Fix them").await?;
/// let mut turn = client.turn();
/// while let Some(message) = turn.next().await {
///     for call in message?.tool_uses() {
///         println!("{} {}", call.name, call.input);
///     }
/// }
/// client.close().await
/// # }
/// ```
pub struct Client {
    handle: Handle,
    inbox: Inbox,
    /// The prompts of [`Client::send`], for [`Client::turn`].
    pending: Pending,
    /// The schema of all answers, if the session has one.
    schema: Option<Value>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Client {
    /// Starts an engine and sends it `initialize`.
    ///
    /// # Errors
    /// When no engine is found, when it does not start, or when it refuses the options.
    pub async fn connect(options: impl IntoOptions) -> Result<Self, Error> {
        Self::connect_with(options.into_options()).await
    }

    async fn connect_with(options: Options) -> Result<Self, Error> {
        // Refuses contradictory options before a session is loaded.
        options.start()?;
        let loading = load_from_store(&options);
        let loaded = match &options.engine.cancellation {
            Some(cancelled) => {
                cancelled.run_until_cancelled(loading).await.ok_or(Error::Cancelled)??
            }
            None => loading.await?,
        };
        let Some(Resumable { session_id, folder }) = loaded else {
            return Self::connect_in(options, None).await;
        };
        let (variable, path) = folder.variable();
        let mut options = options.resume(session_id).env(variable, path);
        options.session.choice.go_on = false;
        Self::connect_in(options, Some(Arc::new(folder))).await
    }

    async fn connect_in(
        options: Options,
        folder: Option<Arc<ConfigFolder>>,
    ) -> Result<Self, Error> {
        let transport: Arc<dyn Transport> = match &options.engine.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(Process::find()),
        };
        let limit = options.engine.start_timeout.unwrap_or(START_TIMEOUT);
        let start = options.start()?;
        options.warn_of_unasked_callback();
        let connecting = async {
            let link = transport.start(start).await?;
            let version = Arc::default();
            let (commands, inbox) = session::run(link, &options, folder, Arc::clone(&version));
            let handle = Handle::new(commands, version, options.initialize());
            let schema = options.output.schema.clone();
            let mut client = Self { handle, inbox, pending: Pending::default(), schema };
            match client.handle.introduce().await {
                Ok(()) => Ok(client),
                Err(error) => Err(client.reason(error).await),
            }
        };
        let late = |_| Error::TimedOut { what: "the engine's start", limit };
        let connecting = async {
            let connected = tokio::time::timeout(limit, connecting).await.map_err(late);
            match connected.flatten() {
                Err(
                    error @ (Error::TimedOut { .. }
                    | Error::Exited { .. }
                    | Error::Unsupported { .. }),
                ) => Err(too_old(transport.as_ref(), &options).await.unwrap_or(error)),
                connected => connected,
            }
        };
        match &options.engine.cancellation {
            Some(cancelled) => tokio::select! {
                biased;
                () = cancelled.cancelled() => Err(Error::Cancelled),
                connected = connecting => connected,
            },
            None => connecting.await,
        }
    }

    /// The reason why an engine ended before it answered `initialize`: its result, or its exit status.
    async fn reason(&mut self, error: Error) -> Error {
        if !matches!(error, Error::Closed(_)) {
            return error;
        }
        while let Some(message) = self.inbox.next().await {
            match message {
                Ok(Message::Result(result)) => return Error::refused_start(*result),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
        error
    }

    /// Sends a prompt. If the agent is busy, the prompt is queued. A prompt without a `uuid` gets one.
    ///
    /// # Errors
    /// When the session is over, or its input is closed.
    pub async fn send(&self, prompt: impl Into<User>) -> Result<(), Error> {
        let mut prompt = prompt.into();
        let named = pending::name(&mut prompt);
        self.handle.send(prompt).await?;
        self.pending.sent(named);
        Ok(())
    }

    /// Sends the prompts of a stream as they arrive, until the input is closed.
    ///
    /// # Errors
    /// When the session is over, or its input is closed.
    pub async fn feed(
        &self,
        prompts: impl Stream<Item = User> + Send + 'static,
    ) -> Result<(), Error> {
        self.handle.accepted(|taken| Command::Feed(prompts.boxed(), taken)).await
    }

    /// The next message; `None` when the session is over.
    ///
    /// # Errors
    /// When the engine sends a malformed message, or ends with an error.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        std::future::poll_fn(|cx| self.poll_message(cx)).await.map(|message| message.map(|it| it.0))
    }

    /// The messages of a turn: up to and including the result of the oldest prompt of [`Client::send`] that has no
    /// result yet. They include results of other turns, such as those for background work. Without such a prompt the
    /// turn ends with the next result. A withdrawn prompt ends the turn without a result.
    pub fn turn(&mut self) -> Turn<'_> {
        Turn { client: self, is_over: false }
    }

    /// Sends a prompt and waits for its result. Results of other turns, such as those for background work or for a
    /// prompt whose caller stopped waiting, are skipped. If the engine does not name prompts in results (such as Claude
    /// Code 2.1.50), its next result counts as the answer.
    ///
    /// # Errors
    /// When the turn fails, the prompt is withdrawn, or the session ends before there is a result.
    pub async fn prompt(&mut self, prompt: impl Into<User>) -> Result<TurnResult, Error> {
        let mut prompt = prompt.into();
        let named = pending::name(&mut prompt);
        if let Err(error) = self.handle.send(prompt).await {
            return Err(self.last_error().await.unwrap_or(error));
        }
        while let Some(message) = self.next().await {
            match message? {
                Message::Result(result) if pending::answers(&result, &named) => {
                    return match Error::of_turn(&result) {
                        Some(error) => Err(error),
                        None => Ok(*result),
                    };
                }
                message if pending::withdraws(&message, &named) => return Err(Error::Withdrawn),
                _ => {}
            }
        }
        Err(Error::Closed("the engine has ended without a result".to_owned()))
    }

    /// Sends a prompt and returns its answer as a value: a struct, an enum, a list, anything with a schema.
    ///
    /// In a session of [`Options::answers`] the engine checks the answer. In other sessions the SDK adds the schema to
    /// the prompt, and if the answer does not match, asks the model to correct it, at most twice. Other prompts of such
    /// a session can ask for other types.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), ostler_sdk::Error> {
    /// use ostler_sdk::{Client, Options};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// enum Verdict { Fine, Broken { reason: String } }
    ///
    /// let mut client = Client::connect(Options::new()).await?;
    /// client.prompt("Run the tests").await?;
    /// if let Verdict::Broken { reason } = client.prompt_as("Is the code fine?").await? {
    ///     println!("{reason}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Client::prompt`]; [`Error::Answer`] when the answer is not a `T`, and [`Error::Options`] when the session
    /// is one of [`Options::answers`] with another type.
    pub async fn prompt_as<T>(&mut self, prompt: impl Into<User>) -> Result<T, Error>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let schema = answer_schema::<T>();
        match &self.schema {
            Some(all) if *all == schema => return answer::of_result(self.prompt(prompt).await?),
            Some(_) => {
                let text = "all answers of this session have another type; connect without `answers`, or with this type";
                return Err(Error::Options(text.to_owned()));
            }
            None => {}
        }
        let mut result = self.prompt(answer::with_schema(prompt.into(), &schema)).await?;
        for n_corrections in 0.. {
            match answer::of_text(result.result.as_deref().unwrap_or_default()) {
                Ok(value) => return Ok(value),
                Err(error) if n_corrections < answer::CORRECTIONS => {
                    result = self.prompt(answer::correction(&error)).await?;
                }
                Err(error) => {
                    let message = error.to_string();
                    return Err(Error::Answer { message, result: Box::new(result) });
                }
            }
        }
        unreachable!("the loop ends with the last correction")
    }

    /// The error with which an engine ended that no longer accepts prompts, if there is one.
    async fn last_error(&mut self) -> Option<Error> {
        while let Some(message) = self.next().await {
            if let Err(error) = message {
                return Some(error);
            }
        }
        None
    }

    /// Stops the current turn. Its messages continue up to a result that reports the interruption. The session stays
    /// usable.
    ///
    /// # Errors
    /// As for all requests of a [`Handle`].
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.handle.interrupt().await.map(drop)
    }

    /// A handle that sends requests to the session from any task, also while another task reads messages.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Closes the engine's input: no more prompts follow. The engine finishes its work, and its messages can be read to
    /// the end. The engine decides how long it waits for background tasks. Its questions can no longer be answered.
    ///
    /// # Errors
    /// When the session has already ended.
    pub async fn end_input(&self) -> Result<(), Error> {
        self.handle.command(Command::Close).await
    }

    /// Lets the engine finish its work for up to five seconds, then ends it. Messages that were not read are dropped.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when the engine was still working and was ended, another error when it ended with one. The
    /// engine has ended in every case.
    pub async fn close(self) -> Result<(), Error> {
        self.close_within(CLOSE_GRACE).await
    }

    /// [`Client::close`] with another limit.
    ///
    /// # Errors
    /// As [`Client::close`].
    pub async fn close_within(mut self, limit: Duration) -> Result<(), Error> {
        // Fails only if the engine has ended already.
        let _ = self.handle.command(Command::Close).await;
        let rest = async {
            let mut last = Ok(());
            while let Some(message) = self.inbox.next().await {
                if let Err(error) = message {
                    last = Err(error);
                }
            }
            last
        };
        // Dropping the inbox ends the engine.
        let late = |_| Error::TimedOut { what: "finishing the current work", limit };
        tokio::time::timeout(limit, rest).await.map_err(late)?
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), Error> {
        self.handle.command(command).await
    }

    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Message, Error>>> {
        self.poll_message(cx).map(|message| message.map(|message| message.map(|it| it.0)))
    }

    /// The next message, and whether it ends the turn of the oldest pending prompt.
    fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Message, bool), Error>>> {
        let message = std::task::ready!(self.inbox.poll_next(cx));
        Poll::Ready(message.map(|message| {
            message.map(|message| {
                let ends = self.pending.heard(&message);
                (message, ends)
            })
        }))
    }
}

/// Loads the session to resume from its store, if the options name one.
async fn load_from_store(options: &Options) -> Result<Option<Resumable>, Error> {
    let Some(store) = &options.session.store else { return Ok(None) };
    let cwd = options.context.cwd.as_deref().unwrap_or(Path::new("."));
    load_for_resume(store, &options.session.choice, cwd, &options.engine.env).await
}

/// An error if the engine did not answer `initialize` because it is too old: such engines do not know the request, or
/// refuse arguments.
async fn too_old(transport: &dyn Transport, options: &Options) -> Option<Error> {
    // A program that should run as another user must not be started as this one.
    if options.engine.user.is_some() {
        return None;
    }
    let version = transport.version(&options.engine.env).await?;
    EngineVersion::parse(&version).judge().err()
}

impl Stream for Client {
    type Item = Result<Message, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Self::poll_next(self.get_mut(), cx)
    }
}

/// The messages of one turn.
#[must_use = "nothing happens until messages are read"]
pub struct Turn<'a> {
    client: &'a mut Client,
    is_over: bool,
}

impl Turn<'_> {
    /// The next message; `None` after the result.
    ///
    /// # Errors
    /// As [`Client::next`].
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        futures::StreamExt::next(self).await
    }
}

impl Stream for Turn<'_> {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let message = std::task::ready!(self.client.poll_message(cx));
        Poll::Ready(message.map(|message| {
            message.map(|(message, ends)| {
                self.is_over = ends;
                message
            })
        }))
    }
}

/// A prompt: one message, or a stream of them.
#[non_exhaustive]
pub enum Prompt {
    /// One message.
    One(Box<User>),
    /// A stream of messages. The engine's input stays open until the stream ends.
    Many(BoxStream<'static, User>),
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::One(Box::new(User::prompt(text)))
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::One(Box::new(User::prompt(text.as_str())))
    }
}

impl From<User> for Prompt {
    fn from(user: User) -> Self {
        Self::One(Box::new(user))
    }
}

impl From<BoxStream<'static, User>> for Prompt {
    fn from(prompts: BoxStream<'static, User>) -> Self {
        Self::Many(prompts)
    }
}
