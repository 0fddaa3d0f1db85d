//! What is to be thought of each part of a command when no rule speaks of it as a whole.

use std::path::PathBuf;

use ostler_shell::{Assignment, Part, Redirect, Word};

use super::decide::guards_reads;
use super::matching::matches_place;
use super::place::Place;
use super::policy::{KeptRule, Policy};
use super::repository;
use super::rule::{Behavior, Rule};
use super::shell::{Shell, Touched, allows_part};

/// What is to be thought of one part.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// The part.
    pub(crate) what: String,
    pub(crate) is_allowed: bool,
    /// In words.
    pub(crate) why: String,
    /// The path that stands in the way.
    pub(crate) path: Option<PathBuf>,
}

/// Judges everything a command would do. It may run when all verdicts allow it.
pub(crate) fn verdicts(policy: &Policy, shell: &Shell, accepts_edits: bool) -> Vec<Verdict> {
    let judge = Parts { policy, shell, accepts_edits };
    let judged = &shell.judged;
    let mut verdicts: Vec<_> = shell.start.iter().map(|start| judge.start(start)).collect();
    verdicts.extend(judged.parts.iter().map(|part| judge.part(part)));
    verdicts.extend(judged.redirects.iter().map(|redirect| judge.redirect(redirect)));
    verdicts.extend(judged.assignments.iter().map(|assignment| judge.assignment(assignment)));
    if let Some(reason) = &shell.unclear {
        verdicts.push(verdict(
            "the command",
            Err(Blocked::because(format!("it cannot be told what it does: {reason}"))),
        ));
    }
    // Where something else stands in the way, that is the better reason.
    if verdicts.iter().all(|verdict| verdict.is_allowed)
        && judged.parts.iter().any(|part| is_git(part) && judge.rule_for(part).is_none())
        && let Some(reason) = repository::could_be_made(judged)
    {
        verdicts.push(verdict("the command", Err(Blocked::because(reason))));
    }
    verdicts
}

/// What a command would change; `None` when it only looks.
pub(crate) fn change(policy: &Policy, shell: &Shell) -> Option<String> {
    let bare = Policy::new(policy.cwd.clone(), policy.mode.clone());
    let judge = Parts { policy: &bare, shell, accepts_edits: false };
    if let Some(reason) = &shell.unclear {
        return Some(format!("it cannot be told what the command does: {reason}"));
    }
    let acts = |part: &&Part| !part.only_starts && !ostler_shell::is_harmless(part);
    if let Some(part) = shell.judged.parts.iter().find(acts) {
        return Some(format!("{} does more than look", part.source));
    }
    let mut others = shell
        .judged
        .redirects
        .iter()
        .filter(|redirect| redirect.writes)
        .map(|redirect| judge.redirect(redirect));
    let refused = others.find(|verdict| !verdict.is_allowed);
    let assigned = shell.judged.assignments.iter().map(|assignment| judge.assignment(assignment));
    refused
        .or_else(|| assigned.into_iter().find(|verdict| !verdict.is_allowed))
        .map(|verdict| verdict.why)
}

/// Whether every part of a command is one that these rules name, and nothing about it is unclear.
pub(crate) fn is_covered(shell: &Shell, rules: &[&Rule]) -> bool {
    let names = |part: &Part| {
        let mut contents = rules.iter().filter_map(|rule| rule.content.as_deref());
        contents.any(|content| allows_part(content, part))
    };
    let judged = &shell.judged;
    let writes = judged
        .redirects
        .iter()
        .any(|redirect| redirect.writes && redirect.target.as_literal() != Some("/dev/null"));
    let is_plain = shell.unclear.is_none() && !writes && judged.assignments.is_empty();
    is_plain && !judged.parts.is_empty() && judged.parts.iter().all(names)
}

