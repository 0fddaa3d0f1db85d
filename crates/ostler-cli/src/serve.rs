//! `ostler serve`: starts the server, prints its address, and ends it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use ostler::engine::StartContext;
use ostler::engine::pick::{self, OFFLINE};
use ostler_engine::project_file::Boundary;
use ostler_engine::settings::{self, Folders, Sources};
use ostler_proto::permission::PermissionMode;
use ostler_server::Server;
use ostler_server::config::{Cms, Config, EngineChoice, Questions, Webhook, WebhookEvent};
use tracing::level_filters::LevelFilter;

use crate::args::serve::{LogFormat, Serve};
use crate::args::{self, Args};
use crate::scene;
use crate::screen::Screen;
use crate::signals::Signals;

/// The variable with the key that signs webhook requests.
const WEBHOOK_SECRET: &str = "OSTLER_WEBHOOK_SECRET";

/// Serves until a signal arrives.
pub(crate) async fn run(
    args: &Args,
    serve: &Serve,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    listen_to_log(serve);
    shut_the_blinds();
    raise_file_limit();
    let mut signals = Signals::listen()?;
    let config = config(args, serve)?;
    let is_offline = config.model.as_deref() == Some(OFFLINE);
    let server = Server::start(config).await?;
    announce(&server, serve, screen)?;
    if is_offline {
        screen.line("the offline demo answers; set ANTHROPIC_API_KEY for a real model")?;
    } else if serve.engine.is_none() && !server.has_key() {
        screen.complain(
            "not logged in: every prompt will fail. Set ANTHROPIC_API_KEY, or name a file with --key-file, and start again",
        );
    }
    let shutdown = async move {
        signals.next().await;
    };
    server.serve(shutdown).await;
    screen.line("ended")?;
    Ok(ExitCode::SUCCESS)
}

/// The folders that the operator names (`--cwd`, `--root`) and that are repositories at the start. Repositories that an
/// agent or a member creates in them later are not trusted. A workspace that is only the current folder counts if
/// `--trust-project` is given.
fn trusted_repositories(args: &Args, serve: &Serve, workspace: &Path) -> Vec<PathBuf> {
    let is_named = args.cwd.is_some() || args.trust_project;
    let workspace = is_named.then_some(workspace);
    let named = workspace.into_iter().chain(serve.root.iter().map(PathBuf::as_path));
    let is_repository =
        |folder: &PathBuf| folder.join(".git").symlink_metadata().is_ok_and(|kind| kind.is_dir());
    named.filter_map(|folder| folder.canonicalize().ok()).filter(is_repository).collect()
}

fn config(args: &Args, serve: &Serve) -> anyhow::Result<Config> {
    let scene = scene::of(args)?;
    let data = match &serve.data {
        Some(data) => data.clone(),
        None => data_folder(|name| scene.env.get(name))
            .context("there is no home folder: name a data folder with --data")?,
    };
    let mut config = Config::new(data, scene.cwd.clone());
    config.listen = serve.listen;
    config.insecure_bind = serve.insecure_bind;
    config.hosts.clone_from(&serve.host);
    config.public_url.clone_from(&serve.public_url);
    config.trust_forwarded_for = serve.trust_forwarded_for;
    config.trust_members = serve.trust_members;
    config.sandbox = serve.sandbox.into();
    config.sandbox_domains.clone_from(&serve.sandbox_domain);
    config.agui.origins.clone_from(&serve.agui_origin);
    config.roots.clone_from(&serve.root);
    config.trusted_repositories = trusted_repositories(args, serve, &config.workspace);
    config.skills.clone_from(&serve.skills);
    config.cms = serve.cms.clone().map(|url| Cms { url, token: scene.env.get("OSTLER_CMS_TOKEN") });
    if let Some(url) = serve.webhook.clone() {
        let secret = scene.env.get(WEBHOOK_SECRET).unwrap_or_default();
        let events = serve.webhook_events.iter().map(|event| match event {
            args::serve::WebhookEvent::Waiting => WebhookEvent::Waiting,
            args::serve::WebhookEvent::Ended => WebhookEvent::Ended,
        });
        config.webhook = Some(Webhook { url, secret, events: events.collect() });
        // Agents must not see the secret.
        config.env.insert(WEBHOOK_SECRET.to_owned(), String::new());
    }
    if let Some(program) = &serve.engine {
        config.engine = EngineChoice::Program(program.clone());
    }
    config.key_file.clone_from(&serve.key_file);
    config.operator.clone_from(&scene.env);
    config.pass_env.clone_from(&serve.pass_env);
    config.model = serve.model.clone().or_else(|| args.launch.model.name.clone());
    if serve.engine.is_none() && pick::is_offline_chosen(&scene) {
        config.model = Some(OFFLINE.to_owned());
    }
    config.model_by_request = !serve.fixed_model;
    config.allow_bypass = serve.allow_bypass;
    config.settings = args.launch.settings.as_deref().map(settings).transpose()?;
    config.permission_mode = permission_mode(&scene, serve)?;
    config.private_callbacks = serve.allow_private_callbacks;
    config.trust_project_servers = args.trust_project;
    config.trust_cms = serve.trust_cms;
    config.backups.clone_from(&serve.backups);
    config.keep_sessions = serve.keep_sessions;
    config.models.clone_from(&serve.allow_model);
    if serve.no_questions {
        config.questions = Questions::Never;
    }
    let limits = &mut config.limits;
    limits.concurrent_runs = serve.max_runs;
    limits.engines_per_user = serve.max_engines_per_user;
    limits.sessions_per_user = serve.max_sessions_per_user;
    limits.max_turns = serve.max_turns.or(args.launch.limits.max_turns);
    limits.max_budget_usd = serve.max_budget_usd.or(args.launch.limits.max_budget_usd);
    limits.run = serve.run_timeout.or(limits.run);
    limits.tool = serve.tool_timeout;
    limits.stale = serve.stale_timeout.or(limits.stale);
    limits.engine_tokens = serve.engine_tokens;
    limits.engine_usd = serve.engine_usd;
    limits.idle = serve.idle_timeout.unwrap_or(limits.idle);
    limits.approval = serve.approval_timeout;
    Ok(config)
}

