//! HTTP proxying: CONNECT tunnels, and plain requests in absolute form (`GET http://host/…`). Each request is judged, also on a
//! connection that is kept alive. Redirects are the client's business: its next request is judged again.

mod headers;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, PROXY_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri, Version, client, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::host::{HostError, Target};
use crate::refusal::Refusal;
use crate::tunnel::tunnel;

type Body = BoxBody<Bytes, hyper::Error>;
type Answer = Response<Body>;

/// The smallest buffer with which `hyper` works.
const LEAST_HEAD: usize = 8 * 1024;

/// Requests of one client, one after the other.
struct Exchange<'a> {
    connection: &'a Connection,
    /// The tunnel that begins when the answer to CONNECT is sent.
    tunnel: Mutex<Option<(OnUpgrade, TcpStream)>>,
    /// Connections to servers; they end with the client's.
    servers: Mutex<JoinSet<()>>,
}

/// Serves a client until it ends, or a tunnel ends.
pub(crate) async fn serve(stream: UnixStream, connection: &Connection) {
    let exchange =
        Exchange { connection, tunnel: Mutex::default(), servers: Mutex::new(JoinSet::new()) };
    let exchange = Arc::new(exchange);
    let service = service_fn(|request| {
        let exchange = Arc::clone(&exchange);
        async move { Ok::<_, Infallible>(exchange.answer(request).await) }
    });
    let limits = connection.limits;
    let head_bytes = limits.head_bytes.max(LEAST_HEAD);
    let served = server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.request)
        .max_buf_size(head_bytes)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client's connection to the proxy failed");
    }
    let begun = exchange.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((upgrade, server)) = begun
        && let Ok(client) = upgrade.await
    {
        tunnel(TokioIo::new(client), server, limits.half_closed).await;
    }
}

impl Exchange<'_> {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        if !self.connection.accepts(headers::password(request.headers()).as_deref()) {
            let mut answer = text(
                StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                "The proxy of this sandbox needs its token as the password of Proxy-Authorization: Basic.",
            );
            let challenge = HeaderValue::from_static("Basic realm=\"ostler\"");
            answer.headers_mut().insert(PROXY_AUTHENTICATE, challenge);
            return answer;
        }
        let uri = request.uri().clone();
        let Some(authority) = uri.authority() else {
            return text(
                StatusCode::BAD_REQUEST,
                "This is a proxy: it takes CONNECT and requests such as GET http://host/path.",
            );
        };
        let is_connect = request.method() == Method::CONNECT;
        if !is_connect && uri.scheme_str() != Some("http") {
            return text(
                StatusCode::BAD_REQUEST,
                "Through this proxy only http is requested directly; use CONNECT for everything else.",
            );
        }
        let parsed = Target::parse(authority.as_str(), (!is_connect).then_some(80));
        let target = match parsed {
            Ok(target) => target,
            Err(error) => return self.malformed(authority.as_str(), error),
        };
        let answer = if is_connect {
            self.connect(request, &target).await
        } else {
            self.forward(request, &target).await
        };
        answer.unwrap_or_else(|refusal| refused(&refusal, &target))
    }

    fn malformed(&self, authority: &str, error: HostError) -> Answer {
        let refusal = self.connection.malformed(authority, error);
        text(StatusCode::FORBIDDEN, &refusal.text(authority, authority))
    }

    async fn connect(
        &self,
        request: Request<Incoming>,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let server = self.connection.open(target).await?;
        let begun = (hyper::upgrade::on(request), server);
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
        Ok(Response::new(empty()))
    }

    async fn forward(
        &self,
        request: Request<Incoming>,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        if !headers::host_agrees(&request, target) {
            self.connection.gate.report(
                &target.host.to_string(),
                target.port,
                Some(&Refusal::HostHeader),
            );
            return Err(Refusal::HostHeader);
        }
        let server = self.connection.open(target).await?;
        let sent = self.send(origin_form(request, target), server).await;
        sent.or_else(|error| {
            let message = format!("{target} sent no valid answer: {error}.");
            Ok(text(StatusCode::BAD_GATEWAY, &message))
        })
    }

    async fn send(
        &self,
        request: Request<Incoming>,
        server: TcpStream,
    ) -> Result<Answer, hyper::Error> {
        let (mut sender, driver) = client::conn::http1::Builder::new()
            .max_buf_size(self.connection.limits.head_bytes.max(LEAST_HEAD))
            .preserve_header_case(true)
            .handshake(TokioIo::new(server))
            .await?;
        self.drive(async move { _ = driver.await });
        let mut response = sender.send_request(request).await?;
        headers::remove_hop_by_hop(response.headers_mut());
        if response.status().is_informational() {
            let message = "The server switched to another protocol, which it was not asked for.";
            return Ok(text(StatusCode::BAD_GATEWAY, message));
        }
        Ok(response.map(|body| body.boxed()))
    }

    fn drive(&self, driver: impl Future<Output = ()> + Send + 'static) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes those that have ended.
        while servers.try_join_next().is_some() {}
        servers.spawn(driver);
    }
}

/// The request as the server gets it: without the host in its first line, and without what was meant for the proxy.
fn origin_form(request: Request<Incoming>, target: &Target) -> Request<Incoming> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    parts.uri = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    parts.version = Version::HTTP_11;
    parts.extensions.remove::<OnUpgrade>();
    headers::remove_hop_by_hop(&mut parts.headers);
    headers::set_host(&mut parts.headers, target);
    Request::from_parts(parts, body)
}

/// The answer to a request that was not carried out.
fn refused(refusal: &Refusal, target: &Target) -> Answer {
    let (status, error) = match refusal {
        Refusal::Resolve(_) => (StatusCode::BAD_GATEWAY, "dns_error"),
        Refusal::Connect(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            (StatusCode::GATEWAY_TIMEOUT, "connection_timeout")
        }
        Refusal::Connect(_) => (StatusCode::BAD_GATEWAY, "connection_refused"),
        Refusal::HostHeader => (StatusCode::BAD_REQUEST, "http_request_error"),
        _ => (StatusCode::FORBIDDEN, "http_request_denied"),
    };
    let mut answer = text(status, &refusal.text(&target.to_string(), &target.host.to_string()));
    // RFC 9209: what clients show that do not show the body of an answer to CONNECT.
    let details = refusal.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    if let Ok(value) =
        HeaderValue::from_str(&format!("ostler; error={error}; details=\"{details}\""))
    {
        answer.headers_mut().insert("proxy-status", value);
    }
    answer
}

fn text(status: StatusCode, message: &str) -> Answer {
    let body = Full::from(format!("{message}\n")).map_err(|never| match never {}).boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}

fn empty() -> Body {
    http_body_util::Empty::new().map_err(|never| match never {}).boxed()
}
