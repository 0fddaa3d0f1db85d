//! The recorded traffic in `fixtures/wire`, repeated until it is worth timing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// One line and its reader.
pub(crate) struct Line {
    pub(crate) reader: Reader,
    pub(crate) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Host,
    Engine,
}

/// `count` lines: all recorded ones, repeated, both directions mixed in the order of the file names.
pub(crate) fn lines(count: usize) -> Result<Vec<Line>> {
    let folder = folder();
    let mut files = fs::read_dir(&folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .with_context(|| format!("reading the recorded traffic in {}", folder.display()))?;
    files.sort();
    let mut recorded = Vec::new();
    for file in files {
        let Some(reader) = reader(&file) else { continue };
        let text = fs::read_to_string(&file)
            .with_context(|| format!("reading the recorded traffic in {}", file.display()))?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        recorded.extend(lines.map(|line| (reader, line.to_owned())));
    }
    ensure!(!recorded.is_empty(), "no recorded traffic in {}", folder.display());
    let repeated = recorded.iter().cycle().take(count);
    Ok(repeated.map(|(reader, text)| Line { reader: *reader, text: text.clone() }).collect())
}

fn reader(file: &Path) -> Option<Reader> {
    let name = file.file_name()?.to_str()?;
    if name.ends_with(".stdout.jsonl") {
        Some(Reader::Host)
    } else if name.ends_with(".stdin.jsonl") {
        Some(Reader::Engine)
    } else {
        None
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/wire")
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn the_requested_number_of_lines_has_both_directions() {
        let lines = super::lines(10_000).unwrap();
        assert_eq!(lines.len(), 10_000);
        for reader in [Reader::Host, Reader::Engine] {
            assert!(lines.iter().filter(|line| line.reader == reader).count() > 1_000);
        }
    }
}
