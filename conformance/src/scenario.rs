//! A scenario: the script of the model, the steps of the host, and the expected events.
//!
//! The format is described in `README.md`; an unknown field is an error.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use ostler_testkit::Script;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fill::{Saved, fill};
use crate::sdk::Sdk;

/// A scenario, with the name of its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    #[serde(skip)]
    pub(crate) name: String,
    /// What the scenario tests, in a sentence.
    pub(crate) about: String,
    /// The SDKs that run it; all three by default.
    #[serde(default = "Sdk::official")]
    pub(crate) sdks: Vec<Sdk>,
    /// Files in the working folder before the start.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Environment variables for the program, in addition to the usual ones.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The model's answers: a script of `ostler-testkit`.
    pub(crate) script: Value,
    /// The host's answers to questions.
    #[serde(default)]
    pub(crate) answers: Vec<Answer>,
    /// One after another.
    pub(crate) sessions: Vec<Session>,
    /// What must have happened.
    pub(crate) expect: Vec<Fact>,
    /// The timeout of each step, in seconds.
    #[serde(default = "patience")]
    pub(crate) limit: u64,
}

/// Long enough for a cold start of a slow program on a busy machine.
fn patience() -> u64 {
    90
}

/// One use of the SDK: one process of the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Session {
    /// A string prompt; without it prompts are streamed by the steps.
    pub(crate) prompt: Option<String>,
    /// For Python: give streamed prompts to `query()` and not to a client.
    #[serde(default)]
    pub(crate) iterable: bool,
    /// Options of the SDK, by their TypeScript names.
    #[serde(default)]
    pub(crate) options: Map<String, Value>,
    /// Options for one SDK only.
    #[serde(default)]
    pub(crate) options_for: BTreeMap<Sdk, Map<String, Value>>,
    /// Whether the host has a permission callback.
    #[serde(default)]
    pub(crate) ask: bool,
    /// `{event, matcher?, timeout?, onFailure?}` each.
    #[serde(default)]
    pub(crate) hooks: Vec<Value>,
    /// In-process servers: `{version, tools: [{name, description, fields: {name: type}, annotations?}]}`.
    #[serde(default)]
    pub(crate) mcp: Map<String, Value>,
    /// Whether the host answers questions of MCP servers (TypeScript 0.3.325 only).
    #[serde(default)]
    pub(crate) elicitation: bool,
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    /// The exit code, or one for each SDK that differs; 0 by default.
    #[serde(default)]
    pub(crate) exit: Exit,
}

/// The expected exit code of the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "exit is a number, a list of numbers, or an object from SDKs to one of those"
)]
pub(crate) enum Exit {
    Always(i32),
    OneOf(Vec<i32>),
    Each(BTreeMap<Sdk, Self>),
}

impl Default for Exit {
    fn default() -> Self {
        Self::Always(0)
    }
}

impl Exit {
    pub(crate) fn allows(&self, sdk: Sdk, code: i32) -> bool {
        match self {
            Self::Always(wanted) => *wanted == code,
            Self::OneOf(wanted) => wanted.contains(&code),
            Self::Each(each) => each.get(&sdk).map_or(code == 0, |exit| exit.allows(sdk, code)),
        }
    }
}

/// Something the host does. Exactly one of the verbs is given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// A prompt: a text, or fields of a user message.
    pub(crate) send: Option<Value>,
    /// A prompt of one character, repeated this many times.
    pub(crate) send_letters: Option<usize>,
    /// A raw line, for the driver without an SDK.
    pub(crate) line: Option<String>,
    /// Waits for an event like this, after the last one that was waited for.
    pub(crate) wait: Option<Value>,
    /// With `wait`: the values to save from it, by name, as JSON pointers.
    #[serde(default)]
    pub(crate) save: BTreeMap<String, String>,
    /// Waits until a response of the model has reached this gate.
    pub(crate) reached: Option<String>,
    /// Lets responses pass this gate.
    pub(crate) release: Option<String>,
    /// Calls a method of the SDK's query or client, and waits for its return.
    pub(crate) call: Option<String>,
    #[serde(default)]
    pub(crate) args: Vec<Value>,
    /// Answers the oldest open question like this one, once there is one.
    pub(crate) answer: Option<Value>,
    /// With `answer`: its value.
    pub(crate) value: Option<Value>,
    /// Records a file of the working folder as it is now.
    pub(crate) file: Option<String>,
    /// Waits until a file exists in the working folder.
    pub(crate) wait_file: Option<String>,
    /// Writes files in the working folder.
    pub(crate) write: Option<BTreeMap<String, String>>,
    /// Ends the input.
    pub(crate) end: Option<bool>,
    /// Has the SDK abort.
    pub(crate) abort: Option<bool>,
    /// Sends this signal, for the driver without an SDK.
    pub(crate) signal: Option<String>,
    /// Only these SDKs do it.
    #[serde(default)]
    pub(crate) sdks: Option<Vec<Sdk>>,
}

