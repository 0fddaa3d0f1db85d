//! `Glob`: finds files by name, the newest first.

use parking_lot::Mutex;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use globset::{GlobBuilder, GlobMatcher};
use ignore::DirEntry;
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::GlobOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::path::{self, CallPath};
use crate::walk::{self, Stop};

pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Such as `src/**/*.rs`; `*` does not cross folders, `**` does.
    pattern: String,
    /// Folder to look in; the working directory if absent.
    path: Option<PathBuf>,
}

const MAX_FILES: usize = 100;

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const DESCRIPTION: &'static str = "Finds files by name, the last changed first. Leaves out what git ignores; name an ignored folder in path to look into it.";
    type Args = Args;

    fn effect(&self, cx: &ToolCx, args: &Args) -> Effect {
        Effect::Read(Search::new(cx, args).root)
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let search = Search::new(cx, &args);
        let dropped = cx.cancelled.child_token();
        let stop = Stop::new(dropped.clone());
        let _guard = dropped.drop_guard();
        let cx = cx.clone();
        blocking(move || search.run(&cx, &stop)).await
    }
}

/// The folder to search, and the pattern below it.
struct Search {
    root: PathBuf,
    pattern: String,
}

impl Search {
    /// Moves literal folders from the pattern to the root, so that nothing else is searched.
    fn new(cx: &ToolCx, args: &Args) -> Self {
        let mut root = args.path.clone().unwrap_or_default();
        let mut pattern = args.pattern.as_str();
        while let Some((folder, rest)) = pattern.split_once('/')
            && !folder.contains(['*', '?', '[', '{', '\\'])
        {
            root.push(if folder.is_empty() { "/" } else { folder });
            pattern = rest.trim_start_matches('/');
        }
        Self { root: path::absolute(cx, &root), pattern: pattern.to_owned() }
    }

    fn run(&self, cx: &ToolCx, stop: &Stop) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let matcher = self.matcher()?;
        let root = CallPath::of(cx, self.root.clone())?;
        if !walk::must_exist(&root)?.is_dir() {
            return Err(ToolError::Refused(format!("{} is not a folder.", self.root.display())));
        }
        // The result does not depend on the order of the search.
        let found = Mutex::new(NewestFiles::default());
        let is_complete = walk::in_parallel(&walk::below(&self.root), stop, || {
            |entry: DirEntry| {
                let name = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
                let is_file = |kind: FileType| kind.is_file() || kind.is_symlink();
                if entry.file_type().is_some_and(is_file) && matcher.is_match(name) {
                    let may_show = cx.may_show(entry.path());
                    // It must still be there, below the permitted folder.
                    let real = walk::real_path(&root, entry.path());
                    let metadata = real.filter(|_| may_show).and_then(|real| real.metadata().ok());
                    let mut found = found.lock();
                    match metadata {
                        Some(metadata) => found.add(metadata.modified().ok(), entry.into_path()),
                        None => found.n_guarded += usize::from(!may_show),
                    }
                }
                true
            }
        });
        let mut found = found.into_inner();
        found.is_complete = is_complete;
        Ok(found.output(&cx.cwd, started))
    }

    fn matcher(&self) -> Result<GlobMatcher, ToolError> {
        let glob =
            GlobBuilder::new(&self.pattern).literal_separator(true).backslash_escape(true).build();
        Ok(glob
            .map_err(|error| ToolError::Refused(format!("the pattern is not valid: {error}")))?
            .compile_matcher())
    }
}

/// The newest files found.
struct NewestFiles {
    files: Vec<(Option<SystemTime>, PathBuf)>,
    n_found: usize,
    /// Files that a permission rule protects.
    n_guarded: usize,
    is_complete: bool,
}

impl Default for NewestFiles {
    fn default() -> Self {
        Self { files: Vec::new(), n_found: 0, n_guarded: 0, is_complete: true }
    }
}

impl NewestFiles {
    fn add(&mut self, changed: Option<SystemTime>, path: PathBuf) {
        self.n_found += 1;
        self.files.push((changed, path));
        if self.files.len() > 50 * MAX_FILES {
            self.keep_newest();
        }
    }

    fn keep_newest(&mut self) {
        self.files.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        self.files.truncate(MAX_FILES);
    }

    fn output(mut self, cwd: &Path, started: Instant) -> ToolOutput {
        self.keep_newest();
        let filenames: Vec<String> =
            self.files.iter().map(|(_, path)| path::short(cwd, path)).collect();
        let truncated = self.n_found > filenames.len();
        let mut text = if filenames.is_empty() {
            "No files found.\n".to_owned()
        } else {
            filenames.join("\n") + "\n"
        };
        if truncated {
            text += &format!(
                "[the {} newest of {} files; narrow the pattern to see others]\n",
                filenames.len(),
                self.n_found
            );
        }
        if !self.is_complete {
            text += "[the search took too long and was given up; narrow the path]\n";
        }
        text += &walk::guarded_note(self.n_guarded);
        let structured = build!(GlobOutput {
            duration_ms: (started.elapsed().as_millis() as u64).into(),
            num_files: filenames.len() as u64,
            filenames,
            truncated: truncated || !self.is_complete,
            total_matches: Some(self.n_found as u64),
            count_is_complete: Some(self.is_complete),
            timed_out: (!self.is_complete).then_some(true)
        });
        ToolOutput::new(text, structured)
    }
}
