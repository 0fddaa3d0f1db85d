//! Files that a host may offer while the user types (`file_suggestions`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ostler_proto::RequestId;
use ostler_proto::build;
use ostler_proto::control::{FileSuggestions, FileSuggestionsReply};
use ostler_proto::frame::ToHost;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::permission::ReadGuard;
use crate::session::Session;
use crate::session::control::{failure, success};

/// How many are offered, unless the host says otherwise in a field of our own, `limit`.
const MOST: usize = 15;
const MOST_EVER: usize = 500;
/// The most files that are searched; in a larger project some are not found, and `truncated` says so.
const LOOKED_AT: usize = 200_000;
/// How long the file list is cached: about as long as a user types a word.
const REMEMBERED: Duration = Duration::from_secs(3);

/// A cached list of a folder's files.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct FileListCache(Arc<Mutex<Option<Arc<FileList>>>>);

/// The paths in a folder, relative to it; folders end with a slash.
#[derive(Debug)]
struct FileList {
    at: Instant,
    names: Vec<String>,
    is_cut: bool,
}

impl Session {
    /// Answers with the files in the working directory that best match the typed text.
    pub(in crate::session) fn suggest_files(
        &mut self,
        request_id: Option<RequestId>,
        asked: &FileSuggestions,
    ) {
        let (cwd, outbox, walks) =
            (self.context.cx.cwd.clone(), self.context.outbox.clone(), self.walks.clone());
        let guard = self.context.permissions.policy().read_guard();
        let query = asked.query.clone();
        let limit = asked.extra.get("limit").and_then(Value::as_u64);
        let limit = limit.map_or(MOST, |limit| limit.min(MOST_EVER as u64) as usize);
        self.aside(async move {
            let (folder, known) = (cwd.clone(), walks.clone());
            let finding = move || {
                let typed = query.trim().trim_start_matches("./").to_lowercase();
                // With nothing typed, only the top folder is listed, which is quick.
                let walked = match typed.is_empty() {
                    true => Arc::new(walk(&folder, Some(1), LOOKED_AT)),
                    false => known.of(&folder),
                };
                (find(&walked, &folder, &typed, &guard, limit), walked.is_cut)
            };
            let response = match tokio::task::spawn_blocking(finding).await {
                Ok((paths, is_cut)) => {
                    let mut reply = build!(FileSuggestionsReply {
                        suggestions: paths.iter().map(|path| json!({"path": path})).collect(),
                        cwd: Some(cwd.display().to_string())
                    });
                    if is_cut {
                        reply.extra.insert("truncated", true);
                    }
                    success(request_id, json!(reply))
                }
                Err(error) => failure(
                    request_id,
                    format!("the search failed with a panic, which is a bug: {error}"),
                    None,
                ),
            };
            outbox.send(ToHost::ControlResponse(response)).await;
            tokio::time::sleep(REMEMBERED).await;
            walks.forget();
        });
    }
}

impl FileListCache {
    fn of(&self, folder: &Path) -> Arc<FileList> {
        let mut last = self.0.lock();
        if let Some(walked) = &*last
            && walked.at.elapsed() < REMEMBERED
        {
            return Arc::clone(walked);
        }
        let walked = Arc::new(walk(folder, None, LOOKED_AT));
        *last = Some(Arc::clone(&walked));
        walked
    }

    fn forget(&self) {
        let mut last = self.0.lock();
        last.take_if(|walked| walked.at.elapsed() >= REMEMBERED);
    }
}

fn walk(folder: &Path, depth: Option<usize>, most: usize) -> FileList {
    let entries = ignore::WalkBuilder::new(folder).max_depth(depth).require_git(false).build();
    let mut walked = FileList { at: Instant::now(), names: Vec::new(), is_cut: false };
    for entry in entries.flatten().filter(|entry| entry.depth() > 0) {
        if walked.names.len() >= most {
            walked.is_cut = true;
            break;
        }
        let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let Some(name) = path.to_str() else { continue };
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        walked.names.push(if is_folder { format!("{name}/") } else { name.to_owned() });
    }
    walked
}

/// The best matching paths that may be shown.
fn find(
    walked: &FileList,
    folder: &Path,
    typed: &str,
    guard: &ReadGuard,
    limit: usize,
) -> Vec<String> {
    let ranked = walked.names.iter().filter_map(|name| {
        let rank = rank(name.trim_end_matches('/').to_lowercase().as_str(), typed)?;
        Some((rank, name.len(), name))
    });
    let mut found: Vec<(u32, usize, &String)> = ranked.collect();
    found.sort_unstable();
    // The guard looks at the disk, so it checks only the paths that would be shown.
    let shown = found.into_iter().map(|(_, _, name)| name);
    shown.filter(|name| guard.may_show(&folder.join(name))).take(limit).cloned().collect()
}

/// How well a path matches the typed text, 0 is best; `None` if it does not.
fn rank(path: &str, typed: &str) -> Option<u32> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if path == typed || name == typed {
        Some(0)
    } else if name.starts_with(typed) {
        Some(1)
    } else if path.starts_with(typed) {
        Some(2)
    } else if name.contains(typed) {
        Some(3)
    } else if path.contains(typed) {
        Some(4)
    } else {
        let mut characters = path.chars();
        typed.chars().all(|wanted| characters.any(|character| character == wanted)).then_some(5)
    }
}

#[cfg(test)]
mod tests {
    use ostler_proto::permission::PermissionMode;

    use super::*;
    use crate::permission::{Behavior, Policy, Source};

    #[test]
    fn the_best_match_comes_first_and_denied_files_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("src/deep")).unwrap();
        for name in ["alpha.txt", "src/alpine.rs", "src/deep/beta_alp.md", "secret-alp", "zzz"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut policy = Policy::new(folder.path(), PermissionMode::Default);
        let rule = "Read(secret-alp)".parse().unwrap();
        policy.add_rule(Behavior::Deny, rule, Source::Session);
        let walked = walk(folder.path(), None, LOOKED_AT);
        let some =
            |typed: &str, limit| find(&walked, folder.path(), typed, &policy.read_guard(), limit);
        let find = |typed: &str| some(typed, MOST);
        assert_eq!(find("alp"), ["alpha.txt", "src/alpine.rs", "src/deep/beta_alp.md"]);
        assert_eq!(some("alp", 1), ["alpha.txt"]);
        assert_eq!(find("zz"), ["zzz"]);
        assert_eq!(find("sdb"), ["src/deep/beta_alp.md"]);
        assert_eq!(find("src"), ["src/", "src/deep/", "src/alpine.rs", "src/deep/beta_alp.md"]);
        assert!(find("nothing").is_empty());
        assert_eq!(walk(folder.path(), Some(1), LOOKED_AT).names.len(), 4, "only the top");
    }

    // Seen to fail without the bound.
    #[test]
    fn the_number_of_searched_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let walked = walk(folder.path(), None, 2);
        assert!(walked.is_cut && walked.names.len() == 2);
        assert!(!walk(folder.path(), None, 3).is_cut);
    }
}
