//! MCP servers of spaces and sessions: who configures them, and which of them start.
//!
//! A server of a space is there for all its sessions; a session switches it off, and can have servers of its own. What a
//! server may be depends on who configured it (`allowed.rs`), and is decided again whenever an engine starts (`start.rs`).
//! Users sign in to servers behind an address with accounts of their own (`sign_in.rs`).

mod allowed;
pub mod sign_in;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler::engine::{PoolLimits, ServerPool};
use ostler_base::error::{self, ApiError, Fallible};
use ostler_door::users::{Caller, Role, Users};

use self::allowed::Confinement;
use self::sign_in::SignIns;
use crate::approvals::audit::Audited;
use crate::clock::Clock;
use crate::config::Config;
use crate::confine::redact::Redactor;
use crate::model::mcp_server::{
    MOST_SERVERS, ServerConfig, ServerSet, StoredServer, check_server_name,
};
use crate::model::run::Session;
use crate::model::space::Space;
use crate::records::Records;
use crate::spaces::Spaces;
use crate::spaces::access::SpaceRole;

/// The MCP servers of all spaces and sessions.
pub struct McpServers {
    config: Arc<Config>,
    records: Records,
    users: Arc<Users>,
    clock: Clock,
    redactor: Redactor,
    spaces: Arc<Spaces>,
    /// The programs that sessions share.
    pub pool: ServerPool,
    /// Users who are signing in to servers.
    sign_ins: SignIns,
}

/// The parts of [`McpServers`].
pub struct Parts {
    pub config: Arc<Config>,
    pub records: Records,
    pub users: Arc<Users>,
    pub clock: Clock,
    pub redactor: Redactor,
    pub spaces: Arc<Spaces>,
}

/// Where a server was configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Space,
    Session,
}

/// A server of a session or a space, as the server's own code sees it.
#[derive(Clone, Debug)]
pub struct FoundServer {
    pub name: String,
    pub origin: Origin,
    pub config: ServerConfig,
    /// The user who configured it.
    pub by: String,
    pub at: u64,
    /// Whether the session uses it.
    pub on: bool,
    /// Why it does not start, if so.
    pub problem: Option<String>,
    /// Whether it must run in a sandbox.
    pub(crate) confined: bool,
}

impl McpServers {
    pub fn new(parts: Parts) -> Self {
        let Parts { config, records, users, clock, redactor, spaces } = parts;
        let mut limits = PoolLimits::default();
        limits.idle = config.limits.mcp_idle;
        limits.programs_per_user = config.limits.mcp_programs_per_user;
        let pool = ServerPool::new(limits);
        let sign_ins = SignIns::default();
        Self { config, records, users, clock, redactor, spaces, pool, sign_ins }
    }

    /// The servers of a space.
    pub async fn of_space(&self, caller: &Caller, id: &str) -> Fallible<Vec<FoundServer>> {
        let space = self.spaces.find(caller, id, SpaceRole::Member).await?;
        let set = self.set(&ServerSet::of_space(id)).await?;
        // Whether a server starts also depends on the session; what is wrong for every session is shown here.
        let found = set.into_iter().flat_map(|set| set.servers).map(|(name, server)| {
            let problem = self.gone(&server, Some(&space));
            found(name, Origin::Space, server, true, problem.map_or(Ok(false), Err))
        });
        Ok(found.collect())
    }

    /// Adds a server to a space, or replaces it; for admins of the space.
    pub async fn put_in_space(
        &self,
        caller: &Caller,
        id: &str,
        (name, config): (&str, ServerConfig),
    ) -> Fallible<()> {
        let space = self.spaces.find(caller, id, SpaceRole::Admin).await?;
        let audit =
            |subject, at| Audited::of_space(&space, "mcp_server", &caller.user, subject, at);
        let empty = ServerSet {
            id: ServerSet::of_space(id),
            owner: space.owner.clone(),
            session: None,
            servers: BTreeMap::new(),
            off: Default::default(),
        };
        self.put(caller, empty, (name, config), format!("space {id}"), audit).await
    }

    /// Removes a server of a space; for admins of the space.
    pub async fn remove_from_space(&self, caller: &Caller, id: &str, name: &str) -> Fallible<()> {
        let space = self.spaces.find(caller, id, SpaceRole::Admin).await?;
        self.remove(&ServerSet::of_space(id), name).await?;
        let subject = format!("space {id}: MCP server {name} removed");
        let at = self.clock.now();
        self.records
            .create(&Audited::of_space(&space, "mcp_server", &caller.user, subject, at))
            .await
    }

