//! Fetches from small servers on loopback, friendly and hostile; and what is refused before anything is sent.

use parking_lot::Mutex;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::BoxFuture;
use ostler_engine::model::{ModelError, Request};
use ostler_engine::tool::{Tool as _, ToolCx, ToolError, ToolOutput, ToolSession};
use ostler_proto::api::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::visit::{Clients, FetchedContent, LIMITS, Limits, visit};
use super::{Args, WebFetch, location};

/// A session whose rules name these hosts.
#[derive(Debug)]
struct Naming(&'static [&'static str]);

impl ToolSession for Naming {
    fn may_show(&self, _: &Path) -> bool {
        true
    }

    fn names_host(&self, host: &str) -> bool {
        self.0.contains(&host)
    }

    fn ask_model(&self, _: Request) -> BoxFuture<'static, Result<Message, ModelError>> {
        unreachable!("a fetch asks no model")
    }
}

fn naming(hosts: &'static [&'static str]) -> ToolCx {
    ToolCx { session: Some(Arc::new(Naming(hosts))), ..ToolCx::default() }
}

/// A server that answers by path and records the requests.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, address, Arc::clone(&log)));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

async fn serve(mut stream: TcpStream, address: SocketAddr, log: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().push(path.clone());
    let port = address.port();
    let answer = match path.as_str() {
        "/html" => page("text/html; charset=utf-8", HTML.as_bytes()),
        "/json" => page("application/json", br#"{"a":1}"#),
        "/latin" => page("text/plain; charset=iso-8859-1", b"caf\xE9"),
        "/meta" => page("text/html", b"<meta charset=\"windows-1252\"><p>caf\xE9 \x80</p>"),
        "/untyped" => answer("200 OK", "", b"<!DOCTYPE html><h1>Hi</h1>"),
        "/untyped-binary" => answer("200 OK", "", b"\x7fELF\0\0"),
        "/pdf" => page("application/pdf", b"%PDF-1.7"),
        "/empty" => page("text/html", b""),
        "/missing" => answer("404 Not Found", "content-type: text/plain\r\n", b"nothing here"),
        "/long" => page("text/plain", "0123456789\n".repeat(20_000).as_bytes()),
        "/agent" => page("text/plain", head.to_lowercase().as_bytes()),
        "/gzip" => packed(b"unpacked"),
        "/bomb" => packed(&vec![b'x'; 64 * 1024 * 1024]),
        "/br" => answer("200 OK", "content-type: text/plain\r\ncontent-encoding: br\r\n", b"?"),
        "/deep" => page("text/html", ("<div>".repeat(1_000) + "x").as_bytes()),
        "/quotes" => page("text/html", ("<blockquote>".repeat(500) + "x").as_bytes()),
        "/deep-mix" => {
            page("text/html", "<ul><li><b><table><tr><td><a href=x><p>".repeat(200).as_bytes())
        }
        "/tangled" => page("text/html", ("<div>".repeat(100_000) + "end").as_bytes()),
        "/to-html" => redirect("/html"),
        "/loop" => redirect("/loop"),
        "/away" => redirect("http://example.com/x"),
        "/subdomain" => redirect("http://a.127.0.0.1.example.com/"),
        "/metadata" => redirect("http://169.254.169.254/latest/meta-data/"),
        "/decimal" => redirect(&format!("http://2130706433:{port}/html")),
        "/ssh" => redirect("http://127.0.0.1:22/"),
        "/file" => redirect("file:///etc/passwd"),
        "/secret" => redirect("http://user:secret@127.0.0.1/"),
        "/silent" => return std::future::pending().await,
        "/slow" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: te").await.unwrap();
            return std::future::pending().await;
        }
        "/endless" => {
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
            stream.write_all(head).await.unwrap();
            // Until the client closes the connection.
            while stream.write_all(&[b'x'; 64 * 1024]).await.is_ok() {}
            return;
        }
        other => panic!("asked for {other}"),
    };
    let _ = stream.write_all(&answer).await;
}

const HTML: &str = "<html><head><title>T</title><style>p{}</style></head><body><nav>menu</nav><h1>Title</h1>\
    <p>Some <b>bold</b> words and a <a href=\"/x\">link</a>.</p><script>alert(1)</script>\
    <table><tr><th>a</th></tr><tr><td>1</td></tr></table></body></html>";

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn page(content_type: &str, body: &[u8]) -> Vec<u8> {
    answer("200 OK", &format!("content-type: {content_type}\r\n"), body)
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    let packed = encoder.finish().unwrap();
    answer("200 OK", "content-type: text/plain\r\ncontent-encoding: gzip\r\n", &packed)
}

fn redirect(to: &str) -> Vec<u8> {
    answer("302 Found", &format!("location: {to}\r\n"), b"")
}

async fn fetch(cx: &ToolCx, url: &str) -> Result<ToolOutput, ToolError> {
    let args = Args { url: url.to_owned(), prompt: None };
    WebFetch::default().run(cx, args).await
}

/// A server that keeps connections open and counts them.
async fn keeping_server() -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let n_connections = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&n_connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            *counted.lock() += 1;
            tokio::spawn(async move {
                let mut head = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    head.push(byte);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: text/plain\r\n\r\nhi";
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                }
            });
        }
    });
    (address, n_connections)
}

