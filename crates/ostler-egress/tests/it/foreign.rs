//! Programs of other people, through the bridge: curl, Python, node, git, npm, pip and cargo.

use std::path::Path;
use std::process::Stdio;

use ostler_egress::{HostOutcome, variables};
use tokio::process::Command;

use crate::support::{Sandbox, ok, usual_rules};

/// What a program wrote, standard output before standard error.
async fn run(program: &str, port: u16, args: &[&str]) -> String {
    run_in(Path::new("/"), program, port, args).await
}

async fn run_in(folder: &Path, program: &str, port: u16, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).envs(variables(port)).stdin(Stdio::null()).kill_on_drop(true);
    command.current_dir(folder).env("GIT_TERMINAL_PROMPT", "0");
    let output = command.output().await;
    let output =
        output.unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// The ways in which curl uses a proxy.
fn curl_ways(port: u16) -> [Vec<String>; 4] {
    let http = format!("http://127.0.0.1:{port}");
    let way = |args: &[&str]| args.iter().map(|it| (*it).to_owned()).collect();
    [
        way(&["--proxy", &http]),
        way(&["--proxy", &http, "--proxytunnel"]),
        way(&["--socks5-hostname", &format!("127.0.0.1:{port}")]),
        // From the environment.
        Vec::new(),
    ]
}

async fn curl(port: u16, way: &[String], url: &str) -> String {
    let mut args =
        vec!["--silent", "--show-error", "--globoff", "--noproxy", "none.test", "--max-time", "30"];
    args.extend(way.iter().map(String::as_str));
    args.extend(["--location", url]);
    run("curl", port, &args).await
}

/// Hosts that curl sends as they are.
const REFUSED: &[&str] = &[
    "unlisted.test",
    "allowed.test.evil.test",
    "evil-allowed.test",
    "evilwild.test",
    "wild.test",
    "EVIL.wild.test",
    "allowed.test.",
    "8.8.8.8",
    "127.0.0.1",
    "2130706433",
    "0177.0.0.1",
    "127.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "169.254.169.254",
    "localhost",
    "allowed.test@evil.test",
];

// Mutant: a suffix without its dot; case-sensitive names.
#[tokio::test]
async fn curl_reaches_allowed_hosts_and_no_others() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let port = sandbox.bridge();
    for way in curl_ways(port) {
        for host in ["allowed.test", "ALLOWED.test", "a.wild.test"] {
            let text = curl(port, &way, &format!("http://{host}/path")).await;
            assert!(text.starts_with("fetched /path for "), "{way:?} {host}: {text}");
        }
        let dialled = sandbox.network.dialled().len();
        for host in REFUSED {
            let text = curl(port, &way, &format!("http://{host}/path")).await;
            assert!(!text.contains("fetched"), "{way:?} {host}: {text}");
        }
        assert_eq!(sandbox.network.dialled().len(), dialled, "{way:?}");
    }
    // The body says what happened, or the status of the tunnel does.
    let [plain, tunnel, ..] = curl_ways(port);
    let text = curl(port, &plain, "http://unlisted.test/").await;
    assert!(text.contains("add \"unlisted.test\" to sandbox.network.allowedDomains"), "{text}");
    let text = curl(port, &tunnel, "http://unlisted.test/").await;
    assert!(text.contains("403"), "{text}");
}

// Mutant: `check_address` always Ok.
#[tokio::test]
async fn curl_is_not_led_inward_by_a_redirect_or_a_name() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let port = sandbox.bridge();
    sandbox.network.name("rebound.wild.test", &["127.0.0.1"]);
    for (path, target) in [("/metadata", "169.254.169.254"), ("/rebound", "rebound.wild.test")] {
        let response = format!(
            "HTTP/1.1 302 Found\r\nLocation: http://{target}/inside\r\nContent-Length: 0\r\n\r\n"
        );
        sandbox.server.page(path, &response);
    }
    for way in curl_ways(port) {
        let mut events = sandbox.proxy.events();
        for path in ["/metadata", "/rebound"] {
            let text = curl(port, &way, &format!("http://allowed.test{path}")).await;
            assert!(!text.contains("fetched"), "{way:?}: {text}");
        }
        let outcomes: Vec<_> = events.take().0.iter().map(|it| it.outcome).collect();
        let (yes, no) = (HostOutcome::Allowed, HostOutcome::Denied);
        assert_eq!(outcomes, [yes, no, yes, no], "{way:?}");
    }
    assert!(sandbox.network.dialled().iter().all(|it| it == "93.184.216.34:80"));
}

#[tokio::test]
async fn python_reaches_allowed_hosts_and_no_others() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let port = sandbox.bridge();
    let script = "
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=30).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
";
    let args = [
        "-c",
        script,
        "http://allowed.test/a",
        "http://unlisted.test/b",
        "http://A.wild.test/c",
        "http://wild.test/d",
    ];
    let text = run("python3", port, &args).await;
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    let [first, second, third, fourth] = lines[..] else { panic!("{text}") };
    assert_eq!((first, third), ("fetched /a for allowed.test", "fetched /c for a.wild.test"));
    for refused in [second, fourth] {
        assert!(refused.starts_with("403 The sandbox refused a connection to "), "{refused}");
    }
    assert_eq!(sandbox.network.dialled().len(), 2);
}

