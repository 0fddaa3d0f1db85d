//! Access to the recorded traffic in `fixtures/wire`.

use std::path::PathBuf;
use std::{fs, io};

/// One line of recorded traffic.
pub(crate) struct Recorded {
    /// File and line number, for messages.
    pub(crate) at: String,
    pub(crate) line: String,
}

/// All lines of all files whose name ends in `suffix`, in a stable order.
pub(crate) fn lines(suffix: &str) -> Vec<Recorded> {
    let mut recorded = Vec::new();
    let files = files(suffix).expect("the fixtures are part of the repository");
    assert!(!files.is_empty(), "no fixture ends in {suffix}");
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        recorded.extend(text.lines().enumerate().map(|(index, line)| Recorded {
            at: format!("{name}:{}", index + 1),
            line: line.to_owned(),
        }));
    }
    recorded
}

/// The text of one file.
pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(directory().join(name)).unwrap()
}

/// The scenarios, as file names without an ending.
pub(crate) fn scenarios() -> Vec<String> {
    let endings = files(".stdin.jsonl").expect("the fixtures are part of the repository");
    endings
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().replace(".stdin.jsonl", ""))
        .collect()
}

fn files(suffix: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(directory())?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.to_string_lossy().ends_with(suffix));
    files.sort();
    Ok(files)
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire")
}
