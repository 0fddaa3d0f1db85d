//! The decisions of a turn: each test feeds inputs and compares the outputs.

use ostler_proto::build;
use serde_json::json;

use super::*;

fn call(id: &str, parallel: bool) -> Input {
    let call = build!(ToolUseBlock { id: id.into(), name: "Tool".into(), input: json!({}) });
    Input::Called { call, parallel }
}

fn done(id: &str) -> Input {
    Input::ToolDone { result: result(id), stop: None }
}

fn result(id: &str) -> ToolResultBlock {
    build!(ToolResultBlock { tool_use_id: id.into(), content: Some("ok".into()) })
}

const STOP: Input = Input::StopVerdict(StopVerdict::Stop);
/// The response is complete, and the model is finished.
const REPLIED: Input = Input::Replied { stop_reason: Some(StopReason::EndTurn), over: None };

fn stopped(reason: StopReason) -> Input {
    Input::Replied { stop_reason: Some(reason), over: None }
}

fn say(text: &str) -> Input {
    Input::Block(ContentBlock::text(text))
}

/// One line per output; conversations are shown as one word per block.
fn story(inputs: impl IntoIterator<Item = Input>, max_rounds: Option<u64>) -> Vec<String> {
    story_of(Turn::new(Vec::new(), vec![ContentBlock::text("why?")], max_rounds), inputs)
}

fn story_of(mut turn: Turn, inputs: impl IntoIterator<Item = Input>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut outputs = |turn: &mut Turn| {
        while let Some(output) = turn.poll() {
            lines.push(match output {
                Output::AskModel { conversation, whole } => {
                    format!("ask{} {}", if whole { " whole" } else { "" }, rendered(&conversation))
                }
                Output::RunTool(call) => format!("run {}", call.id),
                Output::Prompt(words) => format!("prompt {words}"),
                Output::Feedback(words) => format!("feedback {words}"),
                Output::FollowUp(words) => format!("follow-up {words}"),
                Output::MayStop { again } => format!("may stop? {again}"),
                Output::Overruled => "overruled".to_owned(),
                Output::MayGoOn => "may continue?".to_owned(),
                Output::Stopped(result) => format!("stopped {}", result.tool_use_id),
                Output::Done(ending) => format!("done {ending:?}"),
            });
        }
    };
    outputs(&mut turn);
    for input in inputs {
        turn.handle(input);
        outputs(&mut turn);
    }
    let conversation = turn.into_conversation();
    assert_answered(&conversation);
    lines.push(format!("end {}", rendered(&conversation)));
    lines
}

fn rendered(conversation: &[ChatMessage]) -> String {
    let said = conversation.iter().map(|said| {
        let blocks = said.content.iter().map(|block| match block {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::ToolUse(call) => format!("call:{}", call.id),
            ContentBlock::ToolResult(result) => {
                let stopped = result.is_error.unwrap_or(false);
                format!("{}:{}", if stopped { "stopped" } else { "result" }, result.tool_use_id)
            }
            _ => "?".to_owned(),
        });
        blocks.collect::<Vec<_>>().join("+")
    });
    said.collect::<Vec<_>>().join(" | ")
}

/// Every call of an assistant message has exactly one result in the next message.
fn assert_answered(conversation: &[ChatMessage]) {
    for (index, said) in conversation.iter().enumerate() {
        for call in said.content.iter().filter_map(ContentBlock::as_tool_use) {
            let next =
                conversation.get(index + 1).map(|said| &said.content[..]).unwrap_or_default();
            let results = next
                .iter()
                .filter(|block| matches!(block, ContentBlock::ToolResult(result) if result.tool_use_id == call.id));
            assert_eq!(results.count(), 1, "{}", rendered(conversation));
        }
    }
}

#[test]
fn an_answer_without_calls_ends_the_turn() {
    assert_eq!(
        story([say("because"), REPLIED, STOP], None),
        ["ask why?", "may stop? false", "done Completed", "end why? | because"]
    );
}

#[test]
fn a_result_goes_back_to_the_model() {
    assert_eq!(
        story([call("a", true), REPLIED, done("a"), say("fine"), REPLIED, STOP], None),
        [
            "ask why?",
            "run a",
            "ask why? | call:a | result:a",
            "may stop? false",
            "done Completed",
            "end why? | call:a | result:a | fine"
        ]
    );
}

