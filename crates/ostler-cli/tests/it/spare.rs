//! A process that is started ahead of time and claimed later.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;

async fn place() -> (ScriptedApi, Ostler) {
    let call = json!({"command": "echo $COLOUR; pwd", "description": "Look"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("{{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    fs::create_dir(ostler.path("other")).unwrap();
    fs::write(ostler.path("other/CLAUDE.md"), "Use tabs.").unwrap();
    (api, ostler)
}

fn claim(folder: &str) -> Value {
    json!({
        "subtype": "claim_session", "cwd": folder, "append_system_prompt": "Be brief.",
        "permission_mode": "acceptEdits", "env": {"COLOUR": "green"}, "title": "Claimed",
        "agents": {"worker": {"description": "Works", "prompt": "Work."}},
        "sdk_mcp_servers": [], "include_initialize": true,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_begins_with_the_folder_and_options_of_the_claim() {
    let (api, ostler) = place().await;
    let mut talk = Talk::with(&ostler, &["--await-claim", "--allowedTools", "Bash"]);
    let hooks = json!({"Stop": [{"hookCallbackIds": ["hook_0"]}]});
    talk.asked(json!({"subtype": "initialize", "hooks": hooks}));
    let error = talk.refused(claim("/no/such/folder"));
    assert!(error.contains("/no/such/folder"), "{error}");

    let folder = ostler.path("other").canonicalize().unwrap().display().to_string();
    let claimed = talk.asked(claim(&folder));
    assert_eq!((&claimed["status"], &claimed["cwd"]), (&json!("ok"), &json!(folder)));
    assert!(claimed["parked_ms"].is_number() && claimed["sdk_mcp_settled"] == true, "{claimed}");
    assert_eq!(claimed["initialize"]["current_permission_mode"], "acceptEdits");
    assert!(claimed["initialize"]["agents"].to_string().contains("worker"), "{claimed}");

    talk.say("go", None);
    let init = talk.until(|frame| frame["subtype"] == "init");
    assert_eq!((&init["cwd"], &init["session_id"]), (&json!(folder), &claimed["session_id"]));
    // Hooks that the host registered before the claim still work.
    let hook = talk.until(|frame| frame["request"]["subtype"] == "hook_callback");
    talk.answer(&hook, json!({}));
    let result = talk.result();
    assert_eq!(result["result"], format!("green\n{folder}"));
    let system = api.requests()[0].body["system"].to_string();
    assert!(system.contains("Be brief.") && system.contains("Use tabs."), "{system}");
    assert_eq!(talk.end().code, Some(0));
    assert!(ostler.run(&["sessions", "--all"]).stdout.contains("Claimed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_that_no_host_claims_ends_with_its_input() {
    let (api, ostler) = place().await;
    let mut talk = Talk::with(&ostler, &["--await-claim"]);
    talk.asked(json!({"subtype": "initialize"}));
    assert_eq!(talk.end().code, Some(0));
    assert!(api.requests().is_empty());
}
