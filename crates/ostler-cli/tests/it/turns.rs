//! One session, turns by this program and by the vendor's in any order: each sees all turns before.

use std::process::{Command, Stdio};

use ostler_testkit::{Script, ScriptedApi, reply, when};

use crate::backends::vendor_paths;
use crate::run::{Ostler, Ran};

/// Orders of turns: `o` is this program, `v` the vendor's.
const ORDERS: [&str; 6] = ["vov", "ovov", "voov", "ovvo", "oov", "vvoovo"];

/// The vendor's program in the same folder and home directory.
fn vendor(ostler: &Ostler, arguments: &[&str]) -> Ran {
    let mut command = Command::new(vendor_paths::newer());
    ostler.furnish(&mut command);
    for name in
        ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"]
    {
        command.env(name, "1");
    }
    let command = command.args(arguments).stdin(Stdio::null());
    Ran::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

// Mutants: no line with the date after the first prompt (`TranscriptWriter::date`), so that the vendor's program sends an empty
// message; the next turn continues after the last message instead of after the last line (`Tree::end`).
#[tokio::test(flavor = "multi_thread")]
#[ignore = "starts the vendor's program, which `cargo xtask test` installs"]
async fn each_program_sees_the_turns_of_the_other_in_any_order() {
    for order in ORDERS {
        let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Answered."))).await;
        let ostler = Ostler::new()
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", &api.base_url());
        let id = uuid::Uuid::new_v4().to_string();
        for (number, program) in order.chars().enumerate() {
            let prompt = format!("turn-{number}-here");
            let session = if number == 0 { "--session-id" } else { "--resume" };
            let arguments = ["-p", &prompt, session, &id];
            let ran = match program {
                'v' => vendor(&ostler, &arguments),
                _ => ostler.run(&arguments),
            };
            assert_eq!(ran.code, Some(0), "{order} {number}: {ran:?}");
            let conversation = api.requests().last().unwrap().body["messages"].to_string();
            for earlier in 0..=number {
                let prompt = format!("turn-{earlier}-here");
                assert!(
                    conversation.contains(&prompt),
                    "{order}: turn {number} does not see {prompt}"
                );
            }
        }
    }
}
