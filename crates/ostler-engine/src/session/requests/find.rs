//! Files that a host may offer while somebody types (`file_suggestions`).

use std::path::{Path, PathBuf};

use ostler_proto::RequestId;
use ostler_proto::control::FileSuggestionsReply;
use ostler_proto::frame::ToHost;
use serde_json::json;

use crate::permission::ReadGuard;
use crate::session::Session;
use crate::session::control::{failure, success};

/// How many are offered.
const MOST: usize = 15;
/// How many files are looked at; in a larger project some are not found.
const LOOKED_AT: usize = 50_000;

impl Session {
    /// Answers with the files in the working directory that fit what was typed best.
    pub(in crate::session) fn suggest_files(
        &mut self,
        request_id: Option<RequestId>,
        query: String,
    ) {
        let (cwd, host) = (self.world.cx.cwd.clone(), self.world.host.clone());
        let guard = host.policy().read_guard();
        self.aside(async move {
            let folder = cwd.clone();
            let found = tokio::task::spawn_blocking(move || find(&folder, &query, &guard)).await;
            let response = match found {
                Ok(paths) => {
                    let reply = FileSuggestionsReply {
                        suggestions: paths.iter().map(|path| json!({"path": path})).collect(),
                        cwd: Some(cwd.display().to_string()),
                        ..FileSuggestionsReply::default()
                    };
                    success(request_id, json!(reply))
                }
                Err(error) => failure(request_id, format!("the search broke down: {error}"), None),
            };
            host.send(ToHost::ControlResponse(response)).await;
        });
    }
}

/// The paths that fit best, folders with a slash at the end. Nothing typed stands for what lies at the top.
fn find(folder: &Path, query: &str, guard: &ReadGuard) -> Vec<String> {
    let typed = query.trim().trim_start_matches("./").to_lowercase();
    let depth = typed.is_empty().then_some(1);
    let walk = ignore::WalkBuilder::new(folder).max_depth(depth).require_git(false).build();
    let entries = walk.flatten().filter(|entry| entry.depth() > 0).take(LOOKED_AT);
    let mut found: Vec<(u32, usize, String)> = Vec::new();
    for entry in entries {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let path: PathBuf = entry.path().strip_prefix(folder).unwrap_or(entry.path()).into();
        let Some(name) = path.to_str() else { continue };
        let Some(rank) = rank(&name.to_lowercase(), &typed) else { continue };
        if is_folder || guard.may_show(entry.path()) {
            let shown = if is_folder { format!("{name}/") } else { name.to_owned() };
            found.push((rank, shown.len(), shown));
        }
    }
    found.sort();
    found.into_iter().take(MOST).map(|(_, _, path)| path).collect()
}

/// How well a path fits what was typed, the best with 0; `None` if it does not.
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
        let mut letters = path.chars();
        typed.chars().all(|wanted| letters.any(|letter| letter == wanted)).then_some(5)
    }
}

#[cfg(test)]
mod tests {
    use ostler_proto::permission::PermissionMode;

    use super::*;
    use crate::permission::{Behavior, Policy, Source};

    #[test]
    fn what_fits_best_comes_first_and_what_is_denied_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("src/deep")).unwrap();
        for name in ["alpha.txt", "src/alpine.rs", "src/deep/beta_alp.md", "secret-alp", "zzz"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut policy = Policy::new(folder.path(), PermissionMode::Default);
        let rule = "Read(secret-alp)".parse().unwrap();
        policy.add_rule(Behavior::Deny, rule, Source::Session);
        let find = |query: &str| find(folder.path(), query, &policy.read_guard());
        assert_eq!(find("alp"), ["alpha.txt", "src/alpine.rs", "src/deep/beta_alp.md"]);
        assert_eq!(find(""), ["zzz", "src/", "alpha.txt"]);
        assert_eq!(find("./ZZ"), ["zzz"]);
        assert_eq!(find("sdb"), ["src/deep/beta_alp.md"]);
        assert!(find("nothing").is_empty());
    }
}
