//! Tools that propose something to the user: findings, skills, a goal. Newer peers only.

use ostler_proto_derive::Wire;

use crate::Extra;

/// What a review has found.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReportFindingsInput {
    /// How thorough it was.
    pub level: Option<FindingLevel>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a review has found, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReportFindingsOutput {
    /// How many findings.
    pub count: u64,
    /// How thorough it was.
    pub level: Option<FindingLevel>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Unknown fields.
    pub extra: Extra,
}

/// How thorough a review is.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum FindingLevel {
    /// The least.
    Low,
    /// More.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// The most.
    Max,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// One finding.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct Finding {
    /// The file.
    pub file: String,
    /// The line.
    pub line: Option<u64>,
    /// What is wrong.
    pub summary: String,
    /// The same in a few words.
    pub short_summary: Option<String>,
    /// The scenario in which it does harm.
    pub failure_scenario: String,
    /// What kind of fault.
    pub category: Option<String>,
    /// How sure it is.
    pub verdict: Option<FindingVerdict>,
    /// What was done about it.
    pub outcome: Option<FindingOutcome>,
    /// Unknown fields.
    pub extra: Extra,
}

/// How sure a finding is.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum FindingVerdict {
    /// It was verified.
    #[wire(name = "CONFIRMED")]
    Confirmed,
    /// It is likely.
    #[wire(name = "PLAUSIBLE")]
    Plausible,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// What was done about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum FindingOutcome {
    /// It is fixed.
    Fixed,
    /// It was left.
    Skipped,
    /// There was nothing to do.
    NoChangeNeeded,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Skills that could be worth keeping.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProposeSkillsInput {
    /// One to three of them.
    pub proposals: Vec<SkillProposal>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A skill that could be worth keeping.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(name, kind))]
#[non_exhaustive]
pub struct SkillProposal {
    /// Its name.
    pub name: String,
    /// Whether it is new.
    pub kind: SkillProposalKind,
    /// The skill to improve.
    pub target: Option<String>,
    /// What it is for.
    pub description: String,
    /// Reasons for it.
    pub evidence: Option<Vec<String>>,
    /// The changes to make.
    pub edits: Option<Vec<SkillEdit>>,
    /// The whole text.
    #[wire(name = "skillMd")]
    pub skill_md: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Whether a proposed skill is new.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum SkillProposalKind {
    /// It is.
    New,
    /// It improves another.
    Improvement,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A change to a skill's text.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SkillEdit {
    /// The current text.
    pub old_string: String,
    /// The text to put in its place.
    pub new_string: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// The skills were shown to the user.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProposeSkillsOutput {
    /// How many.
    pub proposal_count: u64,
    /// Unknown fields.
    pub extra: Extra,
}

/// A goal to work towards.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProposeGoalInput {
    /// What will be true once it is reached.
    pub condition: String,
    /// Whether the user has to agree.
    pub ask_user: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A goal was set or proposed to the user.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProposeGoalOutput {
    /// What will be true once it is reached.
    pub condition: String,
    /// Whether the user has to agree.
    pub ask_user: bool,
    /// Unknown fields.
    pub extra: Extra,
}
