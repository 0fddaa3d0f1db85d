//! Spaces: named workspaces with members, a folder, a memory, a policy, mounts and secrets.
//!
//! A session begins in a space or outside of all spaces. In a space it works in the space's folder and has at most the
//! permissions of its policy; its setup is computed again for every run (`space_setup`). A session belongs to the user
//! who began it; admins of the space can read it. What agents can reach is one value,
//! `confine::access_boundary::AccessBoundary`.

pub mod access;
pub mod memory;
pub mod mounts;
pub(crate) mod secrets;
pub(crate) mod space_setup;
mod zone;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler::PermissionMode;
use ostler_base::error::{self, ApiError, Fallible, shown};
use ostler_base::ids::random_text;
use ostler_base::private;
use ostler_door::users::{Caller, Role, Users};
use ostler_store::{Filter, Page};

use self::access::SpaceRole;
use self::memory::{Memory, SeenMemory};
use self::mounts::MountRules;
use crate::approvals::audit::Audited;
use crate::clock::Clock;
use crate::config::Config;
use crate::confine::own_files::{REMOVED_SPACES, SHARED_MEMORY};
use crate::confine::redact::Redactor;
use crate::model::mcp_server::ServerSet;
use crate::model::policy::Policy;
use crate::model::run::{Session, Setup};
use crate::model::space::{MemberRole, Mount, Space, check_name};
use crate::records::Records;

/// The parent of the private folders of spaces, in the server's folder.
pub(crate) const FOLDER: &str = "spaces";

const MOST_SPACES: usize = 1_000;
const MOST_OF_ONE: usize = 100;
const MOST_MEMBERS: usize = 1_000;
const MOST_MOUNTS: usize = 50;
const MOST_SECRETS: usize = 100;
const LONGEST_TITLE: usize = 200;
/// How many records are read at once.
const STEP: usize = 500;

/// All spaces of the server.
pub struct Spaces {
    config: Arc<Config>,
    records: Records,
    users: Arc<Users>,
    clock: Clock,
    redactor: Redactor,
    /// Locked while a folder is added, because no two folders may overlap.
    making: tokio::sync::Mutex<()>,
}

/// The parts of [`Spaces`].
pub struct Parts {
    pub config: Arc<Config>,
    pub records: Records,
    pub users: Arc<Users>,
    pub clock: Clock,
    pub redactor: Redactor,
}

/// The fields of a new space.
pub struct NewSpace {
    pub id: String,
    pub title: Option<String>,
    pub folder: Option<PathBuf>,
    pub zone: Option<String>,
    pub policy: Policy,
}

/// The fields to change; absent ones stay.
#[derive(Default)]
pub struct Change {
    pub title: Option<String>,
    pub zone: Option<String>,
    pub policy: Option<Policy>,
    pub secrets: Option<Vec<String>>,
}

/// The requested setup of a session in a space.
#[derive(Default)]
pub struct Asked {
    pub cwd: Option<PathBuf>,
    pub mode: Option<PermissionMode>,
    pub model: Option<String>,
}

impl Spaces {
    pub fn new(parts: Parts) -> Self {
        let Parts { config, records, users, clock, redactor } = parts;
        Self { config, records, users, clock, redactor, making: tokio::sync::Mutex::default() }
    }

