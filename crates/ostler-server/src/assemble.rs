//! Puts the parts of the server together.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::Method;
use ostler_api::agui::{AgUi, Pages, ThreadToolCalls};
use ostler_api::http;
use ostler_base::ids;
use ostler_core::app::{App, Parts, UserLimits};
use ostler_core::approvals::{self, Approvals};
use ostler_core::clock::Clock;
use ostler_core::config::{Config, Limits};
use ostler_core::confine::redact::Redactor;
use ostler_core::hooks::Hooks;
use ostler_core::log::Log;
use ostler_core::log_writers::LogWriters;
use ostler_core::mcp_servers::{self, McpServers};
use ostler_core::metrics::Metrics;
use ostler_core::proxy::Proxy;
use ostler_core::records::Records;
use ostler_core::removed_users::NoEngineForRemoved;
use ostler_core::runs::options::EngineSetup;
use ostler_core::runs::{self, Sessions};
use ostler_core::schedules::Schedules;
use ostler_core::schedules::tools::OwnTools;
use ostler_core::session_room::SessionRoom;
use ostler_core::spaces::{self, Spaces};
use ostler_core::start::Starter;
use ostler_core::tasks::{Tasks, Workshop};
use ostler_door::browsers::Cookies;
use ostler_door::code::Browsers;
use ostler_door::guard::Guard;
use ostler_door::limits::BodyLimits;
use ostler_door::permits::UserLimit;
use ostler_door::public_url::PublicUrl;
use ostler_door::rate::{Buckets, Rate};
use ostler_door::site::Site;
use ostler_door::users::Users;
use ostler_door::{edge, routes};
use ostler_store::Store;
use tokio_util::sync::CancellationToken;

use crate::start_error::StartError;

/// What is prepared before the parts are put together.
pub(crate) struct Ground {
    pub(crate) config: Arc<Config>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) users: Arc<Users>,
    /// The signed-in browsers.
    pub(crate) cookies: Cookies,
    pub(crate) address: SocketAddr,
    /// The address at which browsers reach it, if it is another one.
    pub(crate) public_url: Option<PublicUrl>,
    pub(crate) redactor: Redactor,
    pub(crate) proxy: Arc<Proxy>,
}

/// A server that does not listen yet.
pub(crate) struct Assembled {
    pub(crate) app: App,
    pub(crate) agui: AgUi,
    pub(crate) router: axum::Router,
}

/// The extensions of the engine's options.
struct EngineSetups {
    workshop: Arc<Workshop>,
    thread_tool_calls: Arc<ThreadToolCalls>,
    own_tools: Arc<OwnTools>,
    spaces: Arc<Spaces>,
    mcp: Arc<McpServers>,
}

impl Ground {
    /// Puts the server together. Runs of AG-UI end with the token.
    pub(crate) fn assemble(
        mut self,
        agui_stopping: CancellationToken,
    ) -> Result<Assembled, StartError> {
        let records = Records::new(Arc::clone(&self.store));
        let log = Log::new(Arc::clone(&self.store));
        let node = ids::new("node");
        let log_writers = Arc::new(LogWriters::new(
            log.clone(),
            Arc::clone(&self.store),
            node.clone(),
            self.config.limits.lease,
        ));
        let engine_setups = self.engine_setups(&records, &log_writers)?;
        let sessions = self.sessions(&engine_setups, records, log, log_writers);
        let most = self.config.limits.sessions_per_user;
        let room = Arc::new(SessionRoom::new(Arc::clone(&self.store), most));
        let tasks = Tasks::new(
            engine_setups.workshop,
            Arc::clone(&sessions),
            self.clock.clone(),
            room.clone(),
        );
        let tasks = Arc::new(tasks);
        let (users, store) = (Arc::clone(&self.users), Arc::clone(&self.store));
        let starter = Starter {
            sessions: Arc::clone(&sessions),
            tasks: Arc::clone(&tasks),
            room: room.clone(),
        };
        let inside = self.config.private_callbacks;
        let hooks = Hooks::new(starter.clone(), Arc::clone(&users), inside);
        let hooks = hooks.map_err(StartError::Unsafe)?;
        let schedules = Schedules::new(starter, users, store, node);
        engine_setups.own_tools.reach(&schedules);
        let cookies = std::mem::take(&mut self.cookies);
        let guard = Arc::new(self.guard(cookies));
        let (pages, document) = http::routes();
        let limits = user_limits(&self.config.limits);
        let app = App::new(Parts {
            config: self.config,
            store: self.store,
            approvals: Arc::clone(&sessions.approvals),
            metrics: Arc::clone(&sessions.metrics),
            sessions,
            tasks,
            spaces: engine_setups.spaces,
            mcp: engine_setups.mcp,
            proxy: self.proxy,
            schedules,
            hooks,
            guard: Arc::clone(&guard),
            document,
            limits,
            session_room: room,
            upkeep: ostler_core::upkeep::Upkeep::default(),
            deleting: tokio::sync::Mutex::default(),
            public_url: self.public_url,
            closing: CancellationToken::new(),
        });
        let by_path = vec![("/api/hooks/".to_owned(), ostler_core::hooks::LONGEST)];
        let bytes = app.config.limits.body;
        let bodies = BodyLimits { bytes, by_path, ..BodyLimits::default() };
        let agui = AgUi::new(app.clone(), engine_setups.thread_tool_calls, agui_stopping);
        let pages = pages.with_state(app.clone()).merge(agui.guarded());
        let router = edge::protect(pages, "/api", guard, bodies);
        Ok(Assembled { app, agui, router })
    }

