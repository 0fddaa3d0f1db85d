//! What is known of a response in addition to its blocks, and how fast a turn's first one came.

use std::time::{Duration, Instant, SystemTime};

use ostler_proto::Uuid;
use ostler_proto::api::{Message, Usage};
use ostler_proto::message::{AbandonedBlocks, ToolUseMeta};

/// What the `assistant` frames of a response have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseHeader {
    /// The response without its blocks.
    pub(crate) message: Message,
    /// The API's name for the request.
    pub(crate) request_id: Option<String>,
    /// The prompts it answers, as far as the host has given them names; sent with the first frame of a turn.
    pub(crate) answers: Vec<Uuid>,
    /// How the call in the next block is to be shown, if it is one of an MCP server's tool.
    pub(crate) call: Option<ToolUseMeta>,
}

impl ResponseHeader {
    pub(crate) fn new(message: &Message, request_id: Option<String>) -> Self {
        let message = Message { content: Vec::new(), ..message.clone() };
        Self { message, request_id, ..Self::default() }
    }
}

/// What is sent with an event of a response.
#[derive(Debug, Default)]
pub(crate) struct StreamEventMeta {
    /// The response.
    pub(crate) message_id: Option<String>,
    /// How long the API took to begin, with the first event.
    pub(crate) time_to_first: Option<Duration>,
    /// The prompts it answers, with the first event of a turn.
    pub(crate) answers: Vec<Uuid>,
    /// The blocks that will never be finished, with the last event.
    pub(crate) abandoned_blocks: Option<AbandonedBlocks>,
}

/// How fast the first response of a turn came.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseTiming {
    /// When the model was first asked, by the clock on the wall too.
    pub(crate) asked: Option<(Instant, SystemTime)>,
    /// When anything of an answer came.
    pub(crate) first_event: Option<Instant>,
    /// When the first piece of a block came.
    pub(crate) first_token: Option<Instant>,
    /// When the host was shown the first block, or a piece of it.
    pub(crate) first_frame: Option<Instant>,
    /// What the first response used.
    pub(crate) first_usage: Option<Usage>,
}

impl ResponseTiming {
    pub(crate) fn ask(&mut self) {
        self.asked.get_or_insert_with(|| (Instant::now(), SystemTime::now()));
    }

    /// An event came, or the answer as a whole; whether it is the first thing that came.
    pub(crate) fn hear(&mut self, has_token: bool) -> bool {
        let now = Instant::now();
        if has_token {
            self.first_token.get_or_insert(now);
        }
        let is_first = self.first_event.is_none();
        self.first_event.get_or_insert(now);
        is_first
    }

    pub(crate) fn show(&mut self) {
        self.first_frame.get_or_insert_with(Instant::now);
    }
}