    /// Creates a space, which belongs to the caller.
    pub async fn create(&self, caller: &Caller, new: NewSpace) -> Fallible<Space> {
        check_name("id", &new.id)?;
        let title = new.title.unwrap_or_else(|| new.id.clone());
        let zone = new.zone.unwrap_or_else(|| zone::USUAL.to_owned());
        check_title(&title)?;
        zone::check(&zone)?;
        new.policy.check(&self.config)?;
        self.check_widening(caller, &new.policy)?;
        let _making = self.making.lock().await;
        let all = self.all().await?;
        if all.iter().any(|space| space.id == new.id) {
            let message = format!("there is a space {} already", new.id);
            return Err(ApiError::conflict("space_exists", message).field("id"));
        }
        let own = all.iter().filter(|space| space.owner == caller.user).count();
        if all.len() >= MOST_SPACES || (own >= MOST_OF_ONE && caller.role < Role::Admin) {
            return Err(ApiError::conflict("too_many_spaces", "there are too many spaces"));
        }
        let (folder, private) = match new.folder {
            Some(folder) => (self.folder_of_operator(caller, &folder, &all)?, false),
            None => (self.own_folder(&new.id)?, true),
        };
        let space = Space {
            id: new.id,
            title,
            owner: caller.user.clone(),
            members: BTreeMap::new(),
            folder,
            private,
            zone,
            widened_by: widened_by(caller, &new.policy),
            policy: new.policy,
            mounts: Vec::new(),
            secrets: Vec::new(),
            created: self.clock.now(),
        };
        // Nothing of an earlier space of this name, also if its deletion was interrupted.
        self.records.remove::<ServerSet>(&ServerSet::of_space(&space.id)).await?;
        self.records.create(&space).await?;
        self.note_widening(caller, &space).await?;
        Ok(space)
    }

    /// Refuses rules for whole tools, unless the operator allows `bypassPermissions` or the caller is an administrator
    /// of the server.
    fn check_widening(&self, caller: &Caller, policy: &Policy) -> Fallible<()> {
        let whole = policy.whole_tools();
        if whole.is_empty() || self.config.allow_bypass || caller.role >= Role::Admin {
            return Ok(());
        }
        let message =
            format!("the rule {} lets agents use a whole tool without approval", shown(whole[0]));
        Err(ApiError::forbidden("whole_tool_not_allowed", message).field("policy.allowed").hint(
            "name what is allowed, such as Bash(git log:*), or ask an administrator of the server",
        ))
    }

    /// Writes an audit entry if a user lets agents of a space use whole tools.
    async fn note_widening(&self, caller: &Caller, space: &Space) -> Fallible<()> {
        let whole = space.policy.whole_tools();
        if whole.is_empty() {
            return Ok(());
        }
        let subject = format!("space {}: {} without approval", space.id, whole.join(", "));
        let at = self.clock.now();
        self.records.create(&Audited::of_space(space, "widened", &caller.user, subject, at)).await
    }

    /// Writes an audit entry if the memory of a space has changed, since agents write it too.
    async fn note_memory(&self, space: &Space, memory: &Memory, by: &str) -> Fallible<()> {
        let seen = SeenMemory {
            id: space.id.clone(),
            owner: space.owner.clone(),
            version: memory.version.clone(),
        };
        let before = self.records.find::<SeenMemory>(&space.id).await?;
        if before.as_ref().is_some_and(|(before, _)| before.version == seen.version)
            || (before.is_none() && memory.text.is_empty())
        {
            return Ok(());
        }
        self.records.save(&seen).await?;
        let subject = format!("space {}: its memory ({}) was changed", space.id, memory::NAME);
        let at = self.clock.now();
        self.records.create(&Audited::of_space(space, "memory", by, subject, at)).await
    }

    /// Creates the private folder of a space. An existing one must be empty: files of an earlier space do not belong to
    /// the new one.
    fn own_folder(&self, id: &str) -> Fallible<PathBuf> {
        let made = || -> std::io::Result<Option<PathBuf>> {
            let spaces = self.config.data.join(FOLDER);
            private::folder(&spaces)?;
            let folder = spaces.canonicalize()?.join(id);
            private::folder(&folder)?;
            let is_free =
                folder.canonicalize()? == folder && std::fs::read_dir(&folder)?.next().is_none();
            Ok(is_free.then_some(folder))
        };
        made().map_err(error::internal)?.ok_or_else(|| {
            let message = format!("a folder of an earlier space {id} is still there");
            ApiError::conflict("folder_exists", message)
                .hint("use another name, or ask the operator to move the folder away")
        })
    }

