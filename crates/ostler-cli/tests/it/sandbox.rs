//! The sandbox as users meet it: `ostler -p` with `sandbox.enabled`, and the agents of a server's members.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::serve_options::Served;

const KEY: &str = "key-canary-0b7d";
const OTHER: &str = "canary-of-another-space";

/// A model that runs this command when it reads its number.
fn rule(script: Script, number: usize, command: &str) -> Script {
    let bash = json!({"command": command, "description": "Try"});
    let prompt = format!("try {number}.");
    script.rule(when().turn(0).prompt_contains(&prompt), reply().tool_use("Bash", bash))
}

/// The text of the last tool result that the model got.
fn result_of(api: &ScriptedApi) -> String {
    let requests = api.requests();
    let body = requests.last().unwrap().body.to_string();
    let start = body.rfind("tool_result").unwrap_or_else(|| panic!("no result: {body}"));
    body[start..].to_owned()
}

/// What a run left behind.
struct Printed {
    /// The result of the command, as the model got it; empty if the program refused to start.
    result: String,
    errors: String,
    ostler: Ostler,
    outside: tempfile::TempDir,
}

impl Printed {
    /// Whether the command left its folder.
    fn has_escaped(&self) -> bool {
        self.outside.path().join("file").exists()
    }
}

/// Runs one command with these settings, in a mode that asks nothing. `OUTSIDE` in it is a file in another folder.
async fn print(command: &str, settings: &Value, prepare: impl Fn(&Path)) -> Printed {
    let outside = tempfile::tempdir().unwrap();
    let command = command.replace("OUTSIDE", outside.path().join("file").to_str().unwrap());
    let script = rule(Script::new(), 1, &command).rule(when(), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("IS_SANDBOX", "1");
    prepare(ostler.folder.path());
    let settings = settings.to_string();
    let mode = ["--permission-mode", "bypassPermissions", "--settings", &settings];
    let ran = ostler.run(&[&["-p", "try 1."], &mode[..]].concat());
    let result = if ran.code == Some(0) { result_of(&api) } else { String::new() };
    Printed { result, errors: ran.stderr, ostler, outside }
}

// Mutant: `Confinement::of` always answers `None`.
#[tokio::test(flavor = "multi_thread")]
async fn an_autonomous_agent_reaches_neither_files_outside_nor_the_network() {
    let sandbox = json!({"sandbox": {"enabled": true}});
    let command = "echo kept > inside.txt; echo x > OUTSIDE; touch /usr; \
        python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9), 2)'; \
        env | grep canary; cat ~/.claude.json; id -u; exit 3";
    let printed = print(command, &sandbox, |_| ()).await;
    let Printed { result, errors, ostler, .. } = &printed;
    assert_eq!(
        fs::read_to_string(ostler.folder.path().join("inside.txt")).unwrap(),
        "kept\n",
        "{errors}"
    );
    assert!(!printed.has_escaped());
    assert!(result.contains("Read-only file system"), "{result}");
    assert!(result.contains("This ran in a sandbox") && !result.contains("canary"), "{result}");
    let names = fs::read_dir(ostler.folder.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["README.md", "inside.txt", "no-home"], "no placeholder is left");
    // Without a sandbox the same command leaves its folder.
    assert!(
        print(command, &json!({}), |_| ()).await.has_escaped(),
        "the test itself does not work"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_files_are_hidden_and_protected_for_every_program() {
    let settings = json!({"sandbox": {"enabled": true}, "permissions": {
        "deny": ["Read(./private/**)", "Read(./.secret)", "Edit(./fixed.txt)"]}});
    let prepare = |folder: &Path| {
        fs::create_dir(folder.join("private")).unwrap();
        for name in ["private/a", ".secret", "fixed.txt"] {
            fs::write(folder.join(name), "hidden-text").unwrap();
        }
    };
    let command = "python3 -c \"print(open('private/a').read())\"; python3 -c \"print(open('.secret').read())\"; \
        python3 -c \"open('fixed.txt', 'w')\"; exit 3";
    let Printed { result, errors, ostler, .. } = print(command, &settings, prepare).await;
    assert!(result.contains("Read-only file system"), "{result} {errors}");
    assert!(!result.contains("hidden-text"), "{result}");
    assert_eq!(fs::read_to_string(ostler.folder.path().join("fixed.txt")).unwrap(), "hidden-text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_cannot_be_had_refuses_to_start_and_names_the_way_out() {
    let refusals = [
        (json!({"enabled": true, "bwrapPath": "/no/such/bwrap"}), "apt-get install bubblewrap"),
        (json!({"enabled": true, "network": {"tlsTerminate": {}}}), "network.tlsTerminate"),
        (json!({"enabled": true, "network": {"allowedDomains": ["bad host"]}}), "allowedDomains"),
        (json!({"enabled": true, "filesystem": {"denyRead": ["**/*.pem"]}}), "wildcard"),
        (json!({"enabled": true, "filesystem": {"disabled": true}}), "filesystem.disabled"),
        (json!({"enabled": true, "required": ["fs", "moon"]}), "moon"),
        (json!({"enabled": true, "limits": {"procesess": 4}}), "sandbox.limits"),
        (json!({"enabled": true, "backend": "chroot"}), "sandbox.backend"),
        (json!({"enabled": true, "backend": "podman"}), "sandbox.containerImage"),
        (json!({"enabled": true, "backend": "seatbelt"}), "macOS"),
    ];
    for (sandbox, part) in refusals {
        let settings = json!({"sandbox": sandbox});
        let Printed { result, errors, .. } = print("echo ran", &settings, |_| ()).await;
        assert!(result.is_empty() && errors.contains(part), "{sandbox}: {result} {errors}");
        assert!(errors.contains("failIfUnavailable"), "{errors}");
    }
    let open = json!({"sandbox": {"enabled": true, "failIfUnavailable": false, "bwrapPath": "/no/such/bwrap"}});
    let Printed { result, errors, .. } = print("echo ran", &open, |_| ()).await;
    assert!(result.contains("ran") && errors.contains("without the sandbox"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_excluded_command_runs_outside_only_as_a_whole() {
    let settings = json!({"sandbox": {"enabled": true, "excludedCommands": ["touch"]}});
    assert!(print("touch OUTSIDE", &settings, |_| ()).await.has_escaped());
    assert!(!print("touch OUTSIDE; true", &settings, |_| ()).await.has_escaped());
    assert!(!print("touch $(echo OUTSIDE)", &settings, |_| ()).await.has_escaped());
}

/// Starts a hook and an MCP server that try to leave the folder and write down who they are.
async fn start_others(sandbox: &Value) -> (Printed, String, String) {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("file");
    let line = |name: &str| format!("echo x > '{}'; id -u > {name}", file.display());
    let hook = json!({"hooks": [{"type": "command", "command": line("hook.txt")}]});
    let settings = json!({"sandbox": sandbox, "hooks": {"UserPromptSubmit": [hook]}}).to_string();
    let server = json!({"type": "stdio", "command": "sh", "args": ["-c", line("server.txt")]});
    let servers = json!({"mcpServers": {"broken": server}}).to_string();
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Done."))).await;
    let ostler = Ostler::new().env("ANTHROPIC_BASE_URL", &api.base_url());
    let ostler = ostler.env("ANTHROPIC_API_KEY", KEY);
    let ran = ostler.run(&["-p", "hello", "--settings", &settings, "--mcp-config", &servers]);
    let written = |name: &str| fs::read_to_string(ostler.path(name)).unwrap_or_default();
    let (hook, server) = (written("hook.txt"), written("server.txt"));
    (Printed { result: ran.stdout, errors: ran.stderr, ostler, outside }, hook, server)
}

// Mutants: hooks get no boundary; MCP servers get no boundary.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_and_mcp_servers_run_inside() {
    let user = match rustix::process::geteuid().as_raw() {
        0 => "65533\n".to_owned(),
        own => format!("{own}\n"),
    };
    let (printed, hook, server) = start_others(&json!({"enabled": true})).await;
    assert_eq!((hook, server), (user.clone(), user), "{}", printed.errors);
    assert!(!printed.has_escaped());
    let (printed, ..) = start_others(&json!({})).await;
    assert!(printed.has_escaped(), "the test itself does not work");
}

/// Ways to the data of the owner. `DATA` is the server's folder, `PID` the server, `BASE` its address.
const TRIES: &[&str] = &[
    "cat DATA/token",
    "python3 -c \"print(open('DATA/token').read())\"",
    "perl -e 'open F, \"DATA/token\"; print <F>'",
    "cat /proc/PID/environ",
    "cat /proc/PID/root/DATA/token",
    "cat /proc/1/root/DATA/token; cat /proc/1/environ",
    "ln -s DATA/token link; python3 -c \"print(open('link').read())\"",
    "ln DATA/token hard; cat hard",
    "grep -rsa '' DATA",
    "python3 -c \"print(open('DATA/log/ostler.db', 'rb').read())\"",
    "tar c DATA | cat",
    "find / -xdev -name token -path '*data*' -exec cat {} +; find / -xdev -name users.json -exec cat {} +",
    "cat DATA/users.json DATA/secrets.json DATA/browsers.json DATA/engine -r",
    "cat /proc/PID/fd/* /proc/PID/mem",
    "python3 -c \"import ctypes; print(ctypes.CDLL(None).ptrace(16, PID, 0, 0))\"; grep -a canary /proc/PID/maps",
    "curl -sS BASE/api/users -H \"Authorization: Bearer $(cat DATA/token)\"; curl -sS BASE/api/health",
    "nsenter -t PID -m cat DATA/token",
    "git init -q r && cd r && git -c core.fsmonitor='cat DATA/token >&2;' status",
    "git -c alias.x='!cat DATA/token' x",
    "mkdir -p .claude && echo '{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"cat DATA/token\"}]}]}}' \
     > .claude/settings.json; echo '{\"mcpServers\":{\"x\":{\"command\":\"cat\",\"args\":[\"DATA/token\"]}}}' > .mcp.json; ls -a",
    "cat DATA/spaces/other/file; ls -R DATA",
    "head -c 100000000 /dev/vda | grep -a canary; cat /dev/mem",
    "env; cat ~/.ssh/* ~/.claude/* ~/.bash_history",
    "(setsid bash -c 'for i in 1 2 3; do cat DATA/token; done' &); sleep 0.3; cat DATA/token",
];

pub(crate) struct Member<'a> {
    pub(crate) served: &'a Served,
    pub(crate) token: String,
}

/// Adds a user.
pub(crate) async fn member(served: &Served) -> Member<'_> {
    let added = served.ask("/users", Some(json!({"name": "ada", "role": "member"}))).await;
    let issued = served.ask("/users/ada/tokens", Some(json!({"label": "test"}))).await;
    let token = issued["token"].as_str().unwrap_or_else(|| panic!("{added} {issued}")).to_owned();
    Member { served, token }
}

impl Member<'_> {
    pub(crate) async fn ask(&self, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}/api{path}", self.served.base);
        let request = match body {
            Some(body) => self.served.http.post(url).json(&body),
            None => self.served.http.get(url),
        };
        request.bearer_auth(&self.token).send().await.unwrap().json().await.unwrap()
    }

    /// Runs a prompt in a new session and allows every call.
    async fn run(&self, prompt: &str) -> Value {
        let session = self.ask("/sessions", Some(json!({}))).await;
        let runs = format!("/sessions/{}/runs", session["id"].as_str().expect("a session"));
        let run = self.ask(&runs, Some(json!({"prompt": prompt}))).await;
        self.ended(&run).await
    }

    /// Allows every call of a run, and returns the run when it has ended.
    pub(crate) async fn ended(&self, run: &Value) -> Value {
        let path = format!("/runs/{}", run["id"].as_str().unwrap_or_else(|| panic!("{run}")));
        for _ in 0..3_000 {
            let run = self.ask(&path, None).await;
            match run["state"].as_str().unwrap_or_default() {
                "queued" | "running" => {}
                "waiting" => {
                    for approval in self.ask("/approvals", None).await["items"].as_array().unwrap()
                    {
                        let decision =
                            format!("/approvals/{}/decision", approval["id"].as_str().unwrap());
                        let yes = json!({"approved": true});
                        self.ask(&decision, Some(yes)).await;
                    }
                }
                _ => return run,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the run does not end")
    }
}

// Mutants: `put_around` does nothing; it does not hide the data.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_every_approval_cannot_read_what_belongs_to_the_owner() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut script = Script::new();
    // The server's process id and address are known later, so the commands find them in files.
    for (number, command) in TRIES.iter().enumerate() {
        let command = command.replace("DATA", data.to_str().unwrap());
        let command = command.replace("PID", "$(cat pid)").replace("BASE", "$(cat base)");
        script = rule(script, number, &command);
    }
    let script = script.rule(when(), reply().text("Done."));
    let arguments = ["--data", data.to_str().unwrap()];
    let served =
        Served::furnished(script, &arguments, |ostler| ostler.env("ANTHROPIC_API_KEY", KEY)).await;
    fs::write(served.ostler.folder.path().join("pid"), served.id().to_string()).unwrap();
    fs::write(served.ostler.folder.path().join("base"), &served.base).unwrap();
    fs::create_dir_all(data.join("spaces/other")).unwrap();
    fs::write(data.join("spaces/other/file"), OTHER).unwrap();
    let ada = member(&served).await;
    let secrets = [served.token.clone(), KEY.to_owned(), OTHER.to_owned()];
    for (number, command) in TRIES.iter().enumerate() {
        let run = ada.run(&format!("try {number}.")).await;
        assert_eq!(run["state"], "completed", "{command}: {run}");
        let result = result_of(&served.api);
        let found = secrets.iter().find(|secret| result.contains(*secret));
        assert_eq!(found, None, "{command} found a secret: {result}");
        assert!(
            !result.contains("sha256") || !result.contains("\\\"users\\\""),
            "{command}: {result}"
        );
    }
    // The permissions of the files alone would keep a root server's data from the sandbox's user.
    let run = ada.run("try 0.").await;
    let setup = format!("/sessions/{}/setup", run["session"].as_str().unwrap());
    let hidden = ada.ask(&setup, None).await["sandbox"]["hidden"].clone();
    let data = data.canonicalize().unwrap();
    assert!(hidden.as_array().unwrap().contains(&json!(data)), "{hidden}");
    assert_eq!(run["outcome"]["sandbox"]["network"], "allow-list", "{run}");
    // The owner's own agents are not confined, so the test itself works.
    let owner = Member { served: &served, token: served.token.clone() };
    owner.run("try 1.").await;
    let result = result_of(&served.api);
    assert!(result.contains(&served.token), "{result}");
}

// Mutant: `sandbox_domains` does not reach the sandbox.
#[tokio::test(flavor = "multi_thread")]
async fn commands_of_members_reach_the_hosts_of_serve() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.read(&mut [0; 4096]);
        peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached")
            .unwrap();
    });
    let fetch = |address: &str| format!("curl -sS --noproxy '' http://{address}/");
    let script = rule(Script::new(), 1, &fetch(&address));
    let script = rule(script, 2, &fetch("127.0.0.1:9")).rule(when(), reply().text("Done."));
    let served = Served::scripted(script, &["--sandbox-domain", &address]).await;
    let ada = member(&served).await;
    ada.run("try 1.").await;
    let result = result_of(&served.api);
    assert!(result.contains("reached"), "{result}");
    answer.join().unwrap();
    ada.run("try 2.").await;
    let result = result_of(&served.api);
    assert!(result.contains("allowedDomains") && !result.contains("reached"), "{result}");
}