#[test]
fn a_tool_starts_while_the_response_still_streams_and_may_end_before_it() {
    assert_eq!(
        story([call("a", true), done("a"), say("and"), REPLIED], None),
        [
            "ask why?",
            "run a",
            "ask why? | call:a+and | result:a",
            "end why? | call:a+and | result:a"
        ]
    );
}

#[test]
fn results_go_back_in_the_order_of_the_calls() {
    let lines = story([call("a", true), call("b", true), REPLIED, done("b"), done("a")], None);
    assert_eq!(
        lines[1..],
        [
            "run a",
            "run b",
            "ask why? | call:a+call:b | result:a+result:b",
            "end why? | call:a+call:b | result:a+result:b"
        ]
    );
}

#[test]
fn calls_with_effects_run_one_at_a_time_and_in_order() {
    let inputs =
        [call("w", false), call("r", true), call("x", false), REPLIED, done("w"), done("r")];
    assert_eq!(story(inputs, None)[1..4], ["run w", "run r", "run x"]);
    let lines = story([call("r", true), call("w", false), call("q", true), REPLIED], None);
    assert_eq!(lines[1..2], ["run r"], "a read after a write waits for the write");
    assert!(!lines.contains(&"run w".to_owned()) && !lines.contains(&"run q".to_owned()));
}

#[test]
fn an_interruption_during_a_response_keeps_the_text_so_far() {
    assert_eq!(
        story([say("so far"), Input::Interrupt, say("late")], None),
        [
            "ask why?",
            "done Interrupted { in_tools: false }",
            "end why? | so far | [Request interrupted by user]"
        ]
    );
}

#[test]
fn an_interruption_while_tools_run_answers_every_call() {
    let inputs =
        [call("a", true), call("b", true), call("w", false), REPLIED, done("b"), Input::Interrupt];
    let lines = story(inputs, None);
    assert_eq!(
        lines.last().unwrap(),
        "end why? | call:a+call:b+call:w | stopped:a+result:b+stopped:w+[Request interrupted by user for tool use]"
    );
}

#[test]
fn an_interruption_before_any_answer_joins_the_prompt() {
    assert_eq!(
        story([Input::Interrupt], None).last().unwrap(),
        "end why?+[Request interrupted by user]"
    );
}

#[test]
fn a_failure_in_the_middle_leaves_a_valid_conversation() {
    let failure = || Input::Failed(ModelError::Connection("cut".into()));
    assert_eq!(story([failure()], None).last().unwrap(), "end why?");
    let lines = story([say("hm"), call("a", false), failure(), done("a")], None);
    assert_eq!(lines.last().unwrap(), "end why? | hm+call:a | stopped:a");
}

#[test]
fn the_limit_on_rounds_ends_the_turn_after_the_tools() {
    let lines = story([call("a", true), REPLIED, done("a")], Some(1));
    assert_eq!(lines[1..], ["run a", "done MaxTurns", "end why? | call:a | result:a"]);
}

#[test]
fn nothing_else_gets_past_the_limit_on_rounds_either() {
    let go_on = Input::StopVerdict(StopVerdict::GoOn("more".into()));
    for inputs in [
        vec![say("x"), stopped(StopReason::MaxTokens)],
        vec![say("x"), stopped(StopReason::PauseTurn)],
        vec![say("x"), REPLIED, go_on],
    ] {
        let lines = story(inputs, Some(1));
        assert_eq!(lines[lines.len() - 2..], ["done MaxTurns", "end why? | x"]);
    }
    // There is no round left to ask about an empty answer.
    assert_eq!(story([REPLIED, STOP], Some(1))[1..3], ["may stop? false", "done Completed"]);
}

#[test]
fn an_empty_response_is_asked_about_once_and_then_ends_the_turn() {
    let lines = story([REPLIED, REPLIED, STOP], None);
    assert_eq!(lines[1], format!("prompt {SAY_SOMETHING}"));
    assert_eq!(lines[3..5], ["may stop? false", "done Completed"]);
}

