//! The events are in order, whatever frames an engine sends, in whatever order, and wherever they are cut off.

use std::sync::OnceLock;

use ostler_agui::event::Interrupt;
use ostler_agui::translate::Settings;
use ostler_proto::frame::ToHost;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::recorded::recordings;
use crate::run::*;

fn id(prefix: &'static str) -> impl Strategy<Value = String> {
    (0..3u8).prop_map(move |number| format!("{prefix}{number}"))
}

fn block() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[ab]{0,2}".prop_map(|it| text(&it)),
        ("[ab]{0,2}", "[s]{0,1}").prop_map(
            |(thinking, signature)| json!({"type": "thinking", "thinking": thinking, "signature": signature})
        ),
        Just(json!({"type": "redacted_thinking", "data": "x"})),
        (id("c"), prop_oneof!["Bash", "Agent", "TodoWrite", "TaskUpdate", "hidden"], any::<bool>())
            .prop_map(|(id, name, empty)| tool_use(&id, &name, if empty { json!({}) } else { json!({"todos": [], "taskId": "1"}) })),
        id("c").prop_map(|id| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})),
        id("c").prop_map(|id| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})),
        id("c").prop_map(|id| json!({"type": "new_tool_use", "id": id, "name": "n"})),
        Just(json!({"type": "hologram"})),
    ]
}

fn any_delta() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[ab]{0,2}".prop_map(|text| json!({"type": "text_delta", "text": text})),
        "[ab]{0,2}".prop_map(|text| json!({"type": "thinking_delta", "thinking": text})),
        "[s]{0,2}".prop_map(|text| json!({"type": "signature_delta", "signature": text})),
        "[{}]{0,2}".prop_map(|text| json!({"type": "input_json_delta", "partial_json": text})),
    ]
}

fn frame() -> impl Strategy<Value = Value> {
    let frame = prop_oneof![
        3 => id("msg").prop_map(|id| message_start(&id)),
        6 => (0..3u64, block()).prop_map(|(index, block)| block_start(index, block)),
        6 => (0..3u64, any_delta()).prop_map(|(index, content)| delta(index, content)),
        5 => (0..3u64).prop_map(block_stop),
        2 => Just(message_delta("max_tokens")),
        2 => Just(message_stop()),
        5 => (id("msg"), block()).prop_map(|(id, block)| assistant(&id, block)),
        4 => id("c").prop_map(|id| tool_result(&id, json!("done"))),
        2 => id("c").prop_map(|id| tool_error(&id, "failed")),
        1 => id("c").prop_map(|id| {
            let mut frame = tool_result(&id, json!("later"));
            frame["tool_use_result"] = json!({"isAsync": true});
            frame
        }),
        1 => (id("c"), any::<bool>()).prop_map(|(id, done)| json!({"type": "system", "subtype": "task_notification",
            "task_id": "t", "tool_use_id": id, "status": if done { "completed" } else { "failed" }, "output_file": "", "summary": "s"})),
        1 => id("c").prop_map(|id| json!({"type": "system", "subtype": "task_started", "task_id": "t", "tool_use_id": id,
            "description": "d", "task_type": "local_agent"})),
    ];
    (frame, prop::option::weighted(0.3, id("c"))).prop_map(|(frame, parent)| match parent {
        Some(parent) => of_subagent(frame, &parent),
        None => frame,
    })
}

/// Ends a run in one of several ways.
fn end(run: &mut Run, how: u8) {
    let pending = run.translator.unanswered();
    let events = match how {
        0 => run.translator.nothing_to_do(),
        1 if !pending.is_empty() => run.translator.wait_for_calls(pending),
        2 => {
            let asks =
                Interrupt { id: "q".into(), reason: "confirmation".into(), ..Interrupt::default() };
            run.translator.interrupt(vec![asks])
        }
        3 => run.translator.cancelled("stop"),
        4 => {
            run.frames([result(json!({}))]);
            Vec::new()
        }
        _ => Vec::new(),
    };
    run.take(events);
    run.end();
}

fn all_recordings() -> &'static [(String, Vec<ToHost>)] {
    static ALL: OnceLock<Vec<(String, Vec<ToHost>)>> = OnceLock::new();
    ALL.get_or_init(recordings)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_frames_in_any_order_give_ordered_events(frames in prop::collection::vec(frame(), 0..40), how in 0..6u8) {
        let mut settings = Settings::new("thread", "run");
        settings.hidden_tools.insert("hidden".into());
        let mut run = Run::new(settings);
        run.frames(frames);
        end(&mut run, how);
    }

    #[test]
    fn recordings_with_lost_frames_give_ordered_events(which in any::<prop::sample::Index>(), holes in prop::collection::vec(0..4u8, 0..120), how in 0..6u8) {
        let all = all_recordings();
        let (_, frames) = &all[which.index(all.len())];
        let mut run = Run::plain();
        for (number, frame) in frames.iter().enumerate() {
            match holes.get(number) {
                // The frame is lost, sent twice, or sent once; the stream ends where the list does.
                Some(0) => {}
                Some(1) => {
                    run.frame(frame);
                    run.frame(frame);
                }
                Some(_) => run.frame(frame),
                None => break,
            }
        }
        end(&mut run, how);
    }
}
