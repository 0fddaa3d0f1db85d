//! Simple commands that only change files named on the command line.

use crate::Part;
use crate::word::{Word, WordKind};

/// The files that a part changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Files and folders it creates, changes or removes.
    pub written: Vec<Word>,
    /// Files it reads.
    pub read: Vec<Word>,
    /// Whether it changes whole folders.
    pub whole_folders: bool,
}

/// The files that a part changes, if it is one of a few simple commands with literal paths.
pub fn change(part: &Part) -> Option<Change> {
    if !part.has_safe_environment() {
        return None;
    }
    let name = part.name();
    let name =
        name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/")).unwrap_or(name);
    let flags = match name {
        "mkdir" => "pv",
        "touch" => "acm",
        "rm" => "rfvRdi",
        "rmdir" => "pv",
        "mv" => "fnvT",
        "cp" => "fnvpT",
        _ => return None,
    };
    let words = part.argv.get(1..).unwrap_or_default();
    let mut operands = Vec::new();
    let mut whole_folders = name == "mv";
    let mut only_operands = false;
    for word in words {
        let text = word.as_literal()?;
        match text.strip_prefix('-').filter(|rest| !rest.is_empty() && !only_operands) {
            Some("-") => only_operands = true,
            Some(given) if given.chars().all(|c| flags.contains(c)) => {
                whole_folders |= name == "rm" && given.contains(['r', 'R']);
            }
            Some(_) => return None,
            None => operands.push(word.clone()),
        }
    }
    let (written, read) = match (name, operands.split_last()) {
        (_, None) => return None,
        ("mv" | "cp", Some((_, []))) => return None,
        // The target may be a folder; then the new file in it has the name of the source.
        ("mv" | "cp", Some((target, sources))) => {
            let mut written = vec![target.clone()];
            written.extend(sources.iter().filter_map(|source| inside(target, source)));
            if name == "mv" {
                written.extend(sources.iter().cloned());
            }
            (written, sources.to_vec())
        }
        _ => (operands, Vec::new()),
    };
    Some(Change { written, read, whole_folders })
}

fn inside(folder: &Word, file: &Word) -> Option<Word> {
    let name = file.text.trim_end_matches('/').rsplit('/').next()?;
    let text = format!("{}/{name}", folder.text.trim_end_matches('/'));
    Some(Word { text, kind: WordKind::Literal })
}