#[test]
fn a_cut_response_is_continued_three_times() {
    let cut = || [say("part"), stopped(StopReason::MaxTokens)];
    let lines = story([cut(), cut(), cut(), cut()].into_iter().flatten(), None);
    assert_eq!(lines.iter().filter(|line| **line == format!("prompt {GO_ON}")).count(), 3);
    assert!(lines.contains(&"done MaxOutputTokens".to_owned()), "{lines:?}");
    let lines = story(cut().into_iter().chain([say("end"), REPLIED, STOP]), None);
    assert_eq!(lines.last().unwrap(), &format!("end why? | part | {GO_ON} | end"));
}

#[test]
fn a_paused_response_is_sent_back_as_it_is() {
    let lines =
        story([say("looking"), stopped(StopReason::PauseTurn), say("found"), REPLIED, STOP], None);
    assert_eq!(lines[1], "ask why? | looking");
    assert_eq!(lines.last().unwrap(), "end why? | looking+found");
}

#[test]
fn a_refusal_is_tried_once_more_and_leaves_nothing_behind() {
    let refusal = || stopped(StopReason::Refusal);
    let lines = story([say("no"), refusal(), say("yes"), REPLIED, STOP], None);
    let asked = format!("ask why?+{STOPPED}");
    assert!(lines.contains(&asked), "{lines:?}");
    assert_eq!(lines.last().unwrap(), &format!("end why?+{STOPPED} | yes"));
    let lines = story([say("no"), refusal(), say("never"), refusal()], None);
    let end = [String::from("done Refused"), format!("end why?+{STOPPED}")];
    assert_eq!(lines[lines.len() - 2..], end);
    let lines = story([say("no"), refusal()], Some(1));
    assert_eq!(lines[1..], ["done Refused", "end why?"]);
}

#[test]
fn a_stop_hook_makes_the_model_continue_with_its_feedback() {
    let again = || Input::StopVerdict(StopVerdict::GoOn("tests first".into()));
    let lines = story([say("done"), REPLIED, again(), say("tested"), REPLIED, STOP], None);
    assert_eq!(
        lines[1..],
        [
            "may stop? false",
            "feedback tests first",
            "ask why? | done | tests first",
            "may stop? true",
            "done Completed",
            "end why? | done | tests first | tested"
        ]
    );
}

#[test]
fn a_stop_hook_that_always_objects_is_overruled_unless_the_model_makes_calls() {
    let again = || Input::StopVerdict(StopVerdict::GoOn("more".into()));
    let refused = || [say("done"), REPLIED, again()];
    let n_refused = |lines: &[String]| lines.iter().filter(|line| *line == "feedback more").count();
    let lines = story((0..=MAX_REFUSALS).flat_map(|_| refused()), None);
    assert_eq!(n_refused(&lines), MAX_REFUSALS as usize);
    assert!(lines.windows(2).any(|pair| pair == ["overruled", "done Completed"]), "{lines:?}");
    let called = [call("a", false), stopped(StopReason::ToolUse), done("a")];
    let inputs = (0..MAX_REFUSALS).flat_map(|_| refused()).chain(called).chain(refused());
    let lines = story(inputs, None);
    assert_eq!(n_refused(&lines), MAX_REFUSALS as usize + 1);
    assert!(!lines.contains(&"overruled".to_owned()), "{lines:?}");
}

#[test]
fn a_spent_budget_ends_the_turn_and_stops_its_calls() {
    let over =
        Input::Replied { stop_reason: Some(StopReason::ToolUse), over: Some(Limit::Dollars) };
    let lines = story([call("a", false), over, done("a")], None);
    assert_eq!(
        lines[2..],
        ["stopped a", "done OverLimit(Dollars)", "end why? | call:a | stopped:a"]
    );
    let lines = story([say("slow"), Input::Deadline], None);
    assert_eq!(lines[1..], ["done OverLimit(Time)", "end why? | slow"]);
}

#[test]
fn a_stopped_call_has_a_result_that_says_why() {
    let over = |limit| Input::Replied { stop_reason: None, over: Some(limit) };
    for (end, expected) in [
        (Input::Interrupt, INTERRUPTED_CALL),
        (Input::Deadline, "Deadline exceeded"),
        (over(Limit::Tokens), "Token budget exhausted"),
        (over(Limit::Dollars), "Budget exhausted"),
        (Input::Failed(ModelError::Connection("cut".into())), ABANDONED_CALL),
    ] {
        let mut turn = Turn::new(Vec::new(), vec![ContentBlock::text("why?")], None);
        turn.handle(call("a", true));
        turn.handle(end);
        let words: Vec<_> = std::iter::from_fn(|| turn.poll())
            .filter_map(|output| match output {
                Output::Stopped(result) => result.content.map(|content| content.text()),
                _ => None,
            })
            .collect();
        assert_eq!(words, [expected]);
    }
}

