//! Starting, serving and ending.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::Method;
use ostler_store::sqlite::SystemClock;
use ostler_store::{Sqlite, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::agui::{AgUi, Desks, Pages};
use crate::app::{App, Parts};
use crate::approvals::Approvals;
use crate::clock::Clock;
use crate::config::Config;
use crate::hooks::Hooks;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::proxy::{Credentials, Proxy};
use crate::records::Records;
use crate::runs::options::Shape;
use crate::runs::{self, Hub};
use crate::schedules::Schedules;
use crate::schedules::starter::Starter;
use crate::schedules::tools::OwnTools;
use crate::scribe::Scribe;
use crate::security::code::Browsers;
use crate::security::guard::Guard;
use crate::security::limits::BodyLimits;
use crate::security::rate::{Buckets, Rate};
use crate::security::redact::Redactor;
use crate::security::serve::{self, ConnectionLimits};
use crate::security::site::Site;
use crate::security::token::TokenFile;
use crate::security::users::{UserFile, Users};
use crate::security::{bind, edge, private, routes};
use crate::spaces::{self, Spaces};
use crate::tasks::{Tasks, Workshop};
use crate::webhook::{self, Teller};
use crate::{http, ids};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The folder for its data cannot be used.
    #[error("cannot use {place}: {source}")]
    Folder {
        /// Which.
        place: String,
        /// Why not.
        source: io::Error,
    },
    /// The event log cannot be opened.
    #[error(transparent)]
    Store(#[from] ostler_store::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Agents would have no way to the model.
    #[error("cannot make a way to the model: {0}")]
    Proxy(io::Error),
    /// What is configured is not safe.
    #[error("{0}")]
    Unsafe(String),
    /// The skills cannot be reached.
    #[error("cannot use the skills: {0}")]
    Skills(String),
    /// What was at work before could not be taken up.
    #[error("cannot take up earlier work: {0}")]
    Recovery(String),
}

/// A server that listens.
pub struct Server {
    app: App,
    agui: AgUi,
    router: axum::Router,
    listener: TcpListener,
    address: SocketAddr,
    /// Tells a program of the operator's what happens.
    teller: Option<Arc<Teller>>,
    /// Ends runs of AG-UI.
    agui_stopping: CancellationToken,
    /// Ends the way to the model, after everything that uses it.
    proxy_stopping: CancellationToken,
}

impl Server {
    /// Opens the event log, takes up what was at work, and listens.
    ///
    /// # Errors
    /// When one of these cannot be done; see [`StartError`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_at(config, Arc::new(SystemClock::default())).await
    }

    /// The same, by another clock.
    #[doc(hidden)]
    pub async fn start_at(
        mut config: Config,
        clock: Arc<dyn ostler_store::sqlite::Clock>,
    ) -> Result<Self, StartError> {
        let warning = bind::check(config.listen, false, config.insecure_bind);
        if let Some(warning) = warning.map_err(StartError::Unsafe)? {
            tracing::warn!("{warning}");
        }
        if let Some(webhook) = &config.webhook {
            webhook::check(webhook).map_err(StartError::Unsafe)?;
        }
        let place = config.data.display().to_string();
        let folder = |source| StartError::Folder { place: place.clone(), source };
        private::folder(&config.data).map_err(folder)?;
        let engine = config.data.join("engine");
        private::folder(&engine).map_err(folder)?;
        // Sessions of this server are its own; they do not mix with those of the person who started it.
        config.env.entry("CLAUDE_CONFIG_DIR".to_owned()).or_insert(engine.display().to_string());
        let redactor = Redactor::default();
        let credentials = Credentials::take(&mut config, redactor.clone());
        let token = TokenFile::open(config.data.join("token")).map_err(folder)?;
        let users = Users::load(token, Box::new(UserFile(config.data.join("users.json"))))
            .map_err(folder)?;
        let store: Arc<dyn Store> =
            Arc::new(Sqlite::open_with(&config.data.join("log"), Arc::clone(&clock)).await?);
        let listening = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let agui_stopping = CancellationToken::new();
        let proxy_stopping = CancellationToken::new();
        let proxy = Proxy::start(credentials, proxy_stopping.clone()).await;
        let proxy = proxy.map_err(StartError::Proxy)?;
        let (app, agui, router) = assemble(
            config,
            Kept { store, clock: Clock::new(clock) },
            users,
            address,
            redactor,
            proxy,
            agui_stopping.clone(),
        )?;
        app.hub.recover().await.map_err(|error| StartError::Recovery(error.to_string()))?;
        tokio::spawn(Arc::clone(&app.schedules).keep_time());
        app.hooks.watch();
        let teller = teller(&app, address)?;
        Ok(Self { app, agui, router, listener, address, teller, agui_stopping, proxy_stopping })
    }

    /// Its AG-UI endpoint, without the server's own door before it.
    #[doc(hidden)]
    pub fn agui(&self) -> AgUi {
        self.agui.clone()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The owner's token.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn token(&self) -> io::Result<String> {
        Ok(self.app.guard.users.owner().token()?.expose().to_owned())
    }

    /// A code with which one browser comes in, as the owner.
    ///
    /// # Errors
    /// When the owner's token cannot be read.
    pub fn code(&self) -> io::Result<String> {
        let grant = self.app.guard.users.owner().token()?.digest();
        Ok(self.app.guard.browsers.code(grant, Instant::now()).expose().to_owned())
    }

    /// Serves until `stop` comes; then takes nothing new, ends its engines and closes the log.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send) {
        let Self { app, router, listener, teller, agui_stopping, proxy_stopping, .. } = self;
        let stopping = CancellationToken::new();
        let door = serve::serve(listener, router, ConnectionLimits::default(), stopping.clone());
        let ending = async {
            stop.await;
            agui_stopping.cancel();
            app.schedules.shut_down().await;
            // Engines first: what they still say is told, and streams end with the log.
            app.hub.shut_down().await;
            app.hooks.shut_down().await;
            if let Some(teller) = teller {
                teller.shut_down().await;
            }
            stopping.cancel();
        };
        tokio::join!(door, ending);
        proxy_stopping.cancel();
        if let Err(error) = app.store.close().await {
            tracing::error!(%error, "the event log was not closed well");
        }
    }
}

