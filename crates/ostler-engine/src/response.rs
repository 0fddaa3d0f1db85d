//! The metadata of a response, and the timing of a turn's first response.

use std::time::{Duration, Instant, SystemTime};

use ostler_proto::Uuid;
use ostler_proto::api::{Message, Usage};
use ostler_proto::build;
use ostler_proto::message::{AbandonedBlocks, ToolUseMeta};

/// What the `assistant` frames of a response have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseHeader {
    /// The response without its blocks.
    pub(crate) message: Message,
    /// The API's id of the request.
    pub(crate) request_id: Option<String>,
    /// The prompts it answers, if the host gave them ids; sent with the first frame of a turn.
    pub(crate) answers: Vec<Uuid>,
    /// How the call in the next block is displayed, if it calls an MCP server's tool.
    pub(crate) call: Option<ToolUseMeta>,
}

impl ResponseHeader {
    pub(crate) fn new(message: &Message, request_id: Option<String>) -> Self {
        let message = build!(Message { content: Vec::new(), ..message.clone() });
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

/// The timing of a turn's first response.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseTiming {
    /// When the model was first asked, as an instant and as wall-clock time.
    pub(crate) asked: Option<(Instant, SystemTime)>,
    /// When the first event of the answer arrived.
    pub(crate) first_event: Option<Instant>,
    /// When the first delta of a block arrived.
    pub(crate) first_token: Option<Instant>,
    /// When the first block or delta was sent to the host.
    pub(crate) first_frame: Option<Instant>,
    /// The usage of the first response.
    pub(crate) first_usage: Option<Usage>,
}

impl ResponseTiming {
    pub(crate) fn ask(&mut self) {
        self.asked.get_or_insert_with(|| (Instant::now(), SystemTime::now()));
    }

    /// Notes an event or a whole answer. Returns whether it is the first.
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