// Mutant: `sandbox_of_check` answers `None`.
#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_a_schedule_does_not_see_the_servers_data() {
    for (sandbox, sees_it) in [("required", false), ("off", true)] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let script = Script::new().rule(when(), reply().text("Done."));
        let arguments = ["--data", data.to_str().unwrap(), "--sandbox", sandbox];
        let served = Served::scripted(script, &arguments).await;
        fs::write(data.join("secret"), OTHER).unwrap();
        fs::write(served.ostler.folder.path().join("news.txt"), "news\n").unwrap();
        let said = async |file: &str| {
            let check = json!({"command": ["/bin/cat", file]});
            let body = json!({"name": "a check", "start": {"prompt": "look"}, "when": {"every": "1h"}, "check": check});
            let made = served.ask("/schedules", Some(body)).await;
            let path =
                format!("/schedules/{}", made["id"].as_str().unwrap_or_else(|| panic!("{made}")));
            served.ask(&format!("{path}/run"), Some(json!({}))).await;
            for _ in 0..3_000 {
                let log = served.ask(&format!("{path}/log"), None).await;
                let firing = log["items"][0].clone();
                if ["completed", "skipped", "failed"].contains(&firing["state"].as_str().unwrap()) {
                    return firing;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            panic!("the schedule does not start")
        };
        let firing = said("news.txt").await;
        assert_eq!(firing["checkSaid"], "news\n", "{sandbox}: {firing}");
        let firing = said(data.join("secret").to_str().unwrap()).await;
        assert_eq!(firing["checkSaid"] == OTHER, sees_it, "{sandbox}: {firing}");
    }
}

