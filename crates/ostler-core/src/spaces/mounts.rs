//! Which folders of this machine spaces may show to their agents: those in the operator's file `mounts.json`; without
//! it there are none.
//!
//! ```json
//! {"roots": [{"path": "/srv/docs"}, {"path": "/srv/data", "readWrite": true}],
//!  "blocked": ["*.bak"], "membersReadOnly": true}
//! ```
//!
//! The file is in the server's own folder, which agents cannot read, and is read every time it is needed. Paths are
//! checked with links resolved, when a mount is added and again whenever a session begins.

use std::io;
use std::path::{Component, Path, PathBuf};

use ostler_base::error::{ApiError, Fallible};
use ostler_base::private;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::SpaceRole;
use crate::confine::own_files::MOUNTS;
use crate::model::space::Mount;

/// Names that must not be shown to an agent, in any folder.
const BLOCKED: [&str; 24] = [
    ".ssh",
    ".gnupg",
    ".gpg",
    ".aws",
    ".azure",
    ".gcloud",
    ".config/gcloud",
    ".kube",
    ".docker",
    ".password-store",
    "*credentials*",
    ".env",
    ".env.*",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "id_rsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*private_key*",
    "*.pem",
    "*.p12",
    "*.key",
];

/// The content of the operator's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MountRules {
    /// Folders that may be shown, with everything below them.
    pub roots: Vec<Root>,
    /// Further names that are never shown, in addition to the usual ones.
    #[serde(default)]
    pub blocked: Vec<String>,
    /// Whether sessions of plain members can only read.
    #[serde(default = "yes")]
    pub members_read_only: bool,
}

/// A folder that may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Root {
    pub path: PathBuf,
    /// Whether agents may be allowed to write in it.
    #[serde(default)]
    pub(crate) read_write: bool,
}

fn yes() -> bool {
    true
}

impl MountRules {
    /// Reads the operator's file.
    ///
    /// # Errors
    /// When the file does not exist or is invalid; then nothing can be mounted, and the error says why.
    pub(crate) fn load(data: &Path) -> Fallible<Self> {
        let file = data.join(MOUNTS);
        let blocks = |why: String| {
            ApiError::forbidden("no_mounts", format!("no folder can be mounted: {why}"))
        };
        let text = private::read(&file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                blocks(format!("the operator has not allowed any ({MOUNTS} does not exist)"))
            }
            _ => blocks(error.to_string()),
        })?;
        let rules: Self = serde_json::from_str(&text)
            .map_err(|error| blocks(format!("{MOUNTS} is invalid: {error}")))?;
        match rules.roots.iter().find(|root| !root.path.is_absolute()) {
            Some(root) => {
                Err(blocks(format!("{} in {MOUNTS} is not an absolute path", root.path.display())))
            }
            None => Ok(rules),
        }
    }

    /// All names that are never shown.
    pub fn blocked(&self) -> Vec<String> {
        let usual = BLOCKED.iter().map(|name| (*name).to_owned());
        usual.chain(self.blocked.iter().cloned()).collect()
    }

    /// Checks whether a path may be shown. Returns the real path, and the root that contains it.
    pub(super) fn check(&self, path: &Path) -> Fallible<(PathBuf, &Root)> {
        let refused =
            |why: String| ApiError::forbidden("mount_refused", format!("{} {why}", path.display()));
        let is_plain = path.is_absolute()
            && path.components().all(|part| !matches!(part, Component::ParentDir));
        if !is_plain {
            return Err(refused("is not absolute, or contains `..`".to_owned()));
        }
        let real = path.canonicalize().map_err(|_| refused("does not exist".to_owned()))?;
        if !real.is_dir() {
            return Err(refused("is not a folder".to_owned()));
        }
        let blocked = self.blocked();
        // The given path is checked, too: a blocked name is blocked whatever its target is.
        if let Some(name) = [path, &*real].into_iter().find_map(|path| blocked_by(path, &blocked)) {
            return Err(refused(format!("has a name that is never shown to agents ({name})")));
        }
        let root = self
            .roots
            .iter()
            .find(|root| root.path.canonicalize().is_ok_and(|allowed| real.starts_with(allowed)));
        match root {
            Some(root) => Ok((real, root)),
            None => Err(refused(format!("is not in a folder that the operator lists in {MOUNTS}"))
                .hint("ask the operator to add it to the roots there")),
        }
    }

    /// A mount for a session: its path, and whether it may be written. Checked again, because a user who can write to a
    /// parent folder can redirect it.
    pub(super) fn open(&self, mount: &Mount, role: SpaceRole) -> Fallible<(PathBuf, bool)> {
        let (real, root) = self.check(&mount.path)?;
        if real != mount.real {
            let message = format!(
                "the mount {} was {} and now leads to {}",
                mount.name,
                mount.real.display(),
                real.display()
            );
            return Err(ApiError::forbidden("mount_moved", message)
                .hint("remove it from the space, and add it again if that is what you want"));
        }
        let may = role >= SpaceRole::Admin || !self.members_read_only;
        Ok((real, mount.write && root.read_write && may))
    }
}

/// The pattern that matches one of the names in a path.
fn blocked_by<'a>(path: &Path, blocked: &'a [String]) -> Option<&'a str> {
    let names: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let is_in = |pattern: &&String| {
        let wanted: Vec<String> = pattern.to_lowercase().split('/').map(str::to_owned).collect();
        let alike = |names: &[String]| {
            names.iter().zip(&wanted).all(|(name, wanted)| fits(wanted.as_bytes(), name.as_bytes()))
        };
        names.windows(wanted.len()).any(alike)
    };
    blocked.iter().find(is_in).map(String::as_str)
}