    /// The servers of a session: its own, and those of its space with other names.
    pub async fn of_session(&self, session: &Session) -> Fallible<Vec<FoundServer>> {
        let own = self.set(&ServerSet::of_session(&session.id)).await?;
        let (servers, off) = own.map(|own| (own.servers, own.off)).unwrap_or_default();
        let space = match &session.setup.space {
            Some(id) => self.records.find::<Space>(id).await?.map(|(space, _)| space),
            None => None,
        };
        let of_space = match &space {
            Some(space) => self.set(&ServerSet::of_space(&space.id)).await?,
            None => None,
        };
        // The space's server wins: a member cannot put a program in its place.
        let mut all = BTreeMap::new();
        let of_space = of_space.into_iter().flat_map(|set| set.servers);
        let named = servers
            .into_iter()
            .map(|(name, server)| (name, server, Origin::Session))
            .chain(of_space.map(|(name, server)| (name, server, Origin::Space)));
        for (name, server, origin) in named {
            let space = space.as_ref().filter(|_| origin == Origin::Space);
            let start = match self.gone(&server, space) {
                Some(problem) => Err(problem),
                None => self.confinement(&session.owner, &server),
            };
            let on = !off.contains(&name);
            all.insert(name.clone(), found(name, origin, server, on, start));
        }
        Ok(all.into_values().collect())
    }

    /// Adds a server to a session, or replaces it; for the session's own user.
    pub async fn put_in_session(
        &self,
        caller: &Caller,
        session: &Session,
        (name, config): (&str, ServerConfig),
    ) -> Fallible<()> {
        own_session(caller, session)?;
        if let Some(space) = &session.setup.space {
            let known = self.set(&ServerSet::of_space(space)).await?;
            if known.is_some_and(|known| known.servers.contains_key(name)) {
                let message = format!("the space {space} has a server {name} already");
                return Err(ApiError::conflict("mcp_server_exists", message)
                    .field("name")
                    .hint("use another name"));
            }
        }
        let audit =
            |subject, at| Audited::of_session(session, "mcp_server", &caller.user, subject, at);
        let what = format!("session {}", session.id);
        self.put(caller, set_of(session), (name, config), what, audit).await
    }

    /// Removes a server that a session has of its own.
    pub async fn remove_from_session(
        &self,
        caller: &Caller,
        session: &Session,
        name: &str,
    ) -> Fallible<()> {
        own_session(caller, session)?;
        self.remove(&ServerSet::of_session(&session.id), name).await?;
        let subject = format!("session {}: MCP server {name} removed", session.id);
        let at = self.clock.now();
        self.records
            .create(&Audited::of_session(session, "mcp_server", &caller.user, subject, at))
            .await
    }

    /// Switches a server on or off in a session.
    pub async fn switch(
        &self,
        caller: &Caller,
        session: &Session,
        name: &str,
        on: bool,
    ) -> Fallible<()> {
        own_session(caller, session)?;
        if !self.of_session(session).await?.iter().any(|server| server.name == name) {
            return Err(error::not_found("MCP server", name));
        }
        self.change(set_of(session), |set| {
            match on {
                true => set.off.remove(name),
                false => set.off.insert(name.to_owned()),
            };
            Ok(())
        })
        .await
    }

    async fn put(
        &self,
        caller: &Caller,
        empty: ServerSet,
        (name, config): (&str, ServerConfig),
        what: String,
        audit: impl Fn(String, u64) -> Audited,
    ) -> Fallible<()> {
        check_server_name(name)?;
        config.check()?;
        allowed::check(&self.config, caller.role, &config)?;
        let at = self.clock.now();
        let server = StoredServer { config, by: caller.user.clone(), at };
        self.redact(&server.config);
        self.change(empty, |set| {
            if set.servers.len() >= MOST_SERVERS && !set.servers.contains_key(name) {
                let message = format!("there can be at most {MOST_SERVERS} servers");
                return Err(ApiError::conflict("too_many_mcp_servers", message));
            }
            set.servers.insert(name.to_owned(), server.clone());
            Ok(())
        })
        .await?;
        let shared = if server.config.is_shared() { " (shared)" } else { "" };
        let summary = server.config.summary() + shared;
        let subject =
            self.redactor.text(&format!("{what}: MCP server {name}: {summary}")).into_owned();
        self.records.create(&audit(subject, at)).await
    }

