//! The records of spaces.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ostler_base::error::{ApiError, Fallible, shown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::Policy;
use crate::records::kept;

/// The length limit of the name of a space, and of a mount.
const LONGEST_NAME: usize = 64;

/// A named workspace: a folder, members, a memory, and a policy for agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Space {
    /// Its name in URLs: lower-case letters, digits and dashes.
    pub id: String,
    /// Its title for people.
    pub title: String,
    /// The user to whom it belongs.
    pub owner: String,
    /// The other users, and their roles.
    #[serde(default)]
    pub members: BTreeMap<String, MemberRole>,
    /// The folder in which its agents work.
    pub folder: PathBuf,
    /// Whether the folder is in the server's data, and not one of the operator's.
    pub private: bool,
    /// The time zone of its users: `Europe/Berlin`.
    pub zone: String,
    /// The defaults of its sessions, which they cannot widen.
    #[serde(default)]
    pub policy: Policy,
    /// The user who let its agents use a whole tool without approval, if one did.
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

/// The role of a user other than the owner in a space.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Has own sessions there, and can change its memory.
    Member,
    /// Also changes its settings, mounts and members, and sees all sessions there.
    Admin,
}

/// A folder from another place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// Its name in the space.
    pub name: String,
    /// Its path, as given.
    pub path: PathBuf,
    /// The real path when it was added. If it changes later, no session starts.
    pub(crate) real: PathBuf,
    /// Whether agents may change files in it, if the operator also allows it.
    pub write: bool,
}

kept!(Space, "space");

/// Refuses an invalid name of a space or a mount: it becomes a part of a path.
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
    let message = format!("{} is not a valid name", shown(name));
    Err(ApiError::invalid(field, message)
        .hint("use 1 to 64 lower-case letters, digits and dashes, with no dash at either end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with a check that does not look at every character.
    #[test]
    fn invalid_names_are_refused() {
        for name in ["a", "team-1", &"x".repeat(64)] {
            check_name("id", name).unwrap();
        }
        let odd = ["", "-a", "a-", "A", "a b", "a/b", "..", ".", "a.b", "/a", "a:b", "a\n", "ä"];
        for name in odd.into_iter().chain([&*"x".repeat(65)]) {
            assert_eq!(check_name("id", name).unwrap_err().status(), 422, "{name:?}");
        }
    }
}
