//! Where inputs start from: the recorded traffic, and what broke something before.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// All lines of all recordings, and all regressions whole.
pub(crate) fn load() -> Result<Vec<Vec<u8>>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds = Vec::new();
    for recording in contents(&package.join("../fixtures/wire"), ".jsonl")? {
        let lines = recording.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        seeds.extend(lines.map(<[u8]>::to_vec));
    }
    ensure!(!seeds.is_empty(), "there are no recordings in fixtures/wire");
    seeds.extend(contents(&package.join("regressions"), "")?);
    Ok(seeds)
}

/// The contents of all files with that ending, in the order of their names: a seed must mean the same run everywhere.
fn contents(folder: &Path, ending: &str) -> Result<Vec<Vec<u8>>> {
    let reading = || format!("reading {}", folder.display());
    let mut files = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .with_context(reading)?;
    files.retain(|file| file.to_string_lossy().ends_with(ending));
    files.sort();
    files.iter().map(|file| fs::read(file).with_context(reading)).collect()
}
