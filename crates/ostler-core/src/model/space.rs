//! Spaces, as they are kept.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ostler_base::error::{ApiError, Fallible, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::Policy;
use crate::records::kept;

/// The longest name of a space, and of a mount.
const LONGEST_NAME: usize = 64;

/// A named workspace: a folder, people, a memory, and what agents may do there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Space {
    /// Its name in addresses: small letters, digits and dashes.
    pub id: String,
    /// What people call it.
    pub title: String,
    /// The user it belongs to.
    pub owner: String,
    /// Who else has to do with it.
    #[serde(default)]
    pub members: BTreeMap<String, MemberRole>,
    /// Where its agents work.
    pub folder: PathBuf,
    /// Whether that is a folder of its own in the server's data, and not one of the operator's.
    pub private: bool,
    /// The time zone its people live in: `Europe/Berlin`.
    pub zone: String,
    /// What its sessions begin with, and cannot widen.
    #[serde(default)]
    pub policy: Policy,
    /// The user who let its agents use a whole tool without a question, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widened_by: Option<String>,
    /// Other folders that its agents see.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Names of the secrets that its agents' commands get.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Milliseconds since 1970.
    pub created: u64,
}

/// What somebody beside the owner may do in a space.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Sessions of one's own there, and its memory.
    Member,
    /// Also its settings, mounts and members, and to see everybody's sessions there.
    Admin,
}

/// A folder from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// What it is called in the space.
    pub name: String,
    /// Where it is, as it was named.
    pub path: PathBuf,
    /// Where that led when it was added. If it leads elsewhere one day, no session begins.
    pub(crate) real: PathBuf,
    /// Whether agents may change what is in it, where the operator lets them too.
    pub write: bool,
}

kept!(Space, "space");

/// Refuses what is no name for a space or a mount: it becomes a part of a path.
pub(crate) fn check_name(field: &str, name: &str) -> Fallible<()> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_fine)
        && !name.starts_with('-')
        && !name.ends_with('-')
    {
        return Ok(());
    }
    let message = format!("{} is no name here", shown(name));
    Err(ApiError::invalid(field, message)
        .hint("1 to 64 small letters, digits and dashes, with no dash at either end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with a check that forgets to look at every character.
    #[test]
    fn names_are_names() {
        for name in ["a", "team-1", &"x".repeat(64)] {
            check_name("id", name).unwrap();
        }
        let odd = ["", "-a", "a-", "A", "a b", "a/b", "..", ".", "a.b", "/a", "a:b", "a\n", "ä"];
        for name in odd.into_iter().chain([&*"x".repeat(65)]) {
            assert_eq!(check_name("id", name).unwrap_err().status(), 422, "{name:?}");
        }
    }
}
