//! Starts, serves and stops the server.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ostler_api::agui::AgUi;
use ostler_base::error::ApiError;
use ostler_base::private;
use ostler_core::app::App;
use ostler_core::clock::Clock;
use ostler_core::config::{Config, SandboxChoice};
use ostler_core::confine::own_files::BROWSERS;
use ostler_core::confine::redact::Redactor;
use ostler_core::confine::sandbox;
use ostler_core::forget;
use ostler_core::log_writer;
use ostler_core::memory;
use ostler_core::nightly;
use ostler_core::proxy::{Credentials, PassLimits, Proxy};
use ostler_core::removed_users;
use ostler_core::webhook::{self, WebhookSender};
use ostler_door::browsers::Cookies;
use ostler_door::public_url::PublicUrl;
use ostler_door::serve::{self, ConnectionLimits};
use ostler_door::token::TokenFile;
use ostler_door::users::{UserFile, Users};
use ostler_door::{bind, revocation};
use ostler_store::sqlite::{Clock as WallClock, SystemClock};
use ostler_store::{Sqlite, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::assemble::{Assembled, Ground};
use crate::start_error::StartError;

/// A server that listens.
pub struct Server {
    app: App,
    agui: AgUi,
    router: axum::Router,
    listener: TcpListener,
    address: SocketAddr,
    /// Notifies a program of the operator.
    webhook_sender: Option<Arc<WebhookSender>>,
    /// Ends runs of AG-UI.
    agui_stopping: CancellationToken,
    /// Ends the proxy to the model, after everything that uses it.
    proxy_stopping: CancellationToken,
    /// Tasks that watch for revoked users and tokens.
    watching: Vec<AbortOnDropHandle<()>>,
}

impl Server {
    /// Opens the event log, continues earlier work, and listens.
    ///
    /// # Errors
    /// When one of these fails; see [`StartError`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_at(config, Arc::new(SystemClock::default())).await
    }

    /// The same, with another clock.
    ///
    /// # Errors
    /// As [`Server::start`].
    #[doc(hidden)]
    pub async fn start_at(config: Config, clock: Arc<dyn WallClock>) -> Result<Self, StartError> {
        let timer = Arc::clone(&clock);
        let open = async |folder: &Path| {
            Ok(Arc::new(Sqlite::open_with(folder, timer).await?) as Arc<dyn Store>)
        };
        Self::start_with(config, clock, open).await
    }

    /// The same, with a store of the caller, which is opened when the folder for it exists.
    ///
    /// # Errors
    /// As [`Server::start`].
    #[doc(hidden)]
    pub async fn start_with(
        mut config: Config,
        clock: Arc<dyn WallClock>,
        open: impl AsyncFnOnce(&Path) -> Result<Arc<dyn Store>, ostler_store::Error>,
    ) -> Result<Self, StartError> {
        let warning = bind::check(config.listen, false, config.insecure_bind);
        if let Some(warning) = warning.map_err(StartError::Unsafe)? {
            tracing::warn!("{warning}");
        }
        let public_url = config.public_url.as_deref().map(PublicUrl::parse).transpose();
        let public_url = public_url.map_err(StartError::Unsafe)?;
        if let Some(webhook) = &config.webhook {
            webhook::check(webhook).map_err(StartError::Unsafe)?;
        }
        let place = config.data.display().to_string();
        let folder = |source| StartError::Folder { place: place.clone(), source };
        private::folder(&config.data).map_err(folder)?;
        let engine = config.data.join("engine");
        private::folder(&engine).map_err(folder)?;
        sandbox::settle(&mut config).map_err(StartError::Unsafe)?;
        // The server has its own sessions; they do not mix with those of the user who started it.
        config.env.entry("CLAUDE_CONFIG_DIR".to_owned()).or_insert(engine.display().to_string());
        let redactor = Redactor::default();
        log_writer::register(&redactor);
        let credentials = Credentials::take(&mut config, redactor.clone());
        let token = TokenFile::open(config.data.join("token")).map_err(folder)?;
        let users = Users::load(token, Box::new(UserFile(config.data.join("users.json"))))
            .map_err(folder)?
            .trusting_members(config.trust_members || config.sandbox != SandboxChoice::Off);
        check_members(&config, &users)?;
        let cookies = Cookies::load(config.data.join(BROWSERS)).map_err(folder)?;
        tell_of_empty_database(&config.data.join("log/ostler.db"));
        let store = open(&config.data.join("log")).await?;
        let remembered = removed_users::remember_earlier(&users, store.as_ref()).await;
        remembered.map_err(|error| StartError::Recovery(error.to_string()))?;
        let listening = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let agui_stopping = CancellationToken::new();
        let proxy_stopping = CancellationToken::new();
        let limits = PassLimits::of(&config);
        let proxy = Proxy::start(credentials, limits, proxy_stopping.clone()).await;
        let proxy = proxy.map_err(StartError::Proxy)?;
        let ground = Ground {
            config: Arc::new(config),
            store,
            clock: Clock::new(clock),
            users: Arc::new(users),
            cookies,
            address,
            public_url,
            redactor,
            proxy,
        };
        let Assembled { app, agui, router } = ground.assemble(agui_stopping.clone())?;
        let unrecovered = |error: ApiError| StartError::Recovery(error.to_string());
        app.approvals.upgrade_rules().await.map_err(unrecovered)?;
        app.sessions.count_earlier_usage().await.map_err(unrecovered)?;
        Box::pin(app.sessions.recover()).await.map_err(unrecovered)?;
        app.sessions.look_after_runs();
        tokio::spawn(Arc::clone(&app.schedules).keep_time());
        app.hooks.watch();
        let mut watching = vec![
            tokio::spawn(removed_users::end_their_work(app.clone())),
            tokio::spawn(nightly::tend(app.clone())),
            tokio::spawn(forget::finish_deletions(app.clone())),
            tokio::spawn(memory::give_back()),
            tokio::spawn(revocation::watch_token_file(Arc::clone(&app.guard))),
        ];
        if let Some(time) = app.config.keep_sessions {
            watching.push(tokio::spawn(forget::keep_sessions_for(app.clone(), time)));
        }
        let watching = watching.into_iter().map(AbortOnDropHandle::new).collect();
        let webhook_sender = webhook_sender(&app, address)?;
        Ok(Self {
            app,
            agui,
            router,
            listener,
            address,
            webhook_sender,
            agui_stopping,
            proxy_stopping,
            watching,
        })
    }

    /// Its AG-UI endpoint, without the server's own guard.
    #[doc(hidden)]
    pub fn agui(&self) -> AgUi {
        self.agui.clone()
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for browsers: the public URL if there is one, otherwise the listening address.
    pub fn url(&self) -> String {
        match &self.app.public_url {
            Some(url) => url.to_string(),
            None => format!("http://{}", self.address),
        }
    }

    /// Whether engines can reach a model with a key of the operator.
    pub fn has_key(&self) -> bool {
        self.app.proxy.has_key()
    }

    /// The owner's token.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn token(&self) -> io::Result<String> {
        Ok(self.app.guard.users.owner().token()?.expose().to_owned())
    }

    /// A code with which one browser signs in as the owner.
    ///
    /// # Errors
    /// When the owner's token cannot be read.
    pub fn code(&self) -> io::Result<String> {
        let grant = self.app.guard.users.owner().token()?.digest();
        Ok(self.app.guard.browsers.code(grant, Instant::now()).expose().to_owned())
    }

    /// Serves until `stop` completes; then accepts nothing new, ends its engines and closes the log.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send) {
        let Self {
            app,
            router,
            listener,
            webhook_sender,
            agui_stopping,
            proxy_stopping,
            watching,
            ..
        } = self;
        let stopping = CancellationToken::new();
        let door = serve::serve(listener, router, ConnectionLimits::default(), stopping.clone());
        let ending = async {
            stop.await;
            agui_stopping.cancel();
            app.schedules.shut_down().await;
            // Engines first: their last messages are sent, and streams end with the log.
            app.sessions.shut_down().await;
            app.hooks.shut_down().await;
            if let Some(webhook_sender) = webhook_sender {
                webhook_sender.shut_down().await;
            }
            drop(watching);
            app.closing.cancel();
            stopping.cancel();
        };
        tokio::join!(door, ending);
        proxy_stopping.cancel();
        if let Err(error) = app.store.close().await {
            tracing::error!(%error, "the event log could not be closed cleanly");
        }
    }
}

