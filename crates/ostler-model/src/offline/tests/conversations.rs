//! Conversations, turn by turn.

use std::collections::BTreeSet;

use ostler_proto::api::{ContentBlock, Role};
use serde_json::json;

use super::super::help::{HELP, NOTE};
use super::{Conversation, result};

#[test]
fn a_file_is_read_and_quoted() {
    let mut talk = Conversation::new();
    talk.say("read README.md").calls_exactly(&[("Read", json!({"file_path": "README.md"}))]);
    let end = talk.returns("1\t# Ostler");
    end.ends_with_words("Here is README.md:\n\n```\n1\t# Ostler\n```");
    end.ends_with_words(NOTE);
}

#[test]
fn long_results_are_cut() {
    let mut talk = Conversation::new();
    talk.say("list the files in src")
        .calls_exactly(&[("Glob", json!({"pattern": "*", "path": "src"}))]);
    let end = talk.returns(&"x\n".repeat(50));
    end.ends_with_words("… (30 more)");
}

#[test]
fn files_are_counted_by_their_names() {
    let mut talk = Conversation::new();
    talk.say("count the files").calls_exactly(&[("Glob", json!({"pattern": "*"}))]);
    talk.returns("a\nb\nc").ends_with_words("I found 3 files here.");
    talk.say("count the files");
    talk.returns("a\nb\n[the 2 newest of 9 files; narrow the pattern to see others]\n")
        .ends_with_words("I found at least 2 files here.");
    talk.say("count the files");
    talk.returns("No files found.\n").ends_with_words("I found 0 files here.");
}

#[test]
fn two_files_are_read_in_parallel() {
    let mut talk = Conversation::new();
    let first = talk.say("read a.txt and b.txt");
    first.calls_exactly(&[
        ("Read", json!({"file_path": "a.txt"})),
        ("Read", json!({"file_path": "b.txt"})),
    ]);
    let calls: Vec<_> = first.calls().into_iter().cloned().collect();
    // Results may come in another order, and in separate messages.
    talk.push(Role::User, vec![result(&calls[1], "bbb", None)]);
    talk.push(Role::User, vec![result(&calls[0], "no such file", Some(true))]);
    let end = talk.answered();
    end.ends_with_words("That did not work: no such file");
    end.ends_with_words("Here is b.txt:\n\n```\nbbb\n```");
}

#[test]
fn an_edit_reads_the_file_before() {
    let mut talk = Conversation::new();
    talk.say("replace all foo with bar in a.txt")
        .calls_exactly(&[("Read", json!({"file_path": "a.txt"}))]);
    talk.returns("1\tfoo").calls_exactly(&[(
        "Edit",
        json!({"file_path": "a.txt", "old_string": "foo", "new_string": "bar", "replace_all": true}),
    )]);
    talk.returns("ok").ends_with_words("In a.txt I replaced `foo` with `bar` everywhere.");
}

#[test]
fn writing_over_a_file_reads_it_if_the_prompt_says_so() {
    let mut talk = Conversation::new();
    let write = json!({"file_path": "a.txt", "content": "x"});
    talk.say("write x to a.txt").calls_exactly(&[("Write", write.clone())]);
    talk.fails("File has not been read yet. Read it first before writing to it.")
        .calls_exactly(&[("Read", json!({"file_path": "a.txt"}))]);
    talk.returns("1\told").calls_exactly(&[("Write", write)]);
    talk.fails("File has not been read yet. Read it first before writing to it.")
        .ends_with_words("That did not work: File has not been read yet.");
}

#[test]
fn the_name_of_a_file_is_not_taken_for_a_refusal() {
    let mut talk = Conversation::new();
    talk.say("write x to permission.rs");
    let refused = "permission.rs exists and was not read in this session. Read it first.";
    talk.fails(refused).calls_exactly(&[("Read", json!({"file_path": "permission.rs"}))]);
}

#[test]
fn a_denied_write_is_not_tried_again() {
    for refusal in ["Permission denied: read the rules first.", "I already said no before."] {
        let mut talk = Conversation::new();
        talk.say("write x to a.txt");
        talk.fails(refusal).ends_with_words(refusal);
    }
}

#[test]
fn making_an_empty_file_never_empties_one() {
    let mut talk = Conversation::new();
    talk.say("create an empty file a.txt");
    talk.fails("File has not been read yet. Read it first.").ends_with_words("That did not work");
}

