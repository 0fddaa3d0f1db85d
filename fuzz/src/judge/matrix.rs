//! Program × option × form of a path: nothing outside of the project and nothing denied is read without approval,
//! however it is written; the plain file inside is. What is allowed is run, too.

use std::collections::BTreeSet;
use std::{fs, thread};

use anyhow::Result;

use super::ask::Setting;
use super::pieces::PROGRAMS;
use super::worker::Worker;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leads {
    /// Outside of the project, to the environment or to a device: never.
    Outside,
    /// To a file that a rule denies: not with that rule.
    Denied,
    /// To a file of the project.
    Inside,
}

const PATHS: &[(Leads, &str)] = &[
    (Leads::Inside, "README.md"),
    (Leads::Inside, "./README.md"),
    (Leads::Inside, "'README.md'"),
    (Leads::Outside, "../outside/secret.txt"),
    (Leads::Outside, "ROOT/outside/secret.txt"),
    (Leads::Outside, "/ROOT/outside/secret.txt"),
    (Leads::Outside, "~/.ssh/id_rsa"),
    (Leads::Outside, "link"),
    (Leads::Outside, "./link"),
    (Leads::Outside, "\"link\""),
    (Leads::Outside, "'link'"),
    (Leads::Outside, "-- link"),
    (Leads::Outside, "l?nk"),
    (Leads::Outside, "lin*"),
    (Leads::Outside, "*"),
    (Leads::Outside, "./*"),
    (Leads::Outside, "linkdir/secret.txt"),
    (Leads::Outside, "linkdir/*"),
    (Leads::Outside, "up/outside/secret.txt"),
    (Leads::Outside, "self/link"),
    (Leads::Outside, "self/../../outside/secret.txt"),
    (Leads::Outside, "d2/same"),
    (Leads::Outside, "nothing/../../outside/secret.txt"),
    (Leads::Outside, "inlink/../../../outside/secret.txt"),
    (Leads::Outside, "a=/ROOT/outside/secret.txt"),
    (Leads::Outside, "a=~/.ssh/id_rsa"),
    (Leads::Outside, "/proc/self/cwd/link"),
    (Leads::Outside, "/proc/self/cwd/../outside/secret.txt"),
    (Leads::Outside, "/proc/self/root/ROOT/outside/secret.txt"),
    (Leads::Outside, "/proc/self/environ"),
    (Leads::Outside, "/proc/thread-self/environ"),
    (Leads::Outside, "environ"),
    (Leads::Outside, "/dev/urandom"),
    (Leads::Denied, ".env"),
    (Leads::Denied, "./.env"),
    (Leads::Denied, ".//.env"),
    (Leads::Denied, "\".env\""),
    (Leads::Denied, ".e''nv"),
    (Leads::Denied, ".e*"),
    (Leads::Denied, ".en?"),
    (Leads::Denied, "-- .env"),
    (Leads::Denied, "src/../.env"),
    (Leads::Denied, "envlink"),
    (Leads::Denied, "self/.env"),
    (Leads::Denied, "conf/.env"),
    (Leads::Denied, "ROOT/plain/.env"),
    (Leads::Denied, "/proc/self/cwd/.env"),
];

/// Operands that may be odd file names. Whatever the decision, they must do no harm.
const ODD: &[&str] =
    &["-rf", "./-rf", "@f", "?f", "--files0-from=f0", "-- -flink", "new*", "'$(touch canary)'"];

/// Values for options that take one: in the position of a value a path may be just text, so running decides.
const VALUES: &[&str] = &["link", ".env", "canary", "f0"];

/// Programs whose operands are not files, or that only check whether a file exists.
const TEXT: &[&str] = &[
    "echo", "true", "false", "pwd", "whoami", "uname", "sleep", "basename", "dirname", "seq",
    "nproc", "arch", "groups", "id", "which", "type", "tr", "expr", "uptime", "date", "hostname",
    "printf", "read", "cd", "env", "printenv", "tty", "numfmt", "factor", "locale", "getconf",
    "ps", "free", "lsblk", "lscpu", "users", "who", "pathchk", "cal", "xargs", "mktemp", "look",
];

/// Must run without approval on the plain file.
const READERS: &[&str] = &[
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "stat",
    "sort",
    "grep",
    "diff",
    "file",
    "find",
    "cut",
    "sha256sum",
    "rg",
    "jq",
];

