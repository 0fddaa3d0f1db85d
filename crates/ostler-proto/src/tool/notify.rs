//! Tools that turn to the user outside the conversation: notifications, feedback, offers. Newer peers only.

use ostler_proto_derive::Wire;

use crate::Extra;

/// A message for the user's other devices.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct PushNotificationInput {
    /// The text.
    pub message: String,
    /// The occasion, as yet only `proactive`.
    pub status: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The outcome of the message.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct PushNotificationOutput {
    /// As text.
    pub message: String,
    /// Whether it went to other devices.
    pub push_sent: Option<bool>,
    /// Whether it was shown on this one.
    pub local_sent: Option<bool>,
    /// Why it was not sent.
    pub disabled_reason: Option<PushDisabledReason>,
    /// When it was sent.
    pub sent_at: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum PushDisabledReason {
    /// The user does not want any.
    ConfigOff,
    /// The user is here.
    UserPresent,
    /// There is no way to send it.
    NoTransport,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Asks for notifications received meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadNotificationsInput {
    /// Unknown fields.
    pub extra: Extra,
}

/// Notifications received meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadNotificationsOutput {
    /// The messages.
    pub notifications: Vec<QueuedNotification>,
    /// How many are left.
    pub remaining: u64,
    /// When they were read.
    pub read_at: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A message that has come in.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct QueuedNotification {
    /// Its id.
    pub notification_id: String,
    /// Where it comes from.
    pub origin: String,
    /// When it was queued.
    pub queued_at: String,
    /// Its text.
    pub content: String,
    /// When it came in.
    pub arrived_at: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A report to the makers of the agent.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(type, title))]
#[non_exhaustive]
pub struct SendFeedbackInput {
    /// What it is.
    pub r#type: FeedbackKind,
    /// Its title.
    pub title: String,
    /// Its text.
    pub details: String,
    /// What it is about.
    pub area: Option<String>,
    /// How the model failed.
    pub failure_mode: Option<FailureMode>,
    /// What it was doing.
    pub task_category: Option<TaskCategory>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a report is.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum FeedbackKind {
    /// Something does not work.
    Bug,
    /// Something could be better.
    Idea,
    /// Something is missing.
    MissingCapability,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// How a model failed.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum FailureMode {
    /// It did not follow instructions.
    InstructionFollowing,
    /// It destroyed something.
    DestructiveActions,
    /// It wrote bad code.
    CodeQuality,
    /// It repeated itself.
    RepetitionAndLooping,
    /// It used to do better.
    ModelRegression,
    /// It made things up.
    OverconfidenceAndHallucination,
    /// It forgot.
    ContextAndMemory,
    /// It did more than it was asked.
    Overeager,
    /// It gave in too quickly.
    OverCorrection,
    /// It stopped too early.
    StoppingShort,
    /// It refused.
    DisputeOrDecline,
    /// It started too many subagents.
    SubagentOverspawn,
    /// It lectured.
    ToneOrPreachiness,
    /// It asked too much.
    ExcessiveQuestions,
    /// It went beyond the subject.
    UnwantedScope,
    /// Otherwise.
    Other,
    /// A value this version does not know.
    #[wire(other)]
    Unknown(Box<str>),
}

/// What a model was doing.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum TaskCategory {
    /// Changing code.
    CodeEdit,
    /// Looking for a fault.
    Debug,
    /// Explaining.
    Explain,
    /// Planning.
    Plan,
    /// Running commands.
    Shell,
    /// Searching.
    Search,
    /// Reviewing.
    Review,
    /// Something else.
    Other,
    /// A value this version does not know.
    #[wire(other)]
    Unknown(Box<str>),
}

/// The outcome of the report.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SendFeedbackOutput {
    /// Whether it was sent.
    pub success: bool,
    /// The same as text.
    pub message: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// Asks the user for their role.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ShowOnboardingRolePickerInput {
    /// Unknown fields.
    pub extra: Extra,
}

/// The user's role.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ShowOnboardingRolePickerOutput {
    /// The role.
    pub role: Option<String>,
    /// Whether the user did not want to say.
    pub dismissed: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Offers to connect a browser.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct OfferChromeSetupInput {
    /// Why.
    pub reason: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The outcome of the offer.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(outcome))]
#[non_exhaustive]
pub struct OfferChromeSetupOutput {
    /// What the user did.
    pub outcome: ChromeSetupOutcome,
    /// Unknown fields.
    pub extra: Extra,
}

/// The outcome of the offer to connect a browser.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ChromeSetupOutcome {
    /// It is connected.
    Connected,
    /// The user does not want to.
    NotNow,
    /// Nothing as yet.
    NoAttemptYet,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}
