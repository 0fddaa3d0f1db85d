//! The file with the users: JSON that only its owner can read.
//!
//! Records belong to a user's id, which is never used again. Files of earlier versions have a list of users without
//! ids; there the name is the id.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use ostler_base::private;
use serde::{Deserialize, Serialize};

use super::token::TokenDigest;

/// What a user may do. Each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Has own runs.
    Member,
    /// Also manages all runs, rules, schedules and users.
    Admin,
    /// Also manages the server itself and its admins.
    Owner,
}

/// A user, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Records belong to this id. No other user ever gets the same one.
    #[serde(default)]
    pub id: String,
    pub name: String,
    pub role: Role,
    #[serde(default)]
    pub tokens: Vec<KeptToken>,
}

/// A token, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptToken {
    /// The id for revoking it.
    pub id: String,
    pub digest: TokenDigest,
    /// What it is for, in the user's own words.
    #[serde(default)]
    pub label: String,
}

/// All stored data about users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptUsers {
    pub users: Vec<User>,
    /// Ids of users who were removed.
    #[serde(default)]
    pub removed: BTreeSet<String>,
    /// Whether an earlier version wrote the file. It did not store which users it removed.
    #[serde(skip)]
    pub lacks_removed: bool,
}

/// A place where users are stored.
pub trait UserStore: Send + Sync {
    /// Reads all users.
    ///
    /// # Errors
    /// When they cannot be read; the server then does not start.
    fn load(&self) -> io::Result<KeptUsers>;

    /// Stores all users, or changes nothing.
    ///
    /// # Errors
    /// When they cannot be stored.
    fn save(&self, users: &KeptUsers) -> io::Result<()>;
}

/// Users in a JSON file that only its owner can read.
pub struct UserFile(pub PathBuf);

impl UserStore for UserFile {
    fn load(&self) -> io::Result<KeptUsers> {
        let text = match private::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The file may have been moved away although its users still have records.
                return Ok(KeptUsers { lacks_removed: true, ..KeptUsers::default() });
            }
            Err(error) => return Err(error),
        };
        read(&text).map_err(|error| {
            let text = format!("{} is not a valid file of users: {error}", self.0.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    fn save(&self, users: &KeptUsers) -> io::Result<()> {
        let text = serde_json::to_string_pretty(users)?;
        private::replace(&self.0, text.as_bytes())
    }
}

fn read(text: &str) -> serde_json::Result<KeptUsers> {
    let mut stored = match text.trim_start().starts_with('[') {
        true => {
            let users = serde_json::from_str(text)?;
            KeptUsers { users, lacks_removed: true, ..KeptUsers::default() }
        }
        false => serde_json::from_str(text)?,
    };
    for user in &mut stored.users {
        if user.id.is_empty() {
            user.id.clone_from(&user.name);
        }
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with `read` that leaves the ids of a list empty.
    #[test]
    fn users_of_an_earlier_version_keep_their_names_as_ids() {
        let old = r#"[{"name": "ada", "role": "member", "tokens": []}]"#;
        let stored = read(old).unwrap();
        assert_eq!((stored.users[0].id.as_str(), stored.lacks_removed), ("ada", true));
        let again = read(&serde_json::to_string(&stored).unwrap()).unwrap();
        assert_eq!((&again.users, again.lacks_removed), (&stored.users, false));
        assert!(read(r#"{"users": [], "more": 1}"#).is_err(), "unknown fields are an error");
    }
}
