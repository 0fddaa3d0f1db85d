//! Decides on each part of a command when no rule matches the whole command.
//!
//! Only commands in the literal grammar of `ostler-shell` are decided here. A part may run when a rule covers it, when
//! it only reads files that may be read, or when the mode is `acceptEdits` and it is one of a few simple changes.

use std::path::{Path, PathBuf};

use ostler_shell::{Judged, Look, Part, Redirect, Word};

use super::covers::covers_part;
use super::disk::OnDisk as _;
use super::matching::matches_place;
use super::path_forms::PathForms;
use super::policy::{ActiveRule, Policy};
use super::repository;
use super::rule::{Behavior, Rule};
use super::search_path::shadowed;
use super::shell::{Shell, holds};

/// The decision on one part.
#[derive(Clone, Debug)]
pub(crate) struct PartDecision {
    /// The part.
    pub(crate) what: String,
    pub(crate) is_allowed: bool,
    /// The reason, as text.
    pub(crate) why: String,
    /// The path that prevents it.
    pub(crate) path: Option<PathBuf>,
    /// The index of the part in the command.
    pub(crate) part: Option<usize>,
    /// Whether a rule for commands allows it.
    pub(crate) by_rule: bool,
}

/// Decides on everything that a command would do. It may run when all parts are allowed.
pub(crate) fn verdicts(policy: &Policy, shell: &Shell, accepts_edits: bool) -> Vec<PartDecision> {
    let cwd = shell.start.as_ref().map_or(policy.cwd.clone(), |start| start.written.clone());
    let unclear = |reason: String| {
        vec![verdict(
            "the command",
            Err(BlockReason::because(format!("it is not a plain list of commands: {reason}"))),
        )]
    };
    let list = match &shell.list {
        Ok(list) => list,
        Err(reason) => return unclear(reason.clone()),
    };
    let Some(folders) = shell.folders(list) else {
        return unclear("the folder that it changes to is unknown".to_owned());
    };
    let judge = CommandParts { policy, shell, list, accepts_edits, folders };
    let mut verdicts = Vec::new();
    if shell.start.is_some() {
        let what = format!("starting in `{}`", cwd.display());
        verdicts.push(verdict(
            what,
            judge
                .may_read_at(&PathForms::of(&cwd))
                .map(|_| "is inside the working directories".to_owned()),
        ));
    }
    verdicts.extend(judge.parts());
    verdicts.extend(list.redirects.iter().map(|redirect| judge.redirect(redirect)));
    verdicts
}

/// What a command would change, as text; `None` when it only reads.
pub(crate) fn change(shell: &Shell) -> Option<String> {
    let list = match &shell.list {
        Ok(list) => list,
        Err(reason) => return Some(format!("it is not a plain list of commands: {reason}")),
    };
    for part in &list.parts {
        if let Err(reason) = ostler_shell::look(part) {
            return Some(format!("{}: {reason}", part.source));
        }
    }
    let written = list.redirects.iter().find(|redirect| redirect.writes)?;
    Some(format!("it writes to {}", written.target.text))
}

/// Whether a command is in the literal grammar and these rules cover every part of it.
pub(crate) fn is_covered(shell: &Shell, rules: &[&Rule]) -> bool {
    let names = |part: &Part| {
        let mut contents = rules.iter().filter_map(|rule| rule.content.as_deref());
        contents.any(|content| covers_part(content, part))
    };
    let Ok(list) = &shell.list else { return false };
    let to_file = |redirect: &Redirect| redirect.target.as_literal() != Some("/dev/null");
    !list.parts.is_empty() && list.parts.iter().all(names) && !list.redirects.iter().any(to_file)
}

/// What a command would remove that no user wants to lose: the whole disk, or the home directory.
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
    // A word with a variable still has its quotes.
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

struct CommandParts<'a> {
    policy: &'a Policy,
    shell: &'a Shell,
    list: &'a Judged,
    accepts_edits: bool,
    /// The folders that the shell can be in before each part, and at the end.
    folders: Vec<Vec<PathBuf>>,
}

/// Why something is not allowed.
struct BlockReason {
    why: String,
    path: Option<PathBuf>,
}

impl BlockReason {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), path: None }
    }
}

fn verdict(what: impl Into<String>, judged: Result<String, BlockReason>) -> PartDecision {
    let (is_allowed, why, path) = match judged {
        Ok(why) => (true, why, None),
        Err(BlockReason { why, path }) => (false, why, path),
    };
    PartDecision { what: what.into(), is_allowed, why, path, part: None, by_rule: false }
}

