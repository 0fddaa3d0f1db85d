//! What a session's turn contexts are built from; the host may change some of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ostler_proto::agent::AgentDefinition;
use ostler_proto::control::{AccountInfo, PluginConfig};
use serde_json::{Map, Value};

use super::SessionOptions;
use super::options::Reload;
use crate::agents::{self, Agent, FinishedSubagents};
use crate::call::Tools;
use crate::commands::Skill;
use crate::compact::ContextUsage;
use crate::context;
use crate::context::planning::OWN_PLANNING;
use crate::context::workplace::Workplace;
use crate::drive::TurnContext;
use crate::hooks::{HookScope, Hooks};
use crate::library::{AgentKind, DEFAULT_STYLE, Library};
use crate::limits::Limits;
use crate::mcp::{Announced, Servers};
use crate::model::pricing;
use crate::permission::{ActiveRule, Source};
use crate::scratch::Scratch;
use crate::session_records::SessionRecords;
use crate::structured::StructuredOutput;
use crate::tasks::Tasks;
use crate::tool::{AnyTool, ToolCx};

/// What a session's turn contexts are built from; the host may change some of it.
pub(super) struct Setup {
    /// The context without the parts that only the main conversation has.
    pub(super) base: TurnContext,
    /// The schema of the answer, if the host asked for a structured one.
    pub(super) answer: Option<Arc<StructuredOutput>>,
    /// The settings by their sources.
    pub(super) settings: Vec<(String, Map<String, Value>)>,
    pub(super) account: AccountInfo,
    /// The style of the answers.
    pub(super) output_style: Option<String>,
    /// The text of the style, as its file was when the library was read.
    pub(super) style_text: Option<String>,
    pub(super) withheld: Vec<String>,
    /// Reads the library again.
    pub(super) reload: Option<Reload>,
    /// What the host offers in addition to files.
    pub(super) brought: HostOffers,
    /// The permissions that the command line gave with the settings.
    pub(super) flag_rules: Vec<ActiveRule>,
    /// The settings that the host has applied while the session runs.
    pub(super) applied: Map<String, Value>,
    /// Where and when the session works.
    pub(super) workplace: Workplace,
}

/// What a host offers in addition to files.
#[derive(Clone, Debug, Default)]
pub(super) struct HostOffers {
    pub(super) plugins: Vec<PluginConfig>,
    pub(super) agents: BTreeMap<String, AgentDefinition>,
    /// The only skills that are wanted.
    pub(super) skills: Option<Vec<String>>,
}

impl HostOffers {
    /// Takes over more plugins, each once.
    pub(super) fn take_plugins(&mut self, plugins: Option<&Vec<PluginConfig>>) {
        for plugin in plugins.into_iter().flatten() {
            if !self.plugins.contains(plugin) {
                self.plugins.push(plugin.clone());
            }
        }
    }

    /// Adds it to the library of files.
    pub(super) fn add_to(&self, library: &mut Library) {
        for plugin in &self.plugins {
            let n_known = library.plugins.len();
            library.take_plugin(Path::new(&plugin.path));
            if plugin.skip_mcp_discovery == Some(true) {
                library.plugins.iter_mut().skip(n_known).for_each(|new| new.servers.clear());
            }
        }
        library.take_agents(&self.agents);
        if let Some(wanted) = &self.skills {
            library.keep_skills(wanted);
        }
    }
}

