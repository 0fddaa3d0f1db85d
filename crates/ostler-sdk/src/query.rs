//! [`query`] and [`prompt`]: one prompt, or one stream of them, from the engine's start to its end.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::Stream;
use ostler_proto::message::TurnResult;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Client, Prompt};
use crate::error::Error;
use crate::handle::Handle;
use crate::message::Message;
use crate::options::Options;
use crate::session::Command;

/// Starts an engine, gives it a prompt, and streams its messages until it has ended.
///
/// The engine starts when the stream is first polled. With one prompt it ends by itself once everything is answered
/// and nothing goes on in the background; with a stream of prompts, when that has ended too.
pub fn query(prompt: impl Into<Prompt>, options: Options) -> Query {
    let starting = start(prompt.into(), options).boxed();
    Query(State::Starting(starting))
}

async fn start(prompt: Prompt, options: Options) -> Result<Client, Error> {
    let client = Client::connect(options).await?;
    // An engine that has ended already says why in the messages.
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
    /// When the engine cannot be started, sends something malformed, or does not end well.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        futures::StreamExt::next(self).await
    }

    /// What can be done to the session; `None` before the first message and after the last.
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

/// Gives an engine one prompt and returns its last result.
///
/// # Errors
/// When the turn fails, or there is no result.
pub async fn prompt(prompt: impl Into<Prompt>, options: Options) -> Result<TurnResult, Error> {
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

/// Gives an engine one prompt and returns its answer as a value.
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
pub async fn prompt_as<T>(prompt: impl Into<Prompt>, mut options: Options) -> Result<T, Error>
where
    T: DeserializeOwned + schemars::JsonSchema,
{
    options.output.schema = Some(answer_schema::<T>());
    let result = self::prompt(prompt, options).await?;
    let Some(answer) = result.structured_output.clone() else {
        let message = "there is no structured answer".to_owned();
        return Err(Error::Answer { message, result: Box::new(result) });
    };
    serde_path_to_error::deserialize(answer)
        .map_err(|error| Error::Answer { message: error.to_string(), result: Box::new(result) })
}

/// The schema of an answer, as engines take it: without references where that is possible, and only with formats that
/// JSON Schema knows. Claude Code 2.1.50 gives no structured answer at all for a schema with Rust's `uint8`, and says nothing.
pub fn answer_schema<T: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    forget_formats(&mut schema);
    schema
}

/// Takes out the formats that say how numbers are kept in memory.
fn forget_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let is_number = |format: &str| {
                matches!(format.trim_start_matches('u'), "int" | "int8" | "int16" | "int32")
                    || matches!(format.trim_start_matches('u'), "int64" | "int128")
                    || matches!(format, "float" | "double")
            };
            // A property that is called so is an object.
            if object.get("format").and_then(Value::as_str).is_some_and(is_number) {
                object.remove("format");
            }
            object.values_mut().for_each(forget_formats);
        }
        Value::Array(all) => all.iter_mut().for_each(forget_formats),
        _ => {}
    }
}
