//! Commands: what each part of one would do, and which rules speak of it.

use std::path::{Path, PathBuf};

use ostler_shell::{Judged, Part, Redirect, Word, WordKind};

use super::Policy;
use super::matching::Match;
use super::place::Place;
use super::repository;

/// A command taken apart.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) command: String,
    pub(crate) judged: Judged,
    /// Why it cannot be told what the command does.
    pub(crate) unclear: Option<String>,
    /// The folder it starts in, where that is not the working directory.
    pub(crate) start: Option<Place>,
    cwd: PathBuf,
    home: Option<PathBuf>,
}

/// A file that a command touches.
#[derive(Debug)]
pub(crate) enum Touched {
    /// This one.
    Place(Place),
    /// One that cannot be told; how it is written.
    Unknown(String),
}

impl Shell {
    pub(crate) fn new(policy: &Policy, command: &str) -> Self {
        let (judged, unclear) = match ostler_shell::parts(command) {
            Ok(judged) => (judged, None),
            Err(unclear) => (unclear.found, Some(unclear.reason)),
        };
        let (cwd, home) = (policy.cwd.clone(), policy.home.clone());
        Self { command: command.trim().to_owned(), judged, unclear, start: None, cwd, home }
    }

    /// A command that starts in a folder to which an earlier one has led.
    pub(crate) fn starting_in(policy: &Policy, folder: &Path, command: &str) -> Self {
        let start = Some(Place::of(folder));
        Self { start, cwd: folder.to_owned(), ..Self::new(policy, command) }
    }

    /// Whether it starts where looking around is free. A rule for a command means it there, not anywhere on the disk.
    pub(crate) fn starts_inside(&self, policy: &Policy) -> bool {
        self.start
            .as_ref()
            .is_none_or(|start| policy.working_directories().any(|folder| start.is_inside(folder)))
    }

    /// Whether a rule's content is this very command.
    pub(crate) fn is_exactly(&self, content: &str) -> bool {
        self.command == content.trim()
    }

    /// Whether a rule that narrows speaks of any part.
    pub(crate) fn any_part_matches(&self, content: &str) -> Match {
        if self.is_exactly(content) {
            return Match::Yes;
        }
        let mut maybe = self
            .unclear
            .as_ref()
            .map(|reason| format!("it cannot be told what the command does: {reason}"));
        for part in &self.judged.parts {
            match narrows_part(content, part) {
                Match::Yes => return Match::Yes,
                Match::Maybe(reason) => maybe = Some(reason),
                Match::No => {}
            }
        }
        maybe.map_or(Match::No, Match::Maybe)
    }

    /// Whether any file that the command is known to touch is one of those looked for.
    pub(crate) fn touches(&self, is_meant: impl Fn(&Place, bool) -> bool) -> Match {
        let mut found = Match::No;
        let mut see = |word: &Word, writes: bool| {
            // After a change of directory both meanings count.
            if let Touched::Place(place) = self.place_in(word, &self.cwd)
                && is_meant(&place, writes)
            {
                found = Match::Yes;
            }
            for folder in self.other_folders() {
                if let Touched::Place(place) = self.place_in(word, &folder)
                    && is_meant(&place, writes)
                {
                    found = Match::Yes;
                }
            }
        };
        for Redirect { writes, target } in &self.judged.redirects {
            see(target, *writes);
        }
        for part in &self.judged.parts {
            if let Some(look) = ostler_shell::look(part) {
                look.paths.iter().for_each(|word| see(word, false));
            }
            if let Some(change) = ostler_shell::change(part) {
                change.written.iter().for_each(|word| see(word, true));
                change.read.iter().for_each(|word| see(word, false));
            } else if !part.only_starts && !ostler_shell::is_harmless(part) {
                // What becomes of a file that any other command is given cannot be told; that it is read can.
                part.argv.iter().skip(1).for_each(|word| see(word, may_write(part)));
                part.argv.iter().skip(1).for_each(|word| see(word, false));
            }
        }
        found
    }

    /// Why looking at a repository may run a program.
    pub(crate) fn repository_danger(&self) -> Option<String> {
        let others = self.other_folders();
        let mut folders: Vec<&Path> = others.iter().map(PathBuf::as_path).collect();
        folders.push(&self.cwd);
        repository::danger(&folders)
    }

    fn other_folders(&self) -> Vec<PathBuf> {
        let is_cd = |part: &&Part| matches!(part.name(), "cd" | "pushd");
        let targets = self.judged.parts.iter().filter(is_cd).filter_map(|part| part.argv.get(1));
        targets.map(|word| self.cwd.join(&word.text)).collect()
    }

    /// The file a word of a part stands for. Relative words mean nothing certain once the directory changes, but
    /// where the first `cd` leads.
    pub(crate) fn place_for(&self, part: &Part, word: &Word) -> Touched {
        let is_first_cd = part.name() == "cd"
            && self.judged.parts.first().is_some_and(|first| std::ptr::eq(first, part));
        if is_first_cd { self.place_in(word, &self.cwd) } else { self.place(word) }
    }

    /// The file a word stands for.
    pub(crate) fn place(&self, word: &Word) -> Touched {
        let is_relative = !word.text.starts_with(['/', '~']);
        if is_relative && self.judged.changes_directory() {
            return Touched::Unknown(word.text.clone());
        }
        self.place_in(word, &self.cwd)
    }

