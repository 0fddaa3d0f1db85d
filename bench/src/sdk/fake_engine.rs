//! An engine that answers every prompt with a recording whose text deltas are repeated, as fast as the pipe allows.
//!
//! SDKs start it with their own arguments, so an environment variable makes this program the fake engine.

use std::io::{BufRead, Write};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// How many text deltas the fake engine sends; that it is set makes this program the fake engine.
pub(crate) const VARIABLE: &str = "OSTLER_BENCH_DELTAS";

/// How often the recorded deltas are written in one go.
const BLOCK: usize = 100;

/// A recording with partial messages.
const RECORDED: &str = include_str!("../../../fixtures/wire/ts325-partial.stdout.jsonl");

/// Answers a host until it closes the input.
pub(crate) fn speak(n_deltas: usize) -> Result<()> {
    let recording = Recording::read(RECORDED)?;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?).context("reading the host's message")?;
        match asked["type"].as_str() {
            Some("control_request") => {
                writeln!(output, "{}", recording.answer(&asked["request_id"]))?;
            }
            Some("user") => recording.play(n_deltas, &mut output)?,
            _ => {}
        }
    }
    Ok(())
}

/// The recording, split at its text deltas.
struct Recording {
    answer: Value,
    before: String,
    deltas: Vec<String>,
    after: String,
}

impl Recording {
    fn read(lines: &str) -> Result<Self> {
        let mut lines = lines.lines();
        let answer = serde_json::from_str(lines.next().context("the recording is empty")?)?;
        let (mut before, mut deltas, mut after) = (String::new(), Vec::new(), String::new());
        for line in lines {
            let line = format!("{line}\n");
            if line.contains("\"text_delta\"") {
                deltas.push(line);
            } else if deltas.is_empty() {
                before.push_str(&line);
            } else {
                after.push_str(&line);
            }
        }
        ensure!(!deltas.is_empty(), "the recording has no text deltas");
        Ok(Self { answer, before, deltas, after })
    }

    /// The recorded answer to `initialize`, used for all requests.
    fn answer(&self, id: &Value) -> Value {
        let mut answer = self.answer.clone();
        answer["response"]["request_id"] = id.clone();
        answer
    }

    fn play(&self, n_deltas: usize, output: &mut impl Write) -> Result<()> {
        output.write_all(self.before.as_bytes())?;
        // Many at once, so that the reader takes most of the time.
        let block = self.deltas.concat().repeat(BLOCK);
        let n_block = self.deltas.len() * BLOCK;
        for _ in 0..n_deltas / n_block {
            output.write_all(block.as_bytes())?;
        }
        for delta in self.deltas.iter().cycle().take(n_deltas % n_block) {
            output.write_all(delta.as_bytes())?;
        }
        output.write_all(self.after.as_bytes())?;
        Ok(output.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_number_of_deltas_is_sent_between_the_other_recorded_lines() {
        let recording = Recording::read(RECORDED).unwrap();
        for n_deltas in [1, 3, 600, 1_204] {
            let mut output = Vec::new();
            recording.play(n_deltas, &mut output).unwrap();
            let text = String::from_utf8(output).unwrap();
            assert_eq!(text.matches("\"text_delta\"").count(), n_deltas);
            assert!(text.starts_with(&recording.before) && text.ends_with(&recording.after));
        }
    }

    #[test]
    fn an_answer_has_the_id_of_its_request() {
        let recording = Recording::read(RECORDED).unwrap();
        assert_eq!(recording.answer(&"r7".into())["response"]["request_id"], "r7");
    }
}
