//! Commands that start other commands, and the commands that they start, if those are certain.

use crate::word::{Word, WordKind};
use crate::{Assignment, Part};

/// What a part starts.
pub(crate) enum Starts {
    Nothing,
    /// These commands.
    Parts(Vec<Part>),
    /// A script for a shell.
    Script(String),
    /// Unclear, with the reason.
    Unclear(String),
}

/// What a part starts. A wrapper that does nothing else is marked as such.
pub(crate) fn starts(part: &mut Part) -> Starts {
    let name = part.name().rsplit('/').next().unwrap_or_default().to_owned();
    let starts = match name.as_str() {
        "eval" => script(&part.argv[1..]),
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" => return shell(part),
        "trap" => match part.argv.get(1).map(|word| (word.as_literal(), word)) {
            None | Some((Some("-l" | "-p" | "-"), _)) => return Starts::Nothing,
            Some((Some(text), _)) if !text.starts_with('-') => Starts::Script(text.to_owned()),
            _ => Starts::Unclear("the command of trap is not literal".to_owned()),
        },
        "coproc" | "parallel" | "watch" | "script" | "unshare" | "chroot" | "nsenter" | "flock"
        | "su" | "runuser" | "strace" | "ltrace" | "gdb" | "at" | "batch" | "systemd-run"
        | "tmux" | "screen" | "expect" | "entr" => {
            return Starts::Unclear(format!("the command that {name} starts is unclear"));
        }
        "source" | "." if part.argv.get(1).is_none_or(is_input) => {
            return Starts::Unclear(
                "the file that it runs is not literal, or is not on disk".to_owned(),
            );
        }
        "find" => return find(part),
        "sudo" | "doas" => {
            // Not a plain wrapper: the started command has more permissions than the user.
            return inner(part, skip(&part.argv, &["-n", "-E", "-H", "-S"], &["-u", "-g"], 0), &[]);
        }
        "command"
            if part.argv.get(1).is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V")) =>
        {
            return Starts::Nothing;
        }
        _ => wrapper(part, &name),
    };
    part.only_starts = !matches!(starts, Starts::Nothing) && part.has_safe_environment();
    starts
}

fn wrapper(part: &Part, name: &str) -> Starts {
    let argv = &part.argv;
    let (start, added): (_, &[&str]) = match name {
        "command" => (skip(argv, &["-p"], &[], 0), &[]),
        "builtin" | "nohup" | "busybox" | "toybox" => (skip(argv, &[], &[], 0), &[]),
        // `time` is a reserved word, so variables may be set after it.
        "time" if argv.iter().skip(1).take(2).any(|word| word.text.contains('=')) => {
            return Starts::Unclear("the command that time starts is unclear".to_owned());
        }
        "time" => (skip(argv, &["-p", "-v"], &[], 0), &[]),
        "setsid" => (skip(argv, &["-w", "-f", "-c"], &[], 0), &[]),
        "nice" => (skip(argv, &[], &["-n"], 0), &[]),
        "ionice" => (skip(argv, &["-t"], &["-c", "-n"], 0), &[]),
        "stdbuf" => {
            (skip(argv, &["-oL", "-o0", "-eL", "-e0", "-i0", "-iL"], &["-o", "-e", "-i"], 0), &[])
        }
        "timeout" => {
            (skip(argv, &["--foreground", "--preserve-status", "-v"], &["-k", "-s"], 1), &[])
        }
        "exec" if argv.len() == 1 => return Starts::Nothing,
        "exec" => (skip(argv, &["-c", "-l"], &["-a"], 0), &[]),
        "xargs" => {
            let flags = ["-0", "-r", "-t", "-x", "--null", "--no-run-if-empty"];
            // `-I`, `-i` and `--replace` insert the input into words, also into the name.
            (skip(argv, &flags, &["-n", "-P", "-L", "-s", "-d"], 0), &["<input>"])
        }
        "env" => return env(part),
        _ => return Starts::Nothing,
    };
    inner(part, start, added)
}

/// The index of the first word after known options and `operands` leading operands.
fn skip(argv: &[Word], flags: &[&str], valued: &[&str], operands: usize) -> Result<usize, String> {
    let mut at = 1;
    let mut left = operands;
    while let Some(word) = argv.get(at) {
        let text = word
            .as_literal()
            .ok_or_else(|| format!("the command that {} starts is not literal", argv[0].text))?;
        if text == "--" {
            at += 1;
            break;
        } else if flags.contains(&text) {
            at += 1;
        } else if valued.contains(&text) {
            at += 2;
        } else if text.starts_with('-') {
            return Err(format!("the option {text} of {} is not known", argv[0].text));
        } else if left > 0 {
            left -= 1;
            at += 1;
        } else {
            break;
        }
    }
    Ok(at)
}