/// The largest settings file, in bytes.
const LONGEST_SETTINGS: u64 = 4 * 1024 * 1024;

/// The operator's settings as JSON. Errors in them are reported now, not when the first session starts.
fn settings(flag: &str) -> anyhow::Result<String> {
    let flag_of = |text: &str| Sources { flag: Some(text.to_owned()), ..Sources::default() };
    settings::load(&Folders::default(), &flag_of(flag))?;
    match flag.trim_start().starts_with('{') {
        true => Ok(flag.to_owned()),
        // Read once: an agent that can write the file must not change its own rules.
        false => {
            let text = Boundary::default().read_text(Path::new(flag), LONGEST_SETTINGS);
            text.map_err(|refusal| anyhow::anyhow!("--settings {flag}: {refusal}"))
        }
    }
}

/// The permission mode of sessions that do not name one.
fn permission_mode(scene: &StartContext, serve: &Serve) -> anyhow::Result<Option<PermissionMode>> {
    let mode = scene.launch.permission_mode.clone();
    if mode == Some(PermissionMode::BypassPermissions) {
        anyhow::ensure!(
            serve.allow_bypass,
            "--permission-mode bypassPermissions lets every session work without approval: add --allow-bypass if \
             you mean it, or choose another mode"
        );
        scene::refuse_root(scene)?;
    }
    Ok(mode)
}

/// Prevents other processes of this user from reading this process: its memory and its initial environment hold the
/// key, and agents' commands run as the same user. A process that may read all others, such as root's, still can.
fn shut_the_blinds() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "other processes of this user may be able to read the key");
    }
}

/// The default data folder of this user.
pub(crate) fn data_folder(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let shared = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")));
    Some(shared?.join("ostler"))
}

fn announce(server: &Server, serve: &Serve, screen: &mut Screen) -> anyhow::Result<()> {
    let address = server.address();
    screen.line(&format!("listening on http://{address}"))?;
    let token = server.token().context("cannot read the token")?;
    if serve.show_token {
        screen.line(&format!("token: {token}"))?;
    } else {
        screen
            .hint("its token is in the file `token` of the data folder; --show-token prints it")?;
    }
    if serve.show_code {
        let code = server.code().context("cannot create a code")?;
        screen.line(&format!("code for one browser, for five minutes: {code}"))?;
        // Browsers never send the part after `#`; the page reads it.
        if serve.public_url.is_some() || !address.ip().is_unspecified() {
            screen.line(&format!("or open {}/#code={code}", server.url()))?;
        }
    }
    if serve.public_url.is_some() {
        screen.line(&format!("browsers reach it at {}", server.url()))?;
    }
    screen.hint(&format!("API documentation: {}/docs", server.url()))?;
    Ok(())
}

/// Every stream and every model request needs an open file, and the default limit is too low for that.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        let now = current.map_or_else(|| "unlimited".to_owned(), |files| files.to_string());
        tracing::warn!(%error, "at most {now} files can be open at once; `ulimit -n` can change that");
    }
}

/// Writes the log to standard error, without secrets, for the operator.
fn listen_to_log(serve: &Serve) {
    let level = if serve.verbose_log { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let log = tracing_subscriber::fmt()
        .with_writer(ostler_server::log_writer::stderr)
        .with_max_level(level);
    // Setting the logger a second time in one process fails, and the first one stays.
    let _ = match serve.log {
        LogFormat::Json => log.json().try_init(),
        LogFormat::Text => log.with_ansi(false).try_init(),
    };
}

#[cfg(test)]
mod tests;