impl Step {
    fn verbs(&self) -> usize {
        [
            self.send.is_some(),
            self.send_letters.is_some(),
            self.line.is_some(),
            self.wait.is_some(),
            self.reached.is_some(),
            self.release.is_some(),
            self.call.is_some(),
            self.answer.is_some(),
            self.file.is_some(),
            self.write.is_some(),
            self.wait_file.is_some(),
            self.end.is_some(),
            self.abort.is_some(),
            self.signal.is_some(),
        ]
        .into_iter()
        .filter(|given| *given)
        .count()
    }

    pub(crate) fn concerns(&self, sdk: Sdk) -> bool {
        self.sdks.as_ref().is_none_or(|sdks| sdks.contains(&sdk))
    }
}

/// What the host answers to questions like these.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// `{"ask": …}`, `{"hook": …}`, `{"tool": …}` or `{"elicitation": …}`.
    pub(crate) to: Value,
    /// What it answers.
    pub(crate) value: Option<Value>,
    /// What it throws in place of an answer.
    pub(crate) error: Option<String>,
    /// How often; unlimited by default.
    pub(crate) times: Option<usize>,
}

/// Something that must have happened, or must not.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fact {
    /// A pattern for an event. Facts about events of one kind must hold in their order.
    pub(crate) event: Option<Value>,
    /// A pattern that no event may match.
    pub(crate) never: Option<Value>,
    /// A pattern for an exception that may be thrown, or not.
    pub(crate) may: Option<Value>,
    /// A pattern, and how many events match it.
    pub(crate) count: Option<(usize, Value)>,
    /// For these SDKs only.
    #[serde(default)]
    pub(crate) sdks: Option<Vec<Sdk>>,
}

impl Fact {
    pub(crate) fn concerns(&self, sdk: Sdk) -> bool {
        self.sdks.as_ref().is_none_or(|sdks| sdks.contains(&sdk))
    }
}

impl Scenario {
    /// All scenarios of a folder, by name.
    pub(crate) fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        let entries = std::fs::read_dir(folder);
        for entry in entries.with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                all.push(Self::read(&path).with_context(|| format!("{}", path.display()))?);
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    fn read(path: &Path) -> Result<Self> {
        let mut scenario: Self = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let name = path.file_stem().context("a file has a name")?;
        scenario.name = name.to_string_lossy().into_owned();
        // Checked now instead of during a run.
        scenario.script(&Saved::new())?;
        for step in scenario.sessions.iter().flat_map(|session| &session.steps) {
            ensure!(
                step.verbs() == 1,
                "a step does exactly one thing, this does {}: {step:?}",
                step.verbs()
            );
        }
        for fact in &scenario.expect {
            let Fact { event, never, may, count, .. } = fact;
            let given = [event.is_some(), never.is_some(), may.is_some(), count.is_some()];
            let given = given.into_iter().filter(|given| *given).count();
            ensure!(given == 1, "a fact is one of event, never, may and count: {fact:?}");
        }
        Ok(scenario)
    }

    /// The script, with the placeholders in it replaced.
    pub(crate) fn script(&self, saved: &Saved) -> Result<Script> {
        let filled = fill(&self.script, saved, &Value::Null);
        Ok(Script::from_json(&filled.to_string())?)
    }
}