fn think(signature: &str) -> Input {
    let block = json!({"type": "thinking", "thinking": "hm", "signature": signature});
    Input::Block(serde_json::from_value(block).unwrap())
}

#[test]
fn content_that_the_api_would_refuse_is_removed() {
    let end = |inputs: Vec<Input>| story(inputs, None).pop().unwrap();
    // Blank text, also such as the API itself sends before a call.
    let blank = vec![say("\n\n"), call("a", true), REPLIED, done("a"), say("x"), REPLIED, STOP];
    assert_eq!(end(blank), "end why? | call:a | result:a | x");
    // A thinking block that is cut, or that nothing follows.
    let cut = vec![think(""), say("so"), Input::Interrupt];
    assert_eq!(end(cut), "end why? | so | [Request interrupted by user]");
    assert_eq!(end(vec![think("s"), Input::Interrupt]), "end why?+[Request interrupted by user]");
    assert_eq!(end(vec![think("s"), say("x"), REPLIED, STOP]), "end why? | ?+x");
    // Half a call of a tool that the API runs itself.
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let search = Input::Block(serde_json::from_value(search).unwrap());
    assert_eq!(
        end(vec![say("look"), search, Input::Interrupt]),
        "end why? | look | [Request interrupted by user]"
    );
    // A response of only thinking blocks is an empty one.
    let lines = story([think("s"), REPLIED, say("x"), REPLIED, STOP], None);
    assert_eq!(lines[1], format!("prompt {SAY_SOMETHING}"));
}

#[test]
fn a_prompt_without_content_is_still_a_message() {
    for prompt in [vec![], vec![ContentBlock::text(" ")]] {
        let turn = Turn::new(Vec::new(), prompt, None);
        assert_eq!(rendered(&turn.into_conversation()), EMPTY_PROMPT);
    }
}

#[test]
fn a_broken_stream_is_asked_for_in_one_piece_once() {
    let broken = || Input::Failed(ModelError::Broken("cut".into()));
    let lines = story([say("half"), broken(), say("whole"), REPLIED, STOP], None);
    assert_eq!(lines[1], "ask whole why?");
    assert_eq!(lines.last().unwrap(), "end why? | whole");
    assert_eq!(story([broken(), broken()], None)[2], "done Failed(Broken(\"cut\"))");
}

#[test]
fn a_stream_that_breaks_after_a_call_counts_as_the_response() {
    let broken = Input::Failed(ModelError::Broken("cut".into()));
    let lines =
        story([say("hm"), call("a", false), broken, done("a"), say("ok"), REPLIED, STOP], None);
    assert_eq!(lines[2], "ask why? | hm+call:a | result:a");
    assert_eq!(lines.last().unwrap(), "end why? | hm+call:a | result:a | ok");
}

#[test]
fn a_result_may_end_the_turn() {
    let stop = Input::ToolDone { result: result("a"), stop: Some(StopAfter::Interrupt) };
    let lines = story([call("a", false), call("b", false), REPLIED, stop], None);
    assert_eq!(
        lines.last().unwrap(),
        "end why? | call:a+call:b | result:a+stopped:b+[Request interrupted by user for tool use]"
    );
}

#[test]
fn a_prompt_that_the_api_refuses_is_forgotten() {
    let refused = ModelError::Status {
        status: 400,
        kind: "invalid_request_error".into(),
        message: "no".into(),
    };
    assert_eq!(story([Input::Failed(refused.clone())], None).last().unwrap(), "end ");
    let lines = story([call("a", true), REPLIED, done("a"), Input::Failed(refused)], None);
    assert_eq!(lines.last().unwrap(), "end why? | call:a | stopped:a", "and so is a result");
}

