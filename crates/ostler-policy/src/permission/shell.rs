//! Commands: what each part would do, and which rules match it.

use std::path::{Path, PathBuf};

use ostler_shell::{Judged, Part, Word, WordKind};

use super::Policy;
use super::disk::OnDisk as _;
use super::folders::{folders_of, places_of};
use super::matching::Match;
use super::narrows::narrows_part;
use super::path_forms::PathForms;

/// A parsed command.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) command: String,
    /// Everything it may run on any reading, for deny and ask rules.
    pub(crate) judged: Judged,
    /// Why it may run more than that.
    pub(crate) unclear: Option<String>,
    /// The command in the literal grammar, or why it is not in it. Only such commands run without approval.
    pub(crate) list: Result<Judged, String>,
    /// The folder it starts in, where that is not the working directory.
    pub(crate) start: Option<PathForms>,
    cwd: PathBuf,
    home: Option<PathBuf>,
    has_cdpath: bool,
}

/// The kind of access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Reads,
    Writes,
}

impl Shell {
    pub(crate) fn new(policy: &Policy, command: &str) -> Self {
        let (judged, unclear) = match ostler_shell::parts(command) {
            Ok(judged) => (judged, None),
            Err(unclear) => (*unclear.found, Some(unclear.reason)),
        };
        let list = ostler_shell::literal(command).map_err(|error| error.reason);
        let (cwd, home) = (policy.cwd.clone(), policy.home.clone());
        let has_cdpath = policy.environment.has_cdpath;
        let command = command.trim().to_owned();
        Self { command, judged, unclear, list, start: None, cwd, home, has_cdpath }
    }

    /// A command that starts in a folder to which an earlier command changed.
    pub(crate) fn starting_in(policy: &Policy, folder: &Path, command: &str) -> Self {
        let start = Some(PathForms::of(folder));
        Self { start, cwd: folder.to_owned(), ..Self::new(policy, command) }
    }

    /// Whether it starts in a folder that may be read freely. A rule for a command holds there, not anywhere on the
    /// disk.
    pub(crate) fn starts_inside(&self, policy: &Policy) -> bool {
        self.start
            .as_ref()
            .is_none_or(|start| policy.working_directories().any(|folder| start.is_inside(folder)))
    }

    /// Whether a rule's content is exactly this command.
    pub(crate) fn is_exactly(&self, content: &str) -> bool {
        self.command == content.trim()
    }

    /// Whether a deny or ask rule matches any part.
    pub(crate) fn any_part_matches(&self, content: &str) -> Match {
        if self.is_exactly(content) {
            return Match::Yes;
        }
        let mut maybe = self.doubt();
        for part in &self.judged.parts {
            match narrows_part(content, part) {
                Match::Yes => return Match::Yes,
                Match::Maybe(reason) => maybe = Some(reason),
                Match::No => {}
            }
        }
        maybe.map_or(Match::No, Match::Maybe)
    }

    fn doubt(&self) -> Option<String> {
        let reason = self.unclear.as_ref()?;
        Some(format!("it is unclear what the command does: {reason}"))
    }

    /// The folders that the shell can be in before each part of a list, and at its end.
    pub(crate) fn folders(&self, list: &Judged) -> Option<Vec<Vec<PathBuf>>> {
        folders_of(&self.cwd, list, self.has_cdpath)
    }

    /// The files that a word can mean in any of these folders.
    pub(crate) fn places(
        &self,
        word: &Word,
        folders: &[PathBuf],
    ) -> Result<Vec<PathForms>, String> {
        let mut places = Vec::new();
        for folder in folders {
            places.extend(places_of(word, folder, self.home.as_deref())?);
        }
        Ok(places)
    }