    /// A folder in one of the operator's roots. No other user can use it then, so this needs an administrator.
    fn folder_of_operator(&self, caller: &Caller, said: &Path, all: &[Space]) -> Fallible<PathBuf> {
        caller.require(Role::Admin)?;
        let refused = |why: &str| ApiError::invalid("folder", format!("{} {why}", said.display()));
        let folder = self.config.workspace.join(said).canonicalize();
        let folder = folder.ok().filter(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| refused("cannot be found"))?;
        if !self.is_in_roots(&folder) {
            return Err(refused("is not inside a folder in which agents may work")
                .hint("the operator names such folders with --root"));
        }
        let workspace = self.config.workspace.canonicalize().unwrap_or_default();
        if workspace.starts_with(&folder) {
            return Err(refused("is used by agents outside of all spaces"));
        }
        self.check_apart("folder", &folder, all, None)?;
        Ok(folder)
    }

    fn is_in_roots(&self, folder: &Path) -> bool {
        let roots = std::iter::once(&self.config.workspace).chain(&self.config.roots);
        let mut roots = roots.filter_map(|root| root.canonicalize().ok());
        roots.any(|root| folder.starts_with(root))
    }

    /// Refuses a path that overlaps with the server's own folder, or with that of a space other than `own`.
    fn check_apart(
        &self,
        field: &str,
        place: &Path,
        all: &[Space],
        own: Option<&str>,
    ) -> Fallible<()> {
        let touches = |other: &Path| place.starts_with(other) || other.starts_with(place);
        let data = self.config.data.canonicalize().unwrap_or_else(|_| self.config.data.clone());
        let others = all.iter().filter(|space| own != Some(space.id.as_str()));
        if touches(&data) || others.into_iter().any(|space| touches(&space.folder)) {
            // The message does not say to whom it belongs.
            let message = format!("{} is used by another space or by the server", place.display());
            return Err(ApiError::forbidden("folder_taken", message).field(field));
        }
        Ok(())
    }

    /// Refuses a space whose folder has been moved or replaced.
    fn check_folder(&self, space: &Space) -> Fallible<()> {
        let is_same = space.folder.canonicalize().is_ok_and(|real| real == space.folder);
        if is_same && (space.private || self.is_in_roots(&space.folder)) {
            return Ok(());
        }
        let message = format!("the folder of the space {} was moved or replaced", space.id);
        Err(ApiError::conflict("folder_moved", message)
            .hint("move it back, or create another space for the new place"))
    }

    /// A space in which the caller has at least this role.
    pub async fn find(&self, caller: &Caller, id: &str, least: SpaceRole) -> Fallible<Space> {
        // An invalid name cannot be the name of a space.
        let none = |_| error::not_found("space", id);
        check_name("id", id).map_err(none)?;
        let found = self.records.find::<Space>(id).await?;
        let (space, _) = found.ok_or_else(|| error::not_found("space", id))?;
        space.require(caller, least)?;
        Ok(space)
    }

    /// Every space: its folder must not overlap with any other. There are at most [`MOST_SPACES`].
    async fn all(&self) -> Fallible<Vec<Space>> {
        self.records.all(Filter::default()).await
    }

    /// A page of the spaces in which the caller has a role. Reads as many as are listed, and those of others between
    /// them.
    pub async fn list(&self, caller: &Caller, page: &Page) -> Fallible<Vec<Space>> {
        let (mut found, mut after) = (Vec::new(), page.after.clone());
        while found.len() < page.limit {
            let limit = (page.limit - found.len()).min(STEP);
            let part = Page { after, limit, ..Page::default() };
            let spaces: Vec<Space> = self.records.list(&Filter::default(), &part).await?;
            let Some(last) = spaces.last() else { break };
            after = Some(last.id.clone());
            found.extend(spaces.into_iter().filter(|space| space.role(caller).is_some()));
        }
        Ok(found)
    }