impl Setup {
    pub(super) fn new(
        options: SessionOptions,
        scope: HookScope,
        hooks: Hooks,
        records: SessionRecords,
        scratch: Scratch,
        answer: Option<StructuredOutput>,
    ) -> Self {
        let HookScope { outbox, permissions, ledger, env, .. } = scope;
        let tasks = Tasks::new(Arc::new(outbox.calls.clone()), !options.background_tasks);
        let cx = ToolCx { cwd: options.cwd, scratch, tasks, env, ..ToolCx::default() };
        let specs: Vec<_> = options.tools.iter().map(|tool| tool.spec()).collect();
        let tools: Tools = specs.iter().map(|spec| spec.name.clone()).zip(options.tools).collect();
        let lists = Arc::new(options.server_lists);
        let (connector, calls) = (options.connector, outbox.calls.clone());
        let servers = Servers::new(connector, lists, calls, permissions.clone(), ledger);
        for (name, known) in options.mcp_servers {
            servers.add(&name, known);
        }
        let limits = Limits {
            max_turns: options.launch.limits.max_turns,
            max_budget_usd: options.launch.limits.max_budget_usd,
            max_tokens: options.max_tokens,
            timeout: options.timeout,
            goes_on_after_answer: options.goes_on_after_answer,
        };
        let base = TurnContext {
            sandbox: options.sandbox,
            launch: Arc::new(options.launch),
            key_source: options.account.api_key_source.as_deref().map(Arc::from),
            servers,
            announced: Announced::default(),
            offer_base: None,
            limited_to: None,
            model_name: options.model.name().into(),
            aliases: Arc::new(options.aliases),
            library: Arc::new(options.library),
            memory: Arc::new(options.memory),
            nested: options.nested,
            delegation: options.delegation,
            finished_subagents: FinishedSubagents::default(),
            answering: Arc::default(),
            tokens: Arc::default(),
            planning: OWN_PLANNING.into(),
            style: DEFAULT_STYLE.into(),
            model: options.model,
            tools: Arc::new(tools),
            specs: Arc::new(specs),
            system: Arc::default(),
            place: Arc::default(),
            outbox,
            permissions,
            hooks,
            records,
            cx,
            limits,
            deadline: None,
            sampling: options.sampling,
            compaction: options.compaction,
            context_usage: ContextUsage::default(),
        };
        let SessionOptions { withheld, output_style, settings, account, reload, workplace, .. } =
            options;
        let flag_rules = base.permissions.policy().rules().to_vec();
        let flag_rules = flag_rules.into_iter().filter(|kept| kept.source == Source::Flag);
        let answer = answer.map(Arc::new);
        Self {
            style_text: style_text(&base.library, output_style.as_deref()),
            base,
            answer,
            settings,
            account,
            output_style,
            withheld,
            reload,
            brought: HostOffers::default(),
            flag_rules: flag_rules.collect(),
            applied: Map::new(),
            workplace,
        }
    }

    /// Why a model cannot be used: its price is unknown, so a limit in dollars cannot be enforced.
    pub(super) fn unpriced(&self, model: &str) -> Option<String> {
        let limit = self.base.limits.max_budget_usd?;
        let mut models = self.base.aliases.meant_by(model).into_iter();
        let unpriced = models.find(|name| !self.base.records.ledger.prices().is_priced(name))?;
        Some(pricing::no_price(&unpriced, limit))
    }

    pub(super) fn context(&self) -> TurnContext {
        let launch = &self.base.launch;
        let append = [self.style(), launch.append_system_prompt.clone()];
        let append = append.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        let place = self.workplace.text(&self.base.cx.cwd);
        let system = context::system_prompt(
            &place,
            launch.system_prompt.as_deref(),
            Some(&append),
            &self.base.memory,
        );
        let mut context =
            TurnContext { system: system.into(), place: place.into(), ..self.base.clone() };
        let leader = self.leader();
        if let Some(kind) = &leader {
            context = agents::context_of(&context, kind);
            let wanted = kind.definition.model.as_deref();
            context.model_name = context.aliases.full_name(wanted, &self.base.model_name).into();
        }
        context.style = self.output_style.as_deref().unwrap_or(DEFAULT_STYLE).into();
        let is_offered = |tool: &str| {
            let leader = leader.as_ref();
            !self.withheld.iter().any(|name| name == tool)
                && leader.is_none_or(|kind| agents::has_tool(&kind.definition, tool))
        };
        if is_offered(agents::NAME) {
            let agent = Agent::offered(context.clone());
            context = with_tool(context, agent);
        }
        if is_offered(Skill::NAME)
            && let Some(skill) = Skill::offered(context.clone())
        {
            context = with_tool(context, skill);
        }
        match &self.answer {
            Some(answer) => with_tool(context, answer.clone()),
            None => context,
        }
    }

    /// The kind of the main agent, if it is known by now.
    pub(super) fn leader(&self) -> Option<AgentKind> {
        agents::kind(&self.base.library, self.base.launch.agent.as_deref()?)
    }

    /// The text of the style for the system prompt. A host that brings its own prompt gets no style.
    pub(super) fn style(&self) -> Option<String> {
        self.style_text.clone().filter(|_| self.base.launch.system_prompt.is_none())
    }
}

/// Reads the text of a style from its file; `None` if the file cannot be read.
pub(super) fn style_text(library: &Library, name: Option<&str>) -> Option<String> {
    library.style(name?)?.text().ok()
}

/// Adds a tool that only the main conversation has.
fn with_tool(context: TurnContext, tool: Arc<dyn AnyTool>) -> TurnContext {
    let spec = tool.spec();
    let mut tools = (*context.tools).clone();
    let mut specs = context.specs.to_vec();
    tools.insert(spec.name.clone(), tool);
    specs.push(spec);
    TurnContext { tools: Arc::new(tools), specs: Arc::new(specs), ..context }
}
