//! Finds what is new in a conversation that a client sends again.
//!
//! A client sends the whole conversation with every run. The user's messages decide: if the known ones are repeated in
//! order and unchanged, everything after them is new. Where they differ, the user edited a message or wants another
//! answer, and the conversation continues from there.

use serde::{Deserialize, Serialize};

use crate::message::{Message, MessageBody};

/// The known messages of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    prompts: Vec<KnownPrompt>,
    /// Ids of tool messages already received.
    answers: Vec<String>,
}

/// A user message already received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KnownPrompt {
    id: String,
    digest: u64,
    /// Ids of the messages that answered it.
    replies: Vec<String>,
    /// The position in the engine's conversation before it.
    before: Option<String>,
}

/// What a client wants by sending a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Unseen<'a> {
    /// Nothing: it contains no new message.
    Nothing,
    /// To continue with these messages of the user and of tools.
    New(Vec<&'a Message>),
    /// Another answer to the last user message.
    Again {
        /// How many user messages precede it.
        kept: usize,
        /// Its index in the input.
        from: usize,
    },
    /// To continue from an earlier point.
    Rewritten {
        /// How many user messages stay valid.
        kept: usize,
        /// The index in the input where the new part starts.
        from: usize,
    },
}

impl Known {
    /// Whether no message was received yet.
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// Finds what is new in a conversation. The client never received the first `left_off` user messages, and may have
    /// left out more. `waits_for` returns whether a call waits for its result.
    pub fn compare<'a>(
        &self,
        messages: &'a [Message],
        left_off: usize,
        waits_for: impl Fn(&str) -> bool,
    ) -> Unseen<'a> {
        let users: Vec<(usize, &Message)> =
            messages.iter().enumerate().filter(|(_, message)| is_user(message)).collect();
        // A client may leave out the beginning of a long conversation.
        let first = users.first().and_then(|(_, message)| self.position(message));
        let first = first.unwrap_or(left_off).min(self.prompts.len());
        let known = &self.prompts[first..];
        let same = known.iter().zip(&users).take_while(|(known, (_, it))| known.is(it)).count();
        if same < known.len() {
            return match users.get(same) {
                Some((from, _)) => Unseen::Rewritten { kept: first + same, from: *from },
                None => self.again(messages, &users),
            };
        }
        let is_new_user =
            |message: &Message| users[same..].iter().any(|(_, it)| it.id == message.id);
        let new: Vec<&Message> = messages
            .iter()
            .filter(|message| match &message.body {
                MessageBody::User { .. } => is_new_user(message),
                MessageBody::Tool { tool_call_id, .. } => {
                    waits_for(tool_call_id) && !self.answers.contains(&message.id)
                }
                _ => false,
            })
            .collect();
        if new.is_empty() { self.again(messages, &users) } else { Unseen::New(new) }
    }

    /// For a conversation without new messages. If it ends with a user message that was answered before, the client
    /// wants another answer.
    fn again<'a>(&self, messages: &[Message], users: &[(usize, &Message)]) -> Unseen<'a> {
        let Some((from, last)) = users.last() else { return Unseen::Nothing };
        let Some(kept) = self.position(last) else { return Unseen::Nothing };
        let behind = &messages[from + 1..];
        let answered = behind.iter().any(|message| {
            matches!(message.body, MessageBody::Assistant { .. } | MessageBody::Tool { .. })
        });
        if answered || self.prompts[kept].replies.is_empty() {
            return Unseen::Nothing;
        }
        Unseen::Again { kept, from: *from }
    }

    fn position(&self, message: &Message) -> Option<usize> {
        self.prompts.iter().position(|known| known.id == message.id)
    }

    /// How many user messages precede the part of the conversation that contains these message ids.
    pub fn before<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> usize {
        let place = |id: &str| self.prompts.iter().position(|known| known.id == id);
        ids.into_iter().find_map(place).unwrap_or(self.prompts.len())
    }

    /// Records a received message. `before` is the position in the engine's conversation before it.
    pub fn heard(&mut self, message: &Message, before: Option<&str>) {
        match &message.body {
            MessageBody::User { .. } => self.prompts.push(KnownPrompt {
                id: message.id.clone(),
                digest: digest(message),
                replies: Vec::new(),
                before: before.map(str::to_owned),
            }),
            MessageBody::Tool { .. } => self.answers.push(message.id.clone()),
            _ => {}
        }
    }

    /// Records the ids of a run's messages.
    pub fn said(&mut self, ids: &[String]) {
        if let Some(last) = self.prompts.last_mut() {
            last.replies.extend_from_slice(ids);
        }
    }

    /// Forgets all but the first `kept` user messages. Returns the position in the engine's conversation at that
    /// point, if known.
    pub fn go_back(&mut self, kept: usize) -> Option<String> {
        let before = self.prompts.get(kept).and_then(|prompt| prompt.before.clone());
        self.prompts.truncate(kept);
        before
    }

    /// Ids of all messages that came from runs.
    pub fn replies(&self) -> impl Iterator<Item = &str> {
        self.prompts.iter().flat_map(|prompt| &prompt.replies).map(String::as_str)
    }
}