    fn engine_setups(
        &self,
        records: &Records,
        log_writers: &Arc<LogWriters>,
    ) -> Result<EngineSetups, StartError> {
        let workshop = Workshop::new(&self.config, records.clone()).map_err(StartError::Skills)?;
        let spaces = Arc::new(Spaces::new(spaces::Parts {
            config: Arc::clone(&self.config),
            records: records.clone(),
            users: Arc::clone(&self.users),
            clock: self.clock.clone(),
            redactor: self.redactor.clone(),
        }));
        let mcp = McpServers::new(mcp_servers::Parts {
            config: Arc::clone(&self.config),
            records: records.clone(),
            users: Arc::clone(&self.users),
            clock: self.clock.clone(),
            redactor: self.redactor.clone(),
            spaces: Arc::clone(&spaces),
        });
        Ok(EngineSetups {
            workshop: Arc::new(workshop),
            thread_tool_calls: Arc::new(ThreadToolCalls::new(Arc::clone(log_writers))),
            own_tools: Arc::default(),
            spaces,
            mcp: Arc::new(mcp),
        })
    }

    fn sessions(
        &self,
        engine_setups: &EngineSetups,
        records: Records,
        log: Log,
        log_writers: Arc<LogWriters>,
    ) -> Arc<Sessions> {
        let approvals = Arc::new(Approvals::new(approvals::Parts {
            records: records.clone(),
            log_writers: Arc::clone(&log_writers),
            clock: self.clock.clone(),
            redactor: self.redactor.clone(),
            config: Arc::clone(&self.config),
        }));
        let pages = Pages::new(records.clone(), Arc::clone(&engine_setups.thread_tool_calls));
        Sessions::new(runs::Parts {
            redactor: self.redactor.clone(),
            engines: engine_limit(&self.config.limits),
            // The last one wins: a skill cannot widen what the space allows.
            engine_setups: vec![
                Arc::clone(&engine_setups.workshop) as Arc<dyn EngineSetup>,
                Arc::new(pages),
                Arc::clone(&engine_setups.own_tools) as _,
                Arc::clone(&engine_setups.spaces) as _,
                Arc::clone(&engine_setups.mcp) as _,
                Arc::clone(&self.proxy) as _,
                Arc::new(NoEngineForRemoved(Arc::clone(&self.users))),
            ],
            config: Arc::clone(&self.config),
            records,
            log,
            log_writers,
            approvals,
            clock: self.clock.clone(),
            metrics: Arc::new(Metrics::default()),
        })
    }

    fn guard(&self, cookies: Cookies) -> Guard {
        let requests = f64::from(self.config.limits.requests_per_second);
        let wrong = f64::from(self.config.limits.wrong_tokens);
        let public = f64::from(self.config.limits.public_requests_per_second);
        Guard {
            site: site(&self.config, self.address)
                .behind_proxy(self.public_url.clone(), self.config.trust_forwarded_for),
            users: Arc::clone(&self.users),
            browsers: Browsers::new(cookies),
            requests: Buckets::new(Rate { per_second: requests, burst: 10.0 * requests }),
            failures: Buckets::new(Rate { per_second: 0.2, burst: wrong }),
            strangers: Buckets::new(Rate { per_second: public, burst: 10.0 * public }),
        }
    }
}

fn engine_limit(limits: &Limits) -> UserLimit {
    let remedy = "delete sessions, or wait until idle agents have ended";
    UserLimit::new("active or waiting agents", remedy, limits.engines_per_user)
}

fn user_limits(limits: &Limits) -> UserLimits {
    UserLimits {
        streams: UserLimit::new("open event streams", "close some", limits.streams_per_user),
        sockets: UserLimit::new("open WebSockets", "close some", limits.sockets_per_user),
        agui_runs: UserLimit::new(
            "open AG-UI runs",
            "wait until some have ended, or stop them",
            limits.agui_runs_per_user,
        ),
    }
}

/// Which paths of the server are open, and to whom.
fn site(config: &Config, address: SocketAddr) -> Site {
    let site = routes::open(Site::new(address, &config.hosts), "/api");
    http::page::open(site)
        .public(Method::GET, "/healthz")
        .public(Method::POST, "/api/hooks/*")
        .public(Method::GET, "/docs")
        .public(Method::GET, "/docs/*")
        .share("/agui", &config.agui.origins)
}
