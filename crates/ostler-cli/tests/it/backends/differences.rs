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
        scenario: "agent",
        backends: &[Backend::Vendor50],
        reason: "it tells of a subagent late, and not of its end",
        story: r#"init
            call Task {"description":"Do sub work","prompt":"SUBWORK please","subagent_type":"worker","run_in_background":false}
            note
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool ok
            tool ok
            text Main done.
            task started
            result success "Main done."
            made.txt is there
            * may Bash?"#,
    },
    Difference {
        scenario: "agentbg",
        backends: &[Backend::Vendor50],
        reason: "it ends before its subagent has come to its command; observed, the cause is not known",
        story: "1 results
            made.txt is not there",
    },
    Difference {
        scenario: "allowed-tools",
        backends: &[Backend::Vendor50],
        reason: "it asks about this command in spite of the rule; observed, the cause is not known",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool failed
            text Done.
            result success "Done." denied=1
            made.txt is not there
            * may Bash?"#,
    },
    Difference {
        scenario: "bgbash",
        backends: &[Backend::Vendor50],
        reason: "it tells of a task when it next looks, not when the task starts",
        story: r#"init
            call Bash {"command":"sleep 1; touch made.txt","description":"Wait","run_in_background":true}
            tool ok
            text It runs.
            task started
            result success "It runs."
            task completed
            init
            call Bash {"command":"touch after.txt","description":"After"}
            tool ok
            text It ran.
            result success "It ran."
            made.txt is there
            after.txt is there
            * may Bash?
            * may Bash?"#,
    },
    Difference {
        scenario: "bgstop",
        backends: &[Backend::Vendor50],
        reason: "a task that the host ends is not told of",
        story: r#"the end of the task is told: false"#,
    },
    Difference {
        scenario: "budget",
        backends: &[Backend::Vendor50],
        reason: "its results that end a turn early are not marked as errors",
        story: r#"init
            text Dear.
            result error_max_budget_usd"#,
    },
    Difference {
        scenario: "control",
        backends: &[Backend::Vendor50],
        reason: "it does not tell the conversation about the new model",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool ok
            text Done.
            result success "Done."
            made.txt is there
            init
            text Changed.
            result success "Changed."
            the last model was "claude-opus-4-5""#,
    },
    Difference {
        scenario: "deny-interrupt",
        backends: &[Backend::Vendor50],
        reason: "its results that end a turn early are not marked as errors",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool failed
            interrupted
            result error_during_execution denied=1
            made.txt is not there
            * may Bash?"#,
    },
    Difference {
        scenario: "elicit",
        backends: &[Backend::Vendor50],
        reason: "it does not pass on what a server asks the user",
        story: r#"init
            call mcp__shell__wonder {}
            tool ok
            text Done.
            result success "Done."
            the model heard you are bob: false"#,
    },
    Difference {
        scenario: "err-e400",
        backends: &[Backend::Vendor50],
        reason: "its results do not name the status of the API",
        story: r#"init
            trouble unknown
            result success error"#,
    },
    Difference {
        scenario: "err-e401",
        backends: &[Backend::Vendor50],
        reason: "its results do not name the status of the API",
        story: r#"init
            trouble authentication_failed
            result success error"#,
    },
    Difference {
        scenario: "hook-ask",
        backends: &[Backend::Vendor50],
        reason: "an allow rule outweighs a hook that wants a question",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool ok
            text Done.
            result success "Done.""#,
    },
    Difference {
        scenario: "hook-deny",
        backends: &[Backend::Vendor50],
        reason: "a hook's no is not counted among the denials",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool failed
            text Done.
            result success "Done."
            made.txt is not there"#,
    },
    Difference {
        scenario: "hook-prompt-block",
        backends: &[Backend::Embedded, Backend::Child],
        reason: "a blocked prompt begins no turn, and what the hook said is passed on as it is",
        story: r#"result success "not this prompt"
            0 requests"#,
    },
    Difference {
        scenario: "hook-prompt-block",
        backends: &[Backend::Vendor50],
        reason: "what the hook said is not passed on",
        story: r#"init
            result success ""
            0 requests"#,
    },
    Difference {
        scenario: "hook-throw",
        backends: &[Backend::Vendor50, Backend::Vendor325],
        reason: "the vendor's programs let a call pass when its guard breaks down; here a guard that fails denies",
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
        scenario: "hook-timeout",
        backends: &[Backend::Vendor50],
        reason: "the vendor's older program lets a call pass when its guard does not answer; here that denies",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool ok
            text Done.
            result success "Done."
            made.txt is there
            * may Bash?"#,
    },
    Difference {
        scenario: "interrupt",
        backends: &[Backend::Vendor50],
        reason: "its results that end a turn early are not marked as errors",
        story: r#"init
            interrupted
            result error_during_execution
            init
            text Again.
            result success "Again.""#,
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
        scenario: "interrupt-perm",
        backends: &[Backend::Vendor50],
        reason: "its results that end a turn early are not marked as errors, and a question that was taken back counts as a denial",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool failed
            interrupted
            result error_during_execution denied=1
            made.txt is not there"#,
    },
    Difference {
        scenario: "interrupt-tool",
        backends: &[Backend::Vendor50],
        reason: "its results that end a turn early are not marked as errors",
        story: r#"init
            call Bash {"command":"touch made.txt; sleep 60","description":"Wait"}
            tool failed
            interrupted
            result error_during_execution
            * may Bash?"#,
    },
    Difference {
        scenario: "maxturns",
        backends: &[Backend::Vendor50],
        reason: "its results that end a turn early are not marked as errors",
        story: r#"init
            call Bash {"command":"touch a.txt","description":"Make it"}
            tool ok
            result error_max_turns
            * may Bash?"#,
    },
    Difference {
        scenario: "maxtok",
        backends: &[Backend::Vendor50],
        reason: "it tells the user of every cut, and the model in words that are not shown",
        story: r#"init
            text part 0 
            trouble max_output_tokens
            text part 1 
            trouble max_output_tokens
            text final part.
            result success "final part.""#,
    },
    Difference {
        scenario: "mcp-toggle",
        backends: &[Backend::Vendor325],
        reason: "it connects servers in the host itself, and refuses to do so on request",
        story: r#"switched false: disabled
            switched true: connected
            calc: Refused
            nobody: Refused"#,
    },
    Difference {
        scenario: "mcp-toggle",
        backends: &[Backend::Vendor50],
        reason: "it knows servers in the host by no name that could be switched off",
        story: r#"switched false: Refused
            switched true: Refused
            calc: Refused
            nobody: Refused"#,
    },
    Difference {
        scenario: "multi-burst",
        backends: &[Backend::Vendor50],
        reason: "prompts that wait are answered one by one",
        story: r#"init
            text One.
            result success "One."
            init
            text The others.
            result success "The others."
            init
            text The others.
            result success "The others.""#,
    },
    Difference {
        scenario: "opt-effort",
        backends: &[Backend::Vendor50],
        reason: "it has no such option",
        story: r#"null"#,
    },
    Difference {
        scenario: "opt-extra-args-odd",
        backends: &[Backend::Child],
        reason: "a program that drives it may be newer: what it does not know is told on the error output",
        story: r#"taken"#,
    },
    Difference {
        scenario: "opt-extra-args-odd",
        backends: &[Backend::Vendor50, Backend::Vendor325],
        reason: "their command line refuses it",
        story: r#"error Connection, names it: true"#,
    },
    Difference {
        scenario: "opt-user",
        backends: &[Backend::Embedded],
        reason: "it is this process, which is who it is",
        story: r#"error Usage
            ran"#,
    },
    Difference {
        scenario: "opt-fallback-model",
        backends: &[Backend::Vendor50],
        reason: "it falls back for accounts of another kind only; observed, the condition is not known",
        story: r#"error Api
            claude-sonnet-4-5"#,
    },
    Difference {
        scenario: "refusal",
        backends: &[Backend::Vendor50],
        reason: "it does not try a refused answer once more",
        story: r#"init
            text I would rather not.
            trouble invalid_request
            result success error"#,
    },
    Difference {
        scenario: "session-store",
        backends: &[Backend::Vendor50],
        reason: "it does not send what it writes to the session's file",
        story: "--session-mirror is not known",
    },
    Difference {
        scenario: "skill",
        backends: &[Backend::Vendor50, Backend::Vendor325],
        reason: "the text of a skill follows its call as a message of its own; here it is the result of the call",
        story: r#"init
            call Skill {"skill":"greet","args":"Bob"}
            tool ok
            note
            text Reply.
            result success "Reply."
            the model has read it: true"#,
    },
    Difference {
        scenario: "slash",
        backends: &[Backend::Vendor50],
        reason: "it knows no /clear here, and does not let the model read a command it does not know",
        story: "Hello: the model, same session
            /context: the engine, same session
            /nosuch hello: the engine, same session
            /clear: the engine, same session
            After: the model, same session",
    },
    Difference {
        scenario: "requests",
        backends: &[Backend::Vendor50],
        reason: "most of these requests are newer than it",
        story: "mcp_server_status: ok
            set_max_thinking_tokens: ok
            context_usage: Unsupported
            usage: Unsupported
            settings: Unsupported
            apply_settings: ok
            permission_rules: Unsupported
            rename: Unsupported
            read_file: Unsupported
            seed_read_state: Unsupported
            reload_skills: Unsupported
            reload_plugins: Unsupported
            engine_version: Unsupported
            cancel_queued: Unsupported
            interrupt_all: ok
            move_to_background: Unsupported
            reinitialize: Refused
            task_output: Unsupported
            read_mcp_resource: Unsupported
            commands are named: true
            the account is named: true",
    },
    Difference {
        scenario: "slowtools",
        backends: &[Backend::Vendor50],
        reason: "calls run once the whole response is there",
        story: r#"runs early: false
            init
            call Bash {"command":"touch one.txt","description":"Make it"}
            call Bash {"command":"touch two.txt","description":"Two"}
            tool ok
            tool ok
            text Done.
            result success "Done."
            two.txt is there
            * may Bash?
            * may Bash?"#,
    },
    Difference {
        scenario: "structbad",
        backends: &[Backend::Vendor50],
        reason: "it goes on after the answer it has; here the turn is over",
        story: r#"init
            call StructuredOutput {"answer":42}
            tool failed
            call StructuredOutput {"answer":"42"}
            tool ok
            text Never.
            result success "Never." = {"answer":"42"}"#,
    },
    Difference {
        scenario: "structured",
        backends: &[Backend::Vendor50],
        reason: "it keeps asking for the answer it already has until its tries are used up",
        story: r#"init
            call StructuredOutput {"answer":"42"}
            tool ok
            call StructuredOutput {"answer":"42"}
            tool ok
            call StructuredOutput {"answer":"42"}
            tool ok
            call StructuredOutput {"answer":"42"}
            tool ok
            call StructuredOutput {"answer":"42"}
            tool ok
            result error_max_structured_output_retries error"#,
    },
];

/// The story a backend tells in place of the common one.
pub(super) fn of(scenario: &str, backend: Backend) -> Option<&'static str> {
    let fits =
        |entry: &&Difference| entry.scenario == scenario && entry.backends.contains(&backend);
    DIFFERENCES.iter().find(fits).map(|entry| entry.story)
}