fn inner(part: &Part, start: Result<usize, String>, added: &[&str]) -> Starts {
    match start {
        Err(reason) => Starts::Unclear(reason),
        Ok(start) => match part.argv.get(start..) {
            Some(argv) if !argv.is_empty() => {
                let mut argv = argv.to_vec();
                argv.extend(added.iter().map(|text| Word::unknown(*text)));
                Starts::Parts(vec![started(part, argv, part.assignments.clone())])
            }
            // `xargs` alone means `xargs echo`; the other wrappers print something or fail.
            _ => Starts::Nothing,
        },
    }
}

fn started(part: &Part, argv: Vec<Word>, assignments: Vec<Assignment>) -> Part {
    let source = argv.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    debug_assert!(!part.argv.is_empty(), "a part has a name");
    Part { argv, assignments, source, only_starts: false }
}

fn env(part: &Part) -> Starts {
    let mut assignments = part.assignments.clone();
    let mut at = match skip(&part.argv, &["-i", "-"], &["-u"], 0) {
        Ok(at) => at,
        Err(reason) => return Starts::Unclear(reason),
    };
    while let Some(word) = part.argv.get(at) {
        let Some((name, value)) = word.text.split_once('=') else { break };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || word.kind == WordKind::Glob {
            return Starts::Unclear("the variables that env sets are unclear".to_owned());
        }
        let value = Word { text: value.to_owned(), kind: word.kind };
        assignments.push(Assignment { name: name.to_owned(), value, exported: true });
        at += 1;
    }
    match part.argv.get(at..) {
        Some(argv) if !argv.is_empty() => {
            Starts::Parts(vec![started(part, argv.to_vec(), assignments)])
        }
        _ => Starts::Nothing,
    }
}

/// `eval a b c`.
fn script(words: &[Word]) -> Starts {
    let words: Option<Vec<_>> = words.iter().map(Word::as_literal).collect();
    match words {
        Some(words) if words.first().is_some_and(|word| !word.starts_with('-')) => {
            Starts::Script(words.join(" "))
        }
        Some(words) if words.is_empty() => Starts::Nothing,
        _ => Starts::Unclear("the text that it runs is not literal".to_owned()),
    }
}

/// `bash -c '…'`. A shell that runs a file is an ordinary command; a shell that runs its input can run anything.
fn shell(part: &mut Part) -> Starts {
    let mut words = part.argv[1..].iter();
    let mut is_text = false;
    for word in words.by_ref() {
        let Some(text) = word.as_literal() else {
            return Starts::Unclear("the script of the shell is not literal".to_owned());
        };
        if is_text && !text.starts_with(['-', '+']) {
            // `BASH_ENV=file bash -c ls` also runs the file.
            part.only_starts = part.has_safe_environment();
            return Starts::Script(text.to_owned());
        }
        match text.strip_prefix('-') {
            Some(flags) if !flags.is_empty() && flags.chars().all(|c| "celuxv".contains(c)) => {
                is_text |= flags.contains('c');
            }
            Some(_) => {
                return Starts::Unclear(format!("the option {text} of a shell is not known"));
            }
            None if is_input(word) => break,
            None => return Starts::Nothing,
        }
    }
    Starts::Unclear("the shell reads its script from its input".to_owned())
}

/// Whether this may be something other than a file on disk: a pipe, or a name that is not literal.
fn is_input(file: &Word) -> bool {
    file.kind > WordKind::Tilde
        || file.text == "-"
        || file.text.contains("/dev/")
        || file.text.contains("/proc/")
}

/// `find … -exec cmd {} ;`: extracts the command that it starts.
fn find(part: &mut Part) -> Starts {
    let mut own = Vec::new();
    let mut inner = Vec::new();
    let mut words = std::mem::take(&mut part.argv).into_iter();
    let mut unclear = None;
    while let Some(word) = words.next() {
        if !matches!(word.as_literal(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
            own.push(word);
            continue;
        }
        let mut argv = Vec::new();
        let mut ended = false;
        for word in words.by_ref() {
            if matches!(word.text.as_str(), ";" | "+") {
                ended = true;
                break;
            }
            let word = if word.text.contains("{}") { Word::unknown(word.text) } else { word };
            argv.push(word);
        }
        if !ended || argv.is_empty() {
            unclear = Some("the command of find -exec has no end".to_owned());
        } else {
            inner.push(argv);
        }
    }
    part.argv = own;
    match unclear {
        Some(reason) => Starts::Unclear(reason),
        None if inner.is_empty() => Starts::Nothing,
        None => Starts::Parts(
            inner.into_iter().map(|argv| started(part, argv, part.assignments.clone())).collect(),
        ),
    }
}
