//! The description of a workspace for the model.

use std::fmt::Write as _;
use std::path::Path;

use super::mount::Mounted;

/// Lists mounts, files and sizes. The same mounts always give the same text; it does not contain the workspace's path.
pub(super) fn mounts(mounts: &[Mounted]) -> String {
    let mut text = String::from(
        "The working directory holds copies of files of the host; change them as you need. Paths are relative to it.\n",
    );
    if mounts.is_empty() {
        text.push_str("\nIt is empty.\n");
    }
    for mount in mounts {
        let files = if mount.files == 1 { "file" } else { "files" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n- `{}`: {} {files}, {}",
            quoted(&mount.mount_path),
            mount.files,
            size(mount.bytes)
        );
        for (path, bytes) in &mount.listed {
            let _ = writeln!(text, "  - `{}` ({})", quoted(path), size(*bytes));
        }
        let more = mount.files.saturating_sub(mount.listed.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "  - and {more} more");
        }
        if mount.n_skipped > 0 {
            let _ = writeln!(text, "  - left out: {} (links and special files)", mount.n_skipped);
        }
    }
    text
}

/// A path without control characters and backquotes, which would end its line or its quotation.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    text.chars()
        .map(|character| if character.is_control() || character == '`' { '?' } else { character })
        .collect()
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
