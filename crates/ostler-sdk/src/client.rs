//! [`Client`]: a session that stays open, for as many prompts as one likes.

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

/// How long an engine may take to introduce itself.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an engine may take to end once it was told to.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// A session that stays open.
///
/// Dropping it ends the engine at once, with everything it started; [`Client::close`] lets it finish.
///
/// ```no_run
/// # async fn example() -> Result<(), ostler_sdk::Error> {
/// use ostler_sdk::{Client, Options};
///
/// let mut client = Client::connect(Options::new()).await?;
/// // The short way: say something, wait for the result.
/// println!("{}", client.prompt("Which tests fail?").await?.result.unwrap_or_default());
/// // The long way: say something, read all messages up to the result.
/// client.send("Mend them").await?;
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
    /// What [`Client::send`] sent, for [`Client::turn`].
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
    /// Starts an engine and introduces the host to it.
    ///
    /// # Errors
    /// When there is no engine, when it does not start, or when it refuses what the options say.
    pub async fn connect(options: impl IntoOptions) -> Result<Self, Error> {
        Self::connect_with(options.into_options()).await
    }

    async fn connect_with(options: Options) -> Result<Self, Error> {
        // What contradicts itself is refused before anything is loaded.
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

    /// Why an engine that did not introduce itself ended: it says so in a result, or by its exit.
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

    /// Sends a prompt. It waits its turn if the agent is busy. A prompt without a `uuid` is given one.
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

    /// Sends the prompts of a stream, as they come, until the input is closed.
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
    /// When the engine sends something malformed, or does not end well.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        std::future::poll_fn(|cx| self.poll_heard(cx)).await.map(|message| message.map(|it| it.0))
    }

    /// The messages up to the result of the oldest prompt of [`Client::send`] that has none yet, and that one too;
    /// results of other turns, such as those for background work, are among them. Without such a prompt, up to the
    /// next result. A prompt that is withdrawn ends the turn without a result.
    pub fn turn(&mut self) -> Turn<'_> {
        Turn { client: self, is_over: false }
    }

    /// Sends a prompt and waits for its result. Results of other turns, such as those for background work or for a prompt
    /// that was given up, are passed over. An engine that does not name prompts (such as Claude Code 2.1.50) is
    /// believed to answer with its next result.
    ///
    /// # Errors
    /// When the turn fails, the prompt is withdrawn, or the session is over before there is a result.
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
    /// In a session of [`Options::answers`] the engine makes sure that the answer fits. In any other session the prompt
    /// says what is wanted, and a model whose answer does not fit is told so, twice at most; other prompts of the session
    /// can ask for other types.
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
    /// As [`Client::prompt`]; [`Error::Answer`] when the answer is not a `T`, and [`Error::Options`] when the session is
    /// one of [`Options::answers`] with another type.
    pub async fn prompt_as<T>(&mut self, prompt: impl Into<User>) -> Result<T, Error>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let schema = answer_schema::<T>();
        match &self.schema {
            Some(all) if *all == schema => return answer::of_result(self.prompt(prompt).await?),
            Some(_) => {
                let text = "this session gives all answers in another shape; connect without `answers`, or with this type";
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

    /// Why an engine that takes no prompts has ended, if it tells.
    async fn last_error(&mut self) -> Option<Error> {
        while let Some(message) = self.next().await {
            if let Err(error) = message {
                return Some(error);
            }
        }
        None
    }

    /// Stops the turn that runs. Its messages go on up to a result that says so; the session stays usable.
    ///
    /// # Errors
    /// As with everything a [`Handle`] can do.
    pub async fn interrupt(&self) -> Result<(), Error> {
        self.handle.interrupt().await.map(drop)
    }

    /// What can be done to the session from anywhere, also while its messages are being read.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Tells the engine that no more prompts come. It finishes what it does, and its messages can be read to their end;
    /// how long it waits for background tasks is its own decision. Its questions can no longer be answered.
    ///
    /// # Errors
    /// When the session is over already.
    pub async fn end_input(&self) -> Result<(), Error> {
        self.handle.command(Command::Close).await
    }

    /// Lets the engine finish what it does, for up to five seconds, and ends it; what it still had to say is lost.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when the engine was still at work and was ended; otherwise when it does not end well. It
    /// has ended all the same.
    pub async fn close(self) -> Result<(), Error> {
        self.close_within(CLOSE_GRACE).await
    }

    /// [`Client::close`] with another limit.
    ///
    /// # Errors
    /// As [`Client::close`].
    pub async fn close_within(mut self, limit: Duration) -> Result<(), Error> {
        // An engine that has ended already need not be told.
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
        let late = |_| Error::TimedOut { what: "finishing the work at hand", limit };
        tokio::time::timeout(limit, rest).await.map_err(late)?
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), Error> {
        self.handle.command(command).await
    }

    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Message, Error>>> {
        self.poll_heard(cx).map(|message| message.map(|message| message.map(|it| it.0)))
    }

    /// The next message, and whether it ends the turn of the oldest prompt that is pending.
    fn poll_heard(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(Message, bool), Error>>> {
        let message = std::task::ready!(self.inbox.poll_next(cx));
        Poll::Ready(message.map(|message| {
            message.map(|message| {
                let ends = self.pending.heard(&message);
                (message, ends)
            })
        }))
    }
}

/// The session that is to be resumed, if it is in a store.
async fn load_from_store(options: &Options) -> Result<Option<Resumable>, Error> {
    let Some(store) = &options.session.store else { return Ok(None) };
    let cwd = options.context.cwd.as_deref().unwrap_or(Path::new("."));
    load_for_resume(store, &options.session.choice, cwd, &options.engine.env).await
}

/// The reason why an engine did not introduce itself, if it is its age: the oldest ones do not know `initialize`, or
/// refuse arguments.
async fn too_old(transport: &dyn Transport, options: &Options) -> Option<Error> {
    // What is meant to run as another user is not started as this one.
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
#[must_use = "nothing is read until messages are asked for"]
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
        let message = std::task::ready!(self.client.poll_heard(cx));
        Poll::Ready(message.map(|message| {
            message.map(|(message, ends)| {
                self.is_over = ends;
                message
            })
        }))
    }
}

/// A prompt: a text, or messages as they come.
#[non_exhaustive]
pub enum Prompt {
    /// One message.
    One(Box<User>),
    /// As many as come. The engine's input stays open until there are no more.
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
