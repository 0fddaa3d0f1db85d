//! Spaces: named workspaces with people, a folder, a memory, a policy, mounts and secrets of their own.
//!
//! Sessions begin in a space or outside of all. One that belongs to a space works in its folder, begins with its policy
//! and cannot get more than that; what it is started with is worked out again for every run (`space_setup`). A session stays
//! with whoever began it; admins of the space can read it. What agents can reach is one value,
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
use crate::model::policy::Policy;
use crate::model::run::{Session, Setup};
use crate::model::space::{MemberRole, Mount, Space, check_name};
use crate::records::Records;

/// Where spaces without a folder of the operator's have theirs, in the server's folder.
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
    /// Held while something is made that must not lie in something else that is being made.
    making: tokio::sync::Mutex<()>,
}

/// What they are made of.
pub struct Parts {
    pub config: Arc<Config>,
    pub records: Records,
    pub users: Arc<Users>,
    pub clock: Clock,
    pub redactor: Redactor,
}

/// What a space is made with.
pub struct NewSpace {
    pub id: String,
    pub title: Option<String>,
    pub folder: Option<PathBuf>,
    pub zone: Option<String>,
    pub policy: Policy,
}

/// What is changed about one; what is not said stays.
#[derive(Default)]
pub struct Change {
    pub title: Option<String>,
    pub zone: Option<String>,
    pub policy: Option<Policy>,
    pub secrets: Option<Vec<String>>,
}

