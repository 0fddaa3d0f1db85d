//! Where backends differ, and why that is right, or at least known.

use super::stage::Backend;

/// A backend that tells a story of its own.
pub(super) struct Difference {
    pub(super) scenario: &'static str,
    backends: &'static [Backend],
    pub(super) reason: &'static str,
    story: &'static str,
}

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        scenario: "hook-prompt-block",
        backends: &[Backend::Embedded, Backend::Child],
        reason: "a blocked prompt begins no turn, and what the hook said is passed on as it is",
        story: r#"result success "not this prompt"
            0 requests"#,
    },
    Difference {
        scenario: "plan",
        backends: &[Backend::Embedded, Backend::Child],
        reason: "there is no plan mode tool yet",
        story: r#"init
            call ExitPlanMode {"plan":"1. do it"}
            tool failed
            text Planned.
            result success "Planned.""#,
    },
    Difference {
        scenario: "hook-throw",
        backends: &[Backend::Vendor325],
        reason: "the vendor's program lets a call pass when its guard breaks down; here a guard that fails denies",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool ok
            text Done.
            result success "Done."
            made.txt is there
            * may Bash?"#,
    },
    Difference {
        scenario: "hook-timeout",
        backends: &[Backend::Vendor325],
        reason: "the call is denied there too, but not counted among the denials",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool failed
            text Done.
            result success "Done."
            made.txt is not there"#,
    },
    Difference {
        scenario: "interrupt-perm",
        backends: &[Backend::Vendor325],
        reason: "a question that was taken back counts as a denial there",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool failed
            interrupted
            result error_during_execution error denied=1
            made.txt is not there"#,
    },
    Difference {
        scenario: "control",
        backends: &[Backend::Vendor325],
        reason: "that program tells the conversation about the new model",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool ok
            text Done.
            result success "Done."
            made.txt is there
            note
            init
            text Changed.
            result success "Changed."
            the last model was "claude-opus-4-5""#,
    },
];

/// The story a backend tells in place of the common one.
pub(super) fn of(scenario: &str, backend: Backend) -> Option<&'static str> {
    let fits =
        |entry: &&Difference| entry.scenario == scenario && entry.backends.contains(&backend);
    DIFFERENCES.iter().find(fits).map(|entry| entry.story)
}
