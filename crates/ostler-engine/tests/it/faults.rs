//! Whole sessions under random faults, denials and interruptions, over real HTTP.
//!
//! Whatever happens: one result per prompt, one tool result per call on the wire and in every later request (the
//! scripted API refuses anything else), the next prompt works, and the file can be resumed. A failure names its seed;
//! `OSTLER_FAULT_SEED=n` runs that one alone, `OSTLER_FAULT_SESSIONS=n` runs more of them.

use std::collections::HashMap;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use ostler_engine::store::{LineContext, Projects, SessionStart, StartFrom};
use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::control::AskHost;
use ostler_proto::frame::ToHost;
use ostler_testkit::{Action, Disorder, Reply, Rule, Script, Status, ToolUse, reply, when};
use serde_json::{Value, json};

use crate::host::{TestHost, line};
use crate::model::assert_stable_prefix;

/// The number of sessions in a normal run, which takes a few seconds.
const SESSIONS: u64 = 40;
/// Longer than any session takes on the slowest machine: a session that takes longer hangs.
const HANGS: Duration = Duration::from_secs(120);

/// Random numbers that a seed repeats.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, things: &[T]) -> T {
        things[self.below(things.len() as u64) as usize].clone()
    }
}

fn call(dice: &mut Dice) -> ToolUse {
    let word = json!({"word": "it"});
    let task = json!({"description": "help", "prompt": "sub: help"});
    let (name, input) = dice.pick(&[
        ("Look", word.clone()),
        ("Look", word.clone()),
        ("Change", word.clone()),
        ("Change", word.clone()),
        ("Break", word),
        ("Look", json!({"wrong": 1})),
        ("Nowhere", json!({})),
        ("Agent", task),
    ]);
    ToolUse::new(name, input)
}

/// A reply without a fault.
fn good(dice: &mut Dice) -> Reply {
    let mut good = reply();
    if dice.one_in(4) {
        good = good.thinking("hm", "signed");
    }
    if dice.one_in(3) {
        good = good.text(dice.pick(&["\n\n", "Let me see.", "Well."]));
    }
    match dice.below(3) {
        0 => good.text("Done."),
        _ => (0..=dice.below(3)).fold(good, |good, _| {
            let call = call(dice);
            good.block(call.into())
        }),
    }
}

fn reply_of(dice: &mut Dice) -> Reply {
    let after = dice.below(12) as usize;
    let disorder = dice.pick(&[
        Disorder::DeltaWithoutStart,
        Disorder::StopWithoutStart,
        Disorder::EarlyMessageStop,
        Disorder::SecondMessageStart,
        Disorder::SwapNextTwo,
    ]);
    match dice.below(12) {
        0..5 => good(dice),
        5 => {
            let code = dice.pick(&[400, 401, 403, 404, 413, 429, 500, 503, 529]);
            reply().status(Status::new(code).retry_after(0))
        }
        6 => good(dice).cut(after),
        7 => {
            let action = dice.pick(&[
                Action::End,
                Action::MalformedJson,
                Action::MalformedSse,
                Action::overloaded(),
                Action::OutOfOrder(disorder),
                Action::ErrorEvent {
                    error_type: "invalid_request_error".into(),
                    message: "no".into(),
                },
            ]);
            good(dice).interrupt(after, action)
        }
        8 => good(dice).stop_reason(dice.pick(&["max_tokens", "refusal", "pause_turn"])),
        9 => good(dice).missing_message_stop(),
        10 => reply(),
        _ => reply().tool_use("Hang", json!({"word": "on"})),
    }
}

/// A host that answers at random, and interrupts at random or when nothing else would end a turn.
struct Whim {
    dice: Dice,
    has_faults: bool,
}

impl Whim {
    /// What to answer to a question; `None` leaves it open, and interrupts.
    fn answer(&mut self) -> Option<Result<Value, String>> {
        let allow = Some(Ok(json!({"behavior": "allow"})));
        let deny = Some(Ok(json!({"behavior": "deny", "message": "No."})));
        if !self.has_faults {
            return if self.dice.one_in(2) { allow } else { deny };
        }
        match self.dice.below(8) {
            0..3 => allow,
            3 | 4 => deny,
            5 => Some(Ok(json!({"behavior": "deny", "message": "Stop.", "interrupt": true}))),
            6 => Some(Err("broken".into())),
            _ => None,
        }
    }

