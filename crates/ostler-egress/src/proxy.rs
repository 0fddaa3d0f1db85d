//! The proxy: a server on a Unix socket that ends with its owner.

mod socket;

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, broadcast, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use self::socket::Socket;
pub use self::socket::StartError;
use crate::ask::{Asker, HostAnswer, HostRequest, Questions};
use crate::connection::{Connection, Limits};
use crate::end::refuse;
use crate::events::{CAPACITY, EventReader, HostEvent};
use crate::gate::Gate;
use crate::network::{Network, SystemNetwork};
use crate::rules::HostRules;
use crate::user_proxy::UserProxy;
use crate::{http, socks};

/// What a new proxy is made of.
#[must_use]
pub struct ProxyBuilder {
    rules: HostRules,
    asker: Option<Asker>,
    network: Arc<dyn Network>,
    limits: Limits,
    token: Option<Arc<str>>,
    socket_owner: Option<u32>,
    user_proxy: Option<UserProxy>,
}

impl ProxyBuilder {
    /// Asks about hosts on neither list. Errors, panics and answers that never come are a no; without this call there is
    /// no one to ask, and such hosts are refused.
    ///
    /// The same question is asked once for all connections that wait for its answer, and withdrawn (the future is dropped)
    /// when all of them are gone.
    pub fn asker<F, A>(mut self, ask: F) -> Self
    where
        F: Fn(HostRequest) -> A + Send + Sync + 'static,
        A: Future<Output: Into<HostAnswer>> + Send + 'static,
    {
        self.asker = Some(Asker::new(ask));
        self
    }

    /// Another resolver, and another way to connect.
    pub fn network(mut self, network: Arc<dyn Network>) -> Self {
        self.network = network;
        self
    }

    /// Other limits than the default ones.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A password that clients must give, for sockets that more than one sandbox can reach. See
    /// [`variables_with_token`](crate::variables_with_token).
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Passes every connection on to a proxy of the user, which decides about hosts; the rules are not used.
    pub fn user_proxy(mut self, proxy: UserProxy) -> Self {
        self.user_proxy = Some(proxy);
        self
    }

    /// The user id that may connect, if the sandbox runs as another user than this process.
    pub fn socket_owner(mut self, uid: u32) -> Self {
        self.socket_owner = Some(uid);
        self
    }

    /// Starts the proxy on a new Unix socket, inside a tokio runtime. The socket's folder is created if it is missing; if it
    /// exists, only this user may have access to it.
    ///
    /// # Errors
    /// If the folder is not private, or the socket cannot be created.
    pub fn start(self, path: &Path) -> Result<Proxy, StartError> {
        let (socket, listener) = Socket::create(path, self.socket_owner)?;
        let (events, _) = broadcast::channel(CAPACITY);
        let questions = Questions::new(self.asker);
        let gate =
            Gate::new(self.rules, questions, self.network, events.clone(), self.limits.connect);
        let gate = Arc::new(gate);
        let (stop, stopped) = oneshot::channel();
        let connections = Connections {
            gate: Arc::clone(&gate),
            limits: self.limits,
            token: self.token,
            user_proxy: self.user_proxy,
        };
        let task = tokio::spawn(accept(listener, connections, stopped));
        Ok(Proxy { socket, gate, events, task, stop: Some(stop) })
    }
}

/// A running proxy. Dropping it closes every connection and removes the socket.
pub struct Proxy {
    socket: Socket,
    gate: Arc<Gate>,
    events: broadcast::Sender<HostEvent>,
    task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl Proxy {
    /// A proxy with these rules.
    pub fn builder(rules: HostRules) -> ProxyBuilder {
        ProxyBuilder {
            rules,
            asker: None,
            network: Arc::new(SystemNetwork),
            limits: Limits::default(),
            token: None,
            socket_owner: None,
            user_proxy: None,
        }
    }

    /// The path of the socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        self.socket.path()
    }

    /// Everything that happens from now on.
    #[must_use]
    pub fn events(&self) -> EventReader {
        EventReader::new(self.events.subscribe())
    }

    /// Replaces the rules. Open connections that the new rules do not allow end at once, except those that the user allowed
    /// and the rules do not deny.
    pub fn set_rules(&self, rules: HostRules) {
        self.gate.rules.send_replace(Arc::new(rules));
    }

    /// The rules at this moment.
    #[must_use]
    pub fn rules(&self) -> Arc<HostRules> {
        Arc::clone(&self.gate.rules.borrow())
    }

    /// Forgets answers that were given for the session. Open connections stay.
    pub fn forget_answers(&self) {
        self.gate.questions.forget();
    }

    /// Closes every connection and waits until all are closed.
    pub async fn close(mut self) {
        // A task that has ended already cannot be stopped again.
        _ = self.stop.take().map(|stop| stop.send(()));
        _ = (&mut self.task).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Drops the set of its connections, which ends them.
        self.task.abort();
    }
}

/// What every connection gets.
struct Connections {
    gate: Arc<Gate>,
    limits: Limits,
    token: Option<Arc<str>>,
    user_proxy: Option<UserProxy>,
}

async fn accept(listener: UnixListener, shared: Connections, mut stopped: oneshot::Receiver<()>) {
    let room = Arc::new(Semaphore::new(shared.limits.connections.min(Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let accepting = async {
        loop {
            let permit = Arc::clone(&room).acquire_owned().await;
            let permit = permit.expect("the semaphore is never closed");
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // The process has no free file descriptor, most likely; a busy loop would not free one.
                    tracing::warn!(%error, "the proxy of a sandbox cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (gate, token) = (Arc::clone(&shared.gate), shared.token.clone());
            let user_proxy = shared.user_proxy;
            let connection = Connection::new(gate, shared.limits, token);
            connections.spawn(async move {
                tokio::select! {
                    () = serve(stream, &connection, user_proxy) => {}
                    () = connection.revoked() => {}
                }
                drop(permit);
            });
            // Removes the tasks of connections that have ended.
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        // The other end of this channel is dropped together with this task.
        _ = &mut stopped => {}
        () = accepting => {}
    }
    connections.shutdown().await;
}

/// Serves one client by the protocol of its first byte.
async fn serve(stream: UnixStream, connection: &Connection, user_proxy: Option<UserProxy>) {
    let first = timeout(connection.limits.request, first_byte(&stream)).await;
    if let (Some(proxy), Ok(Ok(Some(first)))) = (user_proxy, &first) {
        return proxy.pass_on(stream, *first, connection.limits).await;
    }
    match first {
        Ok(Ok(Some(socks::VERSION))) => socks::serve(stream, connection).await,
        Ok(Ok(Some(b'A'..=b'Z'))) => http::serve(stream, connection).await,
        Ok(Ok(Some(_))) => unknown(stream).await,
        Ok(Ok(None) | Err(_)) | Err(_) => {}
    }
}

/// The first byte, which stays where it is.
async fn first_byte(stream: &UnixStream) -> io::Result<Option<u8>> {
    let peek = || {
        let mut byte = [0];
        let (count, _) = rustix::net::recv(stream, &mut byte, RecvFlags::PEEK)?;
        Ok((count > 0).then_some(byte[0]))
    };
    stream.async_io(Interest::READABLE, peek).await
}

async fn unknown(stream: UnixStream) {
    let text = "This is a proxy: it takes HTTP CONNECT, plain HTTP requests and SOCKS5.";
    refuse(stream, "400 Bad Request", text).await;
}