    async fn remove(&self, id: &str, name: &str) -> Fallible<()> {
        let removed = self.records.update::<ServerSet, bool>(id, |set| {
            set.off.remove(name);
            Ok(set.servers.remove(name).is_some())
        });
        match removed.await {
            Ok((_, true)) => Ok(()),
            Ok((_, false)) => Err(error::not_found("MCP server", name)),
            Err(error) if error.status() == 404 => Err(error::not_found("MCP server", name)),
            Err(error) => Err(error),
        }
    }

    /// Changes a set, which is created if there is none yet.
    async fn change(
        &self,
        empty: ServerSet,
        mut change: impl FnMut(&mut ServerSet) -> Fallible<()>,
    ) -> Fallible<()> {
        let id = empty.id.clone();
        if self.set(&id).await?.is_none() {
            let mut new = empty;
            change(&mut new)?;
            if self.records.create(&new).await.is_ok() {
                return Ok(());
            }
            // Another request has just created it.
        }
        self.records.update::<ServerSet, ()>(&id, change).await.map(drop)
    }

    async fn set(&self, id: &str) -> Fallible<Option<ServerSet>> {
        Ok(self.records.find::<ServerSet>(id).await?.map(|(set, _)| set))
    }

    /// Why a server starts for no one, if so: the user who configured it may not do that any more.
    fn gone(&self, server: &StoredServer, space: Option<&Space>) -> Option<String> {
        let Some(role) = self.users.role(&server.by) else {
            return Some("the user who configured it is no longer on this server".to_owned());
        };
        if space.is_some_and(|space| space.role_of(&server.by, role) < Some(SpaceRole::Admin)) {
            return Some(
                "the user who configured it is no longer an admin of the space".to_owned(),
            );
        }
        allowed::check(&self.config, role, &server.config)
            .err()
            .map(|error| error.detail().message.clone())
    }

    /// Whether a server must be confined in the sessions of a user, or why it does not start there.
    fn confinement(&self, owner: &str, server: &StoredServer) -> Result<bool, String> {
        if !matches!(server.config, ServerConfig::Stdio(_)) {
            return Ok(false);
        }
        let role = |user: &str| self.users.role(user);
        let owns_server = |user: &str| role(user) == Some(Role::Owner);
        let sandbox = self.config.sandbox;
        match allowed::confinement(owns_server(owner), owns_server(&server.by), sandbox) {
            Confinement::Sandbox => Ok(true),
            Confinement::None => Ok(false),
            Confinement::Refused(why) => Err(why.to_owned()),
        }
    }

    fn redact(&self, config: &ServerConfig) {
        let values = match config {
            ServerConfig::Stdio(program) => &program.env,
            ServerConfig::Http(remote) | ServerConfig::Sse(remote) => &remote.headers,
        };
        let secret = |(name, value): (&String, &String)| {
            // `Bearer` alone is not a secret.
            let value = value.rsplit(' ').next().unwrap_or(value);
            (name.clone(), value.to_owned())
        };
        for (name, value) in values.iter().map(secret) {
            if name.eq_ignore_ascii_case("authorization") && !value.contains("${") {
                self.redactor.add(&name, &value);
            }
            self.redactor.add_variables([(name, value)]);
        }
    }
}

fn set_of(session: &Session) -> ServerSet {
    ServerSet {
        id: ServerSet::of_session(&session.id),
        owner: session.owner.clone(),
        session: Some(session.id.clone()),
        servers: BTreeMap::new(),
        off: Default::default(),
    }
}

/// Refuses users who see a session that is not theirs: servers act with the rights and accounts of the session's user.
pub fn own_session(caller: &Caller, session: &Session) -> Fallible<()> {
    if session.owner == caller.user {
        return Ok(());
    }
    let message = "only the user of a session changes its MCP servers and signs in to them";
    Err(ApiError::forbidden("not_your_session", message))
}

fn found(
    name: String,
    origin: Origin,
    server: StoredServer,
    on: bool,
    start: Result<bool, String>,
) -> FoundServer {
    let StoredServer { config, by, at } = server;
    let (confined, problem) = match start {
        Ok(confined) => (confined, None),
        Err(problem) => (true, Some(problem)),
    };
    FoundServer { name, origin, config, by, at, on, problem, confined }
}
