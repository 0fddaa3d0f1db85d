//! Sentences and what they mean.

use super::super::intent::Intent;
use super::super::steps::steps;

fn list(path: Option<&str>) -> Intent {
    matching("*", path)
}

fn matching(pattern: &str, path: Option<&str>) -> Intent {
    Intent::List { pattern: pattern.to_owned(), path: path.map(str::to_owned) }
}

fn count(path: Option<&str>) -> Intent {
    Intent::Count { path: path.map(str::to_owned) }
}

fn read(paths: &[&str]) -> Intent {
    Intent::Read { paths: paths.iter().map(|path| (*path).to_owned()).collect() }
}

fn write(path: &str, content: &str) -> Intent {
    Intent::Write { path: path.to_owned(), content: content.to_owned() }
}

fn edit(path: &str, old: &str, new: &str) -> Intent {
    Intent::Edit { path: path.to_owned(), old: old.to_owned(), new: new.to_owned(), all: false }
}

fn edit_all(path: &str, old: &str, new: &str) -> Intent {
    Intent::Edit { path: path.to_owned(), old: old.to_owned(), new: new.to_owned(), all: true }
}

fn run(command: &str) -> Intent {
    Intent::Run { command: command.to_owned(), background: false }
}

fn search(pattern: &str, path: Option<&str>) -> Intent {
    Intent::Search { pattern: pattern.to_owned(), path: path.map(str::to_owned) }
}

fn ask(about: Option<&str>) -> Intent {
    Intent::Ask { about: about.map(str::to_owned) }
}

fn delegate(prompt: &str) -> Intent {
    Intent::Delegate { prompt: prompt.to_owned() }
}

fn call(tool: &str, input: serde_json::Value) -> Intent {
    Intent::Call { tool: tool.to_owned(), input }
}

fn unknown(text: &str) -> Intent {
    Intent::Unknown(text.to_owned())
}