#[tokio::test]
async fn node_reaches_allowed_hosts_and_no_others() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let port = sandbox.bridge();
    // A plain request, and a tunnel with a request in it.
    let script = "
const http = require('http');
const [port, ...hosts] = process.argv.slice(1);
const read = (stream, then) => { let text = ''; stream.on('data', (it) => (text += it)); stream.on('end', () => then(text)); };
function plain(host, then) {
  http.get({ host: '127.0.0.1', port, path: `http://${host}/plain`, headers: { Host: host }, agent: false }, (it) =>
    read(it, (text) => { console.log('plain', it.statusCode, text.trim()); then(); }));
}
function tunnel(host, then) {
  http.request({ host: '127.0.0.1', port, method: 'CONNECT', path: `${host}:80`, agent: false }).on('connect', (it, socket) => {
    if (it.statusCode !== 200) { console.log('tunnel', it.statusCode); socket.destroy(); return then(); }
    http.get({ host, path: '/tunnel', createConnection: () => socket }, (it) =>
      read(it, (text) => { console.log('tunnel', it.statusCode, text); socket.destroy(); then(); }));
  }).end();
}
(function next() { const host = hosts.shift(); if (host) plain(host, () => tunnel(host, next)); })();
";
    let port_text = port.to_string();
    let text =
        run("node", port, &["-e", script, "--", &port_text, "allowed.test", "unlisted.test"]).await;
    let lines: Vec<_> = text.lines().collect();
    let [plain, tunnel, refused, refused_tunnel] = lines[..] else { panic!("{text}") };
    assert_eq!(plain, "plain 200 fetched /plain for allowed.test");
    assert_eq!(tunnel, "tunnel 200 fetched /tunnel for allowed.test:80");
    assert!(refused.starts_with("plain 403 The sandbox refused"), "{refused}");
    assert_eq!(refused_tunnel, "tunnel 403");
    assert_eq!(sandbox.network.dialled().len(), 2);
}

#[tokio::test]
async fn git_npm_pip_and_cargo_use_the_proxy_by_the_variables_alone() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let port = sandbox.bridge();
    let id = "0123456789abcdef0123456789abcdef01234567";
    sandbox
        .server
        .page("/repo/info/refs?service=git-upload-pack", &ok(&format!("{id}\trefs/heads/main\n")));
    sandbox.server.page("/repo/HEAD", &ok("ref: refs/heads/main\n"));
    let text = run("git", port, &["ls-remote", "http://allowed.test/repo"]).await;
    assert!(text.contains(id), "{text}");

    let package = r#"{"name":"kit","dist-tags":{"latest":"1.2.3"},"versions":{"1.2.3":{"name":"kit","version":"1.2.3","dist":{}}}}"#;
    sandbox.server.page("/kit", &ok(package));
    let npm = [
        "view",
        "kit",
        "version",
        "--registry",
        "http://allowed.test/",
        "--cache",
        &sandbox.folder("npm").display().to_string(),
    ];
    let text = run("npm", port, &npm).await;
    assert!(text.contains("1.2.3"), "{text}");

    let page = r#"HTTP/1.1 200 OK
Content-Type: text/html
Connection: close

<a href="kit-4.5.6-py3-none-any.whl">kit-4.5.6-py3-none-any.whl</a>"#;
    sandbox.server.page(
        "/simple/kit/",
        &page.replace('\n', "\r\n").replace("Connection: close", "Content-Length: 67"),
    );
    let pip = [
        "-m",
        "pip",
        "--isolated",
        "--disable-pip-version-check",
        "index",
        "versions",
        "kit",
        "--index-url",
        "http://allowed.test/simple",
        "--trusted-host",
        "allowed.test",
    ];
    let text = run("python3", port, &pip).await;
    assert!(text.contains("4.5.6"), "{text}");

    let text = cargo(&sandbox, port).await;
    assert!(text.contains("kit v7.8.9") || text.contains("Locking 1 package"), "{text}");
    let hosts: Vec<_> = sandbox.network.resolved();
    assert!(hosts.iter().all(|host| host == "allowed.test"), "{hosts:?}");
}

/// Resolves a dependency from a registry of our own.
async fn cargo(sandbox: &Sandbox, port: u16) -> String {
    sandbox.server.page("/index/config.json", &ok(r#"{"dl":"http://allowed.test/dl"}"#));
    let zeros = "0".repeat(64);
    let line = format!(
        r#"{{"name":"kit","vers":"7.8.9","deps":[],"cksum":"{zeros}","features":{{}},"yanked":false}}"#
    );
    sandbox.server.page("/index/3/k/kit", &ok(&line));
    let project = sandbox.folder("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::create_dir_all(project.join(".cargo")).unwrap();
    std::fs::write(project.join("src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"x\"\nedition = \"2021\"\n[dependencies]\nkit = { version = \"7\", registry = \"local\" }\n";
    std::fs::write(project.join("Cargo.toml"), manifest).unwrap();
    let home = sandbox.folder("cargo");
    let config = "[registries.local]\nindex = \"sparse+http://allowed.test/index/\"\n";
    std::fs::write(project.join(".cargo/config.toml"), config).unwrap();
    let home = format!("CARGO_HOME={}", home.display());
    // The outer cargo's settings lead to other registries.
    run_in(&project, "env", port, &[&home, env!("CARGO"), "generate-lockfile"]).await
}
