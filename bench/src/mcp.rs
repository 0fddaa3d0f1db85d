//! `mcp`: ten MCP servers that are programs, from the start of the program to the end of a prompt that calls a tool of
//! one of them, next to the vendor's native program.
//!
//! Both get the same servers (Python scripts without packages), environment and permission, and take turns. A run
//! counts only if all servers were connected and the tool's output reached the model. The same prompt without servers
//! is measured too, so that the table says what the servers themselves cost.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ostler_testkit::{RecordedRequest, Script, ScriptedApi, reply, when};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::process::{self, Ran};
use crate::{engine, measure, size, table};

const SERVERS: usize = 10;
/// How often each program runs, after one warm-up run.
const ROUNDS: usize = 7;
/// The promise: our wall time divided by theirs.
const LIMIT: f64 = 1.0 / 2.5;
const PROMPT: &str = "Which number is it?";
const OUTPUT: &str = "it is 42";

/// A server with one tool. The modules that it imports are those that a small server needs.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result = message.get("method"), None
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "bench", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "number", "description": "Tells the number.",
                             "inputSchema": {"type": "object", "properties": {}}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "it is 42"}]}
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if result:
        answer["result"] = result
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let candidates =
        [Candidate::new(size::program()?, &runtime)?, Candidate::new(engine::vendor()?, &runtime)?];
    let mut runs: [[Vec<Ran>; 2]; 2] = Default::default();
    for round in 0..=ROUNDS {
        for (candidate, runs) in candidates.iter().zip(&mut runs) {
            for (n_servers, runs) in [0, SERVERS].into_iter().zip(runs) {
                let ran = candidate.run(n_servers);
                let ran = ran.with_context(|| candidate.program.display().to_string())?;
                if round > 0 {
                    runs.push(ran);
                }
            }
        }
    }
    let walls = runs.map(|runs| {
        runs.map(|runs| measure::median(runs.iter().map(|run| run.wall).collect::<Vec<_>>()))
    });
    println!("mcp: a prompt with {SERVERS} stdio servers, median of {ROUNDS} runs each");
    print!("{}", render(&walls));
    let [[_, ours], [_, theirs]] = walls;
    Ok(broken(ours.as_secs_f64() / theirs.as_secs_f64()).into_iter().collect())
}

fn render([ours, theirs]: &[[Duration; 2]; 2]) -> String {
    let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    let row = |name: &str, ours: Duration, theirs: Duration| {
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        [name.to_owned(), ms(ours), ms(theirs), format!("1/{ratio:.1}")]
    };
    table::render(&[
        ["", "ostler", "claude", "ratio"].map(str::to_owned),
        row("without servers, ms", ours[0], theirs[0]),
        row("with servers, ms", ours[1], theirs[1]),
    ])
}

fn broken(ratio: f64) -> Option<String> {
    (ratio > LIMIT).then(|| {
        let (reached, limit) = (1.0 / ratio, 1.0 / LIMIT);
        format!("mcp: the wall time with {SERVERS} servers is 1/{reached:.1} of the vendor's program; the promise is 1/{limit:.1}")
    })
}

/// A program, its home, and its API.
struct Candidate {
    program: PathBuf,
    home: TempDir,
    api: ScriptedApi,
}

impl Candidate {
    fn new(program: PathBuf, runtime: &Runtime) -> Result<Self> {
        let tool = format!("mcp__s{}__number", SERVERS - 1);
        let script = Script::new()
            .rule(when().tool_result_of(&tool), reply().text("It says {{tool_result}}"))
            .rule(
                when().prompt_contains(PROMPT).offers_tool(&tool),
                reply().tool_use(&tool, json!({})),
            )
            .rule(when().prompt_contains(PROMPT), reply().text("There are no servers."))
            // Other requests of a program to its model, such as for a title.
            .rule(when(), reply().text("{}"));
        let home = tempfile::tempdir()?;
        std::fs::create_dir(home.path().join("work"))?;
        std::fs::write(home.path().join("server.py"), SERVER)?;
        let api = runtime.block_on(ScriptedApi::bind(0, script))?;
        Ok(Self { program, home, api })
    }

    fn run(&self, n_servers: usize) -> Result<Ran> {
        let seen = self.api.all_requests().len();
        let home = self.home.path().to_str().context("the folder's name is text")?;
        let server =
            json!({"command": "python3", "args": ["-S", "-E", format!("{home}/server.py")]});
        let servers: serde_json::Map<String, Value> =
            (0..n_servers).map(|n| (format!("s{n}"), server.clone())).collect();
        let config = json!({"mcpServers": servers}).to_string();
        let (path, base_url) = (std::env::var("PATH")?, self.api.base_url());
        let own = [
            ("PATH", path.as_str()),
            ("HOME", home),
            ("ANTHROPIC_BASE_URL", &base_url),
            // All tools are in the request, so that the model can call one at once.
            ("ENABLE_TOOL_SEARCH", "false"),
        ];
        let format = ["-p", "--output-format", "stream-json", "--verbose"];
        let allowed = format!("--allowedTools=mcp__s{}", SERVERS - 1);
        let rest = [
            "--model",
            engine::MODEL,
            "--mcp-config",
            &config,
            "--strict-mcp-config",
            &allowed,
            PROMPT,
        ];
        let ran = process::run(
            &self.program,
            &[&format[..], &rest].concat(),
            &self.home.path().join("work"),
            &[&own[..], &engine::ENVIRONMENT].concat(),
        )?;
        check(&ran.stdout, &self.api.all_requests()[seen..], n_servers)?;
        Ok(ran)
    }
}

/// Whether all servers were offered, and the call was made.
fn check(stdout: &str, requests: &[RecordedRequest], n_servers: usize) -> Result<()> {
    let most = requests.iter().map(|request| {
        request.tool_names().iter().filter(|name| name.ends_with("__number")).count()
    });
    let most = most.max().unwrap_or_default();
    ensure!(most == n_servers, "{most} of {n_servers} servers were offered to the model\n{stdout}");
    let results: Vec<_> = requests.iter().flat_map(RecordedRequest::tool_results).collect();
    ensure!(
        n_servers == 0 || results.iter().any(|it| !it.is_error && it.text.contains(OUTPUT)),
        "the result of the tool did not reach the model: {results:?}\n{stdout}"
    );
    let frames = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = frames.rev().find(|frame| frame["type"] == "result");
    let result = result.with_context(|| format!("there is no result:\n{stdout}"))?;
    ensure!(result["is_error"] == false, "the result is not a success: {result}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_fifths_are_within_the_limit_and_more_is_not() {
        assert_eq!(super::broken(0.4), None);
        assert!(super::broken(0.41).unwrap().contains("1/2.4"));
    }

    #[test]
    fn a_run_without_its_servers_does_not_count() {
        assert!(super::check("{\"type\":\"result\",\"is_error\":false}", &[], 10).is_err());
        assert!(super::check("{\"type\":\"result\",\"is_error\":false}", &[], 0).is_ok());
    }
}
