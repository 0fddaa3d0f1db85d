//! A request as it is recorded and compared.
//!
//! The engine's own texts are left out: its prompt and tool descriptions change with its version, and recordings should
//! not. Markers for the vendor's cache are left out too.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::{Value, json};

use super::edit::edit_value;
use super::normalize::{NormalizedValue, normal};
use super::redactor::{MARK, RecordingRedactor};
use crate::base_prompt;
use crate::{Cache, Request};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    /// Everything but the conversation.
    pub(crate) head: Arc<RequestPart>,
    pub(crate) messages: Vec<Arc<RequestPart>>,
}

/// A part of a request.
#[derive(Debug)]
pub(crate) struct RequestPart {
    /// The recorded value.
    pub(crate) value: Value,
    /// The normalized value for comparison.
    pub(crate) normal: NormalizedValue,
    /// A hash of the recorded value, valid in this process only.
    pub(crate) hash: u64,
}

impl RequestPart {
    pub(super) fn new(value: Value) -> Arc<Self> {
        let normal = normal(&value);
        let hash = hash_of(&value.to_string());
        Arc::new(Self { value, normal, hash })
    }

    /// Everything but the conversation. The engine's own tools are recorded by name for readers, but not compared: a
    /// new version has other ones.
    pub(crate) fn head(value: Value) -> Arc<Self> {
        let mut compared = value.clone();
        if let Some(Value::Array(tools)) = compared.get_mut("tools") {
            tools.retain(|tool| !tool.is_string());
        }
        if compared["tools"].as_array().is_some_and(Vec::is_empty) {
            compared.as_object_mut().and_then(|fields| fields.shift_remove("tools"));
        }
        let hash = hash_of(&value.to_string());
        Arc::new(Self { normal: normal(&compared), value, hash })
    }
}

impl RecordedRequest {
    /// Whether two requests are equal, apart from parts that change from run to run.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.messages.len() == other.messages.len()
            && self.head.normal.value == other.head.normal.value
            && self.n_same_messages(other) == self.messages.len()
    }

    /// How many equal messages they begin with.
    pub(crate) fn n_same_messages(&self, other: &Self) -> usize {
        let is_same = |(one, other): &(&Arc<RequestPart>, &Arc<RequestPart>)| {
            Arc::ptr_eq(one, other) || one.normal.value == other.normal.value
        };
        self.messages.iter().zip(&other.messages).take_while(is_same).count()
    }

    /// The whole normalized request.
    pub(crate) fn normal(&self) -> Value {
        let mut whole = self.head.normal.value.clone();
        whole["messages"] =
            self.messages.iter().map(|message| message.normal.value.clone()).collect();
        whole
    }
}

/// Turns requests into recorded ones. Caches messages: most are repeated in every request.
#[derive(Debug, Default)]
pub(crate) struct RequestNormalizer {
    redactor: RecordingRedactor,
    seen: Mutex<HashMap<u64, Arc<RequestPart>>>,
}

impl RequestNormalizer {
    pub(super) fn new(redactor: RecordingRedactor) -> Self {
        Self { redactor, seen: Mutex::default() }
    }

    pub(crate) fn redactor(&self) -> &RecordingRedactor {
        &self.redactor
    }

    /// The recorded form of a request.
    pub(crate) fn file(&self, request: &Request) -> RecordedRequest {
        let messages = request.messages.iter().map(|said| self.part(json!(said)));
        RecordedRequest { head: self.head(request), messages: messages.collect() }
    }

    fn part(&self, mut value: Value) -> Arc<RequestPart> {
        let key = hash_of(&value.to_string());
        if let Some(part) = self.seen.lock().get(&key) {
            return Arc::clone(part);
        }
        without_binaries(&mut value);
        edit_value(&mut value, &self.redactor.hiding());
        let part = RequestPart::new(value);
        self.seen.lock().insert(key, Arc::clone(&part));
        part
    }

    fn head(&self, request: &Request) -> Arc<RequestPart> {
        let mut bare = Request { messages: Arc::default(), ..request.clone() };
        bare.sampling.cache = Cache::Off;
        bare.sampling.user_id = None;
        let mut head = json!(bare);
        edit_value(&mut head, &self.redactor.hiding());
        if let Some(fields) = head.as_object_mut() {
            fields.shift_remove("messages");
            if let Some(Value::Array(tools)) = fields.get_mut("tools") {
                tools.iter_mut().for_each(shorten_tool);
            }
            if let Some(system) = fields.get_mut("system") {
                *system = Value::String(shorten_system(system));
            }
        }
        RequestPart::head(head)
    }
}