    /// Changes a space, if the caller may.
    async fn update(
        &self,
        caller: &Caller,
        id: &str,
        least: SpaceRole,
        mut change: impl FnMut(&mut Space) -> Fallible<()>,
    ) -> Fallible<Space> {
        check_name("id", id).map_err(|_| error::not_found("space", id))?;
        let changed = self.records.update::<Space, ()>(id, |space| {
            space.require(caller, least)?;
            change(space)
        });
        Ok(changed.await?.0)
    }

    /// Changes the fields of a space. Active runs continue unchanged; the next run uses the new values.
    pub async fn change(&self, caller: &Caller, id: &str, change: Change) -> Fallible<Space> {
        let Change { title, zone, policy, secrets } = change;
        self.find(caller, id, SpaceRole::Admin).await?;
        title.as_deref().map(check_title).transpose()?;
        zone.as_deref().map(zone::check).transpose()?;
        policy.as_ref().map(|policy| policy.check(&self.config)).transpose()?;
        policy.as_ref().map(|policy| self.check_widening(caller, policy)).transpose()?;
        if let Some(names) = &secrets {
            // They belong to the operator, not to the space.
            caller.require(Role::Admin)?;
            if names.len() > MOST_SECRETS {
                let message = format!("a space can have at most {MOST_SECRETS} secrets");
                return Err(ApiError::invalid("secrets", message));
            }
            secrets::chosen(&secrets::load(&self.config.data, &self.redactor)?, names)?;
        }
        let changed = self.update(caller, id, SpaceRole::Admin, |space| {
            if let Some(title) = &title {
                space.title.clone_from(title);
            }
            if let Some(zone) = &zone {
                space.zone.clone_from(zone);
            }
            if let Some(policy) = &policy {
                space.policy.clone_from(policy);
                space.widened_by = widened_by(caller, policy);
            }
            if let Some(names) = &secrets {
                space.secrets.clone_from(names);
                space.secrets.sort();
                space.secrets.dedup();
            }
            Ok(())
        });
        let changed = changed.await?;
        if policy.is_some() {
            self.note_widening(caller, &changed).await?;
        }
        Ok(changed)
    }

    /// Gives a user of the server a role in a space.
    pub async fn set_member(
        &self,
        caller: &Caller,
        id: &str,
        user: &str,
        role: MemberRole,
    ) -> Fallible<Space> {
        self.find(caller, id, SpaceRole::Admin).await?;
        if self.users.role(user).is_none() {
            return Err(ApiError::invalid("user", "there is no such user on this server"));
        }
        self.update(caller, id, SpaceRole::Admin, |space| {
            if space.members.len() >= MOST_MEMBERS && !space.members.contains_key(user) {
                return Err(ApiError::conflict(
                    "too_many_members",
                    "the space has too many members",
                ));
            }
            space.set_member(caller, user, role)
        })
        .await
    }

    pub async fn remove_member(&self, caller: &Caller, id: &str, user: &str) -> Fallible<Space> {
        let remove = |space: &mut Space| space.remove_member(caller, user);
        self.update(caller, id, SpaceRole::Member, remove).await
    }

    /// The folders that the operator lets spaces mount.
    pub fn mount_rules(&self) -> Fallible<MountRules> {
        MountRules::load(&self.config.data)
    }

    /// Names of the operator's secrets.
    pub fn secret_names(&self) -> Fallible<Vec<String>> {
        let secrets = secrets::load(&self.config.data, &self.redactor)?;
        Ok(secrets.into_keys().collect())
    }