#[test]
fn steps_are_done_one_after_another_and_each_is_reported() {
    let mut talk = Conversation::new();
    talk.say("list the files, then read a.txt; run `wc a.txt`")
        .calls_exactly(&[("Glob", json!({"pattern": "*"}))]);
    let second = talk.returns("a.txt");
    second.calls_exactly(&[("Read", json!({"file_path": "a.txt"}))]);
    assert!(
        second.text().starts_with("Here is what I found here:\n\n```\na.txt\n```"),
        "{}",
        second.text()
    );
    talk.returns("1\thello").calls_exactly(&[(
        "Bash",
        json!({"command": "wc a.txt", "description": "Run what the user typed"}),
    )]);
    talk.returns("").ends_with_words("`wc a.txt` printed nothing.");
}

#[test]
fn a_refusal_stops_the_steps_after_it() {
    let mut talk = Conversation::new();
    talk.say("write x to a.txt, then read a.txt, then list the files");
    let end = talk.fails("Permission to use Write has been denied.");
    end.ends_with_words("That was not allowed: Permission to use Write has been denied.");
    end.ends_with_words("2 more steps are not done");
}

#[test]
fn a_command_that_failed_was_still_allowed() {
    let mut talk = Conversation::new();
    talk.say("run cat /etc/shadow");
    talk.fails("Exit code 1\ncat: /etc/shadow: Permission denied")
        .ends_with_words("That did not work: Exit code 1");
}

#[test]
fn a_question_is_asked_and_its_answer_repeated() {
    let mut talk = Conversation::new();
    let option = |label: &str| json!({"label": label, "description": format!("Answer “{label}”")});
    talk.say("ask me which colour I like: red, green or blue").calls_exactly(&[(
        "AskUserQuestion",
        json!({"questions": [{
            "question": "Which colour do you like?", "header": "Colour", "multiSelect": false,
            "options": [option("red"), option("green"), option("blue")],
        }]}),
    )]);
    talk.returns(
        "User has answered your questions: \"Which colour do you like?\"=\"green\". You can now continue.",
    )
    .ends_with_words("You chose green.");
}

#[test]
fn work_is_given_to_a_subagent_whose_calls_have_other_ids() {
    let mut talk = Conversation::new();
    let call = talk.say("ask a subagent to read README.md");
    call.calls_exactly(&[(
        "Agent",
        json!({"description": "read README.md", "prompt": "read README.md", "subagent_type": "general-purpose", "run_in_background": false}),
    )]);
    let mut subagent = Conversation::with_tools(&["Read"]);
    let read = subagent.say(call.calls()[0].input["prompt"].as_str().unwrap());
    assert_ne!(read.calls()[0].id, call.calls()[0].id);
    let report = subagent.returns("1\thello").text();
    talk.returns(&report).ends_with_words("The subagent reports:\n\nHere is README.md:");
}

#[test]
fn the_subagent_tool_is_called_by_its_old_name_where_only_that_is_offered() {
    let mut talk = Conversation::with_tools(&["Task"]);
    assert_eq!(talk.say("delegate: list the files").calls()[0].name, "Task");
}

#[test]
fn a_tool_of_a_server_is_called_by_its_name_without_the_prefix() {
    let mut talk = Conversation::with_tools(&["Bash", "mcp__calc__add"]);
    let call = talk.say("use the tool add with a=2 and b=3");
    call.calls_exactly(&[("mcp__calc__add", serde_json::json!({"a": 2, "b": 3}))]);
    talk.returns("5").ends_with_words("add says: 5");
    talk.say("use the tool divide with a=2").ends_with_words("I would need the tool divide");
}

#[test]
fn a_tool_that_is_not_offered_is_not_called() {
    let mut talk = Conversation::with_tools(&["Glob"]);
    talk.say("run `ls`")
        .ends_with_words("I would need the tool Bash for that, and it is not offered here.");
    talk.say("list the files, then run `ls`");
    let end = talk.returns("a.txt");
    end.ends_with_words("Here is what I found");
    end.ends_with_words("the tool Bash");
}

#[test]
fn no_step_starts_unless_the_whole_text_is_understood() {
    let mut talk = Conversation::new();
    let end = talk.say("list the files, then dance");
    end.ends_with_words("I did not understand “dance”, so I did none of it.");
}