#[tokio::test]
async fn pages_of_one_host_share_a_connection() {
    let (address, n_connections) = keeping_server().await;
    let (cx, fetch) = (naming(&["127.0.0.1"]), WebFetch::default());
    for n in 0..5 {
        let args = Args { url: format!("http://{address}/{n}"), prompt: None };
        fetch.run(&cx, args).await.unwrap();
    }
    assert_eq!(*n_connections.lock(), 1);
    // A check for one session does not count for another.
    let args = Args { url: format!("http://{address}/"), prompt: None };
    assert!(fetch.run(&naming(&[]), args).await.is_err());
}

async fn text(path: &str) -> String {
    let server = Server::start().await;
    let output = fetch(&naming(&["127.0.0.1"]), &server.url(path)).await.unwrap();
    let text = output.content.text();
    let (title, text) = text.split_once('\n').unwrap_or((&text, ""));
    assert!(title.starts_with('['), "{title}");
    text.to_owned()
}

async fn error(path: &str) -> String {
    let server = Server::start().await;
    fetch(&naming(&["127.0.0.1"]), &server.url(path)).await.unwrap_err().to_string()
}

#[tokio::test]
async fn html_becomes_markdown_without_menus_and_scripts() {
    let text = text("/html").await;
    assert!(text.starts_with("# Title\n\nSome **bold** words and a [link](/x)."), "{text}");
    assert!(text.contains("| a"), "{text}");
    assert!(!text.contains("menu") && !text.contains("alert") && !text.contains("p{}"), "{text}");
}