/// The index at which the new part of an unknown conversation starts: after the last answer.
pub fn begin(messages: &[Message]) -> usize {
    let is_answer = |message: &Message| {
        matches!(message.body, MessageBody::Assistant { .. } | MessageBody::Tool { .. })
    };
    messages.iter().rposition(is_answer).map_or(0, |last| last + 1)
}

impl KnownPrompt {
    fn is(&self, message: &Message) -> bool {
        self.id == message.id && self.digest == digest(message)
    }
}

fn is_user(message: &Message) -> bool {
    matches!(message.body, MessageBody::User { .. })
}

/// A hash of the content; FNV-1a, which is the same in every build.
fn digest(message: &Message) -> u64 {
    let content = match &message.body {
        MessageBody::User { content } => serde_json::to_string(content).unwrap_or_default(),
        _ => String::new(),
    };
    content.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Content;

    fn user(id: &str) -> Message {
        user_with(id, id)
    }

    fn user_with(id: &str, text: &str) -> Message {
        Message::new(id, MessageBody::User { content: text.into() })
    }

    fn reply(id: &str) -> Message {
        let body = MessageBody::Assistant { content: Some("yes".into()), tool_calls: None };
        Message::new(id, body)
    }

    fn tool(id: &str, call: &str) -> Message {
        let content = Content::from("done");
        let body = MessageBody::Tool { content, tool_call_id: call.into(), error: None };
        Message::new(id, body)
    }

    /// A thread in which u1 and u2 were answered with a1 and a2.
    fn thread() -> Known {
        let mut known = Known::default();
        known.heard(&user("u1"), None);
        known.said(&["a1".to_owned()]);
        known.heard(&user("u2"), Some("here"));
        known.said(&["a2".to_owned()]);
        known
    }

    fn new(unseen: Unseen<'_>) -> Vec<String> {
        match unseen {
            Unseen::New(messages) => messages.iter().map(|message| message.id.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    const NO: fn(&str) -> bool = |_| false;

    #[test]
    fn messages_after_the_known_ones_are_new() {
        let input = [user("u1"), reply("a1"), user("u2"), reply("a2"), user("u3"), user("u4")];
        assert_eq!(new(thread().compare(&input, 0, NO)), ["u3", "u4"]);
        assert_eq!(new(Known::default().compare(&input[..1], 0, NO)), ["u1"]);
    }

    #[test]
    fn a_conversation_without_its_beginning_is_recognised() {
        let input = [user("u2"), reply("a2"), user("u3")];
        assert_eq!(new(thread().compare(&input, 0, NO)), ["u3"]);
    }

    #[test]
    fn a_known_conversation_has_nothing_new() {
        let input = [user("u1"), reply("a1"), user("u2"), reply("a2")];
        assert_eq!(thread().compare(&input, 0, NO), Unseen::Nothing);
        assert_eq!(
            thread().compare(&input[..2], 0, NO),
            Unseen::Nothing,
            "shortened, and ends with an answer"
        );
        assert_eq!(Known::default().compare(&[], 0, NO), Unseen::Nothing);
    }

    #[test]
    fn ids_of_replies_do_not_matter() {
        let input = [user("u1"), reply("x"), user("u2"), reply("y"), user("u3")];
        assert_eq!(new(thread().compare(&input, 0, NO)), ["u3"]);
    }

    #[test]
    fn a_conversation_that_ends_with_an_answered_prompt_asks_for_another_answer() {
        let input = [user("u1"), reply("a1"), user("u2")];
        assert_eq!(thread().compare(&input, 0, NO), Unseen::Again { kept: 1, from: 2 });
        assert_eq!(thread().compare(&input[..1], 0, NO), Unseen::Again { kept: 0, from: 0 });
    }

    #[test]
    fn a_changed_user_message_rewrites_the_conversation_from_there() {
        for changed in [user("u2b"), user_with("u2", "another text")] {
            let input = [user("u1"), reply("a1"), changed];
            assert_eq!(thread().compare(&input, 0, NO), Unseen::Rewritten { kept: 1, from: 2 });
        }
        let input = [user("other"), reply("a1"), user("u2")];
        assert_eq!(thread().compare(&input, 0, NO), Unseen::Rewritten { kept: 0, from: 0 });
        let mut known = thread();
        assert_eq!(known.go_back(1).as_deref(), Some("here"));
        assert_eq!(new(known.compare(&[user("u1"), reply("a1"), user("u2")], 0, NO)), ["u2"]);
    }

    #[test]
    fn a_tool_result_is_new_once_and_only_if_its_call_is_pending() {
        let input =
            [user("u1"), reply("a1"), user("u2"), reply("a2"), tool("t1", "c1"), tool("t2", "c2")];
        assert_eq!(new(thread().compare(&input, 0, |call| call == "c2")), ["t2"]);
        assert_eq!(thread().compare(&input, 0, NO), Unseen::Nothing);
        let mut known = thread();
        known.heard(&tool("t2", "c2"), None);
        assert_eq!(known.compare(&input, 0, |call| call == "c2"), Unseen::Nothing);
    }
}