/// Makes a repository.
fn repository(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let made = std::process::Command::new("git").args(["init", "-q"]).arg(folder).status().unwrap();
    assert!(made.success());
}

// Mutants: nested repositories are not protected; `.git/modules` is not searched.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_in_a_subfolder_keeps_its_hooks_and_its_configuration() {
    let prepare = |folder: &Path| {
        repository(&folder.join("vendor/lib"));
        fs::create_dir_all(folder.join(".git/modules/sub/objects")).unwrap();
        fs::create_dir_all(folder.join(".git/modules/sub/refs")).unwrap();
        fs::write(folder.join(".git/modules/sub/HEAD"), "ref: refs/heads/main\n").unwrap();
    };
    let attack = "for r in vendor/lib/.git .git/modules/sub; do \
        mkdir -p $r/hooks; echo 'touch pwned' > $r/hooks/post-checkout; \
        printf '[core]\\nfsmonitor = touch pwned\\n' >> $r/config; \
        mv $r $r.old; mv vendor gone; echo elsewhere > $r/commondir; done; \
        git init -q new; git -C vendor/lib status --short; echo tried";
    let enabled = json!({"sandbox": {"enabled": true}});
    let printed = print(attack, &enabled, prepare).await;
    assert!(printed.result.contains("tried"), "{} {}", printed.result, printed.errors);
    let attacked = |printed: &Printed| {
        ["vendor/lib/.git", ".git/modules/sub", ".git/modules/sub.old"].iter().any(|git| {
            let git = printed.ostler.path(git);
            let config = fs::read_to_string(git.join("config")).unwrap_or_default();
            git.join("hooks/post-checkout").exists() || config.contains("fsmonitor")
        })
    };
    assert!(!attacked(&printed), "{}", printed.result);
    assert!(printed.ostler.path("vendor/lib/.git/HEAD").exists(), "{}", printed.result);
    assert!(!printed.ostler.path("vendor/lib/.git/commondir").exists(), "no placeholder stays");
    // One that the command itself made can be written by it, and is reported.
    assert!(
        printed.result.contains("A git repository was created inside the sandbox"),
        "{}",
        printed.result
    );
    assert!(printed.result.contains("/new."), "{}", printed.result);
    // Without the sandbox the same attack succeeds, so the test can fail.
    let printed = print(attack, &json!({}), prepare).await;
    assert!(attacked(&printed), "{}", printed.result);
}