    fn place_in(&self, word: &Word, cwd: &Path) -> Touched {
        let unknown = || Touched::Unknown(word.text.clone());
        match word.kind {
            WordKind::Unknown => unknown(),
            WordKind::Literal => Touched::Place(Place::of(&cwd.join(&word.text))),
            WordKind::Tilde => match (word.text.strip_prefix('~'), &self.home) {
                (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                    Touched::Place(Place::of(&home.join(rest.trim_start_matches('/'))))
                }
                _ => unknown(),
            },
            // A pattern in the last part of a path stays in its folder; further up it may pass through links.
            WordKind::Glob => {
                let (folder, last) = word.text.rsplit_once('/').unwrap_or(("", &word.text));
                let is_plain = !folder.contains(['*', '?', '[', '{', '~'])
                    && !last.contains("..")
                    && !last.contains('{');
                let folder =
                    if folder.is_empty() && word.text.starts_with('/') { "/" } else { folder };
                let folder = cwd.join(folder);
                if is_plain && !has_link(&folder, last) {
                    Touched::Place(Place::of(&folder.join(last)))
                } else {
                    unknown()
                }
            }
        }
    }
}

/// Whether a command is known for changing the files it is given.
fn may_write(part: &Part) -> bool {
    let name = part.name().rsplit('/').next().unwrap_or_default();
    let in_place = |word: &Word| word.text.starts_with("-i") || word.text.starts_with("--in-place");
    match name {
        "sed" | "perl" | "ruby" => part.argv.iter().any(in_place),
        "tee" | "truncate" | "shred" | "unlink" | "ln" | "install" | "chmod" | "chown" | "cp"
        | "mv" | "rm" | "rmdir" | "touch" | "mkdir" | "patch" => true,
        _ => false,
    }
}

/// Whether a folder holds a link that a pattern for names may stand for: it may lead anywhere.
fn has_link(folder: &Path, pattern: &str) -> bool {
    let beginning = pattern.split(['*', '?', '[', '\\']).next().unwrap_or_default();
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| {
        entry.file_name().to_string_lossy().starts_with(beginning)
            && entry.file_type().is_ok_and(|kind| kind.is_symlink())
    })
}

/// Whether a rule that allows covers a part.
pub(crate) fn allows_part(content: &str, part: &Part) -> bool {
    if part.source.trim() == content.trim() {
        return true;
    }
    if !part.has_safe_environment() {
        return false;
    }
    let argv: Vec<_> = part.argv.iter().map(Word::as_literal).collect();
    match prefix_of(content) {
        Some(prefix) => {
            let words = ostler_shell::words(prefix).unwrap_or_else(|| split(prefix));
            !words.is_empty()
                && argv.len() >= words.len()
                && words.iter().zip(&argv).all(|(word, arg)| *arg == Some(word.as_str()))
        }
        None => ostler_shell::words(content).is_some_and(|words| {
            words.len() == argv.len()
                && words.iter().zip(&argv).all(|(word, arg)| *arg == Some(word.as_str()))
        }),
    }
}

/// Whether a rule that denies or asks speaks of a part: also under another path, with options of `git` in between.
fn narrows_part(content: &str, part: &Part) -> Match {
    if part.source.trim() == content.trim() {
        return Match::Yes;
    }
    let prefix = prefix_of(content);
    let pattern = match prefix {
        Some(prefix) => split(prefix).join(" "),
        None => split(content).join(" "),
    };
    let n_words = pattern.split(' ').count();
    let unknown = part.argv.iter().position(|word| word.kind == WordKind::Unknown);
    for argv in spellings(part) {
        let text = argv.join(" ");
        let hit = match prefix {
            // `rm -r:*` means `rm -rf` too, but `rm:*` does not mean `rmdir`.
            Some(_) if n_words > 1 => wild(&format!("{pattern}*"), &text),
            Some(_) => argv.first().is_some_and(|name| wild(&pattern, name)),
            None => wild(&pattern, &text),
        };
        if hit {
            return Match::Yes;
        }
        // The words before the first unknown one fit: the rest may fit too.
        if let Some(at) = unknown.filter(|at| *at < n_words || prefix.is_none()) {
            let known = argv.get(..at.min(argv.len())).unwrap_or_default();
            let beginning = pattern.split(' ').take(known.len()).collect::<Vec<_>>().join(" ");
            if !known.is_empty() && wild(&beginning, &known.join(" ")) && n_words > known.len() {
                return Match::Maybe(format!("a word of {} is not known beforehand", part.source));
            }
        }
    }
    Match::No
}

fn spellings(part: &Part) -> Vec<Vec<String>> {
    let written: Vec<String> = part.argv.iter().map(|word| word.text.clone()).collect();
    let mut spellings = vec![written.clone()];
    let Some((name, rest)) = written.split_first() else { return spellings };
    let base = name.rsplit('/').next().unwrap_or(name);
    if base != name {
        spellings.push([&[base.to_owned()], rest].concat());
    }
    if base == "git" {
        let mut words = rest.iter();
        let mut kept = vec![base.to_owned()];
        while let Some(word) = words.next() {
            match word.as_str() {
                "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" if kept.len() == 1 => {
                    words.next();
                }
                option if kept.len() == 1 && option.starts_with('-') => {}
                _ => kept.push(word.clone()),
            }
        }
        spellings.push(kept);
    }
    spellings
}

/// `git push:*` and `git push *` begin with `git push`.
pub(crate) fn prefix_of(content: &str) -> Option<&str> {
    content.strip_suffix(":*").or_else(|| content.strip_suffix(" *")).map(str::trim)
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether text fits a pattern in which `*` stands for anything.
fn wild(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        if let Some(piece) = last.replace(piece) {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last: &str| rest.ends_with(last))
}