#[test]
fn a_hook_ends_the_turn_once_the_calls_are_done() {
    let hook = Input::ToolDone { result: result("a"), stop: Some(StopAfter::Hook) };
    let lines = story([call("a", true), call("b", true), REPLIED, hook, done("b")], None);
    assert_eq!(lines[3..], ["done HookStopped", "end why? | call:a+call:b | result:a+result:b"]);
}

#[test]
fn an_answer_in_the_right_shape_ends_the_turn_and_five_wrong_ones_do_too() {
    let with = |stop| move || Input::ToolDone { result: result("a"), stop: Some(stop) };
    let (answer, miss) = (with(StopAfter::Answer), with(StopAfter::Miss));
    let lines = story([call("a", true), REPLIED, answer()], None);
    assert_eq!(lines[2], "done Completed");
    let round = || [call("a", true), REPLIED, miss()];
    let lines = story((0..5).flat_map(|_| round()), None);
    assert_eq!(lines.iter().filter(|line| line.starts_with("ask")).count(), 5);
    assert!(lines.contains(&"done SchemaMissed".to_owned()), "{lines:?}");
}

#[test]
fn an_answer_is_not_the_end_where_the_model_may_continue() {
    let turn = Turn::new(Vec::new(), vec![ContentBlock::text("why?")], None);
    let turn = turn.needing_answer(true).going_on_after_answer(true);
    let answer = Input::ToolDone { result: result("a"), stop: Some(StopAfter::Answer) };
    let lines = story_of(turn, [call("a", true), REPLIED, answer, say("Done."), REPLIED, STOP]);
    // It was answered, so there is no reminder.
    assert_eq!(lines[2..5], ["ask why? | call:a | result:a", "may stop? false", "done Completed"]);
}

// Mutant: a result goes to the first call with its id, also when that has one.
#[test]
fn calls_with_one_id_each_wait_for_a_result() {
    let mut turn = Turn::new(Vec::new(), vec![ContentBlock::text("why?")], None);
    for parallel in [true, false, true] {
        turn.handle(call("a", parallel));
    }
    turn.handle(stopped(StopReason::ToolUse));
    let mut n_asked = 0;
    for n_done in 0..=3 {
        while let Some(output) = turn.poll() {
            n_asked += usize::from(matches!(output, Output::AskModel { .. }));
        }
        assert_eq!(n_asked, if n_done < 3 { 1 } else { 2 }, "after {n_done} results");
        turn.handle(done("a"));
    }
}

/// Anything that can happen, in any order, whether it makes sense or not.
fn anything() -> impl proptest::strategy::Strategy<Value = Input> {
    use proptest::prelude::*;

    let id = || (0..6u8).prop_map(|number| format!("call{number}"));
    let stop = prop_oneof![
        6 => Just(None),
        1 => Just(Some(StopAfter::Interrupt)),
        1 => Just(Some(StopAfter::Hook)),
        1 => Just(Some(StopAfter::Answer)),
        1 => Just(Some(StopAfter::Miss)),
    ];
    let reason = prop_oneof![
        Just(StopReason::EndTurn),
        Just(StopReason::ToolUse),
        Just(StopReason::MaxTokens),
        Just(StopReason::PauseTurn),
        Just(StopReason::Refusal),
    ];
    let error = prop_oneof![
        Just(ModelError::Broken("cut".into())),
        Just(ModelError::Connection("gone".into())),
        Just(ModelError::Status { status: 400, kind: String::new(), message: String::new() }),
    ];
    prop_oneof![
        4 => Just(()).prop_map(|()| say("words")),
        6 => any::<bool>().prop_map(|parallel| Input::Called { call: ToolUseBlock::default(), parallel }),
        6 => (id(), stop).prop_map(|(id, stop)| Input::ToolDone { result: result(&id), stop }),
        4 => reason.prop_map(stopped),
        2 => any::<bool>().prop_map(|stop| Input::StopVerdict(if stop {
            StopVerdict::Stop
        } else {
            StopVerdict::GoOn("more".into())
        })),
        1 => error.prop_map(Input::Failed),
        1 => Just(()).prop_map(|()| Input::Deadline),
        1 => Just(()).prop_map(|()| Input::Interrupt),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::default()
    })]

    #[test]
    fn every_call_has_exactly_one_result_whatever_happens(inputs in proptest::collection::vec(anything(), 0..60)) {
        let mut turn = Turn::new(Vec::new(), vec![ContentBlock::text("why?")], Some(20));
        let mut n_calls = 0;
        let mut n_done = 0;
        for mut input in inputs.into_iter().chain([Input::Interrupt]) {
            // The API gives every call a unique id.
            if let Input::Called { call, .. } = &mut input {
                call.id = format!("call{n_calls}").as_str().into();
                n_calls += 1;
            }
            turn.handle(input);
            while let Some(output) = turn.poll() {
                n_done += usize::from(matches!(output, Output::Done(_)));
            }
        }
        proptest::prop_assert_eq!(n_done, 1);
        let conversation = turn.into_conversation();
        assert_answered(&conversation);
        proptest::prop_assert!(conversation.windows(2).all(|pair| pair[0].role != pair[1].role), "{}", rendered(&conversation));
    }
}

