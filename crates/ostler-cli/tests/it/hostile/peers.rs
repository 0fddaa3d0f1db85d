//! The same attacks through the official SDKs, with `ostler` as their executable.

use std::path::PathBuf;

use ostler_testkit::{Script, ScriptedApi, hostile, reply, when};
use serde_json::{Value, json};

use crate::record::peers::{driver, hear, installed};
use crate::run::Ostler;

/// How to start a driver: the program, and the module of the SDK if it has a separate name.
struct Sdk {
    name: &'static str,
    program: Vec<String>,
    module: String,
}

fn sdks() -> [Sdk; 3] {
    let text = |path: PathBuf| path.display().to_string();
    let package = "node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs";
    let node = |name, variable| Sdk {
        name,
        program: vec!["node".to_owned(), text(driver("hostile.mjs"))],
        module: text(installed(variable, package)),
    };
    let python = Sdk {
        name: "Python",
        program: vec![text(installed("OSTLER_PYTHON", "bin/python")), text(driver("hostile.py"))],
        module: String::new(),
    };
    [
        node("older TypeScript", "OSTLER_PEERS"),
        node("newer TypeScript", "OSTLER_NATIVE_PEERS"),
        python,
    ]
}

async fn drive(sdk: &Sdk, ostler: Ostler, api: &ScriptedApi, given: Value) -> Ostler {
    let ostler = ostler
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("SDK_MODULE", &sdk.module);
    let program: Vec<&str> = sdk.program.iter().map(String::as_str).collect();
    let heard = hear(&ostler, &program, given).await;
    assert!(heard.contains("all done"), "{}: {heard}", sdk.name);
    ostler
}

// Mutant: `Policy::decide` without the rules that deny.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages and a Python package; run by cargo xtask test"]
async fn no_spelling_of_a_denied_command_runs_in_bypass_mode_through_official_sdks() {
    for sdk in sdks() {
        let outside = tempfile::tempdir().unwrap();
        let canary = outside.path().join("pwned");
        let denied = hostile::denied(&canary);
        let prompt = |index: usize| format!("case {index}.");
        let mut script = Script::new();
        for (index, (_, command)) in denied.iter().enumerate() {
            let call = reply().tool_use("Bash", json!({"command": command}));
            script = script.rule(when().turn(0).prompt_contains(prompt(index)), call);
        }
        let api = ScriptedApi::start(script.rule(when(), reply().text("done"))).await;
        let ostler = Ostler::new();
        hostile::repositories(ostler.folder.path(), &canary).unwrap();
        let prompts: Vec<_> = (0..denied.len()).map(prompt).collect();
        let extra = json!({"settings": hostile::deny_settings()});
        let given = json!({"prompts": prompts, "mode": "bypassPermissions", "extra": extra});
        drive(&sdk, ostler, &api, given).await;
        let requests = api.requests();
        let refused = requests
            .iter()
            .filter(|request| request.tool_results().last().is_some_and(|result| result.is_error));
        assert_eq!(refused.count(), denied.len(), "{}", sdk.name);
        assert!(!canary.exists(), "{}", sdk.name);
    }
}

// Mutant: the driver names the sources `project` and `local`, which is how a host trusts a project.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages and a Python package; run by cargo xtask test"]
async fn a_hostile_project_shows_and_starts_nothing_through_official_sdks() {
    for sdk in sdks() {
        let outside = tempfile::tempdir().unwrap();
        let canary = outside.path().join("pwned");
        let api = ScriptedApi::start(Script::new().rule(when(), reply().text("done"))).await;
        let ostler = Ostler::new();
        hostile::project(ostler.folder.path(), outside.path(), &canary).unwrap();
        let prompts = ["look", "/e", "/leak", "hello @link.md"];
        let extra = json!({"setting-sources": ""});
        let given = json!({"prompts": prompts, "mode": "default", "extra": extra});
        drive(&sdk, ostler, &api, given).await;
        let requests = api.requests();
        assert!(requests.len() >= 2, "{}", sdk.name);
        for request in requests {
            let body = request.body.to_string();
            assert!(!body.contains(hostile::SECRET), "{}: {body}", sdk.name);
        }
        assert!(!canary.exists(), "{}", sdk.name);
    }
}
