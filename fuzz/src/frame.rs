//! Frames: whatever decodes encodes unchanged, and errors are short.

use std::fmt::Debug;

use ostler_proto::frame::{Frame, ToEngine, ToHost};
use ostler_proto::transcript::TranscriptLine;
use serde_json::Value;

/// The longest error message. It quotes 400 bytes of the line; the rest is the path to the field and the reason.
const LONGEST_ERROR: usize = 2_000;

/// Reads each line of `data` as every kind of frame.
pub fn frame(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        check::<ToHost>(&line);
        check::<ToEngine>(&line);
        check::<TranscriptLine>(&line);
    }
}

fn check<F: Frame + PartialEq + Debug>(line: &str) {
    let frame = match F::from_line(line) {
        Ok(frame) => frame,
        Err(error) => {
            let length = error.to_string().len();
            assert!(length < LONGEST_ERROR, "{}: an error of {length} bytes", F::NAME);
            return;
        }
    };
    frame.summary();
    let written = frame.to_line();
    assert_eq!(
        written.find('\n'),
        Some(written.len() - 1),
        "{}: a frame is one line: {written:?}",
        F::NAME
    );
    // Lone surrogates are repaired on the way in, so such a line has no tree to compare with.
    if let Ok(original) = serde_json::from_str::<Value>(line) {
        let tree: Value = serde_json::from_str(&written).expect("frames are written as JSON");
        assert!(
            tree == original,
            "{}: changed on the way through: {tree}, was {original}",
            F::NAME
        );
    }
    match F::from_line(&written) {
        Ok(reread) => {
            assert!(reread == frame, "{}: read back as {reread:?}, was {frame:?}", F::NAME);
        }
        Err(error) => panic!("{}: cannot read what it wrote: {error}", F::NAME),
    }
}