#[test]
fn hooks_after_tools_may_add_to_the_results_or_end_the_turn() {
    let ran = || [call("1", true), stopped(StopReason::ToolUse), done("1")];
    let turn = || {
        let turn = Turn::new(Vec::new(), vec![ContentBlock::text("why?")], None);
        turn.asking_after_tools(true)
    };
    let go_on = Input::GoOnVerdict { context: vec!["careful".into()], stop: false };
    let lines = story_of(turn(), ran().into_iter().chain([go_on, say("so"), REPLIED, STOP]));
    assert!(lines.contains(&"may continue?".to_owned()), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("ask") && line.contains("careful")));
    let stop = Input::GoOnVerdict { context: Vec::new(), stop: true };
    let lines = story_of(turn(), ran().into_iter().chain([stop]));
    assert!(lines.contains(&"done HookStopped".to_owned()), "{lines:#?}");
}

/// A conversation that was compacted before a prompt was answered.
fn compacted(prompt: &str) -> Input {
    let content = vec![ContentBlock::text("summary"), ContentBlock::text(prompt)];
    let conversation = vec![ChatMessage { role: Role::User, content }];
    Input::Compacted { conversation, prompt_from: (1, 1) }
}

#[test]
fn after_a_compaction_the_model_is_asked_with_the_compacted_conversation() {
    assert_eq!(
        story([compacted("why?"), say("because"), REPLIED, STOP], Some(1)),
        [
            "ask why?",
            "ask summary+why?",
            "may stop? false",
            "done Completed",
            "end summary+why? | because"
        ]
    );
}

#[test]
fn only_the_prompt_is_removed_if_it_is_refused_after_a_compaction() {
    let error = ModelError::Status { status: 400, kind: "x".into(), message: "no".into() };
    let story = story([compacted("why?"), Input::Failed(error)], None);
    assert_eq!(story.last().unwrap(), "end summary");
}

#[test]
fn a_prompt_is_unanswered_until_the_model_has_sent_something() {
    let before = vec![ChatMessage { role: Role::User, content: vec![ContentBlock::text("a")] }];
    let mut turn = Turn::new(before, vec![ContentBlock::text("b")], None);
    assert_eq!(turn.unanswered(), (1, 1));
    turn.handle(call("t", true));
    turn.handle(stopped(StopReason::ToolUse));
    turn.handle(done("t"));
    assert_eq!(turn.unanswered(), (3, 1));
}

// Mutants: the text is sent before the other results; it is lost if the turn ends.
#[test]
fn text_of_a_call_follows_the_results_of_all_calls() {
    let follow_up = || Input::FollowUp("skill".into());
    let calls = || [call("a", true), call("b", true), follow_up(), done("a"), REPLIED];
    let rest = [done("b"), say("Fine"), REPLIED, STOP];
    let lines = story(calls().into_iter().chain(rest), None);
    let at = lines.iter().position(|line| line == "follow-up skill").unwrap();
    assert_eq!(lines[at - 1], "run b");
    assert!(lines[at + 1].starts_with("ask ") && lines[at + 1].ends_with("skill"), "{lines:?}");
    let lines = story(calls().into_iter().chain([done("b")]), Some(1));
    assert!(lines.contains(&"follow-up skill".to_owned()), "{lines:?}");
    assert!(lines.last().unwrap().ends_with("skill"), "{lines:?}");
}