    pub async fn add_mount(
        &self,
        caller: &Caller,
        id: &str,
        name: String,
        path: PathBuf,
        write: bool,
    ) -> Fallible<Space> {
        self.find(caller, id, SpaceRole::Admin).await?;
        check_name("name", &name)?;
        let (real, _) = self.mount_rules()?.check(&path)?;
        let _making = self.making.lock().await;
        self.check_apart("path", &real, &self.all().await?, Some(id))?;
        let mount = Mount { name, path, real, write };
        self.update(caller, id, SpaceRole::Admin, |space| {
            if space.mounts.iter().any(|known| known.name == mount.name) {
                let message = format!("there is a mount {} already", mount.name);
                return Err(ApiError::conflict("mount_exists", message).field("name"));
            }
            if space.mounts.len() >= MOST_MOUNTS {
                return Err(ApiError::conflict("too_many_mounts", "the space has too many mounts"));
            }
            space.mounts.push(mount.clone());
            Ok(())
        })
        .await
    }

    pub async fn remove_mount(&self, caller: &Caller, id: &str, name: &str) -> Fallible<Space> {
        self.update(caller, id, SpaceRole::Admin, |space| {
            let place = space.mounts.iter().position(|mount| mount.name == name);
            space.mounts.remove(place.ok_or_else(|| error::not_found("mount", name))?);
            Ok(())
        })
        .await
    }

    /// Deletes a space. Its private folder is moved aside, where the operator finds it.
    pub async fn remove(&self, caller: &Caller, id: &str) -> Fallible<Space> {
        let space = self.find(caller, id, SpaceRole::Owner).await?;
        let _making = self.making.lock().await;
        self.records.remove::<ServerSet>(&ServerSet::of_space(id)).await?;
        self.records.remove::<Space>(id).await?;
        if space.private {
            let gone = self.config.data.join(REMOVED_SPACES);
            let aside = gone.join(format!("{id}-{}", random_text(6)));
            let moved = private::folder(&gone).and_then(|()| std::fs::rename(&space.folder, aside));
            if let Err(error) = moved {
                tracing::warn!(space = id, %error, "the folder of a deleted space could not be moved aside");
            }
        }
        Ok(space)
    }

    /// The setup of a new session in a space.
    pub async fn begin(&self, caller: &Caller, id: &str, asked: Asked) -> Fallible<Setup> {
        let space = self.find(caller, id, SpaceRole::Member).await?;
        Ok(Setup {
            cwd: self.folder_in(&space, asked.cwd)?,
            mode: space.policy.mode(asked.mode)?,
            model: space.policy.model(asked.model)?,
            space: Some(space.id),
            ..Setup::default()
        })
    }

    /// Checks another folder for a session in a space.
    pub async fn go_to(&self, caller: &Caller, id: &str, to: PathBuf) -> Fallible<PathBuf> {
        let space = self.find(caller, id, SpaceRole::Member).await?;
        self.folder_in(&space, Some(to))
    }

    fn folder_in(&self, space: &Space, said: Option<PathBuf>) -> Fallible<PathBuf> {
        self.check_folder(space)?;
        let folder = space.folder.join(said.unwrap_or_default());
        let folder = folder.canonicalize().map_err(|_| {
            ApiError::invalid("cwd", format!("{} is not a folder of the space", folder.display()))
        })?;
        space_setup::inside(&space.folder, &folder)?;
        Ok(folder)
    }

    /// Refuses a folder of a space for a session outside of all spaces, which would work there without the space's
    /// policy.
    pub async fn check_free(&self, cwd: &Path) -> Fallible<()> {
        let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        if self.all().await?.iter().any(|space| real.starts_with(&space.folder)) {
            let message =
                format!("{} is not inside a folder in which agents may work", cwd.display());
            return Err(ApiError::invalid("cwd", message)
                .hint("if it belongs to one of your spaces, begin the session in that space"));
        }
        Ok(())
    }

    /// Whether the caller may read a session of another user because it is in the caller's space.
    pub async fn oversees(&self, caller: &Caller, session: &Session) -> Fallible<bool> {
        let Some(id) = &session.setup.space else { return Ok(false) };
        let found = self.records.find::<Space>(id).await?;
        Ok(found.is_some_and(|(space, _)| space.role(caller) >= Some(SpaceRole::Admin)))
    }

