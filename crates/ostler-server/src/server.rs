//! Starting, serving and ending.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::http::Method;
use ostler_store::{Sqlite, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::agui::{AgUi, Desks, Pages};
use crate::app::{App, Parts};
use crate::approvals::Approvals;
use crate::clock::Clock;
use crate::config::Config;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::records::Records;
use crate::runs::options::Shape;
use crate::runs::{self, Hub};
use crate::scribe::Scribe;
use crate::security::code::Browsers;
use crate::security::guard::Guard;
use crate::security::limits::BodyLimits;
use crate::security::rate::{Buckets, Rate};
use crate::security::serve::{self, ConnectionLimits};
use crate::security::site::Site;
use crate::security::token::TokenFile;
use crate::security::users::{UserFile, Users};
use crate::security::{bind, edge, private, routes};
use crate::tasks::{Tasks, Workshop};
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
    /// Ends runs of AG-UI.
    agui_stopping: CancellationToken,
}

impl Server {
    /// Opens the event log, takes up what was at work, and listens.
    ///
    /// # Errors
    /// When one of these cannot be done; see [`StartError`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_with(config, async |folder| {
            Ok(Arc::new(Sqlite::open(folder).await?) as Arc<dyn Store>)
        })
        .await
    }

    /// The same with a store of the caller's, which is opened when the folder for it is there.
    ///
    /// # Errors
    /// Likewise.
    #[doc(hidden)]
    pub async fn start_with(
        mut config: Config,
        open: impl AsyncFnOnce(&Path) -> Result<Arc<dyn Store>, ostler_store::Error>,
    ) -> Result<Self, StartError> {
        let warning = bind::check(config.listen, false, config.insecure_bind);
        if let Some(warning) = warning.map_err(StartError::Unsafe)? {
            tracing::warn!("{warning}");
        }
        let folder =
            |source| StartError::Folder { place: config.data.display().to_string(), source };
        private::folder(&config.data).map_err(folder)?;
        let engine = config.data.join("engine");
        private::folder(&engine).map_err(folder)?;
        // Sessions of this server are its own; they do not mix with those of the person who started it.
        config.env.entry("CLAUDE_CONFIG_DIR".to_owned()).or_insert(engine.display().to_string());
        let token = TokenFile::open(config.data.join("token")).map_err(folder)?;
        let users = Users::load(token, Box::new(UserFile(config.data.join("users.json"))))
            .map_err(folder)?;
        let store = open(&config.data.join("log")).await?;
        let listening = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let agui_stopping = CancellationToken::new();
        let (app, agui, router) =
            assemble(Arc::new(config), store, users, address, agui_stopping.clone())?;
        app.hub.recover().await.map_err(|error| StartError::Recovery(error.to_string()))?;
        Ok(Self { app, agui, router, listener, address, agui_stopping })
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
        let Self { app, router, listener, agui_stopping, .. } = self;
        let stopping = CancellationToken::new();
        let door = serve::serve(listener, router, ConnectionLimits::default(), stopping.clone());
        let ending = async {
            stop.await;
            agui_stopping.cancel();
            // Engines first: what they still say is told, and streams end with the log.
            app.hub.shut_down().await;
            app.closing.cancel();
            stopping.cancel();
        };
        tokio::join!(door, ending);
        if let Err(error) = app.store.close().await {
            tracing::error!(%error, "the event log was not closed well");
        }
    }
}

fn assemble(
    config: Arc<Config>,
    store: Arc<dyn Store>,
    users: Users,
    address: SocketAddr,
    agui_stopping: CancellationToken,
) -> Result<(App, AgUi, axum::Router), StartError> {
    let clock = Clock::system();
    let metrics = Arc::new(Metrics::default());
    let records = Records::new(Arc::clone(&store));
    let log = Log::new(Arc::clone(&store));
    let scribe = Arc::new(Scribe::new(log.clone(), Arc::clone(&store), ids::new("node")));
    let approvals = Arc::new(Approvals::new(
        records.clone(),
        Arc::clone(&scribe),
        clock.clone(),
        config.limits.approval,
    ));
    let workshop = Workshop::new(&config, records.clone()).map_err(StartError::Skills)?;
    let workshop = Arc::new(workshop);
    let desks = Arc::new(Desks::new(Arc::clone(&scribe)));
    let pages_of_threads = Pages::new(records.clone(), Arc::clone(&desks));
    let hub = Hub::new(runs::Parts {
        shapes: vec![Arc::clone(&workshop) as Arc<dyn Shape>, Arc::new(pages_of_threads)],
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
        users: Arc::new(users),
        browsers: Browsers::default(),
        requests: Buckets::new(Rate { per_second: requests, burst: 10.0 * requests }),
        failures: Buckets::new(Rate { per_second: 0.2, burst: wrong }),
    });
    let (pages, document) = http::routes();
    let tasks = Tasks::new(workshop, Arc::clone(&hub), clock);
    let guarded = Arc::clone(&guard);
    let closing = CancellationToken::new();
    let app = App::new(Parts {
        config,
        store,
        hub,
        approvals,
        tasks,
        metrics,
        guard: guarded,
        document,
        closing,
    });
    let bodies = BodyLimits { bytes: app.config.limits.body, ..BodyLimits::default() };
    let agui = AgUi::new(app.clone(), desks, agui_stopping);
    let pages = pages.with_state(app.clone()).merge(agui.guarded());
    let router = edge::protect(pages, "/api", guard, bodies);
    Ok((app, agui, router))
}

/// What of the server is open, and to whom.
fn site(config: &Config, address: SocketAddr) -> Site {
    routes::open(Site::new(address, &config.hosts, false), "/api")
        .public(Method::GET, "/healthz")
        .public(Method::GET, "/docs")
        .public(Method::GET, "/docs/*")
        .share("/agui", &config.agui.origins)
}