#[track_caller]
fn check(table: &[(&str, Intent)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter(|(sentence, intent)| steps(sentence) != [intent.clone()])
        .map(|(sentence, intent)| {
            format!("{sentence}\n  is    {:?}\n  wants {intent:?}", steps(sentence))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
fn check_steps(table: &[(&str, &[Intent])]) {
    for (sentence, intents) in table {
        assert_eq!(steps(sentence), *intents, "{sentence}");
    }
}

#[test]
fn files_are_listed() {
    check(&[
        ("list files", list(None)),
        ("List the files.", list(None)),
        ("LIST ALL THE FILES!", list(None)),
        ("list", list(None)),
        ("list everything here", list(None)),
        ("list the files in src", list(Some("src"))),
        ("list files in the folder src/", list(Some("src/"))),
        ("list the files in the src folder", list(Some("src"))),
        ("list the files in \"my documents\"", list(Some("my documents"))),
        ("list src", list(Some("src"))),
        ("list the files in this folder", list(None)),
        ("list the files in the current directory, please", list(None)),
        ("what is in this folder?", list(None)),
        ("What's in this directory?", list(None)),
        ("what’s in src?", list(Some("src"))),
        ("what is here?", list(None)),
        ("what's in /tmp?", list(Some("/tmp"))),
        ("show me what is in src", list(Some("src"))),
        ("show me the files", list(None)),
        ("show the files in crates", list(Some("crates"))),
        ("can you show me all files in `src`?", list(Some("src"))),
        ("ls", list(None)),
        ("ls .", list(Some("."))),
        ("ls src", list(Some("src"))),
        ("what files are there", list(None)),
        ("which files are in src?", list(Some("src"))),
        ("list all *.rs files", matching("**/*.rs", None)),
        ("find *.md in docs", matching("**/*.md", Some("docs"))),
        ("list src/*.rs", matching("src/*.rs", None)),
    ]);
}

#[test]
fn files_are_counted() {
    check(&[
        ("count the files", count(None)),
        ("count files in src", count(Some("src"))),
        ("how many files are there?", count(None)),
        ("How many files are in src?", count(Some("src"))),
    ]);
}

#[test]
fn files_are_read() {
    check(&[
        ("read README.md", read(&["README.md"])),
        ("Read the file README.md.", read(&["README.md"])),
        ("read notes", read(&["notes"])),
        ("please read 'my notes.txt'", read(&["my notes.txt"])),
        ("read “my notes.txt”, please", read(&["my notes.txt"])),
        ("show me src/main.rs", read(&["src/main.rs"])),
        ("show me LICENSE", read(&["LICENSE"])),
        ("show me the contents of Cargo.toml", read(&["Cargo.toml"])),
        ("open `src/lib.rs`", read(&["src/lib.rs"])),
        ("open the file notes", read(&["notes"])),
        ("cat a.txt", read(&["a.txt"])),
        ("what does README.md say?", read(&["README.md"])),
        ("What does the file notes contain?", read(&["notes"])),
        ("what is in notes.txt?", read(&["notes.txt"])),
        ("what is in the file notes?", read(&["notes"])),
        ("what's in LICENSE?", read(&["LICENSE"])),
        ("read a.txt and b.txt", read(&["a.txt", "b.txt"])),
        ("read a.txt, 'b c.txt' and d.txt", read(&["a.txt", "b c.txt", "d.txt"])),
        ("could you read über.txt?", read(&["über.txt"])),
        ("read ../日本語/ノート.txt", read(&["../日本語/ノート.txt"])),
    ]);
}

#[test]
fn files_are_written() {
    check(&[
        ("write hello world to notes.txt", write("notes.txt", "hello world")),
        ("Write \"hello, world!\" to notes.txt.", write("notes.txt", "hello, world!")),
        ("write 'don't panic' into `my notes.txt`", write("my notes.txt", "don't panic")),
        ("write the words 'a b' to a.txt", write("a.txt", "a b")),
        ("write welcome to the jungle to song.txt", write("song.txt", "welcome to the jungle")),
        ("write hello to a file called a.txt", write("a.txt", "hello")),
        ("create notes.txt with hello", write("notes.txt", "hello")),
        ("create notes.txt with Hello, world!", write("notes.txt", "Hello, world!")),
        ("can you create notes.txt with hello?", write("notes.txt", "hello")),
        ("create a file a.txt containing \"x\"", write("a.txt", "x")),
        ("create a new file named a.txt with the content: x y", write("a.txt", "x y")),
        ("make a file a.txt that says grüß dich", write("a.txt", "grüß dich")),
        ("create a.txt and write hello into it", write("a.txt", "hello")),
        ("save 'x' in a.txt", write("a.txt", "x")),
        ("put x = 1 into a.py", write("a.py", "x = 1")),
        ("write to a.txt: hello", write("a.txt", "hello")),
        ("create a.js with let x = 1;", write("a.js", "let x = 1;")),
        ("create an empty file a.txt", write("a.txt", "")),
        ("create a.txt with: the end", write("a.txt", "the end")),
        ("write \"the end\" to a.txt", write("a.txt", "the end")),
        ("create a.txt with:\n```text\none\n  two\n```", write("a.txt", "one\n  two\n")),
        ("create a.txt with:\none\ntwo", write("a.txt", "one\ntwo")),
        ("write now and then to a.txt", write("a.txt", "now and then")),
        ("write salt and read to a.txt", write("a.txt", "salt and read")),
    ]);
}

#[test]
fn files_are_edited() {
    check(&[
        ("replace foo with bar in notes.txt", edit("notes.txt", "foo", "bar")),
        (
            "Replace 'foo bar' by \"baz\" in the file notes.txt, please.",
            edit("notes.txt", "foo bar", "baz"),
        ),
        ("in notes.txt change foo to bar", edit("notes.txt", "foo", "bar")),
        ("In notes.txt, change foo to bar.", edit("notes.txt", "foo", "bar")),
        ("change foo to bar in x", edit("x", "foo", "bar")),
        ("change red to green to blue in x", edit("x", "red", "green to blue")),
        ("replace 'with' with 'without' in a.txt", edit("a.txt", "with", "without")),
        ("replace x with '' in a.txt", edit("a.txt", "x", "")),
        ("edit a.txt: replace foo with bar", edit("a.txt", "foo", "bar")),
        ("edit a.txt and change foo to bar", edit("a.txt", "foo", "bar")),
        ("replace all foo with bar in a.txt", edit_all("a.txt", "foo", "bar")),
        ("replace every occurrence of foo with bar in a.txt", edit_all("a.txt", "foo", "bar")),
        ("in a.txt replace all foo with bar", edit_all("a.txt", "foo", "bar")),
        ("change foo to bar everywhere in a.txt", edit_all("a.txt", "foo", "bar")),
        ("change all to none in a.txt", edit("a.txt", "all", "none")),
    ]);
}

#[test]
fn commands_are_run() {
    check(&[
        ("run `ls -la`", run("ls -la")),
        ("run cargo --version", run("cargo --version")),
        ("Please run cargo --version.", run("cargo --version")),
        ("could you run `cargo test`?", run("cargo test")),
        ("execute: echo hi", run("echo hi")),
        ("run: echo a; echo b, then c", run("echo a; echo b, then c")),
        ("$ echo hi", run("echo hi")),
        ("$ for i in 1 2; do echo $i; done", run("for i in 1 2; do echo $i; done")),
        ("run the command ls", run("ls")),
        ("run echo 'hi there'", run("echo 'hi there'")),
        ("run if true; then echo hi; fi", run("if true; then echo hi; fi")),
        ("run find . -exec cat {} \\;", run("find . -exec cat {} \\;")),
        ("run ls ..", run("ls ..")),
        ("ls -la src", run("ls -la src")),
        ("grep -r foo src", run("grep -r foo src")),
    ]);
}

#[test]
fn text_is_searched() {
    check(&[
        ("search for TODO in src", search("TODO", Some("src"))),
        ("search for TODO", search("TODO", None)),
        ("find TODO", search("TODO", None)),
        ("find 'fn main()' in src/main.rs", search(r"fn main\(\)", Some("src/main.rs"))),
        ("search for foo in bar in src", search("foo in bar", Some("src"))),
        ("look for cats in this folder", search("cats", None)),
        ("search src for TODO", search("TODO", Some("src"))),
        ("grep X", search("X", None)),
        ("grep 'fn .*' src", search("fn .*", Some("src"))),
        ("grep for TODO in src.", search("TODO", Some("src"))),
    ]);
}

#[test]
fn questions_are_asked() {
    check(&[
        ("ask me a question", ask(None)),
        ("Ask me something!", ask(None)),
        (
            "ask me which colour I like: red, green or blue",
            ask(Some("which colour I like: red, green or blue")),
        ),
        ("ask me which verb: read, list or run", ask(Some("which verb: read, list or run"))),
        ("could you ask me whether I like tea?", ask(Some("whether I like tea"))),
        ("ask the user tea or coffee", ask(Some("tea or coffee"))),
    ]);
}

#[test]
fn work_is_delegated() {
    check(&[
        ("delegate: count the files", delegate("count the files")),
        ("delegate: list the files, then read a.txt", delegate("list the files, then read a.txt")),
        ("ask a subagent to read README.md", delegate("read README.md")),
        ("have an agent list the files", delegate("list the files")),
        (
            "let a sub-agent list the files and read a.txt",
            delegate("list the files and read a.txt"),
        ),
        ("delegate counting to a subagent", delegate("counting")),
        ("delegate to a subagent: \"read a.txt\"", delegate("read a.txt")),
    ]);
}

#[test]
fn everything_else_is_help_or_unknown() {
    check(&[
        ("", Intent::Help),
        ("  \n ", Intent::Help),
        ("help", Intent::Help),
        ("Hello!", Intent::Help),
        ("what can you do?", Intent::Help),
        ("who are you?", Intent::Help),
        ("explain monads", unknown("explain monads")),
        ("run the tests", unknown("run the tests")),
        ("find out why it fails", unknown("find out why it fails")),
        ("read it", unknown("read it")),
        ("write a poem to poem.txt", unknown("write a poem to poem.txt")),
        ("write 'a' to a.txt, 'b' to b.txt", unknown("write 'a' to a.txt, 'b' to b.txt")),
        ("save it in a.txt", unknown("save it in a.txt")),
        ("add hello to notes.txt", unknown("add hello to notes.txt")),
        ("\"", unknown("\"")),
        ("'read", unknown("'read")),
        ("🦀", unknown("🦀")),
    ]);
}

#[test]
fn steps_follow_one_another() {
    check_steps(&[
        ("list the files, then read README.md", &[list(None), read(&["README.md"])]),
        ("list the files and then read README.md", &[list(None), read(&["README.md"])]),
        ("List the files. Then read README.md.", &[list(None), read(&["README.md"])]),
        ("Hello! List the files; read README.md", &[list(None), read(&["README.md"])]),
        ("list the files\nread README.md", &[list(None), read(&["README.md"])]),
        ("list the files and read README.md", &[list(None), read(&["README.md"])]),
        ("create a.js with let x = 1; read a.js", &[write("a.js", "let x = 1"), read(&["a.js"])]),
        ("write x to a.txt and then run `cat a.txt`", &[write("a.txt", "x"), run("cat a.txt")]),
        ("create a.txt with salt and then read a.txt", &[write("a.txt", "salt"), read(&["a.txt"])]),
        (
            "create a.txt with 'this; then that', then read a.txt",
            &[write("a.txt", "this; then that"), read(&["a.txt"])],
        ),
        (
            "first write x to a.txt, then replace x with y in a.txt, and finally read a.txt",
            &[write("a.txt", "x"), edit("a.txt", "x", "y"), read(&["a.txt"])],
        ),
        (
            "ask a subagent to read a.txt, then list the files",
            &[delegate("read a.txt"), list(None)],
        ),
        ("read a.txt, then summarise it", &[read(&["a.txt"]), unknown("summarise it")]),
        ("run ls, then dance", &[run("ls"), unknown("dance")]),
    ]);
}

#[test]
fn a_text_that_is_too_long_is_unknown() {
    let text = format!("write {} to a.txt", "word ".repeat(1000));
    assert_eq!(steps(&text), [unknown(&text)]);
    let quoted = "word ".repeat(1000);
    assert_eq!(steps(&format!("write '{quoted}' to a.txt")), [write("a.txt", &quoted)]);
}

#[test]
fn hostile_sentences_are_matched_in_reasonable_time() {
    // As many ways to split it as the length allows; exponential or cubic matching would hang here.
    for piece in
        ["with in ", "with in; ", "replace with in and ", "to a.txt then ", "search for in, "]
    {
        let text = format!("replace {}", piece.repeat(400 / piece.split(' ').count()));
        assert!(!steps(&text).is_empty());
    }
}

#[test]
fn a_tool_is_called_by_its_name() {
    use serde_json::json;
    check(&[
        ("use the tool add with a=2 and b=3", call("add", json!({"a": 2, "b": 3}))),
        ("Please call add with a=2, b=3.", call("add", json!({"a": 2, "b": 3}))),
        (
            r#"call mcp__calc__add with {"a": 2, "b": 3}"#,
            call("mcp__calc__add", json!({"a": 2, "b": 3})),
        ),
        ("use the tool roll", call("roll", json!({}))),
        ("use sense with care", unknown("use sense with care")),
    ]);
}