    /// Whether the command reads or writes a file that `is_meant` selects, on any reading.
    pub(crate) fn touches(&self, access: Access, is_meant: impl Fn(&PathForms) -> bool) -> Match {
        let mut touched = TouchedPaths { maybe: self.doubt(), ..TouchedPaths::default() };
        let folders = match self.folders(&self.judged) {
            Some(folders) => folders.into_iter().flatten().collect(),
            None => {
                touched.maybe.get_or_insert("the folder that it changes to is unknown".to_owned());
                vec![self.cwd.clone()]
            }
        };
        for redirect in &self.judged.redirects {
            if redirect.writes == (access == Access::Writes) {
                touched.words.push(redirect.target.clone());
            }
        }
        for part in self.judged.parts.iter().filter(|part| !part.only_starts) {
            match access {
                Access::Reads => touched.read_by(part),
                Access::Writes => touched.written_by(part),
            }
        }
        for word in &touched.words {
            match self.places(word, &folders) {
                Ok(places) if places.iter().any(&is_meant) => return Match::Yes,
                Ok(_) => {}
                Err(reason) => {
                    touched.maybe.get_or_insert(reason);
                }
            }
        }
        for word in &touched.folders {
            let places = self.places(word, &folders).unwrap_or_default();
            match places
                .iter()
                .map(|place| holds(place, &is_meant))
                .find(|found| *found != Some(false))
            {
                Some(Some(_)) => return Match::Yes,
                Some(None) => {
                    touched.maybe.get_or_insert(format!("{} contains too many files", word.text));
                }
                None => {}
            }
        }
        touched.maybe.map_or(Match::No, Match::Maybe)
    }
}

/// The paths that a command touches.
#[derive(Default)]
struct TouchedPaths {
    /// Files.
    words: Vec<Word>,
    /// Folders that are moved or removed with their contents.
    folders: Vec<Word>,
    /// Why there may be more.
    maybe: Option<String>,
}

impl TouchedPaths {
    fn read_by(&mut self, part: &Part) {
        if let Ok(look) = ostler_shell::look(part) {
            self.words.extend(look.paths);
            if look.searches {
                let reason = format!("{} shows files that it finds itself", part.source);
                self.maybe.get_or_insert(reason);
            }
            return;
        }
        if let Some(change) = ostler_shell::change(part) {
            self.words.extend(change.read.iter().cloned());
            self.folders.extend(change.read);
        } else if !matches!(part.name(), "echo" | "printf" | "cd" | "pushd") {
            // Any other command at least reads the files that it is given.
            self.words.extend(part.argv.iter().skip(1).flat_map(spellings));
            if ostler_shell::may_show_others(part) {
                let reason = format!("{} may show files that it finds itself", part.source);
                self.maybe.get_or_insert(reason);
            }
        }
    }

    fn written_by(&mut self, part: &Part) {
        if let Some(change) = ostler_shell::change(part) {
            if change.whole_folders {
                self.folders.extend(change.written.iter().cloned());
            }
            self.words.extend(change.written);
        } else if may_write(part) {
            self.words.extend(part.argv.iter().skip(1).flat_map(spellings));
        }
    }
}

/// The files that a word may name: itself, and the rest of `--file=x`, `-fx`, `if=x`, `@x`.
fn spellings(word: &Word) -> Vec<Word> {
    let mut words = vec![word.clone()];
    if word.kind != WordKind::Unknown {
        let text = word.text.as_str();
        let value = text.split_once('=').map(|(_, value)| value);
        let joined = text.strip_prefix('-').and_then(|rest| rest.get(1..));
        let rest = [value, joined, text.strip_prefix('@')];
        let rest = rest.into_iter().flatten().filter(|text| !text.is_empty());
        words.extend(rest.map(|text| Word { text: text.to_owned(), kind: word.kind }));
    }
    words
}

/// How many files are checked in a folder that is moved or removed.
const MOST_FILES: usize = 5000;

/// Whether a folder contains a file that `is_meant` selects; `None` if it has too many files.
pub(crate) fn holds(folder: &PathForms, is_meant: impl Fn(&PathForms) -> bool) -> Option<bool> {
    let mut open: Vec<PathBuf> =
        folder.resolved.iter().filter(|path| path.is_folder()).cloned().collect();
    let mut n_files = 0;
    while let Some(folder) = open.pop() {
        for entry in folder.entries().into_iter().flatten().flatten() {
            n_files += 1;
            if n_files > MOST_FILES {
                return None;
            }
            if is_meant(&PathForms::of(&entry.path())) {
                return Some(true);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    Some(false)
}

/// Whether a command is known for changing the files it is given.
fn may_write(part: &Part) -> bool {
    let name = part.name().rsplit('/').next().unwrap_or_default();
    let in_place = |word: &Word| word.text.starts_with("-i") || word.text.starts_with("--in-place");
    match name {
        "sed" | "perl" | "ruby" => part.argv.iter().any(in_place),
        "tee" | "truncate" | "shred" | "unlink" | "ln" | "install" | "chmod" | "chown" | "cp"
        | "mv" | "rm" | "rmdir" | "touch" | "mkdir" | "patch" | "dd" | "rsync" => true,
        _ => false,
    }
}