    /// Sessions in a space that the caller may read: all for its admins, otherwise the caller's own. Oldest first;
    /// `page.after` is the id of one of them.
    pub async fn sessions(&self, caller: &Caller, id: &str, page: &Page) -> Fallible<Vec<Session>> {
        let space = self.find(caller, id, SpaceRole::Member).await?;
        let reads_all = space.role(caller) >= Some(SpaceRole::Admin);
        let is_shown = |session: &Session| {
            let is_of_member = space.members.contains_key(&session.owner);
            session.owner == caller.user
                || reads_all && (is_of_member || session.owner == space.owner)
        };
        let after = match &page.after {
            Some(after) => match self.records.find::<Session>(after).await? {
                Some((after, _)) if after.setup.space.as_deref() == Some(id) => Some(after.begun),
                _ => return Ok(Vec::new()),
            },
            None => None,
        };
        let filter = in_space(id, (!reads_all).then(|| caller.user.clone()));
        self.in_order(&filter, after, page.limit, is_shown).await
    }

    /// The sessions of a user in a space.
    pub async fn sessions_of(&self, id: &str, owner: String) -> Fallible<Vec<Session>> {
        self.in_order(&in_space(id, Some(owner)), None, usize::MAX, |_| true).await
    }

    /// At most this many sessions of a space, oldest first.
    async fn in_order(
        &self,
        filter: &Filter,
        mut after: Option<String>,
        most: usize,
        is_shown: impl Fn(&Session) -> bool,
    ) -> Fallible<Vec<Session>> {
        let mut found = Vec::new();
        while found.len() < most {
            let (limit, by) = ((most - found.len()).min(STEP), Some("begun".to_owned()));
            let page = Page { after, limit, by, ..Page::default() };
            let sessions: Vec<Session> = self.records.list(filter, &page).await?;
            let Some(last) = sessions.last() else { break };
            after = Some(last.begun.clone());
            // Sessions of former members are left out.
            found.extend(sessions.into_iter().filter(|session| is_shown(session)));
        }
        Ok(found)
    }

    /// The memory of a space.
    pub async fn memory(&self, caller: &Caller, id: &str) -> Fallible<Memory> {
        let space = self.find(caller, id, SpaceRole::Member).await?;
        self.check_folder(&space)?;
        memory::read(&space.folder, memory::NAME)
    }

    pub async fn remember(
        &self,
        caller: &Caller,
        id: &str,
        text: &str,
        seen: Option<&str>,
    ) -> Fallible<Memory> {
        let space = self.find(caller, id, SpaceRole::Member).await?;
        self.check_folder(&space)?;
        let _making = self.making.lock().await;
        memory::write(&space.folder, memory::NAME, text, seen)
    }

    /// The memory of all spaces.
    pub fn shared_memory(&self) -> Fallible<Memory> {
        memory::read(&self.config.data, SHARED_MEMORY)
    }

    pub async fn remember_for_all(
        &self,
        caller: &Caller,
        text: &str,
        seen: Option<&str>,
    ) -> Fallible<Memory> {
        caller.require(Role::Admin)?;
        let _making = self.making.lock().await;
        memory::write(&self.config.data, SHARED_MEMORY, text, seen)
    }
}

/// Selects the sessions of a space: all, or those of a user.
fn in_space(id: &str, owner: Option<String>) -> Filter {
    let field = Some(("setup.space".to_owned(), id.to_owned()));
    Filter { owner, field, ..Filter::default() }
}

fn check_title(title: &str) -> Fallible<()> {
    let is_fine = !title.trim().is_empty()
        && title.chars().count() <= LONGEST_TITLE
        && !title.contains(char::is_control);
    if is_fine {
        return Ok(());
    }
    Err(ApiError::invalid("title", "the title must have 1 to 200 characters, on one line"))
}

/// The user who allows whole tools with this policy, if it allows any.
fn widened_by(caller: &Caller, policy: &Policy) -> Option<String> {
    (!policy.whole_tools().is_empty()).then(|| caller.user.clone())
}
