//! A scripted Anthropic Messages API over real HTTP, for tests.
//!
//! A test scripts what the model will do, starts a server, points the program under test to it, and asserts on the
//! requests that the server recorded:
//!
//! ```
//! use ostler_testkit::{ScriptedApi, Script, reply, when};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let script = Script::new()
//!     .rule(when().prompt_contains("list").turn(0), reply().text("Looking.").tool_use("Bash", json!({"command": "ls"})))
//!     .rule(when().tool_result_of("Bash"), reply().text("There is: {{tool_result}}"));
//! let server = ScriptedApi::start(script).await;
//!
//! let request = json!({"model": "any", "max_tokens": 9, "messages": [{"role": "user", "content": "list the files"}]});
//! let url = format!("{}/v1/messages", server.base_url());
//! # rustls::crypto::ring::default_provider().install_default().unwrap();
//! let message = reqwest::Client::new().post(url).json(&request).send().await.unwrap();
//! let message: serde_json::Value = message.json().await.unwrap();
//!
//! assert_eq!(message["stop_reason"], "tool_use");
//! assert_eq!(server.requests()[0].last_user_text(), "list the files");
//! server.finish();
//! # }
//! ```
//!
//! The server does not ignore mistakes: it answers a request that no rule covers, or that the real API would refuse,
//! with `invalid_request_error`, and [`ScriptedApi`] panics with the whole conversation when it is dropped.
//!
//! # Scripts in JSON
//!
//! The program `scripted-api` is for tests in other languages; it reads its script from a JSON file. Fields that are
//! not required can be left out; an unknown field is an error.
//!
//! ```
//! let script = ostler_testkit::Script::from_json(r#"{
//!   "rules": [
//!     {
//!       "name": "look first",
//!       "when": {"prompt": "list", "turn": 0, "model": "claude-*", "tools": ["Bash"]},
//!       "reply": {
//!         "content": [
//!           {"type": "thinking", "thinking": "A shell command will do.", "signature": "c2lnbmVk"},
//!           {"type": "text", "text": "Looking.", "split": 2},
//!           {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}, "split": 4}
//!         ],
//!         "usage": {"input_tokens": 120, "output_tokens": 30, "cache_read_input_tokens": 100}
//!       }
//!     },
//!     {
//!       "when": {"tool_result": true},
//!       "replies": [
//!         {"status": {"code": 529, "retry_after": 0}},
//!         {"content": [{"type": "text", "text": "There is: {{tool_result}}"}]}
//!       ]
//!     },
//!     {
//!       "when": {"prompt": "hang"},
//!       "reply": {
//!         "content": [{"type": "text", "text": ["one ", "two ", "three"]}],
//!         "interruptions": [{"after_events": 3, "do": {"gate": "halfway"}}, {"after_events": 4, "do": "stall"}]
//!       },
//!       "times": 1
//!     }
//!   ]
//! }"#);
//! assert!(script.is_ok(), "{}", script.unwrap_err());
//! ```
//!
//! ## A rule
//!
//! The first rule whose `when` holds and that has uses left answers the request.
//!
//! | field | meaning |
//! |---|---|
//! | `when` | the condition; without it the rule applies to every request |
//! | `reply` | one reply for all uses |
//! | `replies` | a list of replies, used in order; after the last reply the rule is used up |
//! | `times` | how often the rule can be used; a list shorter than this repeats its last reply |
//! | `per_conversation` | count uses for each conversation separately; conversations differ by their first message |
//! | `name` | shown in reports and recorded requests |
//!
//! ## `when`
//!
//! All conditions that are given must hold.
//!
//! | field | holds when |
//! |---|---|
//! | `prompt` | the newest user message with text contains this in its text blocks; tool results and blocks that start with `<system-reminder>` do not count |
//! | `any_text` | any string in the messages contains this |
//! | `system` | the system prompt contains this |
//! | `turn` | the conversation has this many assistant messages |
//! | `model` | the model has this name; a name that ends in `*` is a prefix |
//! | `tool_result` | `true`: the last message has tool results; `false`: it has none; a text: one of them contains it |
//! | `tool_result_of` | the last message has a result of the tool with this name |
//! | `tool_error` | `true`: the last message has a result marked as an error; `false`: it has none |
//! | `tools` | the request offers all these tools |
//! | `streaming` | `true`: the request asks for a stream; `false`: it does not |
//!
//! ## A reply
//!
//! | field | meaning |
//! |---|---|
//! | `content` | the content blocks, see below |
//! | `usage` | `input_tokens`, `output_tokens` (both estimated when absent), `cache_creation_input_tokens`, `cache_read_input_tokens` |
//! | `stop_reason` | by default `stop_sequence` if `stop_sequence` is set, else `tool_use` if there is a tool call, else `end_turn` |
//! | `stop_sequence` | the stop sequence that the model has written |
//! | `stop_details` | details of the stop reason, as the API sends them for a refusal |
//! | `model` | another model than the requested one |
//! | `status` | an HTTP error instead of a message: `code`, `error_type`, `message`, `body` (a text, sent unchanged, or JSON), `retry_after`, `headers` |
//! | `hold` | the name of a gate to pass before the first byte, headers included |
//! | `delay_before_first_byte_ms`, `delay_between_events_ms` | pauses |
//! | `chunk_bytes` | send the stream in pieces of this many bytes |
//! | `ping_between_events` | a ping between any two events |
//! | `missing_message_stop` | the body ends properly, but without `message_stop` |
//! | `interruptions` | a list of `{"after_events": N, "do": ACTION}`, see [`Interruption`] and [`Action`] |
//!
//! Actions are `"stall"`, `"cut"`, `"end"`, `"malformed_json"`, `"malformed_sse"`, `"ping"`,
//! `{"gate": NAME}`, `{"raw": TEXT}`, `{"error_event": {"error_type": …, "message": …}}` (both optional) and
//! `{"out_of_order": D}` with D one of `"delta_without_start"`, `"stop_without_start"`, `"early_message_stop"`,
//! `"second_message_start"`, `"swap_next_two"`.
//!
//! Blocks are `text` (`text`, `split`), `thinking` (`thinking`, `signature`, `split`), `redacted_thinking`
//! (`data`), `tool_use` and `server_tool_use` (`name`, `input`, `id`, `split`, `raw_input`) and `raw` (`block`, any
//! JSON). `split` is the number of deltas, 3 by default; a `text` or `thinking` given as a list is streamed in those
//! pieces. A tool input starts with an empty delta, and an empty input has only that one, as in the real API.
//! `{{prompt}}` and `{{tool_result}}` in texts and inputs stand for the prompt and the newest tool result.
//!
//! ## Other endpoints
//!
//! The endpoint `count_tokens` answers the number in `count_tokens` at the top of a script; without it, a quarter of
//! the bytes of system prompt, tools and messages as compact JSON. `GET …/v1/models` lists two models,
//! `GET …/v1/models/<model>` describes any model. `HEAD` of any path and `GET` of `/` or `…/api/hello` are answered
//! with 200, everything else with 404.
//!
//! # Claude Code as the client
//!
//! The server accepts what Claude Code 2.1.50 and 2.1.325 were observed to send: unknown fields, headers and content
//! blocks, `system` as text or as a list, and messages of the role `system` after the first message. Bodies must not be
//! compressed. Claude Code also asks a small model, for instance about commands; a separate rule answers these
//! requests: `.rule(when().model("claude-haiku*"), reply().text("none"))`.
//!
//! Control endpoints under `/__scripted`: `GET requests`; `GET unmatched`; `GET failures` and `DELETE failures`
//! (returns and clears them); `POST script` (replaces the script, `?mode=append` adds to it); `POST release` with
//! `{"gate": NAME}`; `POST reached` with `{"gate": NAME, "arrivals": N}`, which answers once the gate is reached.

mod block;
mod control;
mod conversation;
mod events;
mod gate;
pub mod hostile;
mod interruption;
mod journal;
mod message;
mod object;
mod patience;
mod plan;
mod playback;
mod raw;
mod record;
mod reply;
mod routes;
mod rulebook;
mod script;
mod server;
mod state;
mod status;
mod tools;
mod transcript;
mod validate;
mod when;

pub use block::{Block, Text, ToolUse};
pub use conversation::ToolResult;
pub use gate::Gate;
pub use interruption::{Action, Disorder, Interruption};
pub use journal::{Failure, FailureKind};
pub use patience::WAIT_LIMIT;
pub use raw::{RawApi, RawPart, RawReply};
pub use record::{Endpoint, Outcome, RecordedRequest};
pub use reply::{Reply, Usage, reply};
pub use script::{Replies, Rule, Script, ScriptError};
pub use server::ScriptedApi;
pub use status::Status;
pub use transcript::render_conversation;
pub use when::{When, when};
