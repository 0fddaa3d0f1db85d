//! Questions about hosts on neither list. Everything but a clear yes is a no.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};

use crate::host::Target;

/// How many different questions may be open at once; further ones are answered with no. A program can make up names faster
/// than a user can read them.
const MOST_OPEN: usize = 16;
/// How many answers for the session are kept; further ones count once.
const MOST_REMEMBERED: usize = 4_096;

/// What the user is asked about: a host name and a port, never a URL. Questions about both being equal are the same question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct HostRequest {
    /// The host name, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostRequest {
    pub(crate) fn new(target: &Target) -> Self {
        Self { host: target.host.to_string(), port: target.port }
    }
}

/// The answer to a [`HostRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostAnswer {
    /// This connection, and those that waited for the same answer.
    AllowOnce,
    /// This host and port, as long as the proxy lives.
    AllowSession,
    /// No connection.
    #[default]
    Deny,
    /// No connection, because no one can be asked at this moment.
    NoOneToAsk,
    /// No connection, and the user was not asked, for this reason: the end of a sentence for people.
    Refused(String),
}

/// An error is a no.
impl<E> From<Result<Self, E>> for HostAnswer {
    fn from(answer: Result<Self, E>) -> Self {
        answer.unwrap_or_default()
    }
}

type Ask = dyn Fn(HostRequest) -> BoxFuture<'static, HostAnswer> + Send + Sync;
type Answer = BoxFuture<'static, HostAnswer>;

/// Answers questions about hosts.
#[derive(Clone)]
pub(crate) struct Asker(Arc<Ask>);

impl Asker {
    pub(crate) fn new<F, A>(ask: F) -> Self
    where
        F: Fn(HostRequest) -> A + Send + Sync + 'static,
        A: Future<Output: Into<HostAnswer>> + Send + 'static,
    {
        Self(Arc::new(move |request| ask(request).map(Into::into).boxed()))
    }
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    Yes,
    No,
    NoOneToAsk,
    Refused(String),
    TooManyOpen,
}

/// The open questions and the answers for the session.
pub(crate) struct Questions {
    asker: Option<Asker>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Dropped when the last connection that waits for it is gone, which withdraws the question.
    open: HashMap<HostRequest, WeakShared<Answer>>,
    allowed: HashSet<HostRequest>,
}

impl Questions {
    pub(crate) fn new(asker: Option<Asker>) -> Arc<Self> {
        Arc::new(Self { asker, state: Mutex::default() })
    }

    /// Asks, unless the answer is known. Dropping the future withdraws the question if no other connection waits for it.
    pub(crate) async fn ask(self: &Arc<Self>, request: HostRequest) -> Answered {
        if self.is_allowed(&request) {
            return Answered::Yes;
        }
        let Some(asker) = &self.asker else { return Answered::NoOneToAsk };
        let Some(answer) = self.join_or_open(asker, request) else { return Answered::TooManyOpen };
        match answer.await {
            HostAnswer::AllowOnce | HostAnswer::AllowSession => Answered::Yes,
            HostAnswer::Deny => Answered::No,
            HostAnswer::NoOneToAsk => Answered::NoOneToAsk,
            HostAnswer::Refused(reason) => Answered::Refused(reason),
        }
    }

    /// Whether an answer for the session allows it.
    pub(crate) fn is_allowed(&self, request: &HostRequest) -> bool {
        self.state().allowed.contains(request)
    }

    pub(crate) fn forget(&self) {
        self.state().allowed.clear();
    }

    fn join_or_open(
        self: &Arc<Self>,
        asker: &Asker,
        request: HostRequest,
    ) -> Option<Shared<Answer>> {
        let mut state = self.state();
        if let Some(open) = state.open.get(&request).and_then(WeakShared::upgrade) {
            return Some(open);
        }
        state.open.retain(|_, it| it.upgrade().is_some());
        if state.open.len() >= MOST_OPEN {
            return None;
        }
        let answer = Arc::clone(self).answer(asker.clone(), request.clone()).boxed().shared();
        let weak = answer.downgrade().expect("a future that was never polled has not ended");
        state.open.insert(request, weak);
        Some(answer)
    }

    async fn answer(self: Arc<Self>, asker: Asker, request: HostRequest) -> HostAnswer {
        let asked = request.clone();
        // The call itself may panic, not only its future.
        let answer = AssertUnwindSafe(async move { (asker.0)(asked).await }).catch_unwind().await;
        let answer = answer.unwrap_or_else(|_| {
            tracing::warn!(host = request.host, "the question about a host panicked; it is denied");
            HostAnswer::Deny
        });
        let mut state = self.state();
        state.open.remove(&request);
        if answer == HostAnswer::AllowSession && state.allowed.len() < MOST_REMEMBERED {
            state.allowed.insert(request);
        }
        answer
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
