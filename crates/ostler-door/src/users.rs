//! The users of the server: their ids, names, roles and tokens, of which only digests are stored.
//!
//! The owner always exists and has the token of the token file. All other users are in a `UserStore`. Records belong to
//! a user's id. The first user of a name has the name as id. After a user is removed, the next user of that name gets
//! another id, and therefore none of the first user's records.

use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::HashMap;
use std::io;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use ostler_base::error::{ApiError, shown};
use ostler_base::ids::random_text;

use super::changes::Changes;
use super::token::{Token, TokenDigest, TokenFile};
pub use super::user_file::{KeptToken, Role, User, UserFile};
pub(crate) use super::user_file::{KeptUsers, UserStore};

/// The id of the owner, who can read the token file.
pub(crate) const OWNER: &str = "owner";
/// Separates the name from the rest of the id if another user had the name before. No name contains it.
const AGAIN: char = '~';
const MOST_USERS: usize = 10_000;
const MOST_TOKENS: usize = 100;

/// Who sent a request. The guard adds it; a route that takes it as an argument cannot be reached without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user's id; [`Users::name_of`] has the name.
    pub user: String,
    pub role: Role,
    /// The digest of the caller's token, sent with this request or earlier to get a cookie.
    pub grant: TokenDigest,
}

impl Caller {
    /// Refuses a caller with a lower role.
    ///
    /// # Errors
    /// When the role is not sufficient.
    pub fn require(&self, role: Role) -> Result<(), ApiError> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("this needs the role {role:?}, and your role is {:?}", self.role);
        Err(ApiError::forbidden("role_too_low", message.to_lowercase()))
    }

    /// The server itself on behalf of a user: it can access what belongs to that user, and nothing else.
    pub fn on_behalf(user: &str) -> Self {
        let grant = TokenDigest::of(&random_text(32));
        Self { user: user.to_owned(), role: Role::Member, grant }
    }

    /// Whether the caller may see and answer what belongs to a user. What the caller may not see must look as if it did
    /// not exist.
    pub fn may_see(&self, whose: &str) -> bool {
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

/// All users.
pub struct Users {
    owner: TokenFile,
    store: Box<dyn UserStore>,
    known: RwLock<Known>,
    changes: Changes,
    /// Whether users other than the owner may be added.
    trusts_members: bool,
}

/// The users, with an index.
#[derive(Default)]
struct Known {
    stored: KeptUsers,
    /// The index of each user in the list, by the digests of the user's tokens.
    by_token: HashMap<TokenDigest, usize>,
}

impl Known {
    fn new(stored: KeptUsers) -> Self {
        let digests = stored.users.iter().enumerate();
        let by_token = digests
            .flat_map(|(place, user)| user.tokens.iter().map(move |token| (token.digest, place)))
            .collect();
        Self { stored, by_token }
    }
}

impl Users {
    /// The owner, and the stored users. More can be added after [`Users::trusting_members`].
    ///
    /// # Errors
    /// When the users cannot be read.
    pub fn load(owner: TokenFile, store: Box<dyn UserStore>) -> io::Result<Self> {
        let known = RwLock::new(Known::new(store.load()?));
        Ok(Self { owner, store, known, changes: Changes::default(), trusts_members: false })
    }

    /// Sets whether the operator trusts every user as much as the owner. Adding users requires it, because their agents
    /// run programs as the server's own user.
    #[must_use]
    pub fn trusting_members(mut self, trusts: bool) -> Self {
        self.trusts_members = trusts;
        self
    }

    /// The owner's token file.
    pub fn owner(&self) -> &TokenFile {
        &self.owner
    }

    /// Notifies of every change of users and tokens.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read()
    }

    /// The user who currently has the token with this digest.
    pub fn caller(&self, grant: &TokenDigest) -> Option<Caller> {
        if self.owner.is(grant) {
            return Some(Caller { user: OWNER.to_owned(), role: Role::Owner, grant: *grant });
        }
        let known = self.known();
        let user = known.stored.users.get(*known.by_token.get(grant)?)?;
        Some(Caller { user: user.id.clone(), role: user.role, grant: *grant })
    }

    /// The role of the user with this id.
    pub fn role(&self, id: &str) -> Option<Role> {
        if id == OWNER {
            return Some(Role::Owner);
        }
        self.known().stored.users.iter().find(|user| user.id == id).map(|user| user.role)
    }

    /// The name of the user with this id, also of a removed user.
    pub fn name_of(&self, id: &str) -> String {
        let known = self.known();
        let user = known.stored.users.iter().find(|user| user.id == id);
        let name = user.map(|user| user.name.as_str());
        name.or_else(|| id.split(AGAIN).next()).unwrap_or(id).to_owned()
    }

    /// The id of the user with this name.
    pub fn id_of(&self, name: &str) -> Option<String> {
        if name == OWNER {
            return Some(OWNER.to_owned());
        }
        let known = self.known();
        known.stored.users.iter().find(|user| user.name == name).map(|user| user.id.clone())
    }

    /// Whether the user with this id was removed.
    pub fn is_removed(&self, id: &str) -> bool {
        self.known().stored.removed.contains(id)
    }

    /// The ids of users who were removed.
    pub fn removed(&self) -> Vec<String> {
        self.known().stored.removed.iter().cloned().collect()
    }

    /// All users except the owner.
    pub fn list(&self) -> Vec<User> {
        self.known().stored.users.clone()
    }

    /// Whether an earlier version wrote the users. It did not store which users it removed.
    pub fn lacks_removed(&self) -> bool {
        self.known().stored.lacks_removed
    }

    /// Marks the ids in `owners` that no user has as ids of removed users, so that no user gets them again.
    ///
    /// # Errors
    /// When the change cannot be stored.
    pub fn retire(&self, owners: impl IntoIterator<Item = String>) -> Result<(), ApiError> {
        self.change(|stored| {
            let is_gone = |id: &String| id != OWNER && stored.users.iter().all(|it| it.id != *id);
            let gone: Vec<String> = owners.into_iter().filter(is_gone).collect();
            stored.removed.extend(gone);
            stored.lacks_removed = false;
            Ok(())
        })
    }

    /// Adds a user without a token.
    ///
    /// # Errors
    /// When the caller may not, the name is invalid or taken, or the change cannot be stored.
    pub fn add(&self, by: &Caller, name: &str, role: Role) -> Result<User, ApiError> {
        may_make(by, role)?;
        if !is_name(name) {
            let message = format!("{} is not a valid user name", shown(name));
            let hint = "use 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter";
            return Err(ApiError::invalid("name", message).hint(hint));
        }
        if !self.trusts_members {
            let message = "this server is for one user: every other user could run programs as \
                the server's own user, and so read the owner's token and all conversations";
            return Err(ApiError::forbidden("members_not_trusted", message)
                .hint("start the server with --trust-members if you trust each user that much"));
        }
        self.change(|stored| {
            let KeptUsers { users, removed, .. } = stored;
            if name.eq_ignore_ascii_case(OWNER) || users.iter().any(|user| user.name == name) {
                let message = format!("there is a user {name} already");
                return Err(ApiError::conflict("user_exists", message).field("name"));
            }
            if users.len() >= MOST_USERS {
                return Err(ApiError::conflict("too_many_users", "there are too many users"));
            }
            let id = match removed.contains(name) {
                true => format!("{name}{AGAIN}{}", random_text(9)),
                false => name.to_owned(),
            };
            let user = User { id, name: name.to_owned(), role, tokens: Vec::new() };
            users.push(user.clone());
            Ok(user)
        })
    }

    /// Changes the role of a user, from the next request.
    ///
    /// # Errors
    /// When the caller may not, the user does not exist, or the change cannot be stored.
    pub(crate) fn set_role(&self, by: &Caller, name: &str, role: Role) -> Result<(), ApiError> {
        may_make(by, role)?;
        self.change(|stored| {
            let user = named(&mut stored.users, name)?;
            may_make(by, user.role)?;
            user.role = role;
            Ok(())
        })
    }

    /// Removes a user with all tokens. Open connections end, and so do the user's runs (`removed_users` of `ostler-core`).
    ///
    /// # Errors
    /// When the caller may not, the user does not exist, or the change cannot be stored.
    pub fn remove(&self, by: &Caller, name: &str) -> Result<(), ApiError> {
        // First: a member must not learn which names exist.
        by.require(Role::Admin)?;
        self.change(|stored| {
            let user = named(&mut stored.users, name)?;
            may_make(by, user.role)?;
            stored.removed.insert(user.id.clone());
            stored.users.retain(|user| user.name != name);
            Ok(())
        })
    }

    /// Makes a token for a user. Returns its id, for revoking it, and the token, which is shown only this once.
    ///
    /// # Errors
    /// When the caller may not, the user does not exist or has too many tokens, or the change cannot be stored.
    pub fn issue(&self, by: &Caller, name: &str, label: &str) -> Result<(String, Token), ApiError> {
        let (id, token) = (random_text(9), Token::random());
        self.change(|stored| {
            let user = managed(&mut stored.users, by, name)?;
            if user.tokens.len() >= MOST_TOKENS {
                let message = format!("{name} has {MOST_TOKENS} tokens; revoke one first");
                return Err(ApiError::conflict("too_many_tokens", message));
            }
            let label = label.chars().take(100).collect();
            user.tokens.push(KeptToken { id: id.clone(), digest: token.digest(), label });
            Ok(())
        })?;
        Ok((id, token))
    }

    /// Revokes a token, and with it every cookie that was issued for it.
    ///
    /// # Errors
    /// When the caller may not, the token does not exist, or the change cannot be stored.
    pub fn revoke(&self, by: &Caller, name: &str, id: &str) -> Result<(), ApiError> {
        self.change(|stored| {
            let user = managed(&mut stored.users, by, name)?;
            let place = user.tokens.iter().position(|token| token.id == id);
            let place =
                place.ok_or_else(|| ApiError::not_found(format!("{name} has no such token")))?;
            user.tokens.remove(place);
            Ok(())
        })
    }

    /// Changes a copy, stores it, and only then uses it.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut KeptUsers) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut known = self.known.write();
        let mut stored = known.stored.clone();
        let made = change(&mut stored)?;
        self.store.save(&stored).map_err(|_| {
            let message = "the users cannot be stored; nothing was changed";
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "not_kept", message)
                .hint("check that the disk is not full and that the state folder is writable")
        })?;
        *known = Known::new(stored);
        drop(known);
        self.changes.notify();
        Ok(made)
    }
}