    async fn hear(&mut self, host: &TestHost, frame: &ToHost) {
        let mut interrupts = self.has_faults && self.dice.one_in(15);
        match frame {
            ToHost::ControlRequest(request) => {
                assert!(matches!(request.request, AskHost::CanUseTool(_)));
                match self.answer() {
                    Some(answer) => host.respond(request.request_id.clone().unwrap(), answer).await,
                    None => interrupts = true,
                }
            }
            frame => interrupts |= line(frame).contains("Hang("),
        }
        if interrupts {
            host.interrupt().await;
        }
    }

    /// Reads until `count` results have arrived.
    async fn results(&mut self, host: &mut TestHost, count: u64) {
        let mut left = count;
        while left > 0 {
            let frame = host.next().await.expect("the session continues");
            left -= u64::from(matches!(frame, ToHost::Result(_)));
            self.hear(host, &frame).await;
        }
    }
}

async fn session(seed: u64, has_faults: bool) {
    let mut dice = Dice(seed);
    let replies: Vec<_> =
        (0..24).map(|_| if has_faults { reply_of(&mut dice) } else { good(&mut dice) }).collect();
    let script = Script::new()
        .rule(when().prompt_contains("finally"), reply().text("Finally."))
        .with(Rule::new(when(), replies))
        .rule(when(), reply().text("Nothing more."));
    let folder = tempfile::tempdir().unwrap();
    let projects = Projects::new(folder.path());
    let cwd = std::env::temp_dir().canonicalize().unwrap();
    let scene = LineContext { cwd, version: "0.1.0".to_owned(), entrypoint: None };
    let opened = projects.open(scene.clone(), &SessionStart::default()).unwrap();
    let partial_messages = dice.one_in(2);
    let mut host = TestHost::with(script, |options| {
        options.opened = Some(opened);
        options.launch.output.partial_messages = partial_messages;
    })
    .await;
    let mut whim = Whim { dice, has_faults };
    for _ in 0..4 {
        let n_prompts = 1 + whim.dice.below(2);
        for _ in 0..n_prompts {
            host.prompt("go on").await;
        }
        whim.results(&mut host, n_prompts).await;
    }
    host.prompt("finally").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Finally."), "{:#?}", host.story());
    assert_each_call_has_one_result(&host.seen);
    if !has_faults {
        let requests = host.api.requests();
        let main =
            requests.iter().filter(|request| !request.messages()[0].to_string().contains("sub:"));
        assert_stable_prefix(&main.map(|request| request.body.clone()).collect::<Vec<_>>());
    }

    let latest = SessionStart { begin: StartFrom::Latest, ..SessionStart::default() };
    let mut options = TestHost::options(&host.api);
    options.opened = Some(projects.open(scene, &latest).unwrap());
    host.connection = ostler_engine::session::start(options).unwrap();
    host.prompt("finally, from the file").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Finally."));
}

/// Checks the frames: each call of the main conversation has one result. A stopped subagent sends none.
fn assert_each_call_has_one_result(seen: &[ToHost]) {
    let mut results: HashMap<String, usize> = HashMap::new();
    for frame in seen {
        match frame {
            ToHost::Assistant(frame) if frame.parent_tool_use_id.is_none() => {
                for call in frame.message.content.iter().filter_map(ContentBlock::as_tool_use) {
                    assert_eq!(results.insert(call.id.to_string(), 0), None, "called twice");
                }
            }
            ToHost::User(frame) if frame.parent_tool_use_id.is_none() => {
                let Some(Content::Blocks(blocks)) = &frame.message.content else { continue };
                for block in blocks {
                    if let ContentBlock::ToolResult(result) = block {
                        *results.get_mut(result.tool_use_id.as_str()).expect("its call") += 1;
                    }
                }
            }
            _ => {}
        }
    }
    let odd: Vec<_> = results.iter().filter(|(_, count)| **count != 1).collect();
    assert!(odd.is_empty(), "{odd:?} in {:#?}", seen.iter().map(line).collect::<Vec<_>>());
}

async fn sessions(has_faults: bool, usual: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("OSTLER_FAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("OSTLER_FAULT_SESSIONS").unwrap_or(usual),
    };
    let run = |seed| async move {
        let session = tokio::spawn(tokio::time::timeout(HANGS, session(seed, has_faults)));
        match session.await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => panic!("the session with seed {seed} hangs"),
            Err(error) => panic!("the session with seed {seed} failed: {error}"),
        }
    };
    stream::iter(seeds).for_each_concurrent(8, run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_has_one_result_and_every_prompt_too_under_random_faults() {
    sessions(true, SESSIONS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_request_prefix_is_stable_over_random_conversations() {
    sessions(false, SESSIONS / 3).await;
}
