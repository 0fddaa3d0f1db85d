//! Sentences of a bash grammar that is much wider than what should be allowed.

use super::pieces::Pieces;
use super::pools::VARIABLES;

/// Deeper sentences are cut short.
const DEEPEST: usize = 4;

/// A command line.
pub(super) fn command(pieces: &mut Pieces<'_>, depth: usize) -> String {
    if depth >= DEEPEST {
        return simple(pieces, depth);
    }
    let deeper = depth + 1;
    match pieces.random.below(24) {
        0..9 => simple(pieces, depth),
        9..13 => {
            let joint = *pieces.pick(&["; ", " && ", " || ", " | ", "\n", " & ", " |& "]);
            format!("{}{joint}{}", command(pieces, deeper), command(pieces, deeper))
        }
        13 => format!("({})", command(pieces, deeper)),
        14 => format!("{{ {}; }}", command(pieces, deeper)),
        15 => format!("! {}", command(pieces, deeper)),
        16 => {
            let name = *pieces.pick(VARIABLES);
            format!("for {name} in {}; do {}; done", words(pieces, deeper), command(pieces, deeper))
        }
        17 => format!(
            "while {}; do {}; break; done",
            command(pieces, deeper),
            command(pieces, deeper)
        ),
        18 => {
            let test = test(pieces, deeper);
            format!(
                "if {test}; then {}; else {}; fi",
                command(pieces, deeper),
                command(pieces, deeper)
            )
        }
        19 => format!(
            "case {} in {}) {};; esac",
            word(pieces, deeper),
            word(pieces, deeper),
            command(pieces, deeper)
        ),
        20 => format!("f() {{ {}; }}; f", command(pieces, deeper)),
        21 => format!("(( {} ))", arithmetic(pieces, deeper)),
        22 => test(pieces, deeper),
        _ => pieces.attack(),
    }
}

fn simple(pieces: &mut Pieces<'_>, depth: usize) -> String {
    let mut text = String::new();
    for _ in 0..[0, 0, 0, 1, 1, 2][pieces.random.below(6)] {
        text += &assignment(pieces, depth + 1);
        text.push(' ');
    }
    text += &match pieces.random.below(10) {
        0..6 => pieces.harmless(),
        6 => pieces.payload(),
        7 => word(pieces, depth + 1),
        8 => (*pieces.pick(BUILTINS)).to_owned(),
        _ => String::new(),
    };
    for _ in 0..pieces.random.below(3) {
        text.push(' ');
        text += &word(pieces, depth + 1);
    }
    match pieces.random.below(8) {
        0 => {
            text.push(' ');
            text += &pieces.redirect();
        }
        1 => {
            let mark = *pieces.pick(&["E", "'E'", "\\E", "\"E\"", "-E"]);
            text += &format!(" <<{mark}\n{}\nE", word(pieces, depth + 1));
        }
        2 => text += &format!(" <<< {}", word(pieces, depth + 1)),
        _ => {}
    }
    text
}

const BUILTINS: &[&str] = &[
    "read",
    "printf",
    "printf -v",
    "printf %n",
    "test -v",
    "declare",
    "declare -i",
    "declare -a",
    "typeset -n",
    "local",
    "export",
    "readonly",
    "unset",
    "let",
    "eval",
    "exec",
    "source",
    ".",
    "alias",
    "hash",
    "enable",
    "trap",
    "shopt -s",
    "set",
    "getopts x",
    "mapfile",
    "wait",
    "type",
    "command",
    "builtin",
    "cd",
    "pushd",
    "dirs",
    "bind",
    "complete",
    "compgen",
    "help",
    "kill",
    "ulimit",
    "umask",
    "xargs",
    "xargs -I ls",
    "find . -exec",
    "env",
    "timeout 1",
    "nice",
    "bash -c",
    "sh -c",
    "time",
    "coproc",
    "echo",
];

