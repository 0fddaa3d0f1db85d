//! Read-only programs whose arguments do not follow the usual form of options and operands.

use crate::options::{Operands, Program, Value};
use crate::reading::Look;
use crate::word::{Word, WordKind};

type Seen = Result<Look, String>;

/// All words as text, if each is literal.
fn texts<'w>(name: &str, words: &'w [Word]) -> Result<Vec<&'w str>, String> {
    let texts: Option<Vec<_>> = words.iter().map(Word::as_literal).collect();
    texts.ok_or_else(|| format!("an argument of {name} is a pattern for file names"))
}

fn unknown(name: &str) -> Seen {
    Err(format!("this use of {name} is not known to only read"))
}

fn reads(paths: &[Word]) -> Look {
    Look { paths: paths.to_vec(), ..Look::default() }
}

/// `cd` changes the directory of later commands; alone it is harmless.
pub(crate) fn cd(words: &[Word]) -> Seen {
    match words {
        [folder]
            if folder.kind == WordKind::Literal
                && !folder.text.starts_with('-')
                && !folder.text.is_empty() =>
        {
            Ok(reads(words))
        }
        _ => unknown("cd"),
    }
}

/// The builtin prints its arguments. A pattern becomes file names, which are printed too.
pub(crate) fn echo(words: &[Word]) -> Seen {
    let patterns = words.iter().filter(|word| word.kind == WordKind::Glob);
    Ok(Look { paths: patterns.cloned().collect(), ..Look::default() })
}

pub(crate) fn command(words: &[Word]) -> Seen {
    match texts("command", words)?.as_slice() {
        ["-v" | "-V", name] if !name.starts_with('-') => Ok(Look::default()),
        _ => unknown("command"),
    }
}

pub(crate) fn sleep(words: &[Word]) -> Seen {
    let is_duration = |text: &&str| {
        let number = text.trim_end_matches(['s', 'm']);
        !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    match texts("sleep", words)?.as_slice() {
        [duration] if is_duration(duration) => Ok(Look::default()),
        _ => unknown("sleep"),
    }
}

/// The builtin. `%n` and `-v` would set variables.
pub(crate) fn printf(words: &[Word]) -> Seen {
    let texts = texts("printf", words)?;
    let Some(format) = texts.first().filter(|format| !format.starts_with('-')) else {
        return unknown("printf");
    };
    let rest = format.replace("%%", "").replace("%s", "").replace("%d", "");
    if rest.contains('%') { unknown("printf") } else { Ok(Look::default()) }
}

/// `-v` evaluates an array index, which can run commands.
pub(crate) fn test(words: &[Word]) -> Seen {
    match texts("test", words)?.as_slice() {
        ["-e" | "-f" | "-d" | "-r" | "-w" | "-x" | "-s" | "-L" | "-h", _] => Ok(reads(&words[1..])),
        ["-n" | "-z", _] => Ok(Look::default()),
        _ => unknown("test"),
    }
}

pub(crate) fn date(words: &[Word]) -> Seen {
    const DATE: Program = Program {
        name: "date",
        flags: "uRI",
        values: &[('d', Value::Text)],
        long: &[
            ("--utc", None),
            ("--iso-8601", None),
            ("--iso-8601=", Some(Value::Text)),
            ("--date", Some(Value::Text)),
            ("--rfc-email", None),
        ],
        operands: Operands::Text,
        most_operands: 1,
    };
    // Without `+` an operand would set the clock.
    let sorted = DATE.sort(words)?;
    match sorted
        .operands
        .iter()
        .all(|word| word.kind == WordKind::Literal && word.text.starts_with('+'))
    {
        true => Ok(Look::default()),
        false => unknown("date"),
    }
}

/// `sed -n '1,20p' file`, which prints lines by number. Other scripts can write files and run commands.
pub(crate) fn sed(words: &[Word]) -> Seen {
    let [option, script, files @ ..] = words else { return unknown("sed") };
    let is_address = |text: &str| {
        let text = text.strip_prefix('+').unwrap_or(text);
        text == "$" || (!text.is_empty() && text.chars().all(|c| c.is_ascii_digit()))
    };
    let prints = |command: &str| {
        let addresses = command.strip_suffix('p').unwrap_or_default();
        addresses.split(',').count() <= 2 && addresses.split(',').all(is_address)
    };
    let is_known = option.as_literal() == Some("-n")
        && script.as_literal().is_some_and(|script| script.split(';').all(prints))
        && files.iter().all(|file| !file.text.starts_with('-'));
    if is_known { Ok(reads(files)) } else { unknown("sed") }
}

/// Predicates of `find` that neither write files nor start programs, with the number of words that follow each.
const FIND: &[(usize, &[&str])] = &[
    (
        0,
        &[
            "!",
            "(",
            ")",
            ",",
            "-a",
            "-and",
            "-daystart",
            "-depth",
            "-empty",
            "-executable",
            "-false",
            "-ls",
            "-mount",
            "-not",
            "-o",
            "-or",
            "-print",
            "-print0",
            "-prune",
            "-quit",
            "-readable",
            "-true",
            "-writable",
            "-xdev",
        ],
    ),
    (
        1,
        &[
            "-amin",
            "-atime",
            "-cmin",
            "-ctime",
            "-group",
            "-iname",
            "-ipath",
            "-iregex",
            "-links",
            "-maxdepth",
            "-mindepth",
            "-mmin",
            "-mtime",
            "-name",
            "-path",
            "-perm",
            "-printf",
            "-regex",
            "-regextype",
            "-size",
            "-type",
            "-user",
            "-wholename",
        ],
    ),
];

pub(crate) fn find(words: &[Word]) -> Seen {
    let is_path = |word: &&Word| !word.text.starts_with(['-', '(', '!', ',', ')']);
    let n_paths = words.iter().take_while(is_path).count();
    let (paths, expression) = words.split_at(n_paths);
    let mut look = reads(paths);
    let mut words = expression.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.as_literal() else {
            return Err(format!("the pattern {} is not quoted", word.text));
        };
        if text == "-newer" {
            look.paths.extend(words.next().cloned());
            continue;
        }
        let row = FIND.iter().find(|(_, names)| names.contains(&text));
        let Some((n_values, _)) = row else {
            return Err(format!("the option {text} of find is not known to be harmless"));
        };
        for _ in 0..*n_values {
            if words.next().is_none_or(|value| value.kind != WordKind::Literal) {
                return Err(format!("the value of the option {text} of find is not quoted"));
            }
        }
    }
    Ok(look)
}

