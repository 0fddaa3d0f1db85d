//! Gives every call of a conversation a unique id.
//!
//! The API refuses a conversation in which two calls have the same id, and results find their calls by it. Models
//! behind gateways have been seen to use an id twice, in one response or in every one.

use std::collections::HashSet;

use ostler_proto::ToolUseId;
use ostler_proto::api::{ContentBlock, ToolUseBlock};

use crate::model::ChatMessage;

/// The ids of the calls of a conversation.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashSet<ToolUseId>);

impl CallIds {
    pub(crate) fn of(conversation: &[ChatMessage]) -> Self {
        let blocks = conversation.iter().flat_map(|said| &said.content);
        Self(blocks.filter_map(id).cloned().collect())
    }

    /// Notes the id of a finished call; an empty or used id is replaced.
    pub(crate) fn settle(&mut self, block: &mut ContentBlock) {
        match block {
            ContentBlock::ToolUse(call) => self.settle_call(call),
            block => self.0.extend(id(block).cloned()),
        }
    }

    fn settle_call(&mut self, call: &mut ToolUseBlock) {
        let written = match call.id.as_str() {
            "" => "call".to_owned(),
            written => written.to_owned(),
        };
        let mut number = 1;
        while call.id.as_str().is_empty() || self.0.contains(&call.id) {
            number += 1;
            call.id = format!("{written}_{number}").into();
        }
        self.0.insert(call.id.clone());
    }
}

fn id(block: &ContentBlock) -> Option<&ToolUseId> {
    match block {
        ContentBlock::ToolUse(call) | ContentBlock::ServerToolUse(call) => Some(&call.id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::build;

    #[test]
    fn a_call_with_a_used_or_empty_id_gets_another_one() {
        let call = |id: &str| ContentBlock::ToolUse(build!(ToolUseBlock { id: id.into() }));
        let said =
            ChatMessage { role: ostler_proto::api::Role::Assistant, content: vec![call("a")] };
        let mut ids = CallIds::of(&[said]);
        let settled = ["a", "b", "b", "a", "", ""].map(|id| {
            let mut block = call(id);
            ids.settle(&mut block);
            self::id(&block).map(ToString::to_string)
        });
        let expected = ["a_2", "b", "b_2", "a_3", "call_2", "call_3"];
        assert_eq!(settled, expected.map(|id| Some(id.to_owned())));
    }
}
