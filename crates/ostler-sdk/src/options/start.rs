//! Turns options into the command line, the environment and the `initialize` request of an engine.

use std::collections::BTreeMap;

use ostler_proto::Extra;
use ostler_proto::control::Initialize;
use ostler_proto::launch::{Answerer, Launch};
use ostler_proto::mcp::{McpServerConfig, SdkServer};
use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

use super::{ModelOptions, Options, SystemPrompt};
use crate::error::Error;
use crate::transport::{Environment, Start};

impl Options {
    /// Checks the options and returns what a transport needs to start the engine.
    pub(crate) fn start(&self) -> Result<Start, Error> {
        self.check()?;
        Ok(Start {
            launch: self.launch(),
            cwd: self.context.cwd.clone(),
            env: self.environment(),
            user: self.engine.user.clone(),
            stderr: self.engine.stderr.clone(),
        })
    }

    /// Refuses options with which the session would fail later.
    fn check(&self) -> Result<(), Error> {
        let permissions = &self.permissions;
        if permissions.mode == PermissionMode::BypassPermissions
            && !permissions.allow_dangerously_skip_permissions
        {
            return Err(Error::Options(
                "the mode bypassPermissions needs permissions.allow_dangerously_skip_permissions = true".to_owned(),
            ));
        }
        self.check_limits()?;
        self.check_session()?;
        if self.tape.record.is_some() && self.tape.replay.is_some() {
            return Err(Error::Options(
                "a run is recorded or replayed, not both: leave out tape.record or tape.replay"
                    .to_owned(),
            ));
        }
        if self.context.sandbox.is_some() && self.given_settings().is_none() {
            return Err(Error::Options(
                "context.sandbox cannot be added to a settings file; put it into that file, or give context.settings as JSON".to_owned(),
            ));
        }
        let mut names: Vec<String> =
            self.tools.in_process.iter().map(|server| server.name()).collect();
        names.extend(self.tools.mcp_servers.keys().cloned());
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Options(format!("there are two MCP servers named {}", twice[0])));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Options(text.to_owned()));
        if self.limits.max_turns == Some(0) {
            return wrong("limits.max_turns must be 1 or more");
        }
        if self.limits.max_budget_usd.is_some_and(|dollars| !dollars.is_finite() || dollars <= 0.0)
        {
            return wrong("limits.max_budget_usd must be more than 0");
        }
        let ModelOptions { name, fallback, prices, .. } = &self.model;
        for (model, price) in prices {
            if let Some(reason) = price.refusal() {
                return wrong(&format!("model.prices: {model}: {reason}"));
            }
        }
        if fallback.is_some() && name == fallback {
            return wrong("model.fallback must be another model than model.name");
        }
        Ok(())
    }

    fn check_session(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Options(text.to_owned()));
        let choice = &self.session.choice;
        let resumes = choice.go_on || choice.resume.is_some();
        if choice.go_on && choice.resume.is_some() {
            return wrong("`resume` and `continue_newest` name two conversations; use one");
        }
        if choice.fork && !resumes {
            return wrong("`fork` needs a conversation to copy: add `resume` or `continue_newest`");
        }
        if choice.resume_at.is_some() && choice.resume.is_none() {
            return wrong("`session.choice.resume_at` needs `resume`");
        }
        if choice.id.is_some() && resumes && !choice.fork {
            return wrong(
                "`session.choice.id` is for a new conversation: add `fork`, or leave it out",
            );
        }
        if self.session.store.is_some() && self.session.ephemeral {
            return wrong(
                "`session_store` cannot store a session with `session.ephemeral`; use one of them",
            );
        }
        if self.session.store.is_some() && self.session.file_checkpointing {
            return wrong(
                "`session.file_checkpointing` stores files on this machine only, so it does not work with `session_store`; use one of them",
            );
        }
        Ok(())
    }

    /// The settings that are given as JSON; `None` if they are in a file.
    fn given_settings(&self) -> Option<serde_json::Map<String, Value>> {
        serde_json::from_str(self.context.settings.as_deref().unwrap_or("{}")).ok()
    }

    /// The options of the command line. Some groups have the same type in both places and are copied.
    pub(crate) fn launch(&self) -> Launch {
        let (system_prompt, append_system_prompt) = match &self.context.system_prompt {
            SystemPrompt::Empty => (Some(String::new()), None),
            SystemPrompt::Text(text) => (Some(text.clone()), None),
            SystemPrompt::Preset { append } => (None, append.clone()),
        };
        let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        let asks =
            self.permissions.on_permission.is_some() || self.permissions.on_question.is_some();
        Launch {
            model: self.model.clone(),
            limits: self.limits.clone(),
            output: self.output.clone(),
            session: self.session.choice.clone(),
            no_session_persistence: self.session.ephemeral,
            tape: self.tape.clone(),
            permission_mode: Some(self.permissions.mode.clone()),
            allow_skip_permissions: self.permissions.allow_dangerously_skip_permissions,
            permission_prompts: asks.then_some(Answerer::Host),
            tools: self.tools.base.clone(),
            allowed_tools: self.permissions.allowed.clone(),
            disallowed_tools: self.permissions.disallowed.clone(),
            add_dirs: paths(&self.context.additional_directories),
            system_prompt,
            append_system_prompt,
            agent: self.context.agent.clone(),
            setting_sources: Some(self.context.setting_sources.clone()),
            settings: self.settings(),
            mcp_config: self.mcp_config(),
            strict_mcp_config: self.tools.strict_mcp,
            plugin_dirs: paths(&self.context.plugins),
            session_mirror: self.session.store.is_some(),
            extra: self.engine.extra_args.clone(),
            // Agents are part of `initialize`; the other fields have no option in the SDK.
            ..Launch::default()
        }
    }

    /// The settings, with the sandbox in them.
    fn settings(&self) -> Option<String> {
        let Some(sandbox) = &self.context.sandbox else { return self.context.settings.clone() };
        let mut settings = self.given_settings()?;
        settings.insert("sandbox".to_owned(), json!(sandbox));
        Some(Value::Object(settings).to_string())
    }

    fn mcp_config(&self) -> Option<Value> {
        let mut servers: BTreeMap<String, Value> = BTreeMap::new();
        for (name, config) in &self.tools.mcp_servers {
            servers.insert(name.clone(), json!(config));
        }
        for server in &self.tools.in_process {
            let config = SdkServer { name: server.name(), ..SdkServer::default() };
            servers.insert(server.name(), json!(McpServerConfig::Sdk(config)));
        }
        (!servers.is_empty()).then(|| json!({"mcpServers": servers}))
    }

    fn environment(&self) -> Environment {
        let mut env = self.engine.env.clone();
        let mut set = |name: &str, value: &str| {
            env.variables.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        };
        set("CLAUDE_CODE_ENTRYPOINT", "sdk-rs");
        set("CLAUDE_AGENT_SDK_VERSION", env!("CARGO_PKG_VERSION"));
        set("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
        if self.session.file_checkpointing {
            set("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
        }
        env
    }

    /// The first request of the host.
    pub(crate) fn initialize(&self) -> Initialize {
        let mut hooks: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (index, hook) in self.hooks.iter().enumerate() {
            let matchers = hooks.entry(hook.event.to_string()).or_default();
            matchers.push(hook.matcher(hook_id(index)));
        }
        let servers: Vec<String> =
            self.tools.in_process.iter().map(|server| server.name()).collect();
        let agents = self.tools.agents.clone();
        Initialize {
            hooks: Some(hooks).filter(|hooks| !hooks.is_empty()),
            sdk_mcp_servers: Some(servers).filter(|servers| !servers.is_empty()),
            agents: Some(agents).filter(|agents| !agents.is_empty()),
            supported_dialog_kinds: self.permissions.on_dialog.as_ref().map(|it| it.kinds.clone()),
            forward_subagent_text: self.output.subagent_text.then_some(true),
            extra: Extra::default(),
            ..Initialize::default()
        }
    }
}

/// The id by which the engine calls a hook.
pub(crate) fn hook_id(index: usize) -> String {
    format!("hook_{index}")
}