/// A `jq` program can read other files and the environment, so only known words are accepted.
pub(crate) fn jq(words: &[Word]) -> Seen {
    const JQ: Program = Program {
        name: "jq",
        flags: "rcsSnjMCae",
        values: &[],
        long: &[
            ("--raw-output", None),
            ("--compact-output", None),
            ("--slurp", None),
            ("--sort-keys", None),
            ("--null-input", None),
            ("--exit-status", None),
        ],
        operands: Operands::PatternPaths,
        most_operands: usize::MAX,
    };
    let sorted = JQ.sort(words)?;
    let Some((program, files)) = sorted.operands.split_first() else { return unknown("jq") };
    if !program.as_literal().is_some_and(is_plain_jq) {
        return Err("the program for jq is not known to only read its input".to_owned());
    }
    let mut look = reads(files);
    look.paths.extend(sorted.late);
    Ok(look)
}

fn is_plain_jq(program: &str) -> bool {
    const WORDS: &[&str] = &[
        "add",
        "and",
        "any",
        "all",
        "arrays",
        "contains",
        "empty",
        "endswith",
        "first",
        "flatten",
        "from_entries",
        "group_by",
        "has",
        "index",
        "join",
        "keys",
        "last",
        "length",
        "map",
        "max",
        "max_by",
        "min",
        "min_by",
        "not",
        "null",
        "numbers",
        "objects",
        "or",
        "paths",
        "range",
        "reverse",
        "select",
        "sort",
        "sort_by",
        "split",
        "startswith",
        "strings",
        "test",
        "to_entries",
        "tonumber",
        "tostring",
        "true",
        "false",
        "type",
        "unique",
        "unique_by",
        "values",
        "with_entries",
        "if",
        "then",
        "else",
        "elif",
        "end",
    ];
    if program.contains(['\\', '$', '@', '#']) {
        return false;
    }
    // Every second segment is quoted.
    let segments: Vec<_> = program.split('"').collect();
    let mut code = segments.iter().step_by(2).map(|segment| format!(" {segment} "));
    segments.len() % 2 == 1
        && code.all(|code| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let mut before = ' ';
            let mut rest = code.as_str();
            while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
                before = rest[..start].chars().last().unwrap_or(before);
                let end = rest[start..].find(|c: char| !is_part(c)).unwrap_or(rest.len() - start);
                let word = &rest[start..start + end];
                if before != '.' && !WORDS.contains(&word) {
                    return false;
                }
                rest = &rest[start + end..];
            }
            true
        })
}
