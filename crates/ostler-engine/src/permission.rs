//! May this call run? Decided on its effect alone, with the reason for it.

use std::path::{Component, Path, PathBuf};

use ostler_proto::permission::PermissionMode;

use crate::tool::Effect;

/// The outcome for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Allow,
    /// Ask the host first; why.
    Ask(String),
    /// Do not run it; why.
    Deny(String),
}

/// Decides on a call. What is not clearly allowed is asked about, what cannot be asked is denied.
pub fn decide(mode: &PermissionMode, cwd: &Path, effect: &Effect) -> Decision {
    // A question is for a person, unless nobody is to be asked at all.
    if *effect == Effect::AskUser && *mode != PermissionMode::DontAsk {
        return Decision::Ask("the question is for the user".to_owned());
    }
    match mode {
        PermissionMode::BypassPermissions => Decision::Allow,
        PermissionMode::Default => by_default(cwd, effect),
        PermissionMode::AcceptEdits => match effect {
            Effect::Write(path) if is_inside(cwd, path) => Decision::Allow,
            _ => by_default(cwd, effect),
        },
        PermissionMode::Plan => match by_default(cwd, effect) {
            Decision::Ask(reason) if !effect.is_read_only() => {
                Decision::Deny(format!("plan mode changes nothing: {reason}"))
            }
            decision => decision,
        },
        PermissionMode::DontAsk => match by_default(cwd, effect) {
            Decision::Ask(reason) => Decision::Deny(format!("nobody is to be asked: {reason}")),
            decision => decision,
        },
        // `auto` needs a classifier that is not there; an unknown mode must not be wider than a known one.
        other => match by_default(cwd, effect) {
            Decision::Ask(reason) => {
                Decision::Deny(format!("mode {other} is not supported: {reason}"))
            }
            decision => decision,
        },
    }
}

fn by_default(cwd: &Path, effect: &Effect) -> Decision {
    match effect {
        Effect::Nothing => Decision::Allow,
        Effect::Read(path) if is_inside(cwd, path) => Decision::Allow,
        Effect::Read(path) => {
            Decision::Ask(format!("{} is outside the working directory", path.display()))
        }
        Effect::Write(path) => Decision::Ask(format!("changes {}", path.display())),
        Effect::Execute(_) => Decision::Ask("runs a command".to_owned()),
        Effect::AskUser => Decision::Ask("the question is for the user".to_owned()),
    }
}

/// Whether a path lies inside a folder once links are followed. A path that does not exist yet is judged by the
/// part of it that does.
fn is_inside(folder: &Path, path: &Path) -> bool {
    let (Ok(folder), Some(path)) = (folder.canonicalize(), resolved(path)) else { return false };
    path.starts_with(folder)
}

fn resolved(path: &Path) -> Option<PathBuf> {
    let mut rest = Vec::new();
    let mut existing = path;
    loop {
        match existing.symlink_metadata() {
            // A dangling link exists, does not resolve, and could point anywhere.
            Ok(_) => break,
            Err(_) => {
                rest.push(existing.file_name()?);
                existing = existing.parent()?;
            }
        }
    }
    let mut path = existing.canonicalize().ok()?;
    path.extend(rest.into_iter().rev());
    // `..` after a part that does not exist cannot be judged.
    path.components().all(|part| part != Component::ParentDir).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn word(decision: Decision) -> &'static str {
        match decision {
            Decision::Allow => "allow",
            Decision::Ask(_) => "ask",
            Decision::Deny(_) => "deny",
        }
    }

    #[test]
    fn each_mode_judges_each_effect() {
        let cwd = tempfile::tempdir().unwrap();
        let effects = [
            Effect::Nothing,
            Effect::Read(cwd.path().join("a")),
            Effect::Read("/etc/passwd".into()),
            Effect::Write(cwd.path().join("new/a")),
            Effect::Write("/etc/passwd".into()),
            Effect::Execute("ls".into()),
            Effect::AskUser,
        ];
        for (mode, expected) in [
            (PermissionMode::Default, "allow allow ask ask ask ask ask"),
            (PermissionMode::AcceptEdits, "allow allow ask allow ask ask ask"),
            (PermissionMode::Plan, "allow allow ask deny deny deny ask"),
            (PermissionMode::DontAsk, "allow allow deny deny deny deny deny"),
            (PermissionMode::BypassPermissions, "allow allow allow allow allow allow ask"),
            (PermissionMode::Auto, "allow allow deny deny deny deny ask"),
            (PermissionMode::Other("junk".into()), "allow allow deny deny deny deny ask"),
        ] {
            let words = effects.iter().map(|effect| word(decide(&mode, cwd.path(), effect)));
            assert_eq!(words.collect::<Vec<_>>().join(" "), expected, "{mode}");
        }
    }

    #[test]
    fn a_path_is_judged_by_where_it_leads() {
        let cwd = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(cwd.path().join("sub")).unwrap();
        symlink(elsewhere.path(), cwd.path().join("out")).unwrap();
        symlink(cwd.path().join("sub"), cwd.path().join("in")).unwrap();
        symlink("/nowhere/at/all", cwd.path().join("dangling")).unwrap();
        for (path, inside) in [
            ("sub/new/file", true),
            ("in/file", true),
            ("sub/../file", true),
            ("out/file", false),
            ("dangling", false),
            ("../file", false),
            ("sub/missing/../../../file", false),
        ] {
            assert_eq!(is_inside(cwd.path(), &cwd.path().join(path)), inside, "{path}");
        }
    }
}