/// Tries every combination, or those with one of `every` options of each program, and says what went wrong.
pub(super) fn matrix(every: usize) -> Result<bool> {
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    let mut total = Tally::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|index| scope.spawn(move || Matrix::new(index, every)?.programs(index, n_threads)))
            .collect();
        for thread in threads {
            let tally = thread.join().expect("a worker does not panic")?;
            total.n_judged += tally.n_judged;
            total.run.extend(tally.run);
            total.wrong.extend(tally.wrong);
        }
        anyhow::Ok(())
    })?;
    for wrong in &total.wrong {
        println!("{wrong}");
    }
    println!(
        "matrix: {} programs with one of {every} options, {} commands judged, {} allowed and run, {} wrong",
        PROGRAMS.len(),
        total.n_judged,
        total.run.len(),
        total.wrong.len()
    );
    Ok(total.wrong.is_empty())
}

#[derive(Default)]
struct Tally {
    n_judged: usize,
    wrong: BTreeSet<String>,
    run: BTreeSet<String>,
}

struct Matrix {
    worker: Worker,
    /// One of so many options is tried.
    every: usize,
    tally: Tally,
}

impl Matrix {
    fn new(index: usize, every: usize) -> Result<Self> {
        Ok(Self { worker: Worker::new(index)?, every, tally: Tally::default() })
    }

    /// Every so many of the programs.
    fn programs(mut self, index: usize, n_threads: usize) -> Result<Tally> {
        for (program, options) in PROGRAMS.iter().skip(index).step_by(n_threads) {
            self.program(program, options)?;
        }
        if index == 0 {
            self.unlisted()?;
        }
        Ok(self.tally)
    }

    fn program(&mut self, program: &str, options: &[&str]) -> Result<()> {
        let is_known = self.operands(program, "")?;
        if READERS.contains(&program) && !is_known {
            self.tally.wrong.insert(format!("asked: {}", command(program, "", "README.md")));
        }
        let forms = forms(options);
        for option in forms.iter().skip(offset(program, self.every)).step_by(self.every) {
            self.operands(program, option)?;
            // What is refused with a plain file is hardly allowed with a value that is one.
            let values = if is_known { VALUES } else { &[] };
            for value in values {
                for joined in [
                    format!("{option}={value}"),
                    format!("{option} {value}"),
                    format!("{option}{value}"),
                ] {
                    self.judge(&command(program, &joined, "README.md"), None)?;
                }
            }
        }
        Ok(())
    }

    /// Judges an option with every form of a path; says whether the plain file is allowed.
    fn operands(&mut self, program: &str, option: &str) -> Result<bool> {
        let allows_plain =
            self.judge(&command(program, option, "README.md"), Some(Leads::Inside))?;
        for (at, (leads, path)) in PATHS.iter().enumerate() {
            // What is refused with the plain file is hardly allowed with another: a few of them will do.
            if !allows_plain && at % 11 != 5 {
                continue;
            }
            let is_file = !TEXT.contains(&program) && !program.starts_with("git");
            let leads = if is_file || shows_contents(program) { *leads } else { Leads::Inside };
            self.judge(&command(program, option, path), Some(leads))?;
        }
        if allows_plain {
            for path in ODD {
                self.judge(&command(program, option, path), None)?;
            }
        }
        Ok(allows_plain)
    }

    /// Judges a command, runs it if it is allowed, and compares with what must be.
    fn judge(&mut self, command: &str, leads: Option<Leads>) -> Result<bool> {
        let (name, judge) = &self.worker.judges[0];
        let command = command.replace("ROOT", &self.worker.runner.world.root.display().to_string());
        self.tally.n_judged += 1;
        let settings = if judge.allows(&command) { judge.allowing(&command) } else { Vec::new() };
        let is_wrong = |setting: &Setting| match leads {
            Some(Leads::Outside) => true,
            Some(Leads::Denied) => setting.denies,
            Some(Leads::Inside) | None => false,
        };
        if settings.iter().any(is_wrong) {
            self.tally.wrong.insert(format!("allowed: {command}"));
        }
        // A file that no rule denies may be shown.
        let may_harm =
            settings.iter().any(|setting| leads != Some(Leads::Denied) || setting.denies);
        if may_harm && self.tally.run.insert(command.clone()) {
            let harm = self.worker.runner.run(name, &command, &settings)?;
            if !harm.is_empty() {
                self.tally.wrong.insert(format!("harmful: {command}: {}", harm.join(", ")));
            }
        }
        Ok(!settings.is_empty())
    }

