//! Which folders of this machine spaces may show to their agents: the operator's file `mounts.json` says so, and without
//! it there are none.
//!
//! ```json
//! {"roots": [{"path": "/srv/docs"}, {"path": "/srv/data", "readWrite": true}],
//!  "blocked": ["*.bak"], "membersReadOnly": true}
//! ```
//!
//! The file lies in the server's own folder, which agents are kept out of, and is read every time it is needed. Paths are
//! judged where they really lead, when a mount is added and again whenever a session begins.

use std::io;
use std::path::{Component, Path, PathBuf};

use ostler_base::error::{ApiError, Fallible};
use ostler_base::private;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::SpaceRole;
use crate::confine::own_files::MOUNTS;
use crate::model::space::Mount;

/// What nobody means to show to an agent, wherever it lies.
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

/// What the operator allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MountRules {
    /// Folders that may be shown, with all below them.
    pub roots: Vec<Root>,
    /// More names that are never shown, beside the usual ones.
    #[serde(default)]
    pub blocked: Vec<String>,
    /// Whether sessions of plain members only read.
    #[serde(default = "yes")]
    pub members_read_only: bool,
}

/// A folder that may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Root {
    pub path: PathBuf,
    /// Whether agents may be let change what is in it.
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
    /// When it is not there or cannot be used; then nothing can be mounted, and the error says so.
    pub(crate) fn load(data: &Path) -> Fallible<Self> {
        let file = data.join(MOUNTS);
        let blocks = |why: String| {
            ApiError::forbidden("no_mounts", format!("no folder can be mounted: {why}"))
        };
        let text = private::read(&file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                blocks(format!("the operator has not said which ({MOUNTS} is not there)"))
            }
            _ => blocks(error.to_string()),
        })?;
        let rules: Self = serde_json::from_str(&text)
            .map_err(|error| blocks(format!("{MOUNTS} cannot be understood: {error}")))?;
        match rules.roots.iter().find(|root| !root.path.is_absolute()) {
            Some(root) => Err(blocks(format!(
                "{} in {MOUNTS} does not begin at the root",
                root.path.display()
            ))),
            None => Ok(rules),
        }
    }

    /// All names that are never shown.
    pub fn blocked(&self) -> Vec<String> {
        let usual = BLOCKED.iter().map(|name| (*name).to_owned());
        usual.chain(self.blocked.iter().cloned()).collect()
    }

    /// Where a path leads and whether that may be shown; the root it lies in.
    pub(super) fn check(&self, path: &Path) -> Fallible<(PathBuf, &Root)> {
        let refused =
            |why: String| ApiError::forbidden("mount_refused", format!("{} {why}", path.display()));
        let is_plain = path.is_absolute()
            && path.components().all(|part| !matches!(part, Component::ParentDir));
        if !is_plain {
            return Err(refused("does not begin at the root, or goes up".to_owned()));
        }
        let real = path.canonicalize().map_err(|_| refused("is not there".to_owned()))?;
        if !real.is_dir() {
            return Err(refused("is no folder".to_owned()));
        }
        let blocked = self.blocked();
        // As it was named, too: a name that is blocked is blocked whatever it leads to.
        if let Some(name) = [path, &*real].into_iter().find_map(|path| blocked_by(path, &blocked)) {
            return Err(refused(format!("has a name that is never shown to agents ({name})")));
        }
        let root = self
            .roots
            .iter()
            .find(|root| root.path.canonicalize().is_ok_and(|allowed| real.starts_with(allowed)));
        match root {
            Some(root) => Ok((real, root)),
            None => Err(refused(format!("is in no folder that the operator lists in {MOUNTS}"))
                .hint("ask the operator to add it to the roots there")),
        }
    }

    /// A mount as a session has it: where it is, and whether it may be written. Checked again, because whoever can write
    /// on the way to it can lead it elsewhere.
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

/// The pattern that one of the names in a path fits.
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

/// Whether a name fits a pattern in which a star stands for anything.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            fits(rest, name) || name.split_first().is_some_and(|(_, name)| fits(pattern, name))
        }
        (Some((wanted, rest)), Some((letter, name))) if wanted == letter => fits(rest, name),
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

    // Seen to fail with a check of the written path alone (keys, out), of the real path alone, and with one that compares
    // texts (docs-old).
    #[test]
    fn only_what_the_operator_lists_can_be_mounted() {
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
        assert!(rules.check(Path::new("docs")).is_err(), "not from where the server happens to be");
    }

    // Seen to fail with `open` that trusts what was checked when the mount was added.
    #[test]
    fn a_way_that_leads_elsewhere_later_is_refused() {
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

    // Seen to fail with each of the three conditions left out.
    #[test]
    fn a_mount_is_written_only_if_all_say_so() {
        let (house, mut rules) = house();
        let mut writable = |place: &str, write, role, members_read_only| {
            rules.members_read_only = members_read_only;
            let path = house.path().join(place);
            let (real, _) = rules.check(&path).unwrap();
            let mount = Mount { name: "x".to_owned(), path, real, write };
            rules.open(&mount, role).unwrap().1
        };
        assert!(writable("data", true, SpaceRole::Admin, true));
        assert!(!writable("docs", true, SpaceRole::Owner, true), "the operator says no");
        assert!(!writable("data", false, SpaceRole::Owner, true), "the mount says no");
        assert!(!writable("data", true, SpaceRole::Member, true), "members only read");
        assert!(writable("data", true, SpaceRole::Member, false), "unless they may");
    }

    #[test]
    fn without_the_operators_word_nothing_is_mounted() {
        let data = tempfile::tempdir().unwrap();
        let why = || MountRules::load(data.path()).unwrap_err().detail().message.clone();
        assert!(why().contains("mounts.json is not there"), "{}", why());
        let file = data.path().join(MOUNTS);
        for (text, expected) in [
            ("{", "cannot be understood"),
            (r#"{"roots": [], "writable": true}"#, "unknown field"),
            (r#"{"roots": [{"path": "docs"}]}"#, "does not begin at the root"),
        ] {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(why().contains(expected), "{}", why());
        }
        fs::write(&file, r#"{"roots": [{"path": "/srv"}]}"#).unwrap();
        let rules = MountRules::load(data.path()).unwrap();
        assert!(rules.members_read_only && !rules.roots[0].read_write, "what is not said is no");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(why().contains("chmod 600"), "{}", why());
    }

    #[test]
    fn names_fit_patterns() {
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
