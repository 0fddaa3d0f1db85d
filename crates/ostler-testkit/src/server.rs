//! [`ScriptedApi`]: a server for one test, from start to shutdown.
//!
//! It runs in its own thread with its own runtime, so the test's runtime may be blocked or have its clock paused.
//! Dropping the runtime drops every connection, also stalled ones, so nothing outlives the server.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::control;
use crate::gate::Gate;
use crate::journal::{Failure, FailureKind};
use crate::patience::WAIT_LIMIT;
use crate::record::{Endpoint, RecordedRequest};
use crate::routes;
use crate::script::Script;
use crate::state::State;

/// A scripted Messages API on its own loopback port.
///
/// Dropping it stops the server. If a request was invalid or no rule covered it, dropping panics with the
/// conversation, unless [`Self::take_failures`] was called. In `main` it prints the conversation instead, because a
/// panic would hide an error that `main` returns.
pub struct ScriptedApi {
    address: SocketAddr,
    state: State,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Whether the test has called [`Self::finish`], so that failures panic.
    is_finished: bool,
}

impl ScriptedApi {
    /// Starts a server on a free port.
    ///
    /// # Panics
    /// When the loopback interface cannot be listened on.
    pub async fn start(script: Script) -> Self {
        Self::bind(0, script).await.expect("a free loopback port can be listened on")
    }

    /// Starts a server on this port, or on a free one when it is 0.
    pub async fn bind(port: u16, script: Script) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("scripted-api".to_owned())
            .spawn(move || run(port, script, ready, stopped))?;
        let (address, state) =
            started.await.map_err(|_| io::Error::other("the server thread ended at once"))??;
        Ok(Self { address, state, stop: Some(stop), thread: Some(thread), is_finished: false })
    }

    /// The URL of the server, such as `http://127.0.0.1:4321`; a client adds `/v1/messages` to it.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The calls of `/v1/messages` so far, in order of arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let mut requests = self.all_requests();
        requests.retain(|request| request.endpoint == Endpoint::Messages);
        requests
    }

    /// All requests so far, including probes, token counts and unknown paths.
    pub fn all_requests(&self) -> Vec<RecordedRequest> {
        self.state.journal.requests()
    }

    /// Waits until `/v1/messages` was called this often, and returns the calls.
    ///
    /// # Panics
    /// If that takes longer than [`WAIT_LIMIT`].
    pub async fn wait_for_requests(&self, count: usize) -> Vec<RecordedRequest> {
        self.wait_for(&format!("{count} requests"), |requests| requests.len() >= count).await
    }

    /// Waits until the calls of `/v1/messages` satisfy `enough`, and returns them. `what` names the condition in a
    /// panic.
    ///
    /// # Panics
    /// If that takes longer than [`WAIT_LIMIT`].
    pub async fn wait_for(
        &self,
        what: &str,
        enough: impl Fn(&[&RecordedRequest]) -> bool,
    ) -> Vec<RecordedRequest> {
        match self.state.journal.wait_for(enough).await {
            Some(requests) => requests,
            None => {
                let seen: Vec<String> = self
                    .requests()
                    .iter()
                    .map(|one| format!("{:?}\n{}", one.outcome, one.transcript()))
                    .collect();
                panic!(
                    "{what} did not happen within {WAIT_LIMIT:?}; requests so far:\n{}",
                    seen.join("\n")
                )
            }
        }
    }

    /// The gate of this name, to wait for a response there and to release it.
    pub fn gate(&self, name: &str) -> Gate {
        self.state.gates.named(name)
    }

    /// Appends the rules of `script`.
    pub fn append(&self, script: Script) {
        self.state.rulebook().append(script);
    }

    /// The numbers of the rules that have not answered a request yet.
    pub fn unused_rules(&self) -> Vec<usize> {
        self.state.rulebook().unused()
    }

    /// Reports on the requests that no rule covered.
    pub fn unmatched(&self) -> Vec<String> {
        let unmatched =
            self.failures().into_iter().filter(|failure| failure.kind == FailureKind::Unmatched);
        unmatched.map(|failure| failure.report).collect()
    }

    /// All requests that were invalid or that no rule covered.
    pub fn failures(&self) -> Vec<Failure> {
        self.state.journal.failures()
    }

    /// Returns the failures and clears the list, for tests that cause them on purpose.
    pub fn take_failures(&self) -> Vec<Failure> {
        self.state.journal.take_failures()
    }

    /// Stops the server, and panics if there were failures.
    ///
    /// Dropping it does the same, except in `main`: there the failures are printed, because a panic would hide an error
    /// that `main` returns.
    pub fn finish(mut self) {
        self.is_finished = !thread::panicking();
        drop(self);
    }

    fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Fails only if the thread has ended already.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for ScriptedApi {
    fn drop(&mut self) {
        self.stop();
        let failures = self.failures();
        if failures.is_empty() {
            return;
        }
        let reports: Vec<&str> = failures.iter().map(|failure| failure.report.as_str()).collect();
        let report = format!(
            "the scripted API got invalid or uncovered requests:\n\n{}",
            reports.join("\n")
        );
        // A second panic would abort the test run and hide the first. In `main`, a panic would hide an error that
        // `main` returns; tests run in other threads.
        let hides_something = thread::panicking() || thread::current().name() == Some("main");
        match hides_something && !self.is_finished {
            true => _ = writeln!(io::stderr(), "{report}"),
            false => panic!("{report}"),
        }
    }
}

type Ready = oneshot::Sender<io::Result<(SocketAddr, State)>>;

/// The server thread: serves until it is stopped, then drops the runtime and with it every connection.
fn run(port: u16, script: Script, ready: Ready, stopped: oneshot::Receiver<()>) {
    let listening = Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port)))?;
        let address = listener.local_addr()?;
        Ok((runtime, listener, address))
    });
    match listening {
        Err(error) => {
            // Fails only if the test no longer waits for the server.
            let _ = ready.send(Err(error));
        }
        Ok((runtime, listener, address)) => {
            let state = State::new(script, runtime.handle().clone());
            if ready.send(Ok((address, state.clone()))).is_ok() {
                serve(&runtime, listener, state, stopped);
            }
        }
    }
}

fn serve(runtime: &Runtime, listener: TcpListener, state: State, stopped: oneshot::Receiver<()>) {
    let app = Router::new().merge(control::routes()).fallback(routes::answer).with_state(state);
    // Small events must be sent at once; a socket that refuses the option still works.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    runtime.block_on(async {
        tokio::select! {
            // Axum retries failed accepts without end, so only `stopped` ends this.
            _ = axum::serve(listener, app).into_future() => {}
            _ = stopped => {}
        }
    });
}
