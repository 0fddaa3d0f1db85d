//! What a session gets from its space when its engine starts. It is computed again each time, so that changes apply and
//! redirected folders are refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use ostler::Options;
use ostler_base::error::{self, ApiError, Fallible};
use ostler_door::users::Role;
use sha2::{Digest as _, Sha256};

use super::access::SpaceRole;
use super::memory;
use super::mounts::MountRules;
use super::secrets;
use super::{FOLDER, Spaces};
use crate::config::SandboxChoice;
use crate::confine::access_boundary::{AccessBoundary, Opening};
use crate::confine::own_files::SHARED_MEMORY;
use crate::confine::sandbox;
use crate::model::policy::Policy;
use crate::model::run::Session;
use crate::model::space::Space;
use crate::runs::options::{EngineParts, EngineSetup, add_to_prompt};

/// Everything that a space changes about a session.
pub(crate) struct SpaceSetup {
    cwd: PathBuf,
    access_boundary: AccessBoundary,
    place: Option<Place>,
}

/// The part that only sessions in a space have.
struct Place {
    policy: Policy,
    zone: String,
    secrets: BTreeMap<String, String>,
    /// The text for the agent, apart from memories.
    instructions: String,
    folder: PathBuf,
    data: PathBuf,
}

impl Spaces {
    /// The current setup for a session.
    ///
    /// # Errors
    /// When it must not begin: its space was deleted, its user is no longer a member, or a folder was redirected.
    pub(crate) async fn space_setup(&self, session: &Session) -> Fallible<SpaceSetup> {
        let all = self.all().await?;
        let cwd = session.setup.cwd.clone();
        let hidden = |own: Option<&Space>| {
            let others = all.iter().filter(|space| own.is_none_or(|own| own.id != space.id));
            let mut hidden: Vec<PathBuf> = others.map(|space| space.folder.clone()).collect();
            if own.is_none_or(|own| !own.private) {
                hidden.push(self.config.data.join(FOLDER));
            }
            hidden
        };
        let Some(id) = &session.setup.space else {
            self.check_free(&session.setup.cwd).await?;
            self.check_plain(&session.setup.cwd)?;
            let access_boundary =
                AccessBoundary { hidden: hidden(None), ..AccessBoundary::default() };
            return Ok(SpaceSetup { cwd, access_boundary, place: None });
        };
        let gone = || error::not_found("space", id);
        let space = all.iter().find(|space| space.id == *id).ok_or_else(gone)?;
        let on_server = self.users.role(&session.owner).ok_or_else(gone)?;
        let role = space.role_of(&session.owner, on_server).ok_or_else(|| {
            let message = format!("{} is no longer a member of the space {id}", session.owner);
            ApiError::forbidden("not_in_space", message)
        })?;
        self.check_folder(space)?;
        inside(&space.folder, &session.setup.cwd)?;
        let (openings, hidden_names) = self.openings(space, &all, role)?;
        let known = secrets::load(&self.config.data, &self.redactor)?;
        let access_boundary = AccessBoundary {
            work: vec![space.folder.clone()],
            openings,
            hidden: hidden(Some(space)),
            hidden_names,
        };
        let place = Place {
            secrets: secrets::chosen(&known, &space.secrets)?,
            instructions: instructions(space, &access_boundary),
            policy: self.policy_of(space),
            zone: space.zone.clone(),
            folder: space.folder.clone(),
            data: self.config.data.clone(),
        };
        Ok(SpaceSetup { cwd, access_boundary, place: Some(place) })
    }

    /// Checks the folder of a session outside of spaces: it must not have been moved or replaced, and agents must be
    /// allowed to work there.
    fn check_plain(&self, cwd: &Path) -> Fallible<()> {
        let refused = |why: &str| {
            let message = format!("{} {why}", cwd.display());
            let error = ApiError::conflict("folder_moved", message).field("cwd");
            Err(error.hint("restore the folder, or begin a session in another one"))
        };
        match cwd.canonicalize() {
            // The operator may have given the workspace as a link.
            Ok(real) if real != cwd && *cwd != self.config.workspace => {
                refused("leads to another folder now")
            }
            Ok(real) if !real.is_dir() => refused("is not a folder any more"),
            Ok(real) if !self.is_in_roots(&real) => {
                refused("is not inside a folder in which agents may work")
            }
            Ok(_) => Ok(()),
            Err(_) => refused("no longer exists"),
        }
    }

    /// What a policy allows now: whole tools only as long as the user who allowed them still may.
    fn policy_of(&self, space: &Space) -> Policy {
        let by = space.widened_by.as_ref().unwrap_or(&space.owner);
        let may =
            self.config.allow_bypass || self.users.role(by).is_some_and(|role| role >= Role::Admin);
        if may { space.policy.clone() } else { space.policy.without_whole_tools() }
    }

