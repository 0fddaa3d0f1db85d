//! What a tool's function may return.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::output::{IntoOutput, Output};

/// What a tool's function may return: a [`ToolValue`], a `Result` of anything that serialises, or a future of either.
/// There is nothing to implement.
///
/// ```
/// use ostler_mcp::{Json, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Divide { a: f64, b: f64 }
///
/// #[derive(serde::Serialize)]
/// struct Parts { whole: f64, rest: f64 }
///
/// let plain = tool("divide", "Divides", |it: Divide| it.a / it.b);
/// let waits = tool("divide", "Divides", |it: Divide| async move { it.a / it.b });
/// let fails = tool("divide", "Divides", |it: Divide| match it.b {
///     0.0 => Err("division by zero"),
///     _ => Ok(it.a / it.b),
/// });
/// let own_type = tool("divide", "Divides", |it: Divide| Json(Parts { whole: (it.a / it.b).trunc(), rest: it.a % it.b }));
/// ```
pub trait ToolReply<K> {
    #[doc(hidden)]
    fn reply(self) -> Reply;
}

/// A result, or a future of one.
#[doc(hidden)]
pub enum Reply {
    Now(Output),
    Later(BoxFuture<'static, Output>),
}

impl Reply {
    pub(super) fn into_future(self) -> BoxFuture<'static, Output> {
        match self {
            Self::Now(output) => Box::pin(std::future::ready(output)),
            Self::Later(output) => output,
        }
    }
}

/// A function that returns a value; see [`ToolReply`].
#[derive(Debug)]
pub struct Plain;

/// A function that returns a `Result`; see [`ToolReply`].
#[derive(Debug)]
pub struct Fallible;

/// A function that returns a future; see [`ToolReply`].
#[derive(Debug)]
pub struct Async<K>(std::marker::PhantomData<K>);

impl<V: ToolValue> ToolReply<Plain> for V {
    fn reply(self) -> Reply {
        Reply::Now(self.into_output())
    }
}

impl<V: IntoOutput, E: Display> ToolReply<Fallible> for Result<V, E> {
    fn reply(self) -> Reply {
        Reply::Now(match self {
            Ok(value) => value.into_output(),
            // The alternate form shows the causes where an error type has them.
            Err(error) => Output::error(format!("{error:#}")),
        })
    }
}

impl<F, K> ToolReply<Async<K>> for F
where
    F: Future<Output: ToolReply<K>> + Send + 'static,
{
    fn reply(self) -> Reply {
        Reply::Later(Box::pin(async move {
            let reply = self.await.reply();
            reply.into_future().await
        }))
    }
}

/// A value that a tool can return without a `Result`: texts, numbers, lists, maps, JSON, an [`Output`], and [`Json`] of
/// everything else that serialises.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}` as it is",
    note = "return `Json(value)` or a `Result` if it implements `serde::Serialize`"
)]
pub trait ToolValue: IntoOutput {}

/// Makes anything that serialises a [`ToolValue`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Json<T>(pub T);

impl<T: Serialize + 'static> ToolValue for Json<T> {}

macro_rules! values {
    ($($kind:ty)*) => { $(impl ToolValue for $kind {})* };
}

values! {
    () bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64
    String &'static str Cow<'static, str> Value Output
}

impl<T: Serialize + 'static> ToolValue for Vec<T> {}
impl<T: Serialize + 'static> ToolValue for Option<T> {}
impl<K: Serialize + 'static, V: Serialize + 'static> ToolValue for BTreeMap<K, V> {}
impl<K: Serialize + 'static, V: Serialize + 'static, S: 'static> ToolValue for HashMap<K, V, S> {}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    fn text<K>(reply: impl ToolReply<K>) -> (String, bool) {
        let output = block_on(reply.reply().into_future());
        (output.joined_text(), output.is_error)
    }

    #[test]
    fn values_results_and_futures_of_both_become_output() {
        let fine = |text: &str| (text.to_owned(), false);
        assert_eq!(text(7), fine("7"));
        assert_eq!(text("hello"), fine("hello"));
        assert_eq!(text(()), fine("ok"));
        assert_eq!(text(async { vec![1, 2] }), fine("[1,2]"));
        assert_eq!(text(Ok::<_, String>(7)), fine("7"));
        assert_eq!(text(async { Ok::<_, String>(Json(Some(1))) }), fine("1"));
        let failed = ("no".to_owned(), true);
        assert_eq!(text(Err::<(), _>("no")), failed);
        assert_eq!(text(async { Err::<i32, Box<dyn std::error::Error>>("no".into()) }), failed);
        assert_eq!(text(Output::error("no")), failed);
    }
}