/// Reduces the engine's own tools to their names.
fn shorten_tool(tool: &mut Value) {
    let name = tool["name"].as_str().unwrap_or_default();
    if tool.get("input_schema").is_some() && !name.starts_with("mcp__") {
        *tool = Value::String(name.to_owned());
    }
}

/// The prompt without the engine's default text, and without the place and the time, which are others in a replay.
fn shorten_system(system: &Value) -> String {
    let text = system[0]["text"].as_str().unwrap_or_default();
    let text = text.replace(base_prompt::TEXT, &format!("{MARK}own words>"));
    let tag = base_prompt::ENVIRONMENT;
    let (begin, end) = (format!("<{tag}>"), format!("</{tag}>"));
    let section = text.rfind(&begin).zip(text.rfind(&end)).filter(|(from, to)| from < to);
    match section {
        Some((from, to)) => {
            format!("{}{MARK}environment>{}", &text[..from], &text[to + end.len()..])
        }
        None => text,
    }
}

/// Replaces images and other binary data by a checksum: they make a recording long and mean nothing to a reader.
fn without_binaries(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_binaries),
        Value::Object(fields) => {
            if fields.get("type").and_then(Value::as_str) == Some("base64")
                && let Some(Value::String(data)) = fields.get_mut("data")
            {
                *data = format!("{MARK}data of {} letters, sum {:x}>", data.len(), sum(data));
            }
            fields.values_mut().for_each(without_binaries);
        }
        _ => {}
    }
}

/// The checksum of a text (FNV-1a): the same in every version and on every machine.
fn sum(text: &str) -> u64 {
    let add = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, add)
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ostler_proto::api::{ContentBlock, Role};

    use super::*;
    use crate::{ChatMessage, ToolSpec};

    fn request(texts: &[&str]) -> Request {
        let said = |text: &&str| ChatMessage {
            role: Role::User,
            content: vec![ContentBlock::text(*text)],
        };
        Request::new("claude-opus-5", texts.iter().map(said).collect())
    }

    fn normalizer(cwd: &str) -> RequestNormalizer {
        RequestNormalizer::new(RecordingRedactor::new(Path::new(cwd), None, Path::new("/t")))
    }

    #[test]
    fn requests_in_other_folders_on_other_days_and_with_other_cache_markers_are_equal() {
        let one = normalizer("/a").file(&request(&["in /a on 2026-11-16"]));
        let mut other = request(&["in /b/c on 2027-01-02"]);
        other.sampling.cache = Cache::OneHour;
        other.sampling.user_id = Some("somebody".into());
        let other = normalizer("/b/c").file(&other);
        assert!(one.is_like(&other), "{:?} {:?}", one.normal(), other.normal());
        assert_eq!(one.messages[0].value["content"][0]["text"], "in <ostler:cwd> on 2026-11-16");
    }

    #[test]
    fn another_prompt_model_or_tool_makes_another_request() {
        let normalizer = normalizer("/a");
        let one = normalizer.file(&request(&["hello"]));
        assert!(!one.is_like(&normalizer.file(&request(&["hello", "hello"]))));
        assert!(!one.is_like(&normalizer.file(&request(&["bye"]))));
        assert!(
            !one.is_like(&normalizer.file(&Request { model: "x".into(), ..request(&["hello"]) }))
        );
        let tool = |name: &str, description: &str| ToolSpec {
            name: name.into(),
            description: description.into(),
            input_schema: json!({}),
        };
        let with =
            |tool| normalizer.file(&Request { tools: vec![tool].into(), ..request(&["hello"]) });
        assert!(
            one.is_like(&with(tool("Bash", "a"))),
            "descriptions of our own tools are not compared"
        );
        assert_eq!(with(tool("Bash", "a")).head.value["tools"], json!(["Bash"]));
        assert!(!with(tool("mcp__x__y", "a")).is_like(&with(tool("mcp__x__y", "b"))));
    }

    #[test]
    fn an_image_is_recorded_as_its_checksum() {
        let mut value = json!({"source": {"type": "base64", "data": "QUJD"}});
        without_binaries(&mut value);
        assert_eq!(value["source"]["data"], "<ostler:data of 4 letters, sum 3202741315c68d75>");
    }
}
