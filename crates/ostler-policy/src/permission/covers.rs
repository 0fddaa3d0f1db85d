//! Whether an allow rule covers a part of a command in the literal grammar.

use ostler_shell::{Part, Word};

/// Whether an allow rule covers a part.
///
/// A rule with a prefix covers only commands that certainly run that prefix: not a program that starts another one
/// (`timeout`, `xargs`, `bash -c`: such commands need a rule with their whole text), and not `git` with options before
/// its subcommand, which can name programs.
pub(crate) fn covers_part(content: &str, part: &Part) -> bool {
    if part.source.trim() == content.trim() {
        return true;
    }
    if !part.has_safe_environment() {
        return false;
    }
    let argv: Vec<_> = part.argv.iter().map(Word::as_literal).collect();
    let begins = |argv: &[Option<&str>], words: &[String]| {
        argv.len() >= words.len()
            && words.iter().zip(argv).all(|(word, arg)| *arg == Some(word.as_str()))
    };
    let Some(prefix) = prefix_of(content) else {
        let words = ostler_shell::words(content).unwrap_or_default();
        return !words.is_empty() && words.len() == argv.len() && begins(&argv, &words);
    };
    let words = ostler_shell::words(prefix).unwrap_or_else(|| split(prefix));
    if words.is_empty() || ostler_shell::starts_others(part) {
        return false;
    }
    if part.name() != "git" {
        return begins(&argv, &words);
    }
    let n_globals = argv.iter().skip(1).take_while(|word| **word == Some("--no-pager")).count();
    let plain = [&argv[..1], &argv[1 + n_globals..]].concat();
    let is_named = words.get(1).is_some_and(|word| !word.starts_with('-'));
    let has_option = plain.get(1).is_some_and(|word| {
        word.is_none_or(|word| word.starts_with('-') && !matches!(word, "--version" | "--help"))
    });
    begins(&plain, &words) && (is_named || (words.len() == 1 && !has_option))
}

/// `git push:*` and `git push *` begin with `git push`.
pub(crate) fn prefix_of(content: &str) -> Option<&str> {
    content.strip_suffix(":*").or_else(|| content.strip_suffix(" *")).map(str::trim)
}

pub(crate) fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