/// Logs an error for a database of length 0, which is used like a new one. Only a disk fault or a person empties it.
fn tell_of_empty_database(file: &Path) {
    if file.metadata().is_ok_and(|found| found.is_file() && found.len() == 0) {
        tracing::warn!(
            "{} is empty: its sessions are lost; restore a backup with `ostler restore`",
            file.display()
        );
    }
}

/// Refuses to start with users other than the owner unless a sandbox confines them or the operator trusts them: nothing
/// else keeps their programs from the owner's data.
fn check_members(config: &Config, users: &Users) -> Result<(), StartError> {
    let count = users.list().len();
    if config.trust_members || count == 0 || config.sandbox != SandboxChoice::Off {
        return Ok(());
    }
    let place = config.data.join("users.json");
    Err(StartError::Unsafe(format!(
        "{} has {count} user(s) in addition to the owner. Each of them can run programs as the server's own user, and so read the \
         owner's token and all conversations, because there is no sandbox. Install bubblewrap, or start the server with \
         --trust-members if you trust each of them that much; otherwise move this file away, and they are removed",
        place.display()
    )))
}

/// Starts to notify the operator's program, if there is one.
fn webhook_sender(
    app: &App,
    address: SocketAddr,
) -> Result<Option<Arc<WebhookSender>>, StartError> {
    let Some(webhook) = &app.config.webhook else { return Ok(None) };
    let host = app.config.hosts.first().cloned().unwrap_or_else(|| address.to_string());
    let base =
        app.public_url.as_ref().map_or_else(|| format!("http://{host}"), ToString::to_string);
    let (sessions, approvals) = (Arc::clone(&app.sessions), Arc::clone(&app.approvals));
    let webhook_sender = WebhookSender::new(webhook, base, sessions, approvals);
    let webhook_sender = webhook_sender.map_err(StartError::Unsafe)?;
    webhook_sender.start();
    Ok(Some(webhook_sender))
}
