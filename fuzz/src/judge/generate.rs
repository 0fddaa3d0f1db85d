//! Generates commands: known attacks with their placeholders filled, sentences of a wide grammar, and above all
//! harmless commands with something inserted.

use super::grammar;
use super::pieces::Pieces;
use crate::random::Random;

/// Makes the command with a number. The same number gives the same command, whichever thread asks.
pub(super) fn command(seed: u64, number: u64, root: &str, project: &str) -> String {
    let random = Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
    let mut pieces = Pieces { random, root, project };
    let mut command = match pieces.random.below(100) {
        0..20 => pieces.attack(),
        20..32 => grammar::command(&mut pieces, 0),
        _ => pieces.harmless(),
    };
    let n_mutations = [0, 1, 1, 1, 2, 2, 3, 4][pieces.random.below(8)];
    for _ in 0..n_mutations {
        command = mutate(&mut pieces, command);
    }
    command
}

/// Generates a command that changes files, together with another command.
pub(super) fn edit(seed: u64, number: u64, root: &str, project: &str) -> String {
    let random = Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
    let mut pieces = Pieces { random, root, project };
    let line = *pieces.pick(EDITS);
    let mut command = pieces.fill(line);
    if pieces.random.below(3) > 0 {
        let other = match pieces.random.below(4) {
            0 => pieces.attack(),
            1 => {
                let line = *pieces.pick(EDITS);
                pieces.fill(line)
            }
            _ => pieces.harmless(),
        };
        let joint = *pieces.pick(JOINTS);
        command = match pieces.random.below(2) {
            0 => format!("{command}{joint}{other}"),
            _ => format!("{other}{joint}{command}"),
        };
    }
    for _ in 0..[0, 0, 0, 1, 1, 2][pieces.random.below(6)] {
        command = mutate(&mut pieces, command);
    }
    command
}

/// Commands that change files; some of them files that they must not change.
const EDITS: &[&str] = &[
    "touch new.txt",
    "touch @F@",
    "touch @S@",
    "touch @D@/new",
    "mkdir -p new/sub",
    "mkdir @D@/new",
    "rm notes.txt",
    "rm @F@",
    "rm -f @S@",
    "rm -rf sub",
    "rm -rf @D@",
    "rmdir empty",
    "mv notes.txt moved.txt",
    "mv @F@ @D@",
    "mv @F@ @S@",
    "mv sub .git",
    "mv src/../sub linkdir",
    "cp README.md copy.md",
    "cp @F@ @D@",
    "cp @S@ copy.txt",
    "cp README.md @S@",
    "cp ls 0/rev",
    "cp sub/git git",
    "cp README.md linkdir/x",
    "cp f .git/config",
    "cp -T @F@ .bashrc",
    "touch '@F@' \"@F@\"",
    "cd sub && touch x",
    "cd @D@ && touch x",
    "cd @D@; rm -rf x ../x",
    "echo x > @F@",
    "cat @F@ >> @S@",
    "touch canary",
];

fn mutate(pieces: &mut Pieces<'_>, command: String) -> String {
    match pieces.random.below(20) {
        0..3 => with_token(pieces, &command, Edit::Insert),
        3..5 => with_token(pieces, &command, Edit::Replace),
        5..7 => with_token(pieces, &command, Edit::Append),
        7 => with_token(pieces, &command, Edit::Quote),
        8 => with_token(pieces, &command, Edit::Swap),
        9 => with_token(pieces, &command, Edit::Remove),
        10 | 11 => {
            let joint = pieces.pick(JOINTS);
            let other = pieces.harmless();
            format!("{command}{joint}{other}")
        }
        12 => {
            let joint = pieces.pick(JOINTS);
            let other = pieces.payload();
            format!("{command}{joint}{other}")
        }
        13 => {
            let wrapper = pieces.pick(WRAPPERS);
            pieces.fill(&wrapper.replace("@H@", &command))
        }
        14 => {
            let redirect = pieces.redirect();
            format!("{command} {redirect}")
        }
        15 => with_option(pieces, &command),
        _ => with_character(pieces, &command),
    }
}

const JOINTS: &[&str] = &[
    " && ", " || ", "; ", " | ", "&&", "||", ";", "|", " & ", "\n", " |& ", " ;; ", "\r\n",
    " \\\n", " # \n", "\t", " ; ; ", "\u{a0}", "\u{2028}", "\x0b", "\r", " ", "", "&", "\n\n",
    "; :; ", " &&\n", " |\n",
];