/// What a command would remove that nobody means to remove: the whole disk, or the home directory.
pub(crate) fn destroys(policy: &Policy, shell: &Shell) -> Option<String> {
    let is_rm = |part: &&Part| part.name().rsplit('/').next() == Some("rm");
    let mut parts = shell.judged.parts.iter().filter(is_rm);
    let part = parts.find(|part| {
        let mut words = part.argv.iter().skip(1).map(|word| word.text.as_str());
        let is_recursive = words.clone().any(|word| match word.strip_prefix("--") {
            Some(option) => option == "recursive",
            None => word.starts_with('-') && word.contains(['r', 'R']),
        });
        is_recursive && words.any(|word| is_everything(policy, word))
    })?;
    Some(format!("{} removes everything", part.source))
}

fn is_everything(policy: &Policy, word: &str) -> bool {
    // A word that holds a variable is kept as it is written, quotes and all.
    let word = word.replace('"', "");
    let word = word.strip_suffix('*').unwrap_or(&word);
    let word = match word.trim_end_matches('/') {
        "" => return word.starts_with('/'),
        word => word,
    };
    let is_home = |home: &PathBuf| home.as_os_str() == word;
    matches!(word, "~" | "$HOME" | "${HOME}") || policy.home.as_ref().is_some_and(is_home)
}

fn is_git(part: &Part) -> bool {
    part.name().rsplit('/').next() == Some("git")
}

struct Parts<'a> {
    policy: &'a Policy,
    shell: &'a Shell,
    accepts_edits: bool,
}

/// Why something is not allowed.
struct Blocked {
    why: String,
    path: Option<PathBuf>,
}

impl Blocked {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), path: None }
    }
}

fn verdict(what: impl Into<String>, judged: Result<String, Blocked>) -> Verdict {
    let what = what.into();
    match judged {
        Ok(why) => Verdict { what, is_allowed: true, why, path: None },
        Err(Blocked { why, path }) => Verdict { what, is_allowed: false, why, path },
    }
}