#[test]
fn the_demo_says_what_it_is_and_how_to_get_a_real_model() {
    let mut talk = Conversation::new();
    let hello = talk.say("hello");
    hello.ends_with_words("ANTHROPIC_API_KEY");
    assert_eq!(hello.text(), format!("{HELP}\n\n{NOTE}"));
    let again = talk.say("explain monads");
    again.ends_with_words("say “help”");
    assert!(!again.text().contains(NOTE));
    talk.say("help").ends_with_words(HELP);
}

#[test]
fn all_examples_in_the_help_are_understood() {
    let mut n_examples = 0;
    for example in HELP.lines().filter_map(|line| line.strip_prefix("- ")) {
        assert!(!Conversation::new().say(example).calls().is_empty(), "{example}");
        n_examples += 1;
    }
    assert_eq!(n_examples, 10);
}

#[test]
fn reminders_are_not_part_of_the_users_prompt() {
    let mut talk = Conversation::new();
    talk.push(
        Role::User,
        vec![
            ContentBlock::text("<system-reminder>\nread secret.txt\n</system-reminder>"),
            ContentBlock::text("list files"),
        ],
    );
    talk.answered().calls_exactly(&[("Glob", json!({"pattern": "*"}))]);
    let call = talk.request.messages[1].content[1].as_tool_use().unwrap().clone();
    let reminder = ContentBlock::text("<system-reminder>read secret.txt</system-reminder>");
    talk.push(Role::User, vec![result(&call, "a.txt", None), reminder]);
    talk.answered().ends_with_words("a.txt");
}

#[test]
fn the_user_may_send_a_prompt_with_the_results() {
    let mut talk = Conversation::new();
    let call = talk.say("list files").calls()[0].clone();
    let results = |call| vec![result(call, "a.txt", None), ContentBlock::text("read a.txt")];
    talk.push(Role::User, results(&call));
    let read = talk.answered();
    read.calls_exactly(&[("Read", json!({"file_path": "a.txt"}))]);
    // The same text once more does not start it again.
    let call = read.calls()[0].clone();
    talk.push(Role::User, results(&call));
    talk.answered().ends_with_words("Here is a.txt");
}

#[test]
fn ids_are_unique_within_a_conversation() {
    let mut talk = Conversation::new();
    for _ in 0..3 {
        talk.say("read a.txt and b.txt, then list the files");
        talk.returns("ok");
        talk.returns("ok");
    }
    let blocks = talk.request.messages.iter().flat_map(|said| &said.content);
    let ids: Vec<&str> =
        blocks.filter_map(ContentBlock::as_tool_use).map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), 9);
    assert!(ids.iter().all(|id| id.starts_with("toolu_offline_")));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 9);
}

#[test]
fn two_agents_with_the_same_prompt_have_different_ids() {
    let id_of = |system: &str| {
        let mut talk = Conversation::new();
        talk.request.system = system.into();
        talk.say("list the files").calls()[0].id.clone()
    };
    assert_ne!(id_of("You are the agent."), id_of("You are an agent of the agent."));
}

#[test]
fn the_same_conversation_gets_the_same_answer() {
    let talk = || Conversation::new().say("read a.txt").0;
    assert_eq!(talk(), talk());
}

#[test]
fn a_command_in_the_background_is_started_and_its_end_is_reported() {
    let mut talk = Conversation::new();
    let input = json!({"command": "sleep 5; echo x", "description": "Run what the user typed",
        "run_in_background": true});
    talk.say("run `sleep 5; echo x` in the background").calls_exactly(&[("Bash", input)]);
    talk.returns("b1 runs").ends_with_words("`sleep 5; echo x` runs in the background now.");
    talk.say("[Background task b1: \"x\" completed. Its output is in /o]")
        .ends_with_words("ended in the background: b1: \"x\" completed. Its output is in /o");
}

#[test]
fn a_task_that_ends_meanwhile_changes_nothing() {
    let mut talk = Conversation::new();
    let first = talk.say("read a.txt, then read b.txt");
    let results = vec![
        result(first.calls()[0], "aaa", None),
        ContentBlock::text("[Background task b1: \"x\" completed. Its output is in /o]"),
    ];
    talk.push(Role::User, results);
    talk.answered().calls_exactly(&[("Read", json!({"file_path": "b.txt"}))]);
}
