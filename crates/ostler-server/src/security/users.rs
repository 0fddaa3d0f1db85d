//! The people who use the server: their names, roles and tokens, of which only digests are kept.
//!
//! The owner is always there and has the token of the token file. Everybody else is in a [`UserStore`].

use std::io;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};

use super::error::{ApiError, shown};
use super::private;
use super::token::{Token, TokenDigest, TokenFile, random_text};

/// Whoever holds the token file.
pub(crate) const OWNER: &str = "owner";
const MOST_USERS: usize = 10_000;
const MOST_TOKENS: usize = 100;

/// What somebody may do; each role may do all that the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Runs of one's own.
    Member,
    /// Also everybody's runs, rules, schedules and users.
    Admin,
    /// Also the server itself, and who is an admin.
    Owner,
}

/// Who sent a request. The guard puts it there; a route that takes it as an argument cannot be reached without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) role: Role,
    /// The digest of the token that let him in, whether he sent it now or once for a cookie.
    pub(crate) grant: TokenDigest,
}

impl Caller {
    /// Refuses whoever may do less.
    ///
    /// # Errors
    /// When the role is not enough.
    pub(crate) fn require(&self, role: Role) -> Result<(), ApiError> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("this needs the role {role:?}, and you are {:?}", self.role);
        Err(ApiError::forbidden("role_too_low", message.to_lowercase()))
    }

    /// The server itself, at work for somebody: it reaches what is his, and nothing else.
    pub(crate) fn on_behalf(user: &str) -> Self {
        let grant = TokenDigest::of(&random_text(32));
        Self { user: user.to_owned(), role: Role::Member, grant }
    }

    /// Whether he may see and answer what belongs to somebody. What he may not see must look as if it were not there.
    pub(crate) fn may_see(&self, whose: &str) -> bool {
        self.user == whose || self.role >= Role::Admin
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::unauthenticated("this needs a token"))
    }
}

/// Somebody, as kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) role: Role,
    #[serde(default)]
    pub(crate) tokens: Vec<KeptToken>,
}

/// A token, as kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptToken {
    /// What it is called by, to take it back.
    pub(crate) id: String,
    pub(crate) digest: TokenDigest,
    /// What it is for, in the user's words.
    #[serde(default)]
    pub(crate) label: String,
}

/// Where users are kept.
pub(crate) trait UserStore: Send + Sync {
    /// All of them.
    ///
    /// # Errors
    /// When they cannot be read; the server does not start then.
    fn load(&self) -> io::Result<Vec<User>>;

    /// Keeps all of them, or changes nothing.
    ///
    /// # Errors
    /// When they cannot be kept.
    fn save(&self, users: &[User]) -> io::Result<()>;
}

/// Users in a JSON file that only its owner can read.
pub(crate) struct UserFile(pub(crate) PathBuf);