fn assignment(pieces: &mut Pieces<'_>, depth: usize) -> String {
    let name = *pieces.pick(VARIABLES);
    let value = word(pieces, depth);
    match pieces.random.below(8) {
        0..4 => format!("{name}={value}"),
        4 => format!("{name}+={value}"),
        5 => format!("{name}[{}]={value}", arithmetic(pieces, depth)),
        6 => format!("{name}=([{}]={value})", word(pieces, depth)),
        _ => format!("{name}=({})", words(pieces, depth)),
    }
}

fn words(pieces: &mut Pieces<'_>, depth: usize) -> String {
    let n_words = 1 + pieces.random.below(3);
    (0..n_words).map(|_| word(pieces, depth)).collect::<Vec<_>>().join(" ")
}

fn word(pieces: &mut Pieces<'_>, depth: usize) -> String {
    if depth > DEEPEST {
        return pieces.file();
    }
    let deeper = depth + 1;
    match pieces.random.below(16) {
        0..4 => pieces.word("ls"),
        4 => format!("'{}'", pieces.computed()),
        5 => format!("\"{}\"", in_quotes(pieces, deeper)),
        6 => format!("$({})", command(pieces, deeper)),
        7 => format!("`{}`", pieces.payload()),
        8 => expansion(pieces, deeper),
        9 => format!("$(( {} ))", arithmetic(pieces, deeper)),
        10 => format!("{{{},{}}}", word(pieces, deeper), word(pieces, deeper)),
        11 => format!("{}{}", word(pieces, deeper), word(pieces, deeper)),
        12 => format!("<({})", command(pieces, deeper)),
        13 => format!("$'{}'", pieces.payload()),
        14 => pieces.computed(),
        _ => pieces.secret_path(),
    }
}

fn in_quotes(pieces: &mut Pieces<'_>, depth: usize) -> String {
    match pieces.random.below(6) {
        0 => format!("'{}'", word(pieces, depth)),
        1 => expansion(pieces, depth),
        2 => format!("\\{}", word(pieces, depth)),
        3 => format!("$({})", pieces.payload()),
        4 => format!("a\"{}\"b", word(pieces, depth)),
        _ => word(pieces, depth),
    }
}

fn expansion(pieces: &mut Pieces<'_>, depth: usize) -> String {
    let name = *pieces.pick(VARIABLES);
    let operator = *pieces.pick(&[
        "", ":-", "-", ":+", "+", ":=", "=", ":?", "?", "#", "##", "%", "%%", "/", "//", "/#", "^",
        "^^", ",", ",,", ":", "@P", "@Q", "@E", "@A", "@a", "@K", "[", "[@]", "[*]",
    ]);
    let before = *pieces.pick(&["", "", "", "", "!", "#"]);
    let argument = match pieces.random.below(5) {
        0 => String::new(),
        1 => format!("'$({})'", pieces.payload()),
        2 => format!("\"$({})\"", pieces.payload()),
        3 => arithmetic(pieces, depth),
        _ => word(pieces, depth),
    };
    let end = if operator == "[" { "]}" } else { "}" };
    format!("${{{before}{name}{operator}{argument}{end}")
}

fn arithmetic(pieces: &mut Pieces<'_>, depth: usize) -> String {
    match pieces.random.below(6) {
        0 => pieces.computed(),
        1 => (*pieces.pick(VARIABLES)).to_owned(),
        2 if depth < DEEPEST => {
            format!("{}+{}", arithmetic(pieces, depth + 1), arithmetic(pieces, depth + 1))
        }
        3 => format!("{}++", pieces.pick(VARIABLES)),
        4 => format!("'{}'", pieces.computed()),
        _ => "1".to_owned(),
    }
}

fn test(pieces: &mut Pieces<'_>, depth: usize) -> String {
    let operator =
        *pieces.pick(&["-v", "-f", "-n", "-R", "-t", "-ef", "-eq", "=", "=~", "<", "-nt", "!"]);
    let operand = word(pieces, depth);
    let (open, close) = *pieces.pick(&[("[[", "]]"), ("[", "]"), ("test", "")]);
    match operator {
        "-v" | "-f" | "-n" | "-R" | "-t" | "!" => format!("{open} {operator} {operand} {close}"),
        _ => format!("{open} {} {operator} {operand} {close}", word(pieces, depth)),
    }
}
