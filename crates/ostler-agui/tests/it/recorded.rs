//! Translates recorded streams of real engines: the events are in order, and all text is sent.

use std::fs;
use std::path::PathBuf;

use ostler_agui::event::Body;
use ostler_proto::api::ContentBlock;
use ostler_proto::codec::FrameDecoder;
use ostler_proto::frame::ToHost;

use crate::run::{Run, delta_text};

/// The frames of every recording, with its name.
pub(crate) fn recordings() -> Vec<(String, Vec<ToHost>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    let mut recordings: Vec<_> = fs::read_dir(&folder)
        .expect("the recordings exist")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.to_string_lossy().ends_with(".stdout.jsonl"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let mut decoder = FrameDecoder::<ToHost>::new();
            decoder.push(&fs::read(&path).expect("a readable file"));
            let mut frames = Vec::new();
            while let Some(frame) = decoder.next_frame() {
                // Some recordings contain invalid frames on purpose.
                frames.extend(frame);
            }
            (name, frames)
        })
        .collect();
    recordings.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(recordings.len() > 150, "only {} recordings", recordings.len());
    recordings
}

#[test]
fn every_recording_becomes_a_well_ordered_run() {
    for (_, frames) in recordings() {
        let mut run = Run::plain();
        frames.iter().for_each(|frame| run.frame(frame));
        run.end();
    }
}

#[test]
fn every_turn_after_the_first_is_a_well_ordered_run_too() {
    for (_, frames) in recordings() {
        for turn in frames.split_inclusive(|frame| matches!(frame, ToHost::Result(_))) {
            let mut run = Run::plain();
            turn.iter().for_each(|frame| run.frame(frame));
            run.end();
        }
    }
}

#[test]
fn all_text_of_the_model_is_sent_once() {
    let mut compared = 0;
    for (name, frames) in recordings() {
        let turn = frames.split_inclusive(|frame| matches!(frame, ToHost::Result(_))).next();
        let turn = turn.unwrap_or_default();
        let mut expected = String::new();
        for frame in turn {
            let ToHost::Assistant(frame) = frame else { continue };
            if frame.message.model == "<synthetic>" && frame.error.is_some() {
                continue;
            }
            frame
                .message
                .content
                .iter()
                .filter_map(ContentBlock::as_text)
                .for_each(|it| expected += it);
        }
        let mut run = Run::plain();
        turn.iter().for_each(|frame| run.frame(frame));
        let sent: String = run.events.iter().filter_map(delta_text).collect();
        // Recordings trim only the complete message; an aborted response has deltas only.
        if !expected.contains("(trimmed)")
            && !sent.is_empty()
            && !name.contains("midfail")
            && !name.contains("interrupt")
        {
            assert_eq!(sent, expected, "{name}\n{}", run.story());
            compared += 1;
        }
    }
    assert!(compared > 80, "only {compared} recordings were compared");
}

#[test]
fn every_call_of_a_recording_starts_once_and_is_answered_once() {
    let mut calls = 0;
    for (name, frames) in recordings() {
        let mut run = Run::plain();
        frames.iter().for_each(|frame| run.frame(frame));
        let count = |id: &str, is: fn(&Body) -> Option<&String>| {
            run.events.iter().filter(|event| is(&event.body).is_some_and(|it| it == id)).count()
        };
        for frame in frames.iter().take_while(|frame| !matches!(frame, ToHost::Result(_))) {
            let ToHost::Assistant(frame) = frame else { continue };
            let made = frame.message.content.iter().filter_map(ContentBlock::as_tool_use);
            for call in made.filter(|call| call.name != "StructuredOutput") {
                let id = call.id.as_str();
                let made = count(id, |body| match body {
                    Body::ToolCallStart { tool_call_id, .. } => Some(tool_call_id),
                    _ => None,
                });
                let answered = count(id, |body| match body {
                    Body::ToolCallResult { tool_call_id, .. } => Some(tool_call_id),
                    _ => None,
                });
                assert_eq!(made, 1, "{name} {id}\n{}", run.story());
                assert!(answered <= 1, "{name} {id}\n{}", run.story());
                calls += 1;
            }
        }
    }
    assert!(calls > 80, "only {calls} calls");
}
