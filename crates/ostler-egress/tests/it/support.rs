//! A network in which every name and every address leads to one recording web server, a proxy in front of it, and raw
//! clients.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_egress::{HostRules, Limits, Network, Proxy, ProxyBuilder, bridge};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// What a name resolves to unless a test says otherwise: public, so that only the rules stand in the way.
pub(crate) const PUBLIC: &str = "93.184.216.34";
/// A public address at which no one answers.
pub(crate) const DEAD: &str = "93.184.216.99";
/// Long enough for every machine; tests wait for events and not for this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Records what is resolved and dialled, and connects everything to one server.
pub(crate) struct FakeNetwork {
    names: Mutex<HashMap<String, Vec<IpAddr>>>,
    server: Mutex<SocketAddr>,
    own: Vec<IpAddr>,
    resolved: Mutex<Vec<String>>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl FakeNetwork {
    pub(crate) fn new(server: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            names: Mutex::default(),
            server: Mutex::new(server),
            own: vec!["198.41.0.4".parse().unwrap()],
            resolved: Mutex::default(),
            dialled: Mutex::default(),
        })
    }

    pub(crate) fn name(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|it| it.parse().unwrap()).collect();
        self.names.lock().unwrap().insert(name.to_owned(), addresses);
    }

    /// Connects everything to another server.
    pub(crate) fn lead_to(&self, server: SocketAddr) {
        *self.server.lock().unwrap() = server;
    }

    pub(crate) fn resolved(&self) -> Vec<String> {
        self.resolved.lock().unwrap().clone()
    }

    pub(crate) fn dialled(&self) -> Vec<String> {
        self.dialled.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

impl Network for FakeNetwork {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.resolved.lock().unwrap().push(name.to_owned());
        let known = self.names.lock().unwrap().get(name).cloned();
        let addresses = known.unwrap_or_else(|| vec![PUBLIC.parse().unwrap()]);
        async { Ok(addresses) }.boxed()
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.dialled.lock().unwrap().push(address);
        if address.ip() == DEAD.parse::<IpAddr>().unwrap() {
            return async { Err(io::ErrorKind::ConnectionRefused.into()) }.boxed();
        }
        TcpStream::connect(*self.server.lock().unwrap()).boxed()
    }

    fn is_own(&self, address: IpAddr) -> io::Result<bool> {
        Ok(self.own.contains(&address))
    }
}

/// A web server that answers with `fetched PATH for HOST`, or with what a test gave it for a path.
pub(crate) struct WebServer {
    pub(crate) address: SocketAddr,
    pages: Arc<Mutex<HashMap<String, String>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (pages, heads) = (Arc::default(), Arc::default());
        let server = Self { address, pages: Arc::clone(&pages), heads: Arc::clone(&heads) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (pages, heads) = (Arc::clone(&pages), Arc::clone(&heads));
                tokio::spawn(async move { answer(stream, &pages, &heads).await });
            }
        });
        server
    }

    /// A whole response, head included, for a path.
    pub(crate) fn page(&self, path: &str, response: &str) {
        self.pages.lock().unwrap().insert(path.to_owned(), response.to_owned());
    }

    /// The heads of all requests, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// A response with a body.
pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

async fn answer(
    mut stream: TcpStream,
    pages: &Mutex<HashMap<String, String>>,
    heads: &Mutex<Vec<String>>,
) -> Option<()> {
    loop {
        let head = read_head(&mut stream).await?;
        let path = head.split(' ').nth(1)?.to_owned();
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let length = header("content-length").map_or(0, |it| it.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let host = header("host").unwrap_or_default();
        let page = pages.lock().unwrap().get(&path).cloned();
        let response = page.unwrap_or_else(|| {
            ok(&format!("fetched {path} for {host}{}", String::from_utf8_lossy(&body)))
        });
        heads.lock().unwrap().push(head);
        stream.write_all(response.as_bytes()).await.ok()?;
    }
}

/// Bytes up to and including an empty line; `None` if the stream ends first.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// A proxy with everything around it.
pub(crate) struct Sandbox {
    pub(crate) server: WebServer,
    pub(crate) network: Arc<FakeNetwork>,
    pub(crate) proxy: Proxy,
    folder: TempDir,
}

/// `allowed.test` and everything below `wild.test`; nothing else without a question.
pub(crate) fn usual_rules() -> HostRules {
    HostRules::from_lists(["allowed.test", "*.wild.test"], ["evil.wild.test"])
        .unwrap()
        .strict_allowlist(true)
}

impl Sandbox {
    pub(crate) async fn start(rules: HostRules) -> Self {
        Self::start_with(rules, |builder| builder).await
    }

    pub(crate) async fn start_with(
        rules: HostRules,
        change: impl FnOnce(ProxyBuilder) -> ProxyBuilder,
    ) -> Self {
        let server = WebServer::start().await;
        let network = FakeNetwork::new(server.address);
        let folder = tempfile::tempdir().unwrap();
        let builder = Proxy::builder(rules).network(Arc::clone(&network) as Arc<dyn Network>);
        let proxy = change(builder).start(&folder.path().join("own/proxy.sock")).unwrap();
        Self { server, network, proxy, folder }
    }

    pub(crate) async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.proxy.socket()).await.unwrap()
    }

    /// The port of a bridge to the proxy.
    pub(crate) fn bridge(&self) -> u16 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = self.proxy.socket().to_owned();
        std::thread::spawn(move || bridge::serve(&listener, &socket, bridge::CONNECTIONS));
        port
    }

    /// A folder for programs that need one.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Sends bytes and returns everything that comes back.
    pub(crate) async fn send(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // The proxy may answer and close before it has read everything.
        _ = stream.write_all(bytes.as_ref()).await;
        read_all(&mut stream).await
    }

    /// The answer to CONNECT.
    pub(crate) async fn connect_to(&self, target: &str) -> String {
        self.send(format!("CONNECT {target} HTTP/1.1\r\nConnection: close\r\n\r\n")).await
    }

    /// The answer to a plain request.
    pub(crate) async fn get(&self, host: &str, path: &str) -> String {
        let head = format!(
            "GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        );
        self.send(head).await
    }

    /// The reply code of SOCKS5 to CONNECT with a name.
    pub(crate) async fn socks(&self, host: &[u8], port: u16) -> u8 {
        let mut request = vec![5, 1, 0, 3, u8::try_from(host.len()).unwrap()];
        request.extend(host);
        request.extend(port.to_be_bytes());
        self.socks_request(&request).await
    }

    /// The answer to a list of authentication methods.
    pub(crate) async fn socks_methods(&self, methods: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        let greeting = [&[5, u8::try_from(methods.len()).unwrap()], methods].concat();
        stream.write_all(&greeting).await.unwrap();
        let mut chosen = vec![0; 2];
        stream.read_exact(&mut chosen).await.unwrap();
        chosen
    }

    /// The reply code to a request.
    pub(crate) async fn socks_request(&self, request: &[u8]) -> u8 {
        let mut stream = self.connect().await;
        stream.write_all(&[5, 1, 0]).await.unwrap();
        let mut chosen = [0; 2];
        stream.read_exact(&mut chosen).await.unwrap();
        assert_eq!(chosen, [5, 0]);
        stream.write_all(request).await.unwrap();
        let mut reply = [0; 10];
        let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut reply)).await;
        read.expect("a reply").unwrap();
        reply[1]
    }
}

/// Everything until the end; an error is an end.
pub(crate) async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an end");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The next connection of a server.
pub(crate) async fn accept(listener: &TcpListener) -> TcpStream {
    let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
    accepted.expect("a connection").unwrap().0
}

pub(crate) fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}