/// Whether a name matches a pattern in which `*` stands for any text.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            fits(rest, name) || name.split_first().is_some_and(|(_, name)| fits(pattern, name))
        }
        (Some((wanted, rest)), Some((byte, name))) if wanted == byte => fits(rest, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn house() -> (tempfile::TempDir, MountRules) {
        let house = tempfile::tempdir().unwrap();
        for folder in ["docs/inner", "docs/.ssh", "docs-old", "data", "docs/My.PEM"] {
            fs::create_dir_all(house.path().join(folder)).unwrap();
        }
        symlink("../docs-old", house.path().join("docs/out")).unwrap();
        symlink(".ssh", house.path().join("docs/keys")).unwrap();
        symlink("inner", house.path().join("docs/near")).unwrap();
        symlink("inner", house.path().join("docs/near.key")).unwrap();
        fs::write(house.path().join("docs/file"), "x").unwrap();
        let root = |name: &str, read_write| Root { path: house.path().join(name), read_write };
        let roots = vec![root("docs", false), root("data", true)];
        let rules = MountRules { roots, blocked: vec!["sec*".to_owned()], members_read_only: true };
        (house, rules)
    }

    // Seen to fail with a check of the given path only (keys, out), of the real path only, and with one that compares
    // text (docs-old).
    #[test]
    fn only_folders_that_the_operator_lists_can_be_mounted() {
        let (house, rules) = house();
        let check = |path: &str| rules.check(&house.path().join(path)).map(|(real, _)| real);
        let real = house.path().canonicalize().unwrap();
        for (path, leads) in
            [("docs", "docs"), ("docs/inner", "docs/inner"), ("docs/near", "docs/inner")]
        {
            assert_eq!(check(path).unwrap(), real.join(leads));
        }
        let refused = [
            "docs/.ssh",
            "docs/keys",
            "docs/out",
            "docs-old",
            "docs/../docs-old",
            "docs/../docs",
            "docs/none",
            "docs/file",
            "docs/My.PEM",
            "docs/near.key",
            "",
            "/etc",
            "/",
        ];
        for path in refused {
            assert_eq!(check(path).unwrap_err().status(), 403, "{path}");
        }
        assert!(
            rules.check(Path::new("docs")).is_err(),
            "not relative to the server's working directory"
        );
    }

    // Seen to fail with `open` that trusts what was checked when the mount was added.
    #[test]
    fn a_mount_whose_target_changed_is_refused() {
        let (house, rules) = house();
        let path = house.path().join("docs/near");
        let (real, _) = rules.check(&path).unwrap();
        let mount = Mount { name: "near".to_owned(), path: path.clone(), real, write: false };
        assert!(rules.open(&mount, SpaceRole::Owner).is_ok());
        fs::remove_file(&path).unwrap();
        symlink("../docs", &path).unwrap();
        let error = rules.open(&mount, SpaceRole::Owner).unwrap_err();
        assert_eq!(error.detail().code, "mount_moved");
        fs::remove_file(&path).unwrap();
        symlink("../docs-old", &path).unwrap();
        assert_eq!(
            rules.open(&mount, SpaceRole::Owner).unwrap_err().detail().code,
            "mount_refused"
        );
    }

    // Seen to fail without each of the three conditions.
    #[test]
    fn a_mount_is_writable_only_if_operator_mount_and_role_allow_it() {
        let (house, mut rules) = house();
        let mut writable = |place: &str, write, role, members_read_only| {
            rules.members_read_only = members_read_only;
            let path = house.path().join(place);
            let (real, _) = rules.check(&path).unwrap();
            let mount = Mount { name: "x".to_owned(), path, real, write };
            rules.open(&mount, role).unwrap().1
        };
        assert!(writable("data", true, SpaceRole::Admin, true));
        assert!(!writable("docs", true, SpaceRole::Owner, true), "the operator does not allow it");
        assert!(!writable("data", false, SpaceRole::Owner, true), "the mount does not allow it");
        assert!(!writable("data", true, SpaceRole::Member, true), "members can only read");
        assert!(writable("data", true, SpaceRole::Member, false), "unless the operator allows it");
    }

    #[test]
    fn without_a_valid_file_of_the_operator_nothing_can_be_mounted() {
        let data = tempfile::tempdir().unwrap();
        let why = || MountRules::load(data.path()).unwrap_err().detail().message.clone();
        assert!(why().contains("mounts.json does not exist"), "{}", why());
        let file = data.path().join(MOUNTS);
        for (text, expected) in [
            ("{", "is invalid"),
            (r#"{"roots": [], "writable": true}"#, "unknown field"),
            (r#"{"roots": [{"path": "docs"}]}"#, "is not an absolute path"),
        ] {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(why().contains(expected), "{}", why());
        }
        fs::write(&file, r#"{"roots": [{"path": "/srv"}]}"#).unwrap();
        let rules = MountRules::load(data.path()).unwrap();
        assert!(rules.members_read_only && !rules.roots[0].read_write, "absent fields deny");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(why().contains("chmod 600"), "{}", why());
    }

    #[test]
    fn names_are_matched_against_patterns() {
        let blocked =
            |path: &str| blocked_by(Path::new(path), &BLOCKED.map(str::to_owned)).is_some();
        for path in [
            "/h/.SSH",
            "/h/.ssh/x",
            "/h/.env",
            "/h/.env.local",
            "/h/aws-Credentials.json/x",
            "/h/id_rsa.pub",
            "/h/my_private_key_2",
            "/h/x.pem",
            "/h/.config/gcloud/x",
            "/h/a.key/b",
        ] {
            assert!(blocked(path), "{path}");
        }
        for path in ["/h/ssh", "/h/environment", "/h/pem", "/h/.config", "/h/gcloud", "/h/keys"] {
            assert!(!blocked(path), "{path}");
        }
    }
}