    fn openings(
        &self,
        space: &Space,
        all: &[Space],
        role: SpaceRole,
    ) -> Fallible<(Vec<Opening>, Vec<String>)> {
        if space.mounts.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let rules = MountRules::load(&self.config.data)?;
        let mut openings = Vec::new();
        for mount in &space.mounts {
            let (place, writable) = rules.open(mount, role)?;
            self.check_apart("mount", &place, all, Some(&space.id))?;
            openings.push(Opening { place, writable });
        }
        Ok((openings, rules.blocked()))
    }
}

#[async_trait]
impl EngineSetup for Spaces {
    async fn set_up(&self, session: &Session, engine_parts: &mut EngineParts) -> Fallible<()> {
        let space_setup = self.space_setup(session).await?;
        if let Some(place) = &space_setup.place {
            engine_parts.skill_allowed =
                place.policy.approved(std::mem::take(&mut engine_parts.skill_allowed));
        }
        space_setup.apply(&mut engine_parts.options)?;
        let is_owner = self.users.role(&session.owner) == Some(Role::Owner);
        if !is_owner && self.config.sandbox != SandboxChoice::Off {
            sandbox::put_around(&mut engine_parts.options, &self.config);
        }
        Ok(())
    }

    /// The current state of the space: after a user was removed from it, or its folder was redirected, an engine that
    /// was started before is not used any more.
    async fn stamp(&self, session: &Session) -> Fallible<String> {
        let space_setup = self.space_setup(session).await?;
        if let (Some(place), Some(id)) = (&space_setup.place, &session.setup.space)
            && let Some((space, _)) = self.records.find::<Space>(id).await?
        {
            let memory = memory::read(&place.folder, memory::NAME)?;
            self.note_memory(&space, &memory, "agents").await?;
        }
        Ok(space_setup.stamp())
    }
}

impl SpaceSetup {
    /// Changes the options of an engine.
    ///
    /// # Errors
    /// When a memory cannot be read.
    pub(crate) fn apply(&self, options: &mut Options) -> Fallible<()> {
        if let Some(place) = &self.place {
            place.policy.narrow(options);
            let variables = &mut options.engine.env.variables;
            variables.insert("TZ".to_owned(), place.zone.clone());
            variables.extend(place.secrets.clone());
            add_to_prompt(options, &place.instructions);
            for (title, folder, name) in [
                ("Memory of all spaces", &place.data, SHARED_MEMORY),
                ("Memory of this space (CLAUDE.md in its folder)", &place.folder, memory::NAME),
            ] {
                let text = memory::read(folder, name)?.text;
                if !text.trim().is_empty() {
                    add_to_prompt(options, &memory::quoted(title, &text));
                }
            }
        }
        self.access_boundary.put_up(options);
        Ok(())
    }

    /// Equal for setups that need no new engine. A changed memory applies from the next engine.
    pub(crate) fn stamp(&self) -> String {
        let of_space =
            self.place.as_ref().map(|it| (&it.policy, &it.zone, &it.secrets, &it.instructions));
        let all = format!("{:?}", (&self.cwd, &self.access_boundary, of_space));
        format!("{:x}", Sha256::digest(all.as_bytes()))
    }
}

/// Checks that a folder in another one is a real folder there, and not a link.
pub(super) fn inside(folder: &Path, path: &Path) -> Fallible<()> {
    let refused = |why: &str| {
        let message = format!("{} {why}", path.display());
        Err(ApiError::forbidden("outside_space", message).field("cwd"))
    };
    match path.canonicalize() {
        Ok(real) if real == path && real.starts_with(folder) && real.is_dir() => Ok(()),
        Ok(real) if real.starts_with(folder) => refused("is not a folder, or is a link to one"),
        Ok(_) => refused("is not in the folder of the space"),
        Err(_) => refused("no longer exists"),
    }
}

fn instructions(space: &Space, access_boundary: &AccessBoundary) -> String {
    let mut text = format!(
        "You work in the space \"{}\", in the folder {}. Its people live in the time zone {}.",
        space.title,
        space.folder.display(),
        space.zone,
    );
    for (mount, opening) in space.mounts.iter().zip(&access_boundary.openings) {
        let how = if opening.writable { "" } else { ", which you can only read" };
        text.push_str(&format!("\nIts folder {} is {}{how}.", mount.name, opening.place.display()));
    }
    if !space.secrets.is_empty() {
        let names = space.secrets.join(", ");
        text.push_str(&format!("\nCommands find secrets in these variables: {names}. "));
        text.push_str("Use them by name; never print them.");
    }
    text
}