impl UserStore for UserFile {
    fn load(&self) -> io::Result<Vec<User>> {
        let text = match private::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        serde_json::from_str(&text).map_err(|error| {
            let text = format!("{} does not hold users: {error}", self.0.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    fn save(&self, users: &[User]) -> io::Result<()> {
        let text = serde_json::to_string_pretty(users)?;
        private::replace(&self.0, text.as_bytes())
    }
}

/// Everybody who may come in.
pub(crate) struct Users {
    owner: TokenFile,
    store: Box<dyn UserStore>,
    known: RwLock<Vec<User>>,
}

impl Users {
    /// The owner, and those who are kept.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn load(owner: TokenFile, store: Box<dyn UserStore>) -> io::Result<Self> {
        let known = RwLock::new(store.load()?);
        Ok(Self { owner, store, known })
    }

    /// The owner's token file.
    pub(crate) fn owner(&self) -> &TokenFile {
        &self.owner
    }

    /// Whose token this is the digest of, as things are now.
    pub(crate) fn caller(&self, grant: &TokenDigest) -> Option<Caller> {
        if self.owner.is(grant) {
            return Some(Caller { user: OWNER.to_owned(), role: Role::Owner, grant: *grant });
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let has_it = |user: &&User| user.tokens.iter().any(|token| token.digest == *grant);
        let user = known.iter().find(has_it)?;
        Some(Caller { user: user.name.clone(), role: user.role, grant: *grant })
    }

    /// What somebody may do, if there is such a user.
    pub(crate) fn role(&self, name: &str) -> Option<Role> {
        if name == OWNER {
            return Some(Role::Owner);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|user| user.name == name).map(|user| user.role)
    }

    /// Everybody beside the owner.
    pub(crate) fn list(&self) -> Vec<User> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds somebody, who has no token yet.
    ///
    /// # Errors
    /// When the caller may not, the name is none or is taken, or it cannot be kept.
    pub(crate) fn add(&self, by: &Caller, name: &str, role: Role) -> Result<(), ApiError> {
        may_make(by, role)?;
        if !is_name(name) {
            let message = format!("{} is no name for a user", shown(name));
            let hint =
                "1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter";
            return Err(ApiError::invalid("name", message).hint(hint));
        }
        self.change(|users| {
            if name.eq_ignore_ascii_case(OWNER) || users.iter().any(|user| user.name == name) {
                let message = format!("there is a user {name} already");
                return Err(ApiError::conflict("user_exists", message).field("name"));
            }
            if users.len() >= MOST_USERS {
                return Err(ApiError::conflict("too_many_users", "there are too many users"));
            }
            users.push(User { name: name.to_owned(), role, tokens: Vec::new() });
            Ok(())
        })
    }

    /// Changes what somebody may do, from the next request on.
    ///
    /// # Errors
    /// When the caller may not, there is no such user, or it cannot be kept.
    pub(crate) fn set_role(&self, by: &Caller, name: &str, role: Role) -> Result<(), ApiError> {
        may_make(by, role)?;
        self.change(|users| {
            let user = named(users, name)?;
            may_make(by, user.role)?;
            user.role = role;
            Ok(())
        })
    }

    /// Removes somebody with all his tokens; what he is doing goes on, but he is not let in again.
    ///
    /// # Errors
    /// When the caller may not, there is no such user, or it cannot be kept.
    pub(crate) fn remove(&self, by: &Caller, name: &str) -> Result<(), ApiError> {
        self.change(|users| {
            may_make(by, named(users, name)?.role)?;
            users.retain(|user| user.name != name);
            Ok(())
        })
    }

    /// A new token for somebody, with the id it is taken back by. It is shown this once.
    ///
    /// # Errors
    /// When the caller may not, there is no such user, he has too many, or it cannot be kept.
    pub(crate) fn issue(
        &self,
        by: &Caller,
        name: &str,
        label: &str,
    ) -> Result<(String, Token), ApiError> {
        let (id, token) = (random_text(9), Token::random());
        self.change(|users| {
            let user = named(users, name).and_then(|user| may_manage(by, user).map(|()| user))?;
            if user.tokens.len() >= MOST_TOKENS {
                let message = format!("{name} has {MOST_TOKENS} tokens; take one back first");
                return Err(ApiError::conflict("too_many_tokens", message));
            }
            let label = label.chars().take(100).collect();
            user.tokens.push(KeptToken { id: id.clone(), digest: token.digest(), label });
            Ok(())
        })?;
        Ok((id, token))
    }

    /// Takes a token back, and with it every cookie that was given for it.
    ///
    /// # Errors
    /// When the caller may not, there is no such token, or it cannot be kept.
    pub(crate) fn revoke(&self, by: &Caller, name: &str, id: &str) -> Result<(), ApiError> {
        self.change(|users| {
            let user = named(users, name).and_then(|user| may_manage(by, user).map(|()| user))?;
            let place = user.tokens.iter().position(|token| token.id == id);
            let place =
                place.ok_or_else(|| ApiError::not_found(format!("{name} has no such token")))?;
            user.tokens.remove(place);
            Ok(())
        })
    }

    /// Changes a copy, keeps it, and only then lets it count.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<User>) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut users = known.clone();
        change(&mut users)?;
        self.store.save(&users).map_err(|_| {
            let message = "the users cannot be kept; nothing was changed";
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "not_kept", message)
                .hint("see whether the disk is full and the state folder can be written")
        })?;
        *known = users;
        Ok(())
    }
}

/// Only the owner makes and unmakes admins; there is one owner.
fn may_make(by: &Caller, role: Role) -> Result<(), ApiError> {
    match role {
        Role::Member => by.require(Role::Admin),
        Role::Admin => by.require(Role::Owner),
        Role::Owner => {
            let message = "there is one owner: whoever can read the token file";
            Err(ApiError::forbidden("one_owner", message).field("role"))
        }
    }
}

/// Everybody has his own tokens in hand, and those of people he could have added.
fn may_manage(by: &Caller, user: &User) -> Result<(), ApiError> {
    if by.user == user.name { Ok(()) } else { may_make(by, user.role) }
}

fn named<'a>(users: &'a mut [User], name: &str) -> Result<&'a mut User, ApiError> {
    let user = users.iter_mut().find(|user| user.name == name);
    user.ok_or_else(|| ApiError::not_found(format!("there is no user {}", shown(name))))
}

fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(place: &tempfile::TempDir) -> (Users, Caller) {
        let owner = TokenFile::open(place.path().join("token")).unwrap();
        let store = Box::new(UserFile(place.path().join("users.json")));
        let users = Users::load(owner, store).unwrap();
        let grant = users.owner().token().unwrap().digest();
        let owner = users.caller(&grant).unwrap();
        (users, owner)
    }

    fn with_token(users: &Users, owner: &Caller, name: &str, role: Role) -> (Caller, Token) {
        users.add(owner, name, role).unwrap();
        let (_, token) = users.issue(owner, name, "test").unwrap();
        (users.caller(&token.digest()).unwrap(), token)
    }

    #[test]
    fn people_are_known_by_their_tokens_after_a_restart_too() {
        let place = tempfile::tempdir().unwrap();
        let (before, owner) = users(&place);
        assert_eq!((owner.user.as_str(), owner.role), (OWNER, Role::Owner));
        let (ada, token) = with_token(&before, &owner, "ada", Role::Member);
        assert_eq!((ada.user.as_str(), ada.role), ("ada", Role::Member));
        let (after, _) = users(&place);
        assert_eq!(after.caller(&token.digest()), Some(ada));
        assert_eq!(after.caller(&Token::random().digest()), None);
        let kept = std::fs::read_to_string(place.path().join("users.json")).unwrap();
        assert!(!kept.contains(token.expose()), "tokens are not kept");
    }

    // Seen to fail with `may_make` that lets admins make admins, and with `remove` that does not ask it.
    #[test]
    fn nobody_makes_himself_more_than_he_is() {
        let place = tempfile::tempdir().unwrap();
        let (users, owner) = users(&place);
        let (ada, _) = with_token(&users, &owner, "ada", Role::Admin);
        let (bob, _) = with_token(&users, &owner, "bob", Role::Member);
        let no = |result: Result<(), ApiError>| assert_eq!(result.unwrap_err().status(), 403);
        no(users.add(&bob, "eve", Role::Member));
        no(users.add(&ada, "eve", Role::Admin));
        no(users.add(&owner, "eve", Role::Owner));
        no(users.set_role(&ada, "bob", Role::Admin));
        no(users.set_role(&bob, "bob", Role::Admin));
        no(users.set_role(&ada, "ada", Role::Member));
        no(users.remove(&bob, "ada"));
        no(users.remove(&ada, "ada"));
        no(users.issue(&bob, "ada", "").map(|_| ()));
        users.add(&ada, "cy", Role::Member).unwrap();
        users.issue(&bob, "bob", "my own").unwrap();
        users.remove(&ada, "bob").unwrap();
        assert_eq!(users.caller(&bob.grant), None, "gone at once");
    }

    #[test]
    fn a_token_that_was_taken_back_does_not_count() {
        let place = tempfile::tempdir().unwrap();
        let (users, owner) = users(&place);
        users.add(&owner, "ada", Role::Member).unwrap();
        let (id, token) = users.issue(&owner, "ada", "laptop").unwrap();
        let (_, other) = users.issue(&owner, "ada", "phone").unwrap();
        users.revoke(&owner, "ada", &id).unwrap();
        assert_eq!(users.caller(&token.digest()), None);
        assert!(users.caller(&other.digest()).is_some());
        assert_eq!(users.revoke(&owner, "ada", &id).unwrap_err().status(), 404);
    }

    #[test]
    fn names_are_names() {
        let place = tempfile::tempdir().unwrap();
        let (users, owner) = users(&place);
        for name in ["", "../x", "a/b", "1a", "a b", "a\n", &"a".repeat(65)] {
            assert_eq!(users.add(&owner, name, Role::Member).unwrap_err().status(), 422, "{name}");
        }
        users.add(&owner, "ada", Role::Member).unwrap();
        for taken in ["ada", "owner", "Owner"] {
            assert_eq!(users.add(&owner, taken, Role::Member).unwrap_err().status(), 409);
        }
    }

    #[test]
    fn what_cannot_be_kept_does_not_count() {
        struct Full;
        impl UserStore for Full {
            fn load(&self) -> io::Result<Vec<User>> {
                Ok(Vec::new())
            }
            fn save(&self, _: &[User]) -> io::Result<()> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
        }
        let place = tempfile::tempdir().unwrap();
        let owner = TokenFile::open(place.path().join("token")).unwrap();
        let users = Users::load(owner, Box::new(Full)).unwrap();
        let owner = users.caller(&users.owner().token().unwrap().digest()).unwrap();
        assert_eq!(users.add(&owner, "ada", Role::Member).unwrap_err().status(), 500);
        assert!(users.list().is_empty());
    }
}