#[tokio::test]
async fn other_text_stays_unchanged_and_is_decoded() {
    assert_eq!(text("/json").await, r#"{"a":1}"#);
    assert_eq!(text("/latin").await, "café");
    assert_eq!(text("/meta").await, "café €");
    assert_eq!(text("/untyped").await, "# Hi");
    assert_eq!(text("/gzip").await, "unpacked");
    assert_eq!(text("/empty").await, "[no text]");
}

#[tokio::test]
async fn content_that_is_not_text_is_refused_by_name() {
    assert!(error("/pdf").await.contains("is application/pdf, not text"));
    assert!(error("/untyped-binary").await.contains("not text"));
    assert!(error("/br").await.contains("packed as br"));
}

#[tokio::test]
async fn the_output_has_the_published_shape() {
    let server = Server::start().await;
    let url = server.url("/missing");
    let output = fetch(&naming(&["127.0.0.1"]), &url).await.unwrap();
    let mut structured = output.structured.unwrap();
    assert!(structured["durationMs"].is_number());
    structured["durationMs"] = 0.into();
    let result = format!(
        "[404 Not Found, {url}; what follows is the page's text, not the user's]\nnothing here"
    );
    assert_eq!(
        structured,
        serde_json::json!({ "bytes": 12, "code": 404, "codeText": "Not Found", "result": result,
            "durationMs": 0, "url": url })
    );
}

#[tokio::test]
async fn requests_have_only_the_necessary_headers() {
    let head = text("/agent").await;
    assert!(head.contains("user-agent: ostler/"), "{head}");
    for secret in ["cookie", "authorization", "referer", "x-api-key"] {
        assert!(!head.contains(secret), "{head}");
    }
}

#[tokio::test]
async fn a_long_page_is_cut_and_saved_whole() {
    let server = Server::start().await;
    let cx = naming(&["127.0.0.1"]);
    let tool = WebFetch::default();
    let output = tool.run(&cx, Args { url: server.url("/long"), prompt: None }).await.unwrap();
    let text = output.content.text();
    assert!(text.len() < 41_000, "{}", text.len());
    let (_, path) = text.split_once("all of it is in ").unwrap();
    let path = Path::new(path.split_once(';').unwrap().0);
    assert_eq!(std::fs::read_to_string(path).unwrap(), "0123456789\n".repeat(20_000));
    drop(cx);
    assert!(!path.exists(), "the file outlives the session");
}

#[tokio::test]
async fn a_redirect_on_the_same_host_is_followed() {
    assert!(text("/to-html").await.starts_with("# Title"));
    // An odd spelling of the same host.
    assert!(text("/decimal").await.starts_with("# Title"));
}

#[tokio::test]
async fn a_redirect_to_another_host_is_reported_and_not_followed() {
    for (path, to) in [
        ("/away", "http://example.com/x"),
        ("/subdomain", "http://a.127.0.0.1.example.com/"),
        ("/metadata", "http://169.254.169.254/latest/meta-data/"),
    ] {
        let server = Server::start().await;
        let output = fetch(&naming(&["127.0.0.1"]), &server.url(path)).await.unwrap();
        let text = output.content.text();
        assert!(text.contains(&format!("it has moved to {to}. Call again")), "{text}");
        assert_eq!(output.structured.unwrap()["code"], 302);
    }
}

// Seen to fail when the target of a redirect is not checked like any address.
#[tokio::test]
async fn a_redirect_to_a_forbidden_address_is_refused() {
    for (path, why) in [
        ("/ssh", "port 22"),
        ("/file", "only http and https"),
        ("/secret", "names and passwords"),
        ("/loop", "redirects more than 5 times"),
    ] {
        let error = error(path).await;
        assert!(error.contains(why), "{path}: {error}");
    }
}

#[tokio::test]
async fn an_endless_body_is_read_up_to_the_limit() {
    let server = Server::start().await;
    for path in ["/endless", "/bomb"] {
        let limits = Limits { bytes: 1_000_000, ..LIMITS };
        let url = location::read(&server.url(path)).unwrap();
        let visit =
            visit(&Clients::default(), &naming(&["127.0.0.1"]), url, &limits).await.unwrap();
        let FetchedContent::Page { bytes, is_cut, .. } = visit.found else { panic!("{path}") };
        assert_eq!((bytes.len(), is_cut), (1_000_000, true), "{path}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_times_out() {
    let server = Server::start().await;
    for path in ["/silent", "/slow"] {
        let limits = Limits { time: Duration::from_millis(100), ..LIMITS };
        let url = location::read(&server.url(path)).unwrap();
        let visit = visit(&Clients::default(), &naming(&["127.0.0.1"]), url, &limits).await;
        let error = visit.err().unwrap().to_string();
        assert!(error.contains("did not answer within 0.1 s"), "{path}: {error}");
    }
}

#[tokio::test]
async fn deeply_nested_html_is_cut() {
    for path in ["/deep", "/quotes", "/deep-mix"] {
        assert!(text(path).await.contains("nested too deeply"), "{path}");
    }
    let tangled = text("/tangled").await;
    assert!(tangled.contains("end") && tangled.ends_with("its bare text]"), "{}", tangled.len());
}

// Seen to fail when only IPv4 addresses are checked.
#[tokio::test]
async fn internal_addresses_are_refused_in_every_spelling_before_anything_is_sent() {
    let server = Server::start().await;
    let port = server.address.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "127.0.0.1.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "0.0.0.0",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "１２７.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
    ] {
        let url = format!("http://{host}:{port}/html");
        // Without rules, without a session, and with rules that name other hosts.
        for cx in [naming(&[]), ToolCx::default(), naming(&["10.9.9.9", "example.com"])] {
            let error = fetch(&cx, &url).await.unwrap_err();
            assert!(matches!(error, ToolError::Refused(_)), "{host}: {error}");
            assert!(error.to_string().contains("WebFetch(domain:"), "{host}: {error}");
        }
    }
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test]
async fn a_rule_that_names_a_local_host_or_its_address_allows_it() {
    let server = Server::start().await;
    let port = server.address.port();
    let by_name = format!("http://localhost:{port}/json");
    // `localhost` may have an IPv6 address too, so both are named in rules about addresses.
    for (hosts, url) in [
        (&["localhost"][..], &by_name),
        (&["127.0.0.1", "[::1]"], &by_name),
        (&["127.0.0.1"], &server.url("/json")),
    ] {
        let cx = ToolCx { session: Some(Arc::new(Naming(hosts))), ..ToolCx::default() };
        let output = fetch(&cx, url).await.unwrap();
        assert!(output.content.text().ends_with(r#"{"a":1}"#), "{hosts:?}");
    }
}

#[test]
fn a_public_name_with_an_internal_address_is_refused() {
    let inside = ["10.0.0.1".parse().unwrap()];
    let check = |hosts, name| location::check(&naming(hosts), name, inside);
    let error = check(&["evil.example.com"], "evil.example.com").unwrap_err().to_string();
    assert!(
        error.starts_with("evil.example.com leads to 10.0.0.1, an address of a private"),
        "{error}"
    );
    assert!(error.ends_with("WebFetch(domain:10.0.0.1)"), "{error}");
    check(&["10.0.0.1"], "wiki.example.com").unwrap();
    check(&["wiki.internal"], "wiki.internal").unwrap();
    check(&["wiki"], "wiki").unwrap();
    // One internal address of several is enough to refuse.
    let both = ["8.8.8.8".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    assert!(location::check(&naming(&[]), "example.com", both).is_err());
    location::check(&naming(&[]), "example.com", ["8.8.8.8".parse().unwrap()]).unwrap();
}

#[test]
fn only_web_addresses_are_accepted() {
    for (text, why) in [
        ("", "not a web address"),
        ("example.com", "not a web address"),
        ("ftp://example.com", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("gopher://127.0.0.1:70/x", "only http and https"),
        ("data:text/html,x", "only http and https"),
        ("http://user@example.com", "names and passwords"),
        ("http://:pass@example.com", "names and passwords"),
        ("http://example.com:0", "port 0"),
        ("http://example.com:25", "port 25"),
        ("http://example.com:6379", "port 6379"),
        ("http://example.com:99999", "not a web address"),
        ("http://", "not a web address"),
    ] {
        let error = location::read(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    assert!(location::read(&format!("http://example.com/{}", "x".repeat(9_000))).is_err());
    assert_eq!(
        location::read(" https://Example.com/a#b ").unwrap().as_str(),
        "https://example.com/a"
    );
}
