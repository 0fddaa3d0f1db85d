//! For any message, a session answers each request once and nothing else.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::calc;

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z:/{}%é]{0,12}".prop_map(Value::from),
        Just(json!("add")),
        Just(json!("note://monday/x")),
        Just(json!("greet")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![
            "name|arguments|uri|_meta|cursor|requestId|protocolVersion|a|b",
            "[a-z]{1,4}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn method() -> impl Strategy<Value = Value> {
    let known = [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "notifications/cancelled",
        "notifications/initialized",
    ];
    prop_oneof![9 => prop::sample::select(known.to_vec()).prop_map(Value::from), 1 => anything()]
}

fn message() -> impl Strategy<Value = Value> {
    let id = prop_oneof![Just(json!(1)), Just(json!("one")), anything()];
    (prop::option::of(id), method(), anything()).prop_map(|(id, method, params)| {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if let Some(id) = id {
            message["id"] = id;
        }
        message
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_answers_requests_and_only_requests(message in prop_oneof![9 => message(), 1 => anything()]) {
        // Leaves out the tool that never ends.
        prop_assume!(!message.to_string().contains("hang"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(calc().connect().handle(message.clone()));
        if message.is_array() {
            return Ok(());
        }
        let is_notification = message.get("method").is_some_and(Value::is_string) && message.get("id").is_none();
        prop_assert_eq!(answer.is_none(), is_notification, "{} was answered with {:?}", message, answer);
        if let Some(answer) = answer {
            prop_assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{}", answer);
            if matches!(message.get("id"), Some(Value::String(_) | Value::Number(_))) {
                prop_assert_eq!(&answer["id"], &message["id"]);
            }
        }
    }
}
