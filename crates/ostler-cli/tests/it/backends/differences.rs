//! Where backends differ from the common story, and why.

use super::stage::Backend;

/// A backend with its own story.
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
        reason: "it reports a subagent late, and not its end",
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
        reason: "it ends before its subagent runs its command; observed, the cause is unknown",
        story: "1 results
            made.txt is not there",
    },
    Difference {
        scenario: "allowed-tools",
        backends: &[Backend::Vendor50],
        reason: "it asks about this command in spite of the rule; observed, the cause is unknown",
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
        reason: "it reports a task when it next checks, not when the task starts",
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
        reason: "the end of a task that the host stops is not reported",
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
        reason: "it does not add the new model to the conversation",
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
        reason: "it does not pass on a server's question to the user",
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
        reason: "an allow rule outweighs a hook that requires approval",
        story: r#"init
            call Bash {"command":"touch made.txt","description":"Make it"}
            tool ok
            text Done.
            result success "Done.""#,
    },
    Difference {
        scenario: "hook-deny",
        backends: &[Backend::Vendor50],
        reason: "a hook's denial is not counted among the denials",
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
        reason: "a blocked prompt begins no turn, and the hook's text is passed on unchanged",
        story: r#"result success "not this prompt"
            0 requests"#,
    },
    Difference {
        scenario: "hook-prompt-block",
        backends: &[Backend::Vendor50],
        reason: "the hook's text is not passed on",
        story: r#"init
            result success ""
            0 requests"#,
    },
    Difference {
        scenario: "hook-throw",
        backends: &[Backend::Vendor50, Backend::Vendor325],
        reason: "the vendor's programs allow a call when its hook panics; here a hook that fails denies",
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
        reason: "the vendor's older program allows a call when its hook does not answer; here that denies",
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
        reason: "a withdrawn question counts as a denial there",
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
        reason: "its results that end a turn early are not marked as errors, and a withdrawn question counts as a denial",
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
        reason: "it reports every cut to the user, and sends the model a text that is not shown",
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
        reason: "it cannot switch off servers in the host by their names",
        story: r#"switched false: Refused
            switched true: Refused
            calc: Refused
            nobody: Refused"#,
    },
    Difference {
        scenario: "multi-burst",
        backends: &[Backend::Vendor50],
        reason: "queued prompts are answered one by one",
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
        reason: "a program that starts it may be newer: unknown flags are reported on standard error",
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
        reason: "it runs in this process, which cannot change its user",
        story: r#"error Usage
            ran"#,
    },
    Difference {
        scenario: "opt-fallback-model",
        backends: &[Backend::Vendor50],
        reason: "it falls back only for other kinds of accounts; observed, the condition is unknown",
        story: r#"error Api
            claude-sonnet-4-5"#,
    },
    Difference {
        scenario: "refusal",
        backends: &[Backend::Vendor50],
        reason: "it does not retry a refused answer",
        story: r#"init
            text I would rather not.
            trouble invalid_request
            result success error"#,
    },
    Difference {
        scenario: "session-store",
        backends: &[Backend::Vendor50],
        reason: "it does not send the lines that it writes to the session's file",
        story: "--session-mirror is not known",
    },
    Difference {
        scenario: "slash",
        backends: &[Backend::Vendor50],
        reason: "it has no /clear here, and does not send an unknown command to the model",
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
        reason: "calls run only after the whole response has arrived",
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
        reason: "it continues after the partial answer; here the turn is over",
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
        reason: "it asks again for an answer that it already has, until its retries are used up",
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

/// The story of a backend that replaces the common one.
pub(super) fn of(scenario: &str, backend: Backend) -> Option<&'static str> {
    let fits =
        |entry: &&Difference| entry.scenario == scenario && entry.backends.contains(&backend);
    DIFFERENCES.iter().find(fits).map(|entry| entry.story)
}