// Mutant: what the configuration names is not protected.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_elsewhere_in_the_folder_that_the_configuration_names_cannot_be_written() {
    let prepare = |folder: &Path| {
        repository(folder);
        fs::create_dir(folder.join("hooks")).unwrap();
        let config = folder.join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        let more = "[core]\n\thooksPath = hooks\n[include]\n\tpath = ../shared.gitconfig\n";
        fs::write(config, text + more).unwrap();
    };
    let attack = "echo 'touch x' > hooks/pre-commit; printf '[core]\\nfsmonitor = x\\n' > shared.gitconfig; \
        mv hooks moved; git status --short; exit 3";
    let changed = |printed: &Printed| {
        let path = |name: &str| printed.ostler.folder.path().join(name);
        [path("hooks/pre-commit"), path("moved"), path("shared.gitconfig")].map(|it| it.exists())
    };
    let settings = json!({"sandbox": {"enabled": true}});
    let printed = print(attack, &settings, prepare).await;
    assert_eq!(changed(&printed), [false; 3], "{}", printed.result);
    assert!(!printed.result.contains("fatal"), "git still works: {}", printed.result);
    let printed = print(attack, &json!({}), prepare).await;
    assert_eq!(changed(&printed), [false, true, true], "the test itself does not work");
}

// Also the server: `--settings` with a protection that is missing fails the run of the owner.
// Mutant: `enforce` does not look at `required`.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_less_than_the_required_protections_is_an_error() {
    let weak =
        json!({"sandbox": {"enabled": true, "required": ["fs", "net", "nothing-like-this"]}});
    let printed = print("true", &weak, |_| {}).await;
    assert!(printed.errors.contains("nothing-like-this"), "{}", printed.errors);
    assert!(printed.errors.contains("use fs, net or syscalls"), "{}", printed.errors);
    let script = rule(Script::new(), 1, "true").rule(when(), reply().text("Done."));
    let served = Served::scripted(script, &["--settings", &weak.to_string()]).await;
    let owner = Member { served: &served, token: served.token.clone() };
    let run = owner.run("try 1.").await;
    assert_eq!(run["state"], "failed", "{run}");
    let message = run["outcome"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("nothing-like-this"), "{run}");
    let ada = member(&served).await;
    let run = ada.run("try 1.").await;
    assert_eq!(run["state"], "failed", "{run}");
}