const WRAPPERS: &[&str] = &[
    "(@H@)",
    "{ @H@; }",
    "$(@H@)",
    "echo $(@H@)",
    "echo \"$(@H@)\"",
    "`@H@`",
    "! @H@",
    "time @H@",
    "@V@=1 @H@",
    "@V@=@A@ @H@",
    "env @H@",
    "command @H@",
    "exec @H@",
    "timeout 3 @H@",
    "if @H@; then @P@; fi",
    "@H@ > /dev/null",
    "for i in 1; do @H@; done",
    "while @H@; do break; done",
    "bash -c '@H@'",
    "eval @H@",
    "\\@H@",
    "@H@ 2>&1",
    "f() { @H@; }; f",
    "cd @D@ && @H@",
    "cd @D@; @H@",
    "@H@ &",
    "@H@ 2>/dev/null",
    "'@H@'",
    "\"@H@\"",
    "<@S@ @H@",
    "2>&1 @H@",
    ">/dev/null @H@",
    "/usr/bin/@H@",
    "/bin/@H@",
    "./@H@",
    "0/@H@",
    "xargs @H@",
    "nice @H@",
    "{@H@,}",
    "[[ @H@ ]]",
    "[ @H@ ]",
    "((@H@))",
    "case x in x) @H@;; esac",
    "coproc @H@",
    "@H@ <<< '@A@'",
    "@H@ <<E\n@A@\nE",
    "cat <(@H@)",
    "@V@='@A@'; @H@",
    "export @V@; @H@",
    "@H@; @V@='@A@'",
    "read @V@; @H@",
    "-@H@",
    "@H@ {}",
];

/// What happens to one of the words.
#[derive(Clone, Copy)]
enum Edit {
    Insert,
    Replace,
    Append,
    Quote,
    Swap,
    Remove,
}

fn with_token(pieces: &mut Pieces<'_>, command: &str, edit: Edit) -> String {
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let at = pieces.random.below(words.len());
    let word = words[at].clone();
    match edit {
        Edit::Insert => {
            let new = pieces.word(&words[0]);
            words.insert(at + 1, new);
        }
        Edit::Replace => words[at] = pieces.word(&words[0]),
        Edit::Append => {
            let glue = *pieces.pick(&["", "", "=", "/", ",", ":", "\"\"", "''"]);
            let more = pieces.word(&words[0]);
            words[at] = format!("{word}{glue}{more}");
        }
        Edit::Quote => words[at] = quoted(pieces, &word),
        Edit::Swap => {
            let other = pieces.random.below(words.len());
            words.swap(at, other);
        }
        Edit::Remove => {
            words.remove(at);
        }
    }
    words.join(" ")
}

fn with_option(pieces: &mut Pieces<'_>, command: &str) -> String {
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let program = words.iter().position(|word| !word.contains('=')).unwrap_or(0);
    let name = words[program].clone();
    let name = match words.get(program + 1) {
        Some(sub) if name == "git" => format!("git {sub}"),
        _ => name,
    };
    let option = pieces.option_of(&name);
    let at = program + 1 + pieces.random.below(words.len() - program);
    words.insert(at.min(words.len()), option);
    words.join(" ")
}

/// A word in one of the ways in which a shell lets it be written.
fn quoted(pieces: &mut Pieces<'_>, word: &str) -> String {
    let middle = (0..=word.len()).filter(|at| word.is_char_boundary(*at)).collect::<Vec<_>>();
    let at = *pieces.pick(&middle);
    let (left, right) = word.split_at(at);
    match pieces.random.below(9) {
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => format!("{left}''{right}"),
        3 => format!("{left}\"{right}\""),
        4 => format!("{left}\\{right}"),
        5 => format!("$'{word}'"),
        6 => format!("$\"{word}\""),
        7 => format!("\"{left}\"'{right}'"),
        _ => format!("{left}\\\n{right}"),
    }
}

const CHARACTERS: &[&str] = &[
    "$", "`", "\\", "'", "\"", "(", ")", "{", "}", "[", "]", "<", ">", "|", "&", ";", "*", "?",
    "!", "~", "#", "%", "=", "@", "^", ",", ":", "-", "+", "/", ".", " ", "\n", "\r", "\t", "\x0b",
    "\x0c", "\x1b", "\x7f", "\x01", "\u{a0}", "\u{200b}", "\u{202e}", "\u{feff}", "ü", "＄", "；",
    "$(", "${", "$((", "<<", "<<<", "<(", ">(", "&>", ">|", "2>", "{a,b}", "$'", "$\"", "[[", "]]",
    "((", "))", "%n", "..", "~/", "//", "--", "=(", "+=", "!(", "@(", "?(", "a",
];

fn with_character(pieces: &mut Pieces<'_>, command: &str) -> String {
    let places: Vec<usize> =
        (0..=command.len()).filter(|at| command.is_char_boundary(*at)).collect();
    let at = *pieces.pick(&places);
    let (left, right) = command.split_at(at);
    let character = *pieces.pick(CHARACTERS);
    match pieces.random.below(4) {
        0 => {
            let mut rest = right.chars();
            rest.next();
            format!("{left}{character}{}", rest.as_str())
        }
        1 => {
            let payload = pieces.payload();
            format!("{left}{character}{payload}{right}")
        }
        _ => format!("{left}{character}{right}"),
    }
}
