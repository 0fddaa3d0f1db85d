//! Walks a folder for `Glob` and `Grep`: includes hidden files, skips files that git ignores, and has a time limit.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder, WalkState};
use ostler_engine::tool::ToolError;
use ostler_files::RealPath;
use tokio_util::sync::CancellationToken;

use crate::path::CallPath;

const PATIENCE: Duration = Duration::from_secs(30);

/// When to stop: the call was dropped, or the time limit is reached.
pub(crate) struct Stop {
    dropped: CancellationToken,
    deadline: Instant,
}

impl Stop {
    pub(crate) fn new(dropped: CancellationToken) -> Self {
        Self { dropped, deadline: Instant::now() + PATIENCE }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.dropped.is_cancelled() || Instant::now() >= self.deadline
    }
}

/// A walk below `root` that can be restricted further.
pub(crate) fn below(root: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).require_git(false);
    walk.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    walk
}

/// Walks on all cores, in no particular order, until a visitor returns false. Returns whether the walk was complete;
/// `visitor` makes one visitor per thread.
pub(crate) fn in_parallel<V: FnMut(DirEntry) -> bool + Send>(
    walk: &WalkBuilder,
    stop: &Stop,
    visitor: impl Fn() -> V + Sync,
) -> bool {
    let is_complete = AtomicBool::new(true);
    walk.build_parallel().run(|| {
        let mut visit = visitor();
        let is_complete = &is_complete;
        Box::new(move |entry| {
            if stop.is_due() {
                is_complete.store(false, Ordering::Relaxed);
                return WalkState::Quit;
            }
            // Unreadable entries are skipped.
            let is_over = entry.is_ok_and(|entry| !visit(entry));
            if is_over { WalkState::Quit } else { WalkState::Continue }
        })
    });
    is_complete.into_inner()
}

/// Whether an entry is a regular file; links are not followed and pipes are not opened.
pub(crate) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// A note about files left out because of permission rules.
pub(crate) fn guarded_note(n_guarded: usize) -> String {
    match n_guarded {
        0 => String::new(),
        1 => "[1 file left out: a permission rule guards it]\n".to_owned(),
        n => format!("[{n} files left out: permission rules guard them]\n"),
    }
}

/// Refuses a path that does not exist.
pub(crate) fn must_exist(root: &CallPath) -> Result<std::fs::Metadata, ToolError> {
    root.real.metadata().map_err(|error| crate::file::unreadable(root, &error))
}

/// The path by which an entry of a walk is opened: below the permitted folder. The walk itself reads folders by their
/// names, and so may have found files behind a link that appeared meanwhile; this path does not lead to them.
pub(crate) fn real_path(root: &CallPath, entry: &Path) -> Option<RealPath> {
    if root.written == root.real.as_path() {
        return RealPath::from_resolved(entry.to_owned());
    }
    root.real.below(entry.strip_prefix(&root.written).ok()?)
}