/// The store, and the time that it goes by.
struct Kept {
    store: Arc<dyn Store>,
    clock: Clock,
}

fn assemble(
    config: Config,
    kept: Kept,
    users: Users,
    address: SocketAddr,
    redactor: Redactor,
    proxy: Arc<Proxy>,
    agui_stopping: CancellationToken,
) -> Result<(App, AgUi, axum::Router), StartError> {
    let Kept { store, clock } = kept;
    let config = Arc::new(config);
    let metrics = Arc::new(Metrics::default());
    let records = Records::new(Arc::clone(&store));
    let log = Log::new(Arc::clone(&store));
    let node = ids::new("node");
    let scribe = Arc::new(Scribe::new(log.clone(), Arc::clone(&store), node.clone()));
    let approvals = Arc::new(Approvals::new(
        records.clone(),
        Arc::clone(&scribe),
        clock.clone(),
        config.limits.approval,
    ));
    let workshop = Workshop::new(&config, records.clone()).map_err(StartError::Skills)?;
    let workshop = Arc::new(workshop);
    let own_tools = Arc::new(OwnTools::default());
    let desks = Arc::new(Desks::new(Arc::clone(&scribe)));
    let pages_of_threads = Pages::new(records.clone(), Arc::clone(&desks));
    let users = Arc::new(users);
    let spaces = Arc::new(Spaces::new(spaces::Parts {
        config: Arc::clone(&config),
        records: records.clone(),
        users: Arc::clone(&users),
        clock: clock.clone(),
        redactor: redactor.clone(),
    }));
    let hub = Hub::new(runs::Parts {
        redactor,
        // Whoever comes later has the last word: a skill cannot widen what the space allows.
        shapes: vec![
            Arc::clone(&workshop) as Arc<dyn Shape>,
            Arc::new(pages_of_threads),
            Arc::clone(&own_tools) as Arc<dyn Shape>,
            Arc::clone(&spaces) as _,
            Arc::clone(&proxy) as _,
        ],
        config: Arc::clone(&config),
        records,
        log,
        scribe,
        approvals: Arc::clone(&approvals),
        clock: clock.clone(),
        metrics: Arc::clone(&metrics),
    });
    let requests = f64::from(config.limits.requests_per_second);
    let wrong = f64::from(config.limits.wrong_tokens);
    let guard = Arc::new(Guard {
        site: site(&config, address),
        users: Arc::clone(&users),
        browsers: Browsers::default(),
        requests: Buckets::new(Rate { per_second: requests, burst: 10.0 * requests }),
        failures: Buckets::new(Rate { per_second: 0.2, burst: wrong }),
    });
    let (pages, document) = http::routes();
    let tasks = Arc::new(Tasks::new(workshop, Arc::clone(&hub), clock));
    let starter = Starter { hub: Arc::clone(&hub), tasks: Arc::clone(&tasks) };
    let hooks = Hooks::new(starter.clone(), Arc::clone(&users), config.private_callbacks);
    let hooks = hooks.map_err(StartError::Unsafe)?;
    let schedules = Schedules::new(starter, users, Arc::clone(&store), node);
    own_tools.reach(&schedules);
    let guarded = Arc::clone(&guard);
    let app = App::new(Parts {
        config,
        store,
        hub,
        approvals,
        tasks,
        schedules,
        hooks,
        spaces,
        metrics,
        guard: guarded,
        document,
    });
    let bodies = BodyLimits { bytes: app.config.limits.body, ..BodyLimits::default() };
    let agui = AgUi::new(app.clone(), desks, agui_stopping);
    let pages = pages.with_state(app.clone()).merge(agui.guarded());
    let router = edge::protect(pages, "/api", guard, bodies);
    Ok((app, agui, router))
}

/// Begins to tell the operator's program what happens, if there is one.
fn teller(app: &App, address: SocketAddr) -> Result<Option<Arc<Teller>>, StartError> {
    let Some(webhook) = &app.config.webhook else { return Ok(None) };
    let host = app.config.hosts.first().cloned().unwrap_or_else(|| address.to_string());
    let (hub, approvals) = (Arc::clone(&app.hub), Arc::clone(&app.approvals));
    let teller = Teller::new(webhook, format!("http://{host}"), hub, approvals);
    let teller = teller.map_err(StartError::Unsafe)?;
    teller.start();
    Ok(Some(teller))
}

/// What of the server is open, and to whom.
fn site(config: &Config, address: SocketAddr) -> Site {
    routes::open(Site::new(address, &config.hosts, false), "/api")
        .public(Method::GET, "/healthz")
        .public(Method::POST, "/api/hooks/*")
        .public(Method::GET, "/docs")
        .public(Method::GET, "/docs/*")
        .share("/agui", &config.agui.origins)
}
