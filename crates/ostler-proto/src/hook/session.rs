//! Inputs of the hooks around a session: its start and end, compaction, the model.

use ostler_proto_derive::Wire;

use super::base::with_base;
use crate::Num;

with_base! {
    /// A session begins.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct SessionStartInput {
        /// Why.
        pub source: SessionSource,
        /// The model it starts with.
        pub model: Option<String>,
        /// The session's title. Newer peers only.
        pub session_title: Option<String>,
        /// Seconds since the last response of a resumed session. Newer peers only.
        pub seconds_since_last_response: Option<Num>,
        /// The context size of a resumed session. Newer peers only.
        pub context_tokens: Option<u64>,
        /// Whether the prompt cache has probably expired. Newer peers only.
        pub prompt_cache_likely_expired: Option<bool>,
        /// What filling the cache again would cost. Newer peers only.
        pub estimated_cache_write_usd: Option<Num>,
    }
}

/// Why a session begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum SessionSource {
    /// It is new.
    #[default]
    Startup,
    /// An earlier one is resumed.
    Resume,
    /// The conversation was cleared.
    Clear,
    /// The conversation was summarised.
    Compact,
    /// It branched off from another. Newer peers only.
    Fork,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// A session is over.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct SessionEndInput {
        /// Why.
        pub reason: ExitReason,
    }
}

/// Why a session ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ExitReason {
    /// The conversation was cleared.
    Clear,
    /// Another session is resumed. Newer peers only.
    Resume,
    /// The user logged out.
    Logout,
    /// The user left at the prompt.
    PromptInputExit,
    /// The permission mode is no longer allowed. Older peers only.
    BypassPermissionsDisabled,
    /// Any other reason.
    #[default]
    Other,
    /// A value this version does not know.
    #[wire(other)]
    Unknown(Box<str>),
}

with_base! {
    /// The agent prepares or maintains its working directory.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct SetupInput {
        /// What for.
        pub trigger: SetupTrigger,
    }
}

/// What a setup is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum SetupTrigger {
    /// The first use.
    #[default]
    Init,
    /// Upkeep.
    Maintenance,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// The conversation is about to be summarised.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PreCompactInput {
        /// Who asked for it.
        pub trigger: CompactTrigger,
        /// The user's instructions for the summary.
        #[wire(nullable)]
        pub custom_instructions: Option<String>,
    }
}

with_base! {
    /// The conversation was summarised.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PostCompactInput {
        /// Who asked for it.
        pub trigger: CompactTrigger,
        /// The summary.
        pub compact_summary: String,
    }
}

/// Who asked for a summary of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum CompactTrigger {
    /// The user.
    Manual,
    /// The agent, running out of room.
    #[default]
    Auto,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// The session is about to change its model.
    #[wire(new(from_model, to_model, source, cache_ttl))]
    #[non_exhaustive]
    pub struct PreModelSwitchInput {
        /// The present model.
        pub from_model: String,
        /// The next one.
        pub to_model: String,
        /// The requested name, before it was resolved.
        #[wire(nullable)]
        pub requested_model: Option<String>,
        /// Who asked.
        pub source: ModelSwitchSource,
        /// How many tokens the new model must read again.
        pub context_tokens: u64,
        /// Whether the present model still has it cached.
        pub prompt_cache_warm: bool,
        /// How long caches live.
        pub cache_ttl: CacheTtl,
        /// What filling the new model's cache will cost.
        pub estimated_cache_write_usd: Num,
        /// Where that price comes from.
        pub pricing: Pricing,
    }
}

with_base! {
    /// The session has changed its model.
    #[wire(new(from_model, to_model, source, cache_ttl))]
    #[non_exhaustive]
    pub struct PostModelSwitchInput {
        /// The previous model.
        pub from_model: String,
        /// The present one.
        pub to_model: String,
        /// The requested name, before it was resolved.
        #[wire(nullable)]
        pub requested_model: Option<String>,
        /// Who asked.
        pub source: ModelSwitchSource,
        /// How many tokens the new model must read again.
        pub context_tokens: u64,
        /// Whether the previous model still had it cached.
        pub prompt_cache_warm: bool,
        /// How long caches live.
        pub cache_ttl: CacheTtl,
        /// What filling the new model's cache costs.
        pub estimated_cache_write_usd: Num,
        /// Where that price comes from.
        pub pricing: Pricing,
    }
}

/// Who asked for another model.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ModelSwitchSource {
    /// A slash command.
    Command,
    /// The user, from a list.
    Picker,
    /// The host program.
    Sdk,
    /// The agent itself.
    Auto,
    /// The session that was resumed.
    Resume,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// How long the model's cache keeps a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum CacheTtl {
    /// Five minutes.
    #[wire(name = "5m")]
    FiveMinutes,
    /// An hour.
    #[wire(name = "1h")]
    OneHour,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Where a price comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum Pricing {
    /// The user's settings.
    Configured,
    /// A list of prices.
    Catalog,
    /// A general assumption.
    #[default]
    Default,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}