/// Only the owner adds and removes admins; there is one owner.
fn may_make(by: &Caller, role: Role) -> Result<(), ApiError> {
    match role {
        Role::Member => by.require(Role::Admin),
        Role::Admin => by.require(Role::Owner),
        Role::Owner => {
            let message = "there is only one owner: the user who can read the token file";
            Err(ApiError::forbidden("one_owner", message).field("role"))
        }
    }
}

/// The user whose tokens a caller manages: the caller, or a user whom the caller could have added. A member does not
/// learn which other names exist.
fn managed<'a>(users: &'a mut [User], by: &Caller, name: &str) -> Result<&'a mut User, ApiError> {
    let is_own = |user: &User| user.name == name && user.id == by.user;
    if let Some(place) = users.iter().position(is_own) {
        return Ok(&mut users[place]);
    }
    by.require(Role::Admin)?;
    let user = named(users, name)?;
    may_make(by, user.role)?;
    Ok(user)
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
        let users = Users::load(owner, store).unwrap().trusting_members(true);
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
    fn tokens_identify_their_users_also_after_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let (before, owner) = users(&place);
        assert_eq!((owner.user.as_str(), owner.role), (OWNER, Role::Owner));
        let (ada, token) = with_token(&before, &owner, "ada", Role::Member);
        assert_eq!((ada.user.as_str(), ada.role), ("ada", Role::Member));
        let (after, _) = users(&place);
        assert_eq!(after.caller(&token.digest()), Some(ada));
        assert_eq!(after.caller(&Token::random().digest()), None);
        let stored = std::fs::read_to_string(place.path().join("users.json")).unwrap();
        assert!(!stored.contains(token.expose()), "tokens are not stored");
    }

    // Seen to fail with `may_make` that lets admins make admins, and with `remove` that does not ask it.
    #[test]
    fn no_user_can_raise_their_own_role() {
        let place = tempfile::tempdir().unwrap();
        let (users, owner) = users(&place);
        let (ada, _) = with_token(&users, &owner, "ada", Role::Admin);
        let (bob, _) = with_token(&users, &owner, "bob", Role::Member);
        let no = |result: Result<(), ApiError>| assert_eq!(result.unwrap_err().status(), 403);
        no(users.add(&bob, "eve", Role::Member).map(drop));
        no(users.add(&ada, "eve", Role::Admin).map(drop));
        no(users.add(&owner, "eve", Role::Owner).map(drop));
        no(users.set_role(&ada, "bob", Role::Admin));
        no(users.set_role(&bob, "bob", Role::Admin));
        no(users.set_role(&ada, "ada", Role::Member));
        no(users.remove(&bob, "ada"));
        no(users.remove(&ada, "ada"));
        no(users.issue(&bob, "ada", "").map(|_| ()));
        users.add(&ada, "cy", Role::Member).unwrap();
        users.issue(&bob, "bob", "my own").unwrap();
        users.remove(&ada, "bob").unwrap();
        assert_eq!(users.caller(&bob.grant), None, "removed at once");
    }

    #[test]
    fn a_revoked_token_is_not_accepted() {
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
    fn invalid_user_names_are_refused() {
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
    fn a_change_that_cannot_be_stored_has_no_effect() {
        struct Full;
        impl UserStore for Full {
            fn load(&self) -> io::Result<KeptUsers> {
                Ok(KeptUsers::default())
            }
            fn save(&self, _: &KeptUsers) -> io::Result<()> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
        }
        let place = tempfile::tempdir().unwrap();
        let owner = TokenFile::open(place.path().join("token")).unwrap();
        let users = Users::load(owner, Box::new(Full)).unwrap().trusting_members(true);
        let owner = users.caller(&users.owner().token().unwrap().digest()).unwrap();
        assert_eq!(users.add(&owner, "ada", Role::Member).unwrap_err().status(), 500);
        assert!(users.list().is_empty());
    }

    // Seen to fail with `remove` that forgets the id. Mutant: `add` that always takes the name as id.
    #[test]
    fn a_name_that_is_used_again_belongs_to_another_user() {
        let place = tempfile::tempdir().unwrap();
        let (before, owner) = users(&place);
        let (first, _) = with_token(&before, &owner, "zoe", Role::Member);
        before.remove(&owner, "zoe").unwrap();
        assert!(before.is_removed(&first.user));
        drop(before);
        let (after, owner) = users(&place);
        let (second, _) = with_token(&after, &owner, "zoe", Role::Member);
        after.remove(&owner, "zoe").unwrap();
        let (third, _) = with_token(&after, &owner, "zoe", Role::Member);
        assert!(first.user != second.user && second.user != third.user);
        for user in [&first, &second, &third] {
            assert_eq!(after.name_of(&user.user), "zoe");
        }
        assert_eq!(after.id_of("zoe").as_ref(), Some(&third.user));
        assert_eq!((after.role("zoe"), after.role(&third.user)), (None, Some(Role::Member)));
        assert!(!third.may_see(&first.user) && !third.may_see(&second.user));
        users_of_old_records(&place);
    }

    /// An earlier version removed a user without storing that; the records still have the name.
    fn users_of_old_records(place: &tempfile::TempDir) {
        let path = place.path().join("users.json");
        ostler_base::private::replace(&path, b"[]").unwrap();
        let (users, owner) = users(place);
        assert!(users.lacks_removed());
        users.retire(["mia", OWNER].map(str::to_owned)).unwrap();
        assert!(!users.lacks_removed() && !users.is_removed(OWNER));
        let (mia, _) = with_token(&users, &owner, "mia", Role::Member);
        assert_ne!(mia.user, "mia");
    }

    // Seen to fail with `change` that adds the digests of the new list to the map of the old one.
    #[test]
    fn the_map_of_tokens_contains_valid_tokens_only() {
        let place = tempfile::tempdir().unwrap();
        let (users, owner) = users(&place);
        let count = || users.known().by_token.len();
        users.add(&owner, "ada", Role::Member).unwrap();
        for _ in 0..20 {
            let (id, token) = users.issue(&owner, "ada", "").unwrap();
            assert_eq!(count(), 1);
            users.revoke(&owner, "ada", &id).unwrap();
            assert_eq!((count(), users.caller(&token.digest())), (0, None));
        }
        for number in 0..=MOST_TOKENS {
            assert_eq!(users.issue(&owner, "ada", "").is_ok(), number < MOST_TOKENS);
        }
        assert_eq!(count(), MOST_TOKENS);
        for _ in 0..20 {
            assert_eq!(users.caller(&Token::random().digest()), None);
        }
        assert_eq!(count(), MOST_TOKENS, "guessed tokens are not stored");
        users.remove(&owner, "ada").unwrap();
        assert_eq!(count(), 0);
    }

    // Mutant: `add` that does not look whether members are trusted.
    #[test]
    fn a_second_user_requires_that_the_operator_trusts_members() {
        let place = tempfile::tempdir().unwrap();
        let (users, owner) = users(&place);
        let users = users.trusting_members(false);
        let error = users.add(&owner, "ada", Role::Member).unwrap_err();
        assert_eq!(
            (error.status().as_u16(), error.detail().code.as_ref()),
            (403, "members_not_trusted")
        );
        assert!(error.detail().hint.as_deref().unwrap().contains("--trust-members"));
        assert!(users.list().is_empty());
    }
}
