//! Starts a session: reads everything that it needs and passes it to the engine.

use std::sync::Arc;
use std::time::Duration;

use ostler_engine::context::memory::{self, NestedMemory};
use ostler_engine::model::Sampling;
use ostler_engine::permission::Policy;
use ostler_engine::session::{
    self, Compaction, Connection, Delegation, Notice, SessionOptions, ToolCaller,
};
use ostler_engine::settings::{Folders, Problem};
use ostler_engine::tool::AnyTool;
use ostler_proto::launch::{Answerer, Launch, ThinkingDisplay, ToolSet};
use ostler_proto::permission::PermissionMode;
use ostler_sdk::transport::Environment;

use super::headers_helper::HelperPlace;
use super::pick::{self, SelectedModel};
use super::rules::{self, Rules};
use super::server_files;
use super::servers::ServerConnector;
use super::{
    StartContext, StartError, credentials, instructions, offers, sandbox, sessions, workplace,
};

/// How long the session waits for a prompt before it runs `Notification` hooks.
const IDLE_NOTICE: Duration = Duration::from_secs(60);

/// A running session, and the remarks and warnings about its start.
#[non_exhaustive]
pub struct RunningSession {
    /// The host's end of the connection.
    pub connection: Connection,
    /// The model's name.
    pub model: String,
    /// A remark for the user about the choice of the model.
    pub remark: Option<&'static str>,
    /// The entries of settings and other files that were ignored, and why.
    pub warnings: Vec<Problem>,
    /// Warnings about options that are dangerous.
    pub cautions: Vec<String>,
    /// The folders of the settings files.
    pub folders: Folders,
}

/// Starts a session on the current runtime. Reads files, and opens no connection to the model.
///
/// # Errors
/// When settings, model, conversation or options are invalid. Nothing has been started then.
pub fn start(context: &StartContext) -> Result<RunningSession, StartError> {
    start_with_tools(context).map(|(running, _)| running)
}

