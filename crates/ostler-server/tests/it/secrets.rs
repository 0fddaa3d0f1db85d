//! Secrets: commands of the spaces that have them receive them, and no client sees them.

use std::os::unix::fs::PermissionsExt as _;

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::json;

use crate::desk::Desk;
use crate::spaces::{call_result, commands, session_in, space};

const VALUE: &str = "canary+5ecret/value";

fn keep(desk: &Desk) {
    let file = desk.data().join("data/secrets.json");
    let secrets = json!({"SHOP_TOKEN": VALUE, "OTHER_TOKEN": "another-secret"});
    std::fs::write(&file, secrets.to_string()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

// Seen to fail when the whole environment is inherited, when a space gets every secret, when the redactor does not know
// the secrets, and when the end of a run is sent unredacted.
#[tokio::test]
async fn commands_get_the_secrets_of_their_space_and_nothing_else() {
    let seen =
        "echo ${SHOP_TOKEN:-none} ${OTHER_TOKEN:-none} ${CARGO_MANIFEST_DIR:-none} ${PATH:+path}";
    let script = Script::new()
        .rule(
            when().has_tool_result(true),
            reply().text_pieces([format!("it is {VALUE}, I believe")]),
        )
        .rule(when(), reply().tool_use("Bash", json!({"command": seen})));
    let desk = Desk::open(script).await;
    let client = desk.client();
    keep(&desk);
    space(&client, "team").await;
    space(&client, "others").await;
    let list = Some(json!({"secrets": ["SHOP_TOKEN"]}));
    assert_eq!(client.ask(Method::PATCH, "/api/spaces/team", list).await.0, 200);
    let session = session_in(&client, "team").await;
    assert_eq!(call_result(&desk, &client, &session).await, format!("{VALUE} none none path"));
    let elsewhere = session_in(&client, "others").await;
    assert_eq!(call_result(&desk, &client, &elsewhere).await, "none none none path");
    // A client that follows the session sees that there was a secret, but not its value.
    let log = serde_json::to_string(&client.log(&session).await).unwrap();
    assert!(log.contains("it is [redacted SHOP_TOKEN], I believe"), "{log}");
    let follow = client.request(Method::GET, &format!("/api/sessions/{session}/events"));
    let answer = follow.send().await.unwrap();
    let mut events = String::new();
    let mut stream = futures::StreamExt::boxed(answer.bytes_stream());
    while !events.contains("\"completed\"") {
        let piece = crate::desk::within(futures::StreamExt::next(&mut stream)).await;
        events.push_str(std::str::from_utf8(&piece.unwrap().unwrap()).unwrap());
    }
    for (what, text) in [("log", &log), ("events", &events)] {
        assert!(!text.contains("5ecret"), "the {what} contains it: {text}");
    }
}

#[tokio::test]
async fn secrets_are_listed_by_name_and_assigned_by_the_operator() {
    let desk = Desk::open(Script::new()).await;
    let client = desk.client();
    keep(&desk);
    assert_eq!(client.get("/api/secrets").await["items"], json!(["OTHER_TOKEN", "SHOP_TOKEN"]));
    let owner = desk.client_of("olga").await;
    owner.post("/api/spaces", json!({"id": "team"})).await;
    let list = |names: &[&str]| Some(json!({"secrets": names}));
    let path = "/api/spaces/team";
    assert_eq!(
        owner.ask(Method::PATCH, path, list(&["SHOP_TOKEN"])).await.0,
        403,
        "only the operator assigns secrets"
    );
    assert_eq!(client.ask(Method::PATCH, path, list(&["NO_TOKEN"])).await.0, 422);
    assert_eq!(client.ask(Method::PATCH, path, list(&["SHOP_TOKEN"])).await.0, 200);
    let shown = owner.get(path).await;
    assert_eq!(shown["secrets"], json!(["SHOP_TOKEN"]));
    assert!(!shown.to_string().contains("canary"));
    let file = desk.data().join("data/secrets.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (status, said) = client.ask(Method::GET, "/api/secrets", None).await;
    assert_eq!(status, 503);
    assert!(said.to_string().contains("chmod 600"), "{said}");
    let session = session_in(&owner, "team").await;
    let run = owner.prompt(&session, "hi").await;
    owner.until(&run, "failed").await;
}

// Seen to fail when the list of the server's own files does not contain them.
#[tokio::test]
async fn agents_cannot_read_the_operators_files() {
    for file in ["secrets.json", "mounts.json", "memory.md"] {
        let mut desk = Desk::with(Script::new(), |config| config.allow_bypass = true).await;
        keep(&desk);
        let path = desk.data().join("data").join(file);
        if file != "secrets.json" {
            std::fs::write(&path, "canary").unwrap();
        }
        desk.api.append(commands(&format!("cat {}", path.display())));
        let client = desk.client();
        let free = json!({"id": "team", "policy": {"permissionMode": "bypassPermissions"}});
        client.post("/api/spaces", free).await;
        let session = session_in(&client, "team").await;
        let result = call_result(&desk, &client, &session).await;
        assert!(!result.contains("canary") && result.contains("forbids"), "{file}: {result}");
        desk.stop().await;
    }
}
