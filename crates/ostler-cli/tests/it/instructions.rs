//! Place, date and instructions in the requests to the model, with the program as it is shipped.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::run::Ostler;

/// A repository with instructions in several places.
async fn stage(script: Script) -> (ScriptedApi, Ostler) {
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    for (name, text) in [
        (".git/HEAD", "ref: refs/heads/trunk\n"),
        ("CLAUDE.md", "top instructions"),
        ("sub/CLAUDE.md", "instructions of sub"),
        ("sub/AGENTS.md", "not read"),
        ("other/AGENTS.md", "instructions of other"),
        ("sub/x.ts", "let x;"),
        ("other/y.txt", "y"),
        (".claude/rules/ts.md", "---\npaths: \"**/*.ts\"\n---\nrule for types"),
        (".claude/rules/all.md", "rule for all"),
        ("no-home/.claude/rules/mine.md", "rule of the user"),
    ] {
        let path = ostler.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (api, ostler)
}

fn hello() -> Script {
    Script::new().rule(when(), reply().text("Hello."))
}

// Mutants: a prompt of the host replaces the place too; the date is left out.
#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_system_prompt_contains_place_date_and_instructions() {
    let forms: [&[&str]; 4] = [
        &[],
        &["--system-prompt="],
        &["--system-prompt=You are a cat."],
        &["--append-system-prompt=Be kind."],
    ];
    for form in forms {
        let (api, ostler) = stage(hello()).await;
        ostler.run(&[&["-p", "hi"], form].concat()).shows(&["Hello."]);
        let system = api.requests()[0].system_text();
        let folder = ostler.folder.path().canonicalize().unwrap();
        let year = jiff::Zoned::now().date().year().to_string();
        for part in [
            &format!("Working directory: {}", folder.display()),
            &format!("Date: {year}-"),
            "Platform: ",
            "Git branch: trunk",
            "top instructions",
            "rule for all",
            "rule of the user",
        ] {
            assert_eq!(system.matches(part).count(), 1, "{form:?}: {part} in {system}");
        }
        assert!(!system.contains("rule for types") && !system.contains("of sub"), "{system}");
        assert_eq!(
            system.contains("You are Ostler"),
            form.is_empty() || form[0].contains("append")
        );
    }
}

// Mutant: the marker between the parts of a prompt is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_parts_is_sent_without_the_marker_between_them() {
    let (api, ostler) = stage(hello()).await;
    let parts = json!(["Part one.", "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__", "Part two."]);
    let initialize = json!({
        "type": "control_request", "request_id": "1",
        "request": {"subtype": "initialize", "systemPrompt": parts},
    });
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "hi"}});
    let frames = ["-p", "--verbose", "--input-format=stream-json", "--output-format=stream-json"];
    let ran = ostler.args(&frames).type_lines(&[&initialize.to_string(), &prompt.to_string()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let system = api.requests()[0].system_text();
    assert!(system.starts_with("Part one.\n\nPart two.\n\n"), "{system}");
    assert!(!system.contains("BOUNDARY") && system.contains("Working directory: "), "{system}");
}

// Mutant: instructions of a folder are added with every read.
#[tokio::test(flavor = "multi_thread")]
async fn instructions_of_a_folder_and_for_a_path_follow_the_first_file_that_is_read_there() {
    let read = |path: &str| reply().tool_use("Read", json!({"file_path": path}));
    let script = Script::new()
        .rule(when().turn(0), read("sub/x.ts"))
        .rule(when().turn(1), read("sub/x.ts"))
        .rule(when().turn(2), read("other/y.txt"))
        .rule(when(), reply().text("Done."));
    let (api, ostler) = stage(script).await;
    ostler.run(&["-p", "look"]).shows(&["Done."]);
    let requests = api.requests();
    let result = |number: usize| requests[number].tool_results().pop().unwrap().text;
    let results = [result(1), result(2), result(3)];
    for part in ["instructions of sub", "rule for types"] {
        assert!(results[0].contains(part), "{}", results[0]);
        assert!(!results[1].contains(part), "only once: {}", results[1]);
    }
    assert!(results[2].contains("instructions of other"), "{}", results[2]);
    assert!(!results.concat().contains("not read"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_is_told_where_it_is() {
    let call = json!({"description": "look around", "prompt": "look", "subagent_type": "scout"});
    let script = Script::new()
        .rule(when().prompt_contains("look"), reply().text("Nothing."))
        .rule(when().turn(0), reply().tool_use("Agent", call))
        .rule(when(), reply().text("Done."));
    let (api, ostler) = stage(script).await;
    let agents = json!({"scout": {"description": "Looks", "prompt": "You look."}}).to_string();
    ostler.run(&["-p", "--agents", &agents, "go"]).shows(&["Done."]);
    let requests = api.requests();
    let system = requests.iter().map(|it| it.system_text()).find(|it| it.contains("You look."));
    let system = system.expect("the subagent was asked");
    for part in ["Working directory: ", "Date: ", "Platform: ", "top instructions"] {
        assert_eq!(system.matches(part).count(), 1, "{part} in {system}");
    }
}

// Mutants: `claudeMdExcludes` is not read; an agent's notes are not.
#[tokio::test(flavor = "multi_thread")]
async fn notes_are_told_and_excluded_files_are_not() {
    let (api, ostler) = stage(hello()).await;
    let folder = ostler.folder.path().canonicalize().unwrap();
    let key: String = folder
        .to_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let notes = ostler.path(&format!("no-home/.claude/projects/{key}/memory/MEMORY.md"));
    fs::create_dir_all(notes.parent().unwrap()).unwrap();
    fs::write(notes, "a note of an agent").unwrap();
    let settings = json!({"claudeMdExcludes": ["**/rules/all.md"]}).to_string();
    ostler.run(&["-p", "--settings", &settings, "hi"]).shows(&["Hello."]);
    let system = api.requests()[0].system_text();
    assert!(system.contains("a note of an agent") && system.contains("top instructions"));
    assert!(!system.contains("rule for all"), "{system}");
}
