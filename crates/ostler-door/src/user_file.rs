//! Where users are kept: a JSON file that only its owner can read.
//!
//! Records belong to a user's id, which is given once and never again. Earlier versions kept a list of users without ids;
//! there the name is the id.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use ostler_base::private;
use serde::{Deserialize, Serialize};

use super::token::TokenDigest;

/// What somebody may do; each role may do all that the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs of one's own.
    Member,
    /// Also everybody's runs, rules, schedules and users.
    Admin,
    /// Also the server itself, and who is an admin.
    Owner,
}

/// A user, as kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// What records belong to. No other user ever gets the same one.
    #[serde(default)]
    pub id: String,
    pub name: String,
    pub role: Role,
    #[serde(default)]
    pub tokens: Vec<KeptToken>,
}

/// A token, as kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptToken {
    /// What it is called by, to take it back.
    pub id: String,
    pub digest: TokenDigest,
    /// What it is for, in the user's words.
    #[serde(default)]
    pub label: String,
}

/// Everything that is kept about users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptUsers {
    pub users: Vec<User>,
    /// Ids of users who were removed.
    #[serde(default)]
    pub removed: BTreeSet<String>,
    /// Whether an earlier version wrote it, which did not remember whom it removed.
    #[serde(skip)]
    pub lacks_removed: bool,
}

/// Where users are kept.
pub trait UserStore: Send + Sync {
    /// All of them.
    ///
    /// # Errors
    /// When they cannot be read; the server does not start then.
    fn load(&self) -> io::Result<KeptUsers>;

    /// Keeps all of them, or changes nothing.
    ///
    /// # Errors
    /// When they cannot be kept.
    fn save(&self, users: &KeptUsers) -> io::Result<()>;
}

/// Users in a JSON file that only its owner can read.
pub struct UserFile(pub PathBuf);

impl UserStore for UserFile {
    fn load(&self) -> io::Result<KeptUsers> {
        let text = match private::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // It may have been moved away, with users who still have records.
                return Ok(KeptUsers { lacks_removed: true, ..KeptUsers::default() });
            }
            Err(error) => return Err(error),
        };
        read(&text).map_err(|error| {
            let text = format!("{} does not hold users: {error}", self.0.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    fn save(&self, users: &KeptUsers) -> io::Result<()> {
        let text = serde_json::to_string_pretty(users)?;
        private::replace(&self.0, text.as_bytes())
    }
}

fn read(text: &str) -> serde_json::Result<KeptUsers> {
    let mut kept = match text.trim_start().starts_with('[') {
        true => {
            let users = serde_json::from_str(text)?;
            KeptUsers { users, lacks_removed: true, ..KeptUsers::default() }
        }
        false => serde_json::from_str(text)?,
    };
    for user in &mut kept.users {
        if user.id.is_empty() {
            user.id.clone_from(&user.name);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with `read` that leaves the ids of a list empty.
    #[test]
    fn users_of_an_earlier_version_keep_their_names_as_ids() {
        let old = r#"[{"name": "ada", "role": "member", "tokens": []}]"#;
        let kept = read(old).unwrap();
        assert_eq!((kept.users[0].id.as_str(), kept.lacks_removed), ("ada", true));
        let again = read(&serde_json::to_string(&kept).unwrap()).unwrap();
        assert_eq!((&again.users, again.lacks_removed), (&kept.users, false));
        assert!(read(r#"{"users": [], "more": 1}"#).is_err(), "unknown fields are an error");
    }
}
