//! MCP over a WebSocket: one text message of JSON for each message, with the subprotocol `mcp`.

use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::rpc::{self, Failure};
use crate::{Channel, Endpoint, Remote};

/// The size limit of a message, in bytes.
const LONGEST_MESSAGE: usize = 16 * 1024 * 1024;
/// How many messages may wait in each direction.
const CAPACITY: usize = 64;

/// A server behind a WebSocket. `prepare` is called for every connection and returns the address (`ws` or `wss`) and the
/// headers, or why there are none.
pub fn websocket<F>(prepare: impl Fn() -> F + Send + Sync + 'static) -> Endpoint
where
    F: Future<Output = Result<Remote, String>> + Send + 'static,
{
    Endpoint::custom(move || {
        let (ours, theirs) = Channel::pair(CAPACITY);
        // The task ends with the client, which holds the other end of the channel.
        tokio::spawn(serve(prepare(), theirs));
        ours
    })
}

async fn serve(prepared: impl Future<Output = Result<Remote, String>>, mut channel: Channel) {
    let opening = async { open(&prepared.await?).await };
    let opened = tokio::select! {
        opened = opening => opened,
        () = channel.outgoing.closed() => return,
    };
    match opened {
        Ok(socket) => carry(socket, channel).await,
        // A channel has no place for a reason, so requests are answered with it.
        Err(message) => {
            while let Some(request) = channel.incoming.recv().await {
                if let Some(id) = request.get("id") {
                    let failure = Failure { code: -32000, message: message.clone() };
                    channel.outgoing.send(rpc::answer(id, Err(failure))).await.ok();
                }
            }
        }
    }
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn open(remote: &Remote) -> Result<WebSocketStream<Box<dyn Stream>>, String> {
    let url =
        reqwest::Url::parse(&remote.url).map_err(|error| format!("`{}`: {error}", remote.url))?;
    let is_secure = match url.scheme() {
        "ws" => false,
        "wss" => true,
        scheme => return Err(format!("`{url}`: the scheme must be ws or wss, not {scheme}")),
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let unreachable = |error: std::io::Error| format!("connecting to {host}:{port}: {error}");
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;
    let stream: Box<dyn Stream> = match is_secure {
        false => Box::new(stream),
        true => {
            let tls = ostler_http::tls_for_sockets().map_err(|error| error.to_string())?;
            let name = host.clone().try_into();
            let name = name.map_err(|_| format!("`{host}` is not a valid name of a server"))?;
            let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
            Box::new(connector.connect(name, stream).await.map_err(unreachable)?)
        }
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE));
    let request = request(&url, remote)?;
    let connecting = tokio_tungstenite::client_async_with_config(request, stream, Some(config));
    connecting.await.map(|(socket, _)| socket).map_err(|error| refusal(&error))
}

fn request(url: &reqwest::Url, remote: &Remote) -> Result<http::Request<()>, String> {
    let mut request = url.as_str().into_client_request().map_err(|error| error.to_string())?;
    let headers = request.headers_mut();
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
    for (name, value) in &remote.headers {
        // The value may be a secret and is not repeated.
        let wrong = || format!("the header `{name}` cannot be sent: not valid in HTTP");
        let value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
    }
    Ok(request)
}

fn refusal(error: &tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Http(response) => {
            format!("the server answered {} in place of a WebSocket", response.status())
        }
        error => error.to_string(),
    }
}

/// Carries messages until one side ends.
async fn carry(socket: WebSocketStream<Box<dyn Stream>>, mut channel: Channel) {
    let (mut write, mut read) = socket.split();
    loop {
        tokio::select! {
            message = channel.incoming.recv() => {
                let Some(message) = message else { break };
                if write.send(Message::text(message.to_string())).await.is_err() {
                    break;
                }
            }
            message = read.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    // What is not JSON is not a message.
                    let Ok(message) = serde_json::from_str::<Value>(&text) else { continue };
                    if channel.outgoing.send(message).await.is_err() {
                        break;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            }
        }
    }
    // The server may be gone already.
    write.close().await.ok();
}
