//! [`query`] and [`prompt`]: start an engine for one prompt or one stream of prompts, and end it afterwards.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::Stream;
use ostler_proto::message::TurnResult;
use serde::de::DeserializeOwned;

use crate::answer;
use crate::client::{Client, Prompt};
use crate::error::Error;
use crate::handle::Handle;
use crate::message::Message;
use crate::options::{IntoOptions, Options};
use crate::session::Command;

/// Starts an engine, sends it a prompt, and streams its messages until it has ended.
///
/// The engine starts when the stream is first polled. It ends when the prompt is answered and nothing runs in the
/// background; with a stream of prompts, when that has ended too.
pub fn query(prompt: impl Into<Prompt>, options: impl IntoOptions) -> Query {
    let starting = start(prompt.into(), options.into_options()).boxed();
    Query(State::Starting(starting))
}

async fn start(prompt: Prompt, options: Options) -> Result<Client, Error> {
    let client = Client::connect(options).await?;
    // If the engine has ended already, its messages contain the reason.
    let accepted = tokio::sync::oneshot::channel().0;
    let first = match prompt {
        Prompt::One(user) => Command::Say(user, accepted),
        Prompt::Many(users) => Command::Feed(users, accepted),
    };
    for command in [first, Command::CloseWhenQuiet] {
        client.command(command).await?;
    }
    Ok(client)
}

/// The messages of a query. Dropping it ends the engine.
#[must_use = "nothing happens until messages are read"]
pub struct Query(State);

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            State::Starting(_) => "Query(starting)",
            State::Running(_) => "Query(running)",
            State::Over => "Query(over)",
        })
    }
}

enum State {
    Starting(BoxFuture<'static, Result<Client, Error>>),
    Running(Box<Client>),
    Over,
}

impl Query {
    /// The next message; `None` when the engine has ended.
    ///
    /// # Errors
    /// When the engine cannot be started, sends a malformed message, or ends with an error.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        futures::StreamExt::next(self).await
    }

    /// A handle for requests to the session; `None` before the first message and after the last.
    pub fn handle(&self) -> Option<Handle> {
        match &self.0 {
            State::Running(client) => Some(client.handle()),
            State::Starting(_) | State::Over => None,
        }
    }
}

impl Stream for Query {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut self.0 {
                State::Starting(starting) => match std::task::ready!(starting.as_mut().poll(cx)) {
                    Ok(client) => self.0 = State::Running(Box::new(client)),
                    Err(error) => {
                        self.0 = State::Over;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                State::Running(client) => {
                    let message = std::task::ready!(client.poll_next(cx));
                    if message.is_none() {
                        self.0 = State::Over;
                    }
                    return Poll::Ready(message);
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }
}

/// Starts an engine, sends it a prompt, and returns its last result.
///
/// # Errors
/// When the turn fails, or there is no result.
pub async fn prompt(
    prompt: impl Into<Prompt>,
    options: impl IntoOptions,
) -> Result<TurnResult, Error> {
    let mut query = query(prompt, options);
    let mut last = None;
    while let Some(message) = query.next().await {
        if let Message::Result(result) = message? {
            last = Some(*result);
        }
    }
    let last =
        last.ok_or_else(|| Error::Closed("the engine has ended without a result".to_owned()))?;
    match Error::of_turn(&last) {
        Some(error) => Err(error),
        None => Ok(last),
    }
}

/// Starts an engine, sends it a prompt, and returns the answer as a value: a struct, an enum, a list, anything with a
/// schema.
///
/// ```no_run
/// # async fn example() -> Result<(), ostler_sdk::Error> {
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review { score: u8, remarks: Vec<String> }
///
/// let review: Review = ostler_sdk::prompt_as("Review src/main.rs", ostler_sdk::Options::new()).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// When the turn fails, or the answer is not a `T`.
pub async fn prompt_as<T>(prompt: impl Into<Prompt>, options: impl IntoOptions) -> Result<T, Error>
where
    T: DeserializeOwned + schemars::JsonSchema,
{
    let options = options.into_options().answers::<T>();
    answer::of_result(self::prompt(prompt, options).await?)
}
