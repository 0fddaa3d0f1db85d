//! Checks a run against a scenario's expectations.

use serde_json::Value;

use crate::fill::fill;
use crate::pattern::{fits, mismatch, short};
use crate::play::Log;
use crate::scenario::Scenario;
use crate::sdk::Sdk;

/// The first deviation from the scenario; otherwise `None`.
pub(crate) fn first_difference(scenario: &Scenario, sdk: Sdk, log: &Log) -> Option<String> {
    unmet(scenario, sdk, log)
        .or_else(|| log.faults.first().cloned())
        .or_else(|| unexpected(scenario, sdk, log))
}

fn unmet(scenario: &Scenario, sdk: Sdk, log: &Log) -> Option<String> {
    // For each kind, how many of its events precede the last match.
    let mut passed = std::collections::BTreeMap::<String, usize>::new();
    let filled = |pattern: &Value| fill(pattern, &log.saved, &Value::Null);
    for fact in scenario.expect.iter().filter(|fact| fact.concerns(sdk)) {
        if let Some(pattern) = fact.event.as_ref().map(filled) {
            let Some(kind) = kind_of(&pattern) else {
                return Some(format!("{pattern} names no kind"));
            };
            let seen = passed.entry(kind.to_owned()).or_default();
            let mut later = log.of(kind).skip(*seen);
            match later.position(|payload| fits(&pattern[kind], payload)) {
                Some(found) => *seen += found + 1,
                None => return Some(missing(kind, &pattern[kind], log, *seen)),
            }
        } else if let Some(pattern) = fact.never.as_ref().map(filled) {
            if let Some(event) = log.events.iter().find(|event| fits(&pattern, event)) {
                return Some(format!("unexpected {pattern}: {}", short(event)));
            }
        } else if let Some((wanted, pattern)) = &fact.count {
            let count = log.events.iter().filter(|event| fits(pattern, event)).count();
            if count != *wanted {
                return Some(format!("{count} instead of {wanted} of {pattern}"));
            }
        }
    }
    None
}

/// Why no event matches, with the nearest one.
fn missing(kind: &str, pattern: &Value, log: &Log, seen: usize) -> String {
    let later: Vec<&Value> = log.of(kind).skip(seen).collect();
    let depth = |mismatch: &String| {
        mismatch.split(':').next().map_or(0, |place| place.matches('/').count())
    };
    let nearest = later.iter().filter_map(|payload| mismatch(pattern, payload)).max_by_key(depth);
    let nearest = nearest.map_or_else(
        || format!("no further event after the {seen} before"),
        |mismatch| format!("nearest {mismatch}"),
    );
    format!("no {kind} like {}; {nearest}", short(pattern))
}

/// Exceptions that the scenario does not expect.
fn unexpected(scenario: &Scenario, sdk: Sdk, log: &Log) -> Option<String> {
    let foreseen = |event: &Value| {
        let facts = scenario.expect.iter().filter(|fact| fact.concerns(sdk));
        let patterns = facts.flat_map(|fact| {
            let counted = fact.count.as_ref().map(|(_, pattern)| pattern);
            [fact.event.as_ref(), fact.may.as_ref(), counted]
        });
        patterns.flatten().any(|pattern| fits(pattern, event))
    };
    let failed = |event: &&Value| {
        event.get("thrown").is_some() || event.pointer("/returned/error").is_some()
    };
    let event = log.events.iter().filter(failed).find(|event| !foreseen(event))?;
    Some(format!("unexpected {}", short(event)))
}

fn kind_of(pattern: &Value) -> Option<&str> {
    pattern.as_object()?.keys().next().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::first_difference;
    use crate::play::Log;
    use crate::scenario::Scenario;
    use crate::sdk::Sdk;

    fn check(expect: Value, events: Value) -> Option<String> {
        let scenario: Scenario = serde_json::from_value(json!({
            "about": "", "script": {}, "sessions": [], "expect": expect,
        }))
        .unwrap();
        let log = Log { events: events.as_array().unwrap().clone(), ..Log::default() };
        first_difference(&scenario, Sdk::Py182, &log)
    }

    #[test]
    fn facts_hold_in_order_within_a_kind() {
        let events = json!([{"message": 1}, {"ask": 9}, {"message": 2}]);
        let fact = |event: Value| json!({"event": event});
        let in_order = json!([
            fact(json!({"message": 1})),
            fact(json!({"message": 2})),
            fact(json!({"ask": 9}))
        ]);
        assert_eq!(check(in_order, events.clone()), None);
        let reversed = json!([fact(json!({"message": 2})), fact(json!({"message": 1}))]);
        assert!(check(reversed, events).unwrap().contains("no message like 1"));
    }

    #[test]
    fn forbidden_and_too_many_events_are_reported() {
        let events = json!([{"message": 1}, {"message": 1}]);
        assert!(check(json!([{"never": {"message": 1}}]), events.clone()).is_some());
        assert!(check(json!([{"count": [1, {"message": 1}]}]), events.clone()).is_some());
        assert_eq!(check(json!([{"count": [2, {"message": 1}]}]), events), None);
    }

    #[test]
    fn an_unexpected_exception_is_reported() {
        let events = json!([{"thrown": {"name": "Error"}}]);
        assert!(check(json!([]), events.clone()).unwrap().contains("unexpected"));
        assert_eq!(check(json!([{"event": {"thrown": {"name": "Error"}}}]), events.clone()), None);
        let for_another = json!([{"event": {"thrown": {}}, "sdks": ["ts050"]}]);
        assert!(check(for_another, events).is_some());
    }

    #[test]
    fn a_fault_of_the_run_always_fails_it() {
        let scenario = json!({"about": "", "script": {}, "sessions": [], "expect": []});
        let scenario: Scenario = serde_json::from_value(scenario).unwrap();
        let log = Log { faults: vec!["left running: sleep".to_owned()], ..Log::default() };
        assert_eq!(first_difference(&scenario, Sdk::Ts050, &log).unwrap(), "left running: sleep");
    }
}
