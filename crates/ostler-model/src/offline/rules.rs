//! The table of rules: the meaning of sentences. The first form that matches wins.

use super::arguments;
use super::form::FormMatch;
use super::intent::Intent;
use super::words::PromptWord;

/// The request in a sentence. `None` if no form matches.
pub(super) fn understand(sentence: &[PromptWord], source: &str) -> Option<Intent> {
    let sentence = without_courtesies(sentence);
    RULES.iter().find_map(|(form, build)| build(&FormMatch::by(form, &sentence, source)?))
}

type Build = fn(&FormMatch<'_>) -> Option<Intent>;

#[rustfmt::skip]
const RULES: &[(&str, Build)] = &[
    ("help [me]", help),
    ("hello|hi|hey [there|ostler]", help),
    ("what can you do [here|offline]", help),
    ("what|who are you", help),
    ("what is this", help),

    ("$ {command:text}", run),
    ("run|execute the [shell|following] command {command:text}", run),
    ("run|execute|exec [command] {command:quoted} in the|a|your terminal|shell", run),
    ("run|execute|exec [command] {command:quoted} in the background", run_in_background),
    ("start [command] {command:quoted} [in] [the] [background]", run_in_background),
    ("run|execute|exec [command] {command:text}", run),

    ("delegate {prompt:text} to a|an|the|another [new|helper] subagent|sub-agent|agent|helper", delegate),
    ("delegate [this] [to] [a|an|the] [new|helper] [subagent|sub-agent|agent|helper] [to] {prompt:text}", delegate),
    ("ask|tell|have|let|get|make|use|start|launch|spawn|send a|an|the|another [new|helper] \
      subagent|sub-agent|agent|helper [to|and] {prompt:text}", delegate),

    ("use|call [the] [tool] {tool:path} with {arguments:text}", call),
    ("use|call the tool {tool:path}", call),

    ("ask me|us|the [user] [a] question|something|anything", ask_anything),
    ("ask me|us {about:text}", ask),
    ("ask the user {about:text}", ask),

    ("list|find|show [me] [all] [the] {glob:glob} [files] {where:where}", list_matching),
    ("read|cat|view|print|display [me] [the] [file|files|contents|content] [of] [the] [file] {paths:paths}", read),
    ("show|open|give|see [me] [the] [file|files|contents|content|text] [of] [the] [file] {paths:files}", read),
    ("show|open [me] [the] file|files {paths:paths}", read),
    ("what does [the] [file] {paths:path} say|contain|hold|have [in] [it]", read),
    ("tell me what [is] [in] [the] [file] {paths:file} [says|contains]", read),
    ("what is|stands in [the] {paths:named}", read),
    ("what is|stands in the file {paths:path}", read),
    ("what's|whats in [the] {paths:named}", read),
    ("what's|whats in the file {paths:path}", read),
    ("look at|into [the] [file] {paths:file}", read),

    ("ls|dir {where:where}", list),
    ("ls {options:text}", ls_with_options),
    ("list [me] [all] [of] [the|my|your] [files|file|folder|directory|contents|content|everything] [and] [folders] \
      [here|there] {where:where}", list),
    ("show|give|tell [me] [all] [of] [the|my|your] files|folder|directory|contents|everything {where:where}", list),
    ("what|which files are|exist|is [there|here] {where:where}", list),
    ("what|which files do you see|have {where:where}", list),
    ("what is [there|here] {where:in}", list),
    ("show|tell me what is [there|here] {where:in}", list),
    ("what is|are here|there", list),
    ("what's|whats [there] {where:in}", list),
    ("count [all] [of] [the|my] files {where:where}", count),
    ("how many files are|exist [there|here] {where:where}", count),
    ("how many files do you see {where:where}", count),

    ("write|put|save|store the text|word|words|line|sentence {content:quoted} to|in|into [the|a] [new] [file] \
      [called|named] {path:path}", write),
    ("write|save {content:text} to|in|into|as [the|a] [new] [file] [called|named] {path:path}", write),
    ("put|store {content:text} in|into [the|a] [new] [file] [called|named] {path:file}", write),
    ("create|make|write|add [me] [a|an|the] [new] [text] [file] [called|named] {path:path} \
      with|containing|saying|holding the content|contents|text|words {content:text}", write),
    ("create|make|write|add [me] [a|an|the] [new] [text] [file] [called|named] {path:path} \
      with|containing|saying|holding [content|contents] {content:text}", write),
    ("create|make|write|add [me] [a|an|the] [new] [text] [file] [called|named] {path:path} \
      that|which says|contains|reads|holds {content:text}", write),
    ("create|make [a|an|the] [new] [text] [file] [called|named] {path:path} and write|put {content:text} \
      to|in|into it", write),
    ("write|put|save to|in|into [the|a] [new] [file] {path:path} {content:text}", write),
    ("create|make [me] a|an|the [new] [empty] [text] file [called|named] {path:path}", create),
    ("create|make [new] [file] {path:file}", create),

    ("replace|change all|every|each [occurrences|occurrence|instances] [of] {old:text} with|by|to|into {new:text} \
      in|inside [the] [file] {path:path}", edit_all),
    ("replace|change {old:text} with|by|to|into {new:text} everywhere in|inside [the] [file] {path:path}", edit_all),
    ("replace|change {old:text} with|by|to|into {new:text} in|inside [the] [file] {path:path} everywhere", edit_all),
    ("replace|change|turn {old:text} with|by|to|into {new:text} in|inside [the] [file] {path:path}", edit),
    ("in [the] [file] {path:path} replace|change all|every|each [occurrences|occurrence|instances] [of] {old:text} \
      with|by|to|into {new:text}", edit_all),
    ("in [the] [file] {path:path} replace|change {old:text} with|by|to|into {new:text} everywhere", edit_all),
    ("in [the] [file] {path:path} replace|change|turn {old:text} with|by|to|into {new:text}", edit),
    ("edit [the] [file] {path:path} [and|to|by] replace|change|replacing|changing all|every|each \
      [occurrences|occurrence] [of] {old:text} with|by|to|into {new:text}", edit_all),
    ("edit [the] [file] {path:path} [and|to|by] replace|change|replacing|changing {old:text} \
      with|by|to|into {new:text}", edit),

    ("search|look [everywhere] for [the] [word|words|text] {pattern:text} {where:in}", search),
    ("search|look [everywhere] for [the] [word|words|text] {pattern:text}", search),
    ("search [in|through] [the] [folder|directory|file] {where:path} for [the] [word|text] {pattern:text}", search),
    ("find [the] [word|words|text] {pattern:text} {where:in}", search),
    ("find [the] [word|words|text] {pattern:text}", search),
    ("grep {options:text}", grep_with_options),
    ("grep [for] {pattern:text} {where:in}", grep),
    ("grep {pattern:path} {where:path}", grep),
    ("grep [for] {pattern:text}", grep),
];

fn help(_: &FormMatch<'_>) -> Option<Intent> {
    Some(Intent::Help)
}

fn run_in_background(caught: &FormMatch<'_>) -> Option<Intent> {
    let command = caught.text("command")?.trim().to_owned();
    (!command.is_empty()).then_some(Intent::Run { command, background: true })
}

fn run(caught: &FormMatch<'_>) -> Option<Intent> {
    let first = caught.words("command")?.first()?;
    // "run the tests" names something, it is not a command.
    if is_determiner(first) {
        return None;
    }
    let mut command = caught.text("command")?.trim().to_owned();
    // Only a full stop ends the sentence; a `;` or `?` may belong to the command.
    let ends_sentence = |text: &str| {
        text.strip_suffix('.').is_some_and(|text| text.ends_with(char::is_alphanumeric))
    };
    if !first.quoted && ends_sentence(&command) {
        command.pop();
    }
    (!command.is_empty()).then_some(Intent::Run { command, background: false })
}

fn delegate(caught: &FormMatch<'_>) -> Option<Intent> {
    Some(Intent::Delegate { prompt: caught.text("prompt")? })
}

/// Unless there are arguments, "use sense with care" is not a call.
fn call(caught: &FormMatch<'_>) -> Option<Intent> {
    let input = match caught.trimmed("arguments") {
        Some(text) => arguments::read(&text)?,
        None => serde_json::json!({}),
    };
    Some(Intent::Call { tool: caught.word("tool")?, input })
}

fn ask_anything(_: &FormMatch<'_>) -> Option<Intent> {
    Some(Intent::Ask { about: None })
}

fn ask(caught: &FormMatch<'_>) -> Option<Intent> {
    Some(Intent::Ask { about: Some(caught.text("about")?) })
}

fn list(caught: &FormMatch<'_>) -> Option<Intent> {
    // Some forms, such as "what is here", have no place.
    let path = caught.place("where").unwrap_or_default();
    Some(Intent::List { pattern: "*".to_owned(), path })
}

fn list_matching(caught: &FormMatch<'_>) -> Option<Intent> {
    let glob = caught.word("glob")?;
    // "all *.rs files" means those in folders below as well.
    let pattern = if glob.contains('/') { glob } else { format!("**/{glob}") };
    Some(Intent::List { pattern, path: caught.place("where")? })
}

fn ls_with_options(caught: &FormMatch<'_>) -> Option<Intent> {
    with_options("ls", caught)
}

fn grep_with_options(caught: &FormMatch<'_>) -> Option<Intent> {
    with_options("grep", caught)
}

/// With options, the program itself is meant.
fn with_options(program: &str, caught: &FormMatch<'_>) -> Option<Intent> {
    let options = caught.text("options")?;
    let command = format!("{program} {options}");
    options.starts_with('-').then_some(Intent::Run { command, background: false })
}

fn count(caught: &FormMatch<'_>) -> Option<Intent> {
    Some(Intent::Count { path: caught.place("where")? })
}

fn read(caught: &FormMatch<'_>) -> Option<Intent> {
    Some(Intent::Read { paths: caught.paths("paths")? })
}

fn write(caught: &FormMatch<'_>) -> Option<Intent> {
    let (first, more) = caught.words("content")?.split_first()?;
    // "write a poem to poem.txt" describes what to write; only quotes, a colon or a new line say that it is the text.
    if is_determiner(first) && !first.begins_line && !caught.follows_colon(first) {
        return None;
    }
    // After "'a' to a.txt, 'b'" the text is ambiguous.
    if first.quoted && !more.is_empty() {
        return None;
    }
    Some(Intent::Write { path: caught.word("path")?, content: caught.text("content")? })
}

fn create(caught: &FormMatch<'_>) -> Option<Intent> {
    Some(Intent::Write { path: caught.word("path")?, content: String::new() })
}

fn edit(caught: &FormMatch<'_>) -> Option<Intent> {
    edit_with(caught, false)
}

fn edit_all(caught: &FormMatch<'_>) -> Option<Intent> {
    edit_with(caught, true)
}

fn edit_with(caught: &FormMatch<'_>, all: bool) -> Option<Intent> {
    let (path, old, new) = (caught.word("path")?, caught.trimmed("old")?, caught.trimmed("new")?);
    (!old.is_empty()).then_some(Intent::Edit { path, old, new, all })
}

/// Searches for plain text, so the special characters of regular expressions are escaped.
fn search(caught: &FormMatch<'_>) -> Option<Intent> {
    let words = caught.words("pattern")?;
    // "find out why" and "find a way" are not searches.
    if words.first().is_some_and(|word| is_determiner(word) || word.key == "out") {
        return None;
    }
    let mut pattern = String::new();
    for letter in caught.trimmed("pattern")?.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    search_for(caught, pattern)
}

/// `grep` takes a regular expression.
fn grep(caught: &FormMatch<'_>) -> Option<Intent> {
    search_for(caught, caught.trimmed("pattern")?)
}

fn search_for(caught: &FormMatch<'_>, pattern: String) -> Option<Intent> {
    let path = caught.place("where").unwrap_or_default();
    (!pattern.is_empty()).then_some(Intent::Search { pattern, path })
}

fn is_determiner(word: &PromptWord) -> bool {
    ["the", "a", "an", "all", "my", "your", "our", "it", "this", "that", "some", "me", "away"]
        .contains(&word.key.as_str())
}

/// The sentence without "hello", "could you please", "thanks" and the like around it.
pub(super) fn without_courtesies(sentence: &[PromptWord]) -> Vec<PromptWord> {
    let mut sentence = sentence.to_vec();
    while let Some(length) = OPENINGS.iter().find_map(|opening| leading(&sentence, opening)) {
        let question = sentence.get(1).is_some_and(|word| word.key == "you");
        sentence.drain(..length);
        // The question mark of "can you …?" is not part of the request.
        if let Some(last) = sentence.last_mut().filter(|last| question && last.tail.ends_with('?'))
        {
            last.tail.pop();
        }
    }
    while let Some(length) = CLOSINGS.iter().find_map(|closing| trailing(&sentence, closing)) {
        sentence.truncate(sentence.len() - length);
        if let Some(last) = sentence.last_mut().filter(|last| last.tail == ",") {
            last.tail.clear();
        }
    }
    sentence
}

const OPENINGS: [&str; 26] = [
    "please",
    "kindly",
    "hello",
    "hi",
    "hey",
    "ok",
    "okay",
    "now",
    "so",
    "just",
    "first",
    "next",
    "finally",
    "also",
    "and",
    "then",
    "afterwards",
    "after that",
    "can you",
    "could you",
    "would you",
    "will you",
    "i want you to",
    "i would like you to",
    "i'd like you to",
    "let's",
];

const CLOSINGS: [&str; 7] =
    ["please", "thanks", "thank you", "for me", "and", "if you can", "first"];

/// How many words the phrase has, if the sentence begins with it and continues.
fn leading(sentence: &[PromptWord], phrase: &str) -> Option<usize> {
    let length = phrase.split(' ').count();
    let begins = phrase.split(' ').zip(sentence).all(|(key, word)| key == word.key);
    (begins && sentence.len() > length).then_some(length)
}

/// How many words the phrase has, if the sentence ends with it.
fn trailing(sentence: &[PromptWord], phrase: &str) -> Option<usize> {
    let length = phrase.split(' ').count();
    let tail = sentence.len().checked_sub(length).filter(|rest| *rest > 0)?;
    phrase.split(' ').zip(&sentence[tail..]).all(|(key, word)| key == word.key).then_some(length)
}

/// Whether a word can begin a request. Distinguishes "and read b.txt" from "salt and pepper".
pub(super) fn is_verb(word: &PromptWord) -> bool {
    RULES.iter().any(|(form, _)| {
        form.split_whitespace()
            .next()
            .is_some_and(|verbs| verbs.split('|').any(|verb| verb == word.key))
    })
}