impl Parts<'_> {
    /// A command without any path still looks around where it starts.
    fn start(&self, start: &Place) -> Verdict {
        let text = start.written.display().to_string();
        let folder = Word { text, kind: ostler_shell::WordKind::Literal };
        verdict(format!("starting in `{}`", folder.text), self.may_read_at(&folder, start.clone()))
    }

    fn part(&self, part: &Part) -> Verdict {
        verdict(format!("part `{}`", part.source), self.judge_part(part))
    }

    /// The rule that allows a part.
    fn rule_for(&self, part: &Part) -> Option<&KeptRule> {
        let mut rules =
            self.policy.rules_of(Behavior::Allow).filter(|kept| kept.rule.tool == "Bash");
        let covers =
            |content: Option<&str>| content.is_some_and(|content| allows_part(content, part));
        rules.find(|kept| covers(kept.rule.content.as_deref()))
    }

    fn judge_part(&self, part: &Part) -> Result<String, Blocked> {
        if let Some(kept) = self.rule_for(part) {
            return Ok(format!("{} allows it", kept.title()));
        }
        if part.only_starts {
            return Ok("only starts what comes next".to_owned());
        }
        if let Some(look) = ostler_shell::look(part) {
            if guards_reads(self.policy)
                && (look.searches
                    || look.paths.iter().any(|word| word.kind == ostler_shell::WordKind::Glob))
            {
                return Err(Blocked::because(
                    "it may show files that a rule keeps from being read",
                ));
            }
            for word in &look.paths {
                self.may_read_at(word, known(self.shell.place_for(part, word))?)?;
            }
            if is_git(part)
                && let Some(danger) = self.shell.repository_danger()
            {
                return Err(Blocked::because(danger));
            }
            return Ok("only looks".to_owned());
        }
        if let Some(change) = ostler_shell::change(part).filter(|_| self.accepts_edits) {
            for word in &change.read {
                self.may_read(word)?;
            }
            for word in &change.written {
                self.may_write(word)?;
                if change.whole_folders {
                    self.is_below(word)?;
                }
            }
            return Ok("mode acceptEdits allows it inside the working directories".to_owned());
        }
        let unsafe_variable =
            part.assignments.iter().find(|assignment| !assignment.is_safe_for_programs());
        Err(Blocked::because(match unsafe_variable {
            Some(assignment) => format!("no rule allows it with the variable {}", assignment.name),
            None => "no rule allows it".to_owned(),
        }))
    }

    fn redirect(&self, Redirect { writes, target }: &Redirect) -> Verdict {
        let what =
            format!("{} `{}`", if *writes { "writing to" } else { "reading from" }, target.text);
        let is_nowhere = matches!(
            target.as_literal(),
            Some("/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin")
        );
        if is_nowhere {
            return verdict(what, Ok("touches no file".to_owned()));
        }
        let judged = if *writes { self.may_write(target) } else { self.may_read(target) };
        verdict(what, judged)
    }

    fn assignment(&self, assignment: &Assignment) -> Verdict {
        let what = format!("variable `{}`", assignment.name);
        let judged = match assignment.is_risky() {
            true => Err(Blocked::because("it can change what programs do")),
            false => Ok("does no harm".to_owned()),
        };
        verdict(what, judged)
    }

    fn may_read(&self, word: &Word) -> Result<String, Blocked> {
        self.may_read_at(word, self.place(word)?)
    }

    fn may_read_at(&self, word: &Word, place: Place) -> Result<String, Blocked> {
        let inside = self.policy.working_directories().any(|folder| place.is_inside(folder));
        let mut rules =
            self.policy.rules_of(Behavior::Allow).filter(|kept| kept.rule.tool == "Read");
        let rule =
            rules.find(|kept| matches_place(self.policy, &kept.rule, false, kept.source, &place));
        match rule {
            Some(kept) => Ok(format!("{} allows it", kept.title())),
            None if inside => Ok("is inside the working directories".to_owned()),
            None if self.policy.is_put_aside(&place) => {
                Ok("is in the session's own folder".to_owned())
            }
            None => Err(Blocked {
                why: format!("{} is outside the working directories", word.text),
                path: Some(place.written),
            }),
        }
    }

    fn may_write(&self, word: &Word) -> Result<String, Blocked> {
        let place = self.place(word)?;
        let protected = place.protected(self.policy.home.as_deref());
        let mut rules =
            self.policy.rules_of(Behavior::Allow).filter(|kept| kept.rule.tool == "Edit");
        let rule = rules.find(|kept| {
            let names = |name: &str| {
                kept.rule.content.as_deref().is_some_and(|content| content.contains(name))
            };
            protected.is_none_or(names)
                && matches_place(self.policy, &kept.rule, false, kept.source, &place)
        });
        if let Some(kept) = rule {
            return Ok(format!("{} allows it", kept.title()));
        }
        let inside = self.policy.working_directories().any(|folder| place.is_inside(folder));
        let blocked = |why: String| Err(Blocked { why, path: Some(place.written.clone()) });
        match protected {
            Some(name) => {
                blocked(format!("{name} decides about what runs later; it is not changed unasked"))
            }
            None if !inside => blocked(format!("{} is outside the working directories", word.text)),
            None if !self.accepts_edits => blocked(format!("it changes {}", word.text)),
            None => Ok("mode acceptEdits allows it inside the working directories".to_owned()),
        }
    }

    /// A working directory itself does not go away or elsewhere unasked.
    fn is_below(&self, word: &Word) -> Result<(), Blocked> {
        let place = self.place(word)?;
        let real = |folder: &std::path::Path| folder.canonicalize().ok();
        let is_one = self.policy.working_directories().any(|folder| place.resolved == real(folder));
        if is_one { Err(Blocked::because("it is about a whole working directory")) } else { Ok(()) }
    }

    fn place(&self, word: &Word) -> Result<Place, Blocked> {
        known(self.shell.place(word))
    }
}

fn known(touched: Touched) -> Result<Place, Blocked> {
    match touched {
        Touched::Place(place) => Ok(place),
        Touched::Unknown(text) => {
            Err(Blocked::because(format!("where {text} leads cannot be told beforehand")))
        }
    }
}
