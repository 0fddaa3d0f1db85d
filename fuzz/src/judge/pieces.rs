//! What commands are made of: payloads, secret paths, options, variables, harmless commands.

use std::sync::LazyLock;

use super::pools::{FILES, FOLDERS, LETTERS, ODD, PAYLOADS, SECRET_PATHS, VARIABLES};
use crate::random::Random;

/// Commands that do something other than they seem, with holes.
const ATTACKS: &str = include_str!("../../judge/attacks.txt");
const HARMLESS: &str = include_str!("../../judge/harmless.txt");
const OPTIONS: &str = include_str!("../../judge/options.txt");

/// The lines of a list that are not comments, with their newlines.
fn list(text: &'static str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("# ") && !line.is_empty());
    lines.map(|line| line.replace('⏎', "\n")).collect()
}

static HARMLESS_LINES: LazyLock<Vec<String>> = LazyLock::new(|| list(HARMLESS));
static ATTACK_LINES: LazyLock<Vec<String>> = LazyLock::new(|| list(ATTACKS));

/// Programs (`git log` is one) and their options.
pub(super) static PROGRAMS: LazyLock<Vec<(&'static str, Vec<&'static str>)>> =
    LazyLock::new(|| {
        let lines = OPTIONS.lines().filter_map(|line| line.split_once(':'));
        lines.map(|(name, options)| (name, options.split_whitespace().collect())).collect()
    });

/// A source of pieces for one command.
pub(super) struct Pieces<'w> {
    pub(super) random: Random,
    /// What contains the projects.
    pub(super) root: &'w str,
    /// The project's name.
    pub(super) project: &'w str,
}

impl Pieces<'_> {
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.random.pick(from)
    }

    pub(super) fn attack(&mut self) -> String {
        let line = self.random.pick(&ATTACK_LINES).clone();
        self.fill(&line)
    }

    pub(super) fn harmless(&mut self) -> String {
        let line = self.random.pick(&HARMLESS_LINES).clone();
        self.fill(&line)
    }

    /// Puts something into every hole, `@P@` and the like.
    pub(super) fn fill(&mut self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('@') {
            let hole = rest.get(at..at + 3).filter(|hole| hole.ends_with('@'));
            let piece = hole.and_then(|hole| self.piece(&hole[1..2]));
            filled.push_str(&rest[..at]);
            match piece {
                Some(piece) => {
                    filled.push_str(&piece);
                    rest = &rest[at + 3..];
                }
                None => {
                    filled.push('@');
                    rest = &rest[at + 1..];
                }
            }
        }
        filled + rest
    }

    fn piece(&mut self, hole: &str) -> Option<String> {
        Some(match hole {
            "P" => self.payload(),
            "S" => self.secret_path(),
            "F" => self.file(),
            "H" => self.harmless(),
            "V" => self.random.pick(VARIABLES).to_string(),
            "A" => self.computed(),
            "O" => self.option(),
            "N" => self.random.below(12).to_string(),
            "G" => self.git_option(),
            "Q" => format!("'{}'", self.payload()),
            "D" => self.random.pick(FOLDERS).replace("ROOT", self.root),
            _ => return None,
        })
    }

    /// A command that leaves a trace.
    pub(super) fn payload(&mut self) -> String {
        let payload = self.random.pick(PAYLOADS).replace("ROOT", self.root);
        if payload.ends_with("SECRET") {
            payload.replace("SECRET", &self.secret_path())
        } else {
            payload
        }
    }

    /// Text that runs a payload when the shell computes it as a number.
    pub(super) fn computed(&mut self) -> String {
        let payload = self.payload();
        match self.random.below(5) {
            0 | 1 => format!("a[$({payload})]"),
            2 => format!("b[`{payload}`]"),
            3 => format!("$({payload})"),
            _ => format!("x[$({payload})0]+1"),
        }
    }

    /// A path that must not be read: outside, in the environment, or denied by a rule.
    pub(super) fn secret_path(&mut self) -> String {
        let path = self.random.pick(SECRET_PATHS);
        path.replace("ROOT", self.root).replace("PROJECT", self.project)
    }

    pub(super) fn file(&mut self) -> String {
        self.random.pick(FILES).to_string()
    }

    pub(super) fn option(&mut self) -> String {
        let (name, _) = self.random.pick(&PROGRAMS);
        self.option_of(name)
    }

    /// An option of a program: whole, shortened, joined with a value, or letters at random.
    pub(super) fn option_of(&mut self, program: &str) -> String {
        let known = PROGRAMS.iter().find(|(name, options)| *name == program && !options.is_empty());
        let option = match known {
            Some((_, options)) => (*self.random.pick(options)).to_owned(),
            None => "-n".to_owned(),
        };
        let value = match self.random.below(8) {
            0 => self.secret_path(),
            1 => self.file(),
            2 => "canary".to_owned(),
            3 => self.payload(),
            4 => format!("'{}'", self.payload()),
            _ => self.random.below(20).to_string(),
        };
        let character = |random: &mut Random| *random.pick(LETTERS);
        match self.random.below(10) {
            0 => format!("{option}={value}"),
            1 => format!("{option} {value}"),
            2 => format!("{option}{value}"),
            3 if option.len() > 5 => option[..option.len() - 1 - self.random.below(3)].to_owned(),
            4 if option.len() > 5 => {
                format!("{}={value}", &option[..option.len() - 1 - self.random.below(3)])
            }
            5 => format!("-{}{}", character(&mut self.random), character(&mut self.random)),
            6 => format!("-{}{value}", character(&mut self.random)),
            _ => option,
        }
    }

    fn git_option(&mut self) -> String {
        let option = self.option_of("git");
        let value = *self.random.pick(&[
            "HEAD",
            "core.pager=HOME",
            "alias.x=!touch canary",
            "evil",
            ".",
            "x=y",
        ]);
        if self.random.below(2) == 0 { option } else { format!("{option} {value}") }
    }

    pub(super) fn redirect(&mut self) -> String {
        let target = match self.random.below(6) {
            0 => self.secret_path(),
            1 => "canary".to_owned(),
            2 => self.file(),
            3 => "/dev/null".to_owned(),
            4 => "&1".to_owned(),
            _ => "&2".to_owned(),
        };
        let sign = *self.random.pick(&[
            ">", "<", "2>", "&>", ">>", "<>", ">|", ">&", "<&", "0<", "1>", "{x}>", "9>", "<<<",
        ]);
        let gap = *self.random.pick(&["", " "]);
        format!("{sign}{gap}{target}")
    }

    /// Any word for a place in a command.
    pub(super) fn word(&mut self, program: &str) -> String {
        match self.random.below(16) {
            0..3 => self.secret_path(),
            3..5 => self.file(),
            5..8 => self.option_of(program),
            8 => self.option(),
            9 => self.payload(),
            10 => format!("'{}'", self.payload()),
            11 => format!("$({})", self.payload()),
            12 => self.redirect(),
            13 => self.random.pick(VARIABLES).to_string(),
            14 => self.computed(),
            _ => self.random.pick(ODD).to_string(),
        }
    }
}