impl CommandParts<'_> {
    /// A command whose parts are all harmless runs with a reduced environment. If a rule allows one of the parts, all
    /// parts get the whole environment, which then must not contain variables that change what they do.
    fn parts(&self) -> Vec<PartDecision> {
        let rules: Vec<_> = self.list.parts.iter().map(|part| self.rule_for(part)).collect();
        let risk = self.policy.environment.changes_programs.as_deref();
        let risk = risk.filter(|_| rules.iter().any(Option::is_some));
        let judged = self.list.parts.iter().zip(rules).enumerate().map(|(index, (part, rule))| {
            let judged = match (rule, risk) {
                (Some(kept), _) => Ok(format!("{} allows it", kept.title())),
                (None, Some(name)) if !ostler_shell::is_builtin(part.name()) => {
                    Err(BlockReason::because(format!(
                        "no rule allows it, and the variable {name} can change what it does"
                    )))
                }
                (None, _) => self.judge_part(index, part),
            };
            let verdict = verdict(format!("part `{}`", part.source), judged);
            PartDecision { part: Some(index), by_rule: rule.is_some(), ..verdict }
        });
        judged.collect()
    }

    /// The rule that allows a part.
    fn rule_for(&self, part: &Part) -> Option<&ActiveRule> {
        let mut rules =
            self.policy.rules_of(Behavior::Allow).filter(|kept| kept.rule.tool == "Bash");
        let covers =
            |content: Option<&str>| content.is_some_and(|content| covers_part(content, part));
        rules.find(|kept| covers(kept.rule.content.as_deref()))
    }

    fn judge_part(&self, index: usize, part: &Part) -> Result<String, BlockReason> {
        let folders = self.folders.get(index).map(Vec::as_slice).unwrap_or_default();
        let look = match ostler_shell::look(part) {
            Ok(look) => return self.looks(part, &look, folders),
            Err(reason) => reason,
        };
        match ostler_shell::change(part).filter(|_| self.accepts_edits) {
            Some(change) => {
                self.is_of_the_system(part)?;
                for word in &change.read {
                    self.may_read(word, folders)?;
                }
                for word in &change.written {
                    self.may_write(word, folders)?;
                    if change.whole_folders {
                        self.is_below(word, folders)?;
                        self.holds_nothing_protected(word, folders)?;
                    }
                }
                Ok("mode acceptEdits allows it inside the working directories".to_owned())
            }
            None => Err(BlockReason::because(format!("no rule allows it, and {look}"))),
        }
    }

    /// Whether a part that only reads may read its files.
    fn looks(&self, part: &Part, look: &Look, folders: &[PathBuf]) -> Result<String, BlockReason> {
        self.is_of_the_system(part)?;
        for word in &look.paths {
            let places = self.may_read(word, folders)?;
            let is_folder =
                |place: &PathForms| place.resolved.as_ref().is_none_or(|path| path.is_folder());
            if look.files_only && places.iter().any(is_folder) {
                return Err(BlockReason::because(format!("{} is a folder", word.text)));
            }
        }
        if is_git(part) {
            self.git(folders)?;
        }
        Ok("only reads".to_owned())
    }

    /// `git` starts programs that configuration names.
    fn git(&self, folders: &[PathBuf]) -> Result<(), BlockReason> {
        let is_trusted = |folder: &PathBuf| repository::is_trusted(self.policy, folder);
        if !self.policy.trusts_project && !folders.iter().all(is_trusted) {
            let why = "git starts programs that a repository names, and this folder is not trusted";
            return Err(BlockReason::because(why));
        }
        let makes_one = repository::could_be_made(self.list);
        let danger = || {
            let folders = folders.iter();
            folders.filter_map(|folder| repository::danger(self.policy, folder)).next()
        };
        makes_one.or_else(danger).map_or(Ok(()), |why| Err(BlockReason::because(why)))
    }

    /// A name without a folder must not start a program that the agent or the project put on the search path, or can
    /// put there before the start.
    fn is_of_the_system(&self, part: &Part) -> Result<(), BlockReason> {
        let folders: Vec<&Path> = self.policy.working_directories().collect();
        let search_path = self.policy.environment.search_path();
        match shadowed(part.name(), &folders, search_path, |folder| self.changes_in(folder)) {
            None => Ok(()),
            Some(path) => Err(BlockReason::because(format!(
                "{} would start {}, which the agent can change",
                part.name(),
                path.display()
            ))),
        }
    }

    /// Whether the command itself changes the contents of a folder.
    fn changes_in(&self, folder: &Path) -> bool {
        let changed = self.list.parts.iter().filter_map(ostler_shell::change);
        let written = self.list.redirects.iter().filter(|redirect| redirect.writes);
        let mut words = changed
            .flat_map(|change| change.written)
            .chain(written.map(|redirect| redirect.target.clone()));
        let real = folder.with_links_followed().ok();
        let folders = self.folders.concat();
        words.any(|word| match self.shell.places(&word, &folders) {
            Ok(places) => places.iter().flat_map(PathForms::forms).any(|path| {
                let mut names = std::iter::once(folder).chain(real.as_deref());
                names.any(|folder| path.starts_with(folder) || folder.starts_with(path))
            }),
            Err(_) => true,
        })
    }

    fn redirect(&self, Redirect { writes, target }: &Redirect) -> PartDecision {
        let what =
            format!("{} `{}`", if *writes { "writing to" } else { "reading from" }, target.text);
        // Its part may be anywhere in the list.
        let folders = self.folders.concat();
        // No mode allows it: `acceptEdits` covers the file tools and a few commands by name, not files that the shell
        // writes for other commands.
        let by_rules_alone = Self { accepts_edits: false, folders: Vec::new(), ..*self };
        let judged = match *writes {
            true => by_rules_alone.may_write(target, &folders),
            false => self.may_read_by_rule(target, &folders),
        };
        verdict(what, judged)
    }

    /// The grammar of harmless commands has no files in redirections: the shell itself opens them, so a rule must allow
    /// it.
    fn may_read_by_rule(&self, word: &Word, folders: &[PathBuf]) -> Result<String, BlockReason> {
        let places = self.may_read(word, folders)?;
        if places.iter().all(|place| self.read_rule(place).is_some()) {
            return Ok("a rule allows reading it".to_owned());
        }
        Err(BlockReason::because("no rule allows it; pass the file's name to the program instead"))
    }

    fn may_read(&self, word: &Word, folders: &[PathBuf]) -> Result<Vec<PathForms>, BlockReason> {
        let places = self.shell.places(word, folders).map_err(BlockReason::because)?;
        for place in &places {
            self.may_read_at(place)?;
        }
        Ok(places)
    }

    /// The rule that allows reading a path.
    fn read_rule(&self, place: &PathForms) -> Option<&ActiveRule> {
        let mut rules =
            self.policy.rules_of(Behavior::Allow).filter(|kept| kept.rule.tool == "Read");
        rules.find(|kept| matches_place(self.policy, &kept.rule, false, kept.source, place))
    }

    fn may_read_at(&self, place: &PathForms) -> Result<(), BlockReason> {
        let inside = self.policy.working_directories().any(|folder| place.is_inside(folder));
        if inside || self.read_rule(place).is_some() || self.policy.is_put_aside(place) {
            return Ok(());
        }
        Err(BlockReason {
            why: format!("{} is outside the working directories", place.written.display()),
            path: Some(place.written.clone()),
        })
    }

    fn may_write(&self, word: &Word, folders: &[PathBuf]) -> Result<String, BlockReason> {
        let mut why = String::new();
        for place in self.shell.places(word, folders).map_err(BlockReason::because)? {
            why = self.may_write_at(word, &place)?;
        }
        Ok(why)
    }

    fn may_write_at(&self, word: &Word, place: &PathForms) -> Result<String, BlockReason> {
        let protected = place.protected(self.policy.home.as_deref());
        let mut rules =
            self.policy.rules_of(Behavior::Allow).filter(|kept| kept.rule.tool == "Edit");
        let rule = rules.find(|kept| {
            let names = |name: &str| {
                kept.rule.content.as_deref().is_some_and(|content| content.contains(name))
            };
            protected.is_none_or(names)
                && matches_place(self.policy, &kept.rule, false, kept.source, place)
        });
        if let Some(kept) = rule {
            return Ok(format!("{} allows it", kept.title()));
        }
        let inside = self.policy.working_directories().any(|folder| place.is_inside(folder));
        let blocked = |why: String| Err(BlockReason { why, path: Some(place.written.clone()) });
        match protected {
            Some(name) => {
                blocked(format!("{name} affects what runs later; changing it requires approval"))
            }
            None if !inside => blocked(format!("{} is outside the working directories", word.text)),
            None if !self.accepts_edits => blocked(format!("it changes {}", word.text)),
            None => Ok("mode acceptEdits allows it inside the working directories".to_owned()),
        }
    }

    /// A folder that contains protected files is not moved or removed without approval.
    fn holds_nothing_protected(&self, word: &Word, folders: &[PathBuf]) -> Result<(), BlockReason> {
        let home = self.policy.home.as_deref();
        let places = self.shell.places(word, folders).map_err(BlockReason::because)?;
        for place in &places {
            let why = match holds(place, |inside| inside.protected(home).is_some()) {
                Some(false) => continue,
                Some(true) => "contains files that affect what runs later",
                None => "contains too many files to check for protected ones",
            };
            let path = Some(place.written.clone());
            return Err(BlockReason { why: format!("{} {why}", word.text), path });
        }
        Ok(())
    }

    /// A working directory itself is not moved or removed without approval.
    fn is_below(&self, word: &Word, folders: &[PathBuf]) -> Result<(), BlockReason> {
        let places = self.shell.places(word, folders).map_err(BlockReason::because)?;
        let real = |folder: &Path| folder.with_links_followed().ok();
        let is_one = |place: &PathForms| {
            self.policy.working_directories().any(|folder| place.resolved == real(folder))
        };
        if places.iter().any(is_one) {
            return Err(BlockReason::because("it affects a whole working directory"));
        }
        Ok(())
    }
}