/// What somebody asks for who begins a session in a space.
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

    /// A new one, which belongs to the caller.
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
        self.records.create(&space).await?;
        self.note_widening(caller, &space).await?;
        Ok(space)
    }

    /// Refuses rules for whole tools, unless the operator lets agents work without questions or the caller runs the server.
    fn check_widening(&self, caller: &Caller, policy: &Policy) -> Fallible<()> {
        let whole = policy.whole_tools();
        if whole.is_empty() || self.config.allow_bypass || caller.role >= Role::Admin {
            return Ok(());
        }
        let message = format!(
            "the rule {} lets agents use a tool for everything, without a question",
            shown(whole[0])
        );
        Err(ApiError::forbidden("whole_tool_not_allowed", message).field("policy.allowed").hint(
            "name what is allowed, such as Bash(git log:*), or ask an administrator of the server",
        ))
    }

    /// Writes down who let agents of a space use whole tools.
    async fn note_widening(&self, caller: &Caller, space: &Space) -> Fallible<()> {
        let whole = space.policy.whole_tools();
        if whole.is_empty() {
            return Ok(());
        }
        let subject = format!("space {}: {} without a question", space.id, whole.join(", "));
        let at = self.clock.now();
        self.records.create(&Audited::of_space(space, "widened", &caller.user, subject, at)).await
    }

    /// Says in the audit when the memory of a space is not what it was, since agents write it too.
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

    /// A folder for a space alone. One that is there must be empty: what an earlier space left is not the new one's.
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
                .hint("take another name, or ask the operator to move the folder away")
        })
    }

    /// A folder in one of the operator's roots. It is taken away from everybody else, so not everybody may.
    fn folder_of_operator(&self, caller: &Caller, said: &Path, all: &[Space]) -> Fallible<PathBuf> {
        caller.require(Role::Admin)?;
        let refused = |why: &str| ApiError::invalid("folder", format!("{} {why}", said.display()));
        let folder = self.config.workspace.join(said).canonicalize();
        let folder = folder.ok().filter(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| refused("is no folder here"))?;
        if !self.is_in_roots(&folder) {
            return Err(refused("is not in a folder where agents may work")
                .hint("the operator names such folders with --root"));
        }
        let workspace = self.config.workspace.canonicalize().unwrap_or_default();
        if workspace.starts_with(&folder) {
            return Err(refused("is where agents work that belong to no space"));
        }
        self.check_apart("folder", &folder, all, None)?;
        Ok(folder)
    }

    fn is_in_roots(&self, folder: &Path) -> bool {
        let roots = std::iter::once(&self.config.workspace).chain(&self.config.roots);
        let mut roots = roots.filter_map(|root| root.canonicalize().ok());
        roots.any(|root| folder.starts_with(root))
    }

    /// Refuses a place that touches the server's own folder, or that of a space other than `own`.
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
            // Whose it is is nobody else's business.
            let message = format!("{} belongs to somebody else here", place.display());
            return Err(ApiError::forbidden("folder_taken", message).field(field));
        }
        Ok(())
    }

    /// The folder must be what it was when the space was made.
    fn check_folder(&self, space: &Space) -> Fallible<()> {
        let is_same = space.folder.canonicalize().is_ok_and(|real| real == space.folder);
        if is_same && (space.private || self.is_in_roots(&space.folder)) {
            return Ok(());
        }
        let message = format!("the folder of the space {} is not where it was", space.id);
        Err(ApiError::conflict("folder_moved", message)
            .hint("put it back, or make another space for where it is now"))
    }

    /// A space in which the caller has this role, or more.
    pub async fn find(&self, caller: &Caller, id: &str, least: SpaceRole) -> Fallible<Space> {
        // What cannot be a name is no name of a space, and need not be looked for.
        let none = |_| error::not_found("space", id);
        check_name("id", id).map_err(none)?;
        let found = self.records.find::<Space>(id).await?;
        let (space, _) = found.ok_or_else(|| error::not_found("space", id))?;
        space.require(caller, least)?;
        Ok(space)
    }

    /// Every space: its folder must be apart from all others. There are at most [`MOST_SPACES`].
    async fn all(&self) -> Fallible<Vec<Space>> {
        self.records.all(Filter::default()).await
    }

    /// A part of those that the caller has to do with. Reads as many as are listed, and those of others between them.
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

    /// Changes what it is like. What was running goes on as it began; the next run is as this says.
    pub async fn change(&self, caller: &Caller, id: &str, change: Change) -> Fallible<Space> {
        let Change { title, zone, policy, secrets } = change;
        self.find(caller, id, SpaceRole::Admin).await?;
        title.as_deref().map(check_title).transpose()?;
        zone.as_deref().map(zone::check).transpose()?;
        policy.as_ref().map(|policy| policy.check(&self.config)).transpose()?;
        policy.as_ref().map(|policy| self.check_widening(caller, policy)).transpose()?;
        if let Some(names) = &secrets {
            // They are the operator's, not the space's.
            caller.require(Role::Admin)?;
            if names.len() > MOST_SECRETS {
                let message = format!("a space has at most {MOST_SECRETS} secrets");
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
                return Err(ApiError::conflict("too_many_members", "the space is full"));
            }
            space.set_member(caller, user, role)
        })
        .await
    }

    pub async fn remove_member(&self, caller: &Caller, id: &str, user: &str) -> Fallible<Space> {
        let remove = |space: &mut Space| space.remove_member(caller, user);
        self.update(caller, id, SpaceRole::Member, remove).await
    }

    /// What the operator lets spaces mount.
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

    /// Ends a space. A folder of its own is put aside, where the operator finds it.
    pub async fn remove(&self, caller: &Caller, id: &str) -> Fallible<Space> {
        let space = self.find(caller, id, SpaceRole::Owner).await?;
        let _making = self.making.lock().await;
        self.records.remove::<Space>(id).await?;
        if space.private {
            let gone = self.config.data.join(REMOVED_SPACES);
            let aside = gone.join(format!("{id}-{}", random_text(6)));
            let moved = private::folder(&gone).and_then(|()| std::fs::rename(&space.folder, aside));
            if let Err(error) = moved {
                tracing::warn!(space = id, %error, "the folder of a space that is gone stays where it was");
            }
        }
        Ok(space)
    }

    /// What a session in a space begins with.
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

    /// Another folder for a session that is in a space.
    pub async fn go_to(&self, caller: &Caller, id: &str, to: PathBuf) -> Fallible<PathBuf> {
        let space = self.find(caller, id, SpaceRole::Member).await?;
        self.folder_in(&space, Some(to))
    }

    fn folder_in(&self, space: &Space, said: Option<PathBuf>) -> Fallible<PathBuf> {
        self.check_folder(space)?;
        let folder = space.folder.join(said.unwrap_or_default());
        let folder = folder.canonicalize().map_err(|_| {
            ApiError::invalid("cwd", format!("{} is no folder of the space", folder.display()))
        })?;
        space_setup::inside(&space.folder, &folder)?;
        Ok(folder)
    }

    /// Refuses a folder that belongs to a space, for a session that belongs to none: it would work there without the
    /// space's policy.
    pub async fn check_free(&self, cwd: &Path) -> Fallible<()> {
        let real = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        if self.all().await?.iter().any(|space| real.starts_with(&space.folder)) {
            let message = format!("{} is not in a folder where agents may work", cwd.display());
            return Err(ApiError::invalid("cwd", message)
                .hint("if it belongs to a space of yours, begin the session in that space"));
        }
        Ok(())
    }

    /// Whether the caller may read a session of somebody else because it is in a space of his.
    pub async fn oversees(&self, caller: &Caller, session: &Session) -> Fallible<bool> {
        let Some(id) = &session.setup.space else { return Ok(false) };
        let found = self.records.find::<Space>(id).await?;
        Ok(found.is_some_and(|(space, _)| space.role(caller) >= Some(SpaceRole::Admin)))
    }

    /// Sessions in a space that the caller may read: everybody's for its admins, otherwise one's own. In the order in which
    /// they began; `page.after` is the id of one of them.
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

    /// Somebody's sessions in a space.
    pub async fn sessions_of(&self, id: &str, owner: String) -> Fallible<Vec<Session>> {
        self.in_order(&in_space(id, Some(owner)), None, usize::MAX, |_| true).await
    }

    /// At most so many sessions of a space, in the order in which they began.
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
            // Those of users who are members no longer are left out.
            found.extend(sessions.into_iter().filter(|session| is_shown(session)));
        }
        Ok(found)
    }

    /// What a space remembers.
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

    /// What all spaces remember.
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

/// The sessions of a space: all, or those of a user.
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
    Err(ApiError::invalid("title", "a title has 1 to 200 characters, on one line"))
}

/// Who answers for the whole tools that a policy allows, if it allows any.
fn widened_by(caller: &Caller, policy: &Policy) -> Option<String> {
    (!policy.whole_tools().is_empty()).then(|| caller.user.clone())
}