/// Starts a session whose tools the caller can call itself.
pub(super) fn start_with_tools(
    context: &StartContext,
) -> Result<(RunningSession, ToolCaller), StartError> {
    let Rules { mut policy, folders, settings } = rules::load(context)?;
    rules::refuse_root(context, policy.bypass_available)?;
    let (sandbox, no_sandbox) = sandbox::start(context, &settings, &mut policy)?;
    let plan = match &sandbox {
        Some(_) => sandbox::SandboxPlan::of(context, &settings, &policy),
        None => None,
    };
    let SelectedModel { model, remark, account, recording } = pick::model(context, &settings)?;
    let name = model.name().to_owned();
    let prices = pick::prices(context, &settings);
    if let Some(error) = pick::unpriced(context, &settings, &prices, &name) {
        return Err(error);
    }
    let opened = sessions::open(context)?;
    let found = server_files::find(context, &folders, &settings)?;
    let cautions = cautions(context, &policy, sandbox.is_some(), no_sandbox);
    let denied = Arc::new(policy.file_guard());
    let mut library = offers::library(context, &folders, &denied)?;
    let lookup = instructions::lookup(context, &policy, &settings);
    let memory = memory::load(&lookup);
    let mut warnings = settings.warnings.clone();
    warnings.extend(memory.problems);
    warnings.append(&mut library.problems);
    warnings.extend(offers::missing(context, &library, settings.output_style.as_deref()));
    warnings.extend(found.warnings);
    let mut mcp_servers = found.servers;
    for (name, config) in library.plugins.iter().flat_map(|plugin| plugin.servers.clone()) {
        mcp_servers.entry(name).or_insert_with(|| config.into());
    }
    // `env` of the settings overrides the environment, as it does for an engine in a separate process.
    let env = without_logins(context.env.with(settings.env.clone()));
    let project = ("CLAUDE_PROJECT_DIR".to_owned(), folders.project.display().to_string());
    let env_of_servers = env.with([project]);
    let helpers = HelperPlace {
        env: env_of_servers.clone(),
        folder: context.cwd.clone(),
        writable: sandbox::writable_folders(context, &settings),
    };
    // A hook can answer in the user's place.
    let has_hook = settings.hooks.iter().any(|(_, hooks)| hooks.get("Elicitation").is_some());
    let answers_questions = context.answers_elicitation || has_hook;
    let (connection, caller) = session::start_with_tools(SessionOptions {
        launch: launch(context),
        tools: tools(context)?,
        withheld: withheld(&context.launch),
        aliases: pick::aliases(context, &settings),
        library,
        reload: Some(offers::reload(context, &folders, denied)),
        output_style: settings.output_style.clone(),
        delegation: delegation(context),
        folders: folders.clone(),
        max_tokens: context.token_limit,
        timeout: context.time_limit,
        goes_on_after_answer: is_on(context, "OSTLER_GO_ON_AFTER_ANSWER"),
        prices,
        sampling: sampling(&context.launch),
        compaction: Compaction::from_settings(&settings.extra).with_betas(&betas(context)),
        workplace: workplace::look(context, &settings, &env),
        memory: memory.files,
        nested: NestedMemory::new(lookup, memory.path_rules),
        opened,
        env: env.clone(),
        sandbox: sandbox.clone(),
        live: Some(rules::live(context, &folders, settings.clone())),
        small_model: pick::small_model(context, &settings, &name),
        is_conversation: context.is_conversation,
        idle_notice: Some(IDLE_NOTICE),
        connector: Some(Arc::new(ServerConnector::of(
            context,
            env_of_servers,
            (sandbox, plan),
            helpers,
            answers_questions,
        ))),
        mcp_servers,
        server_lists: found.lists,
        notices: notices(context, &cautions, &warnings),
        state_events: state_events(context),
        background_wait: background_wait(context),
        background_tasks: !is_on(context, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"),
        settings: rules::as_written(context, &folders),
        account,
        checkpoints: is_on(context, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"),
        tape: recording,
        ..SessionOptions::new(model, policy)
    })
    .map_err(StartError::Refused)?;
    let running = RunningSession { connection, model: name, remark, warnings, cautions, folders };
    Ok((running, caller))
}

/// The environment without the tokens of a login: nothing that the session starts needs them.
fn without_logins(env: Environment) -> Environment {
    let set = credentials::LOGIN_VARIABLES.into_iter().filter(|name| env.get(name).is_some());
    let empty: Vec<_> = set.map(|name| (name.to_owned(), String::new())).collect();
    env.with(empty)
}

/// The launch, with defaults for a person or a program as the host. A person sees partial messages and answers permission
/// requests. A program answers them only if it has declared so.
fn launch(context: &StartContext) -> Launch {
    let mut launch = context.launch.clone();
    launch.output.partial_messages |= context.is_interactive;
    let answerer = if context.is_interactive { Answerer::Host } else { Answerer::NoOne };
    launch.permission_prompts.get_or_insert(answerer);
    launch
}

/// The notices about the start that the host receives. None for a terminal, which shows them itself.
fn notices(context: &StartContext, cautions: &[String], warnings: &[Problem]) -> Vec<Notice> {
    if context.is_interactive {
        return Vec::new();
    }
    let notice = |content: String| Notice { content, level: "warning" };
    let cautions = cautions.iter().map(|text| notice(text.clone()));
    let warnings = warnings.iter().map(|problem| notice(problem.to_string()));
    cautions.chain(warnings).collect()
}

/// Warnings about commands that run without approval or without the sandbox that the settings request.
fn cautions(
    context: &StartContext,
    policy: &Policy,
    is_sandboxed: bool,
    no_sandbox: Option<String>,
) -> Vec<String> {
    let mut cautions = Vec::new();
    let is_protected = is_sandboxed || rules::is_contained(context);
    if policy.effective_mode() == PermissionMode::BypassPermissions && !is_protected {
        cautions.push(
            "the mode bypassPermissions runs every call without approval, and there is no sandbox around it: everything \
             runs with your permissions. Set sandbox.enabled in the settings; in a container, set IS_SANDBOX=1"
                .to_owned(),
        );
    }
    if let Some(reason) = no_sandbox {
        cautions.push(format!(
            "commands run without the sandbox that the settings request (sandbox.enabled), because \
             sandbox.failIfUnavailable is false: {reason}"
        ));
    }
    cautions
}

/// Tools that are offered only if the host answers permission requests.
const NEED_A_PERSON: &[&str] = &["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

/// The built-in tools of the session. A tool that is denied without conditions is not offered to the model.
fn tools(context: &StartContext) -> Result<Vec<Arc<dyn AnyTool>>, StartError> {
    let launch = &context.launch;
    let mut tools = ostler_tools::session_tools();
    let name = |tool: &Arc<dyn AnyTool>| tool.spec().name;
    let tasks = ostler_tools::task_tools();
    if is_on(context, "CLAUDE_CODE_ENABLE_TASKS") {
        tools.retain(|tool| name(tool) != "TodoWrite");
        tools.extend(tasks);
    } else if let Some(ToolSet::Only(wanted)) = &launch.tools {
        tools.extend(tasks.into_iter().filter(|tool| wanted.contains(&name(tool))));
    }
    let is_answered = context.is_interactive || launch.permission_prompts == Some(Answerer::Host);
    tools.retain(|tool| is_answered || !NEED_A_PERSON.contains(&name(tool).as_str()));
    if let Some(ToolSet::Only(wanted)) = &launch.tools {
        tools.retain(|tool| wanted.contains(&name(tool)));
    }
    tools.retain(|tool| !launch.disallowed_tools.contains(&name(tool)));
    Ok(tools)
}

/// The engine's own tools that the launch leaves out or denies.
fn withheld(launch: &Launch) -> Vec<String> {
    // The tool for subagents has two names.
    const OWN: &[&[&str]] = &[&["Agent", "Task"], &["Skill"]];
    let is_listed =
        |names: &[&str], list: &[String]| list.iter().any(|rule| names.contains(&rule.as_str()));
    let is_wanted = |names: &[&str]| match &launch.tools {
        Some(ToolSet::Only(wanted)) => is_listed(names, wanted),
        _ => true,
    };
    let is_out = |names: &&&[&str]| !is_wanted(names) || is_listed(names, &launch.disallowed_tools);
    OWN.iter().filter(is_out).flat_map(|names| names.iter().map(|it| (*it).to_owned())).collect()
}

/// How subagents run. A host that receives the session's state knows whether more results follow. Other hosts stop
/// reading at the first result, so results are held back until the subagents have ended.
fn delegation(context: &StartContext) -> Delegation {
    let receives_state = state_events(context).is_some();
    Delegation {
        in_background: receives_state,
        holds_results: !receives_state && !context.is_interactive,
        ..Delegation::default()
    }
}

/// The model parameters of the launch. Thinking is summarized unless the launch chooses another display.
fn sampling(launch: &Launch) -> Sampling {
    let model = &launch.model;
    Sampling {
        thinking: model.thinking,
        effort: model.effort,
        display: Some(model.thinking_display.unwrap_or(ThinkingDisplay::Summarized)),
        task_budget: launch.limits.task_budget,
        ..Sampling::default()
    }
}

/// Who receives the session's state: every reader, only the host, or none.
fn state_events(context: &StartContext) -> Option<session::StateEvents> {
    if is_on(context, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
        Some(session::StateEvents::ForEverybody)
    } else if is_on(context, "CLAUDE_CODE_SDK_READS_SESSION_STATE") {
        Some(session::StateEvents::ForHost)
    } else {
        None
    }
}

/// Whether an environment variable is `1` or `true`.
fn is_on(context: &StartContext, name: &str) -> bool {
    context.var(name).is_some_and(|value| value == "1" || value == "true")
}

/// How long background tasks may run after the last prompt. `None`, a value of 0 in the variable, is without a limit.
fn background_wait(context: &StartContext) -> Option<Duration> {
    let ms = context.var("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS").and_then(|ms| ms.parse().ok());
    match ms {
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms)),
        None => Some(session::BACKGROUND_WAIT),
    }
}

/// The API betas of all requests, from the launch and from `ANTHROPIC_BETAS`.
fn betas(context: &StartContext) -> Vec<String> {
    let named = context.var("ANTHROPIC_BETAS").unwrap_or_default();
    let named = named.split(',').map(|beta| beta.trim().to_owned());
    context.launch.model.betas.iter().cloned().chain(named).collect()
}