    /// Programs that the judge allows must be among those that are tried here.
    fn unlisted(&mut self) -> Result<()> {
        let mut names: BTreeSet<String> = BUILTINS.iter().map(|name| (*name).to_owned()).collect();
        for folder in ["/usr/bin", "/bin"] {
            for entry in fs::read_dir(folder)? {
                names.extend(entry?.file_name().into_string());
            }
        }
        let judge = &self.worker.judges[0].1;
        let is_listed = |name: &str| PROGRAMS.iter().any(|(program, _)| *program == name);
        for name in names.iter().filter(|name| !is_listed(name)) {
            let commands =
                [name.clone(), format!("{name} README.md"), format!("{name} x README.md")];
            if commands.iter().any(|command| !judge.allowing(command).is_empty()) {
                self.tally.wrong.insert(format!(
                    "not tried: {name} is allowed, but has no line in judge/options.txt"
                ));
            }
        }
        Ok(())
    }
}

/// All forms of a program's options.
fn forms(options: &[&str]) -> BTreeSet<String> {
    let mut forms: BTreeSet<String> = options.iter().map(|option| (*option).to_owned()).collect();
    forms.extend(('a'..='z').chain('A'..='Z').map(|character| format!("-{character}")));
    // The program finds out what a shortened long option means.
    let long = options.iter().filter(|option| option.starts_with("--") && option.len() > 4);
    forms.extend(long.map(|option| option[..option.len() - 1].to_owned()));
    forms
}

/// Where a program's sample begins: elsewhere for another program, so that every option is tried with some of them, and
/// always at the same place, so that a finding is found again.
fn offset(program: &str, every: usize) -> usize {
    program.bytes().map(usize::from).sum::<usize>() % every
}

/// Whether a git command prints what is in files.
fn shows_contents(program: &str) -> bool {
    matches!(program, "git diff" | "git show" | "git blame" | "git grep" | "git annotate")
}

/// A command in which the path is a file to be read. It is there twice after an option, which may take the first one
/// for its value.
fn command(program: &str, option: &str, path: &str) -> String {
    let takes_two = matches!(program, "diff" | "cmp" | "comm" | "join" | "uniq" | "find" | "test");
    let path = match option.starts_with('-') && !takes_two {
        true => format!("{path} {path}"),
        false => path.to_owned(),
    };
    let text = match program {
        "grep" | "egrep" | "fgrep" | "rg" | "jq" | "zgrep" | "look" | "git grep" => {
            format!("{program} {option} . {path}")
        }
        "sed" => format!("sed -n {option} 1p {path}"),
        "awk" => format!("awk {option} 1 {path}"),
        "find" => format!("find {path} {option}"),
        "test" => format!("test {option} -f {path}"),
        "cut" => format!("cut -c1-50 {option} {path}"),
        "diff" | "cmp" | "comm" | "join" => format!("{program} {option} README.md {path}"),
        "date" => format!("date {option} -r {path}"),
        _ => format!("{program} {option} {path}"),
    };
    text.replace("  ", " ")
}

/// Commands of the shell itself.
const BUILTINS: &[&str] = &[
    ".",
    ":",
    "[",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{PROGRAMS, forms, offset};

    // Mutant: `offset` that is always 0.
    #[test]
    fn a_sample_tries_every_short_option_with_many_programs() {
        const EVERY: usize = 6;
        let sample = |(program, options): &(&str, Vec<&str>)| {
            let forms = forms(options).into_iter();
            forms.skip(offset(program, EVERY)).step_by(EVERY).collect::<BTreeSet<_>>()
        };
        let samples: Vec<_> = PROGRAMS.iter().map(sample).collect();
        for character in ('a'..='z').chain('A'..='Z') {
            let option = format!("-{character}");
            let n_tried = samples.iter().filter(|sample| sample.contains(&option)).count();
            assert!(n_tried > PROGRAMS.len() / EVERY / 2, "{option} with {n_tried} programs");
        }
    }
}
