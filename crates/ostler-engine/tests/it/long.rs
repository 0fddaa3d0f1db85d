//! One turn of thousands of rounds: on a small stack, and in memory that grows with the conversation and no faster.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{StreamExt, stream};
use ostler_engine::model::{EventStream, Model, ModelEvent, Request};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::message::User;
use ostler_testkit::{Script, ScriptedApi};
use serde_json::json;

use crate::host::TestHost;

/// Rounds in a normal run.
const ROUNDS: u64 = 4000;
/// Enough for a handful of futures, not for one frame per round.
const STACK: usize = 512 * 1024;

/// With this variable, the process runs one turn of this many rounds with words of this length, and prints its peak
/// memory.
const CHILD: &str = "OSTLER_LONG_ROUNDS";
const NAME: &str = "long::thousands_of_rounds_on_a_small_stack_and_in_little_memory";

/// A model that calls a tool a number of times, then answers with text. It runs in the process: over HTTP the test
/// would take minutes.
struct Busy {
    rounds: u64,
    /// The argument of the tool, and what it returns.
    word: String,
    n_asked: AtomicU64,
}

impl Model for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn respond(&self, request: Request) -> EventStream {
        let round = self.n_asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(request.messages.len() as u64, 1 + 2 * round);
        let (content, stop_reason) = if round < self.rounds {
            let call = json!({"type": "tool_use", "id": format!("toolu_{round}"), "name": "Look", "input": {"word": self.word}});
            (call, "tool_use")
        } else {
            (json!({"type": "text", "text": "Enough."}), "end_turn")
        };
        let message = json!({
            "id": format!("msg_{round}"), "type": "message", "role": "assistant", "model": "busy",
            "content": [content], "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        });
        let message = serde_json::from_value(message).unwrap();
        stream::iter([Ok(ModelEvent::Whole(message))]).boxed()
    }
}

/// Runs one turn; the frames are checked and dropped.
async fn turn(rounds: u64, length: usize) {
    let api = ScriptedApi::start(Script::new()).await;
    let mut options = TestHost::options(&api);
    options.model = Arc::new(Busy { rounds, word: "x".repeat(length), n_asked: AtomicU64::new(0) });
    let mut connection = ostler_engine::session::start(options).unwrap();
    let prompt = ToEngine::User(Box::new(User::prompt("go")));
    connection.to_engine.send(prompt).await.unwrap();
    let result = loop {
        match connection.from_engine.recv().await.unwrap() {
            ToHost::Result(result) => break result,
            _ => continue,
        }
    };
    assert_eq!(result.result.as_deref(), Some("Enough."));
    assert_eq!(result.num_turns, rounds + 1);
}

fn on_small_stack(rounds: u64, length: usize) {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(turn(rounds, length));
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap();
    thread.join().unwrap();
}

/// The peak memory of a separate process for this many rounds with words of this length, in KiB.
fn memory_for(rounds: u64, length: usize) -> u64 {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, format!("{rounds} {length}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{rounds} rounds: {text}");
    let peak = text.split_once("VmHWM:").unwrap_or_else(|| panic!("no peak in {text}")).1;
    peak.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn thousands_of_rounds_on_a_small_stack_and_in_little_memory() {
    if let Ok(numbers) = std::env::var(CHILD) {
        let (rounds, length) = numbers.split_once(' ').unwrap();
        on_small_stack(rounds.parse().unwrap(), length.parse().unwrap());
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        // The test runner captures `println!`.
        use std::io::Write;
        writeln!(std::io::stderr(), "{status}").unwrap();
        return;
    }
    let [few, some, many] = [ROUNDS / 4, ROUNDS / 2, ROUNDS].map(|rounds| memory_for(rounds, 1));
    // Twice the rounds take twice the memory; keeping every request would take four times.
    let (growth, more) = (some.saturating_sub(few), many.saturating_sub(some));
    assert!(more <= 3 * growth + 4096, "{few} KiB, {some} KiB, {many} KiB");
}

/// Mutant: `tells_of_batch` that is always true: the driver keeps the calls and results of the whole turn for a hook that
/// does not exist.
#[test]
fn calls_and_results_are_in_memory_once() {
    const WORD: usize = 100_000;
    let [few, many] = [100, 300].map(|rounds| memory_for(rounds, WORD));
    // The word is in each call and in its result.
    let conversation = 200 * 2 * WORD as u64 / 1024;
    let growth = many.saturating_sub(few);
    assert!(growth <= conversation * 3 / 2, "{growth} KiB for {conversation} KiB: {few}, {many}");
}
