//! The engine behind a thread, set up so that what it wants from the client comes to the desk.

use ostler::hook::{HookOutput, PreToolUseInput};
use ostler::options::SystemPrompt;
use ostler::{Answers, Client, Decision, Error, Hook, Options};

use super::config::Approvals;
use super::desk::Desk;
use super::frontend_tools::FrontendTools;
use super::shared_state;

/// What a session is to be like. Another one is begun when that changes.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) tools: FrontendTools,
    /// What the client wants the agent to know beforehand.
    pub(super) surroundings: Option<String>,
    /// Whether there is a state to share.
    pub(super) shares_state: bool,
    /// The model the client asks for.
    pub(super) model: Option<String>,
    pub(super) approvals: Approvals,
}

impl Setup {
    /// Equal for setups that need no new session.
    pub(super) fn mark(&self) -> String {
        format!("{:?} {:?} {:?} {:?}", self.tools, self.surroundings, self.shares_state, self.model)
    }
}

/// A conversation to go on with.
#[derive(Clone, Debug)]
pub(super) struct Earlier {
    /// The engine's name for it.
    pub(super) session: String,
    /// In a copy, and only up to this message.
    pub(super) up_to: Option<String>,
}

/// The engine of a thread.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) mark: String,
    /// A turn is under way.
    pub(super) busy: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("busy", &self.busy).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) async fn connect(
        options: Options,
        setup: &Setup,
        desk: &Desk,
        earlier: Option<Earlier>,
    ) -> Result<Self, Error> {
        // Subagents work while the turn waits for them: a run ends with its turn, and clients see all of them in it.
        let options = options.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "0");
        let mut options = asking(options, setup, desk).partial_messages();
        options.output.subagent_text = true;
        if !setup.tools.is_empty() {
            let names = setup.tools.names.keys().cloned().collect::<Vec<_>>();
            options = options.server(setup.tools.server(desk)).allow(names);
        }
        if setup.shares_state {
            options = options.server(shared_state::server(desk)).allow([shared_state::TOOL]);
        }
        if let Some(model) = &setup.model {
            options = options.model(model);
        }
        add_to(&mut options.context.system_prompt, setup.surroundings.as_deref());
        if let Some(earlier) = earlier {
            options.session.choice.fork = earlier.up_to.is_some();
            options.session.choice.resume_at = earlier.up_to;
            options = options.resume(earlier.session);
        }
        let client = Client::connect(options).await?;
        Ok(Self { client, mark: setup.mark(), busy: false })
    }
}

/// Has the engine ask at the desk. A client that has no tool to be asked by is not asked.
fn asking(options: Options, setup: &Setup, desk: &Desk) -> Options {
    let begins = desk.clone();
    let begin = Hook::new(move |_: PreToolUseInput, context| {
        if let Some(call) = &context.tool_use_id {
            begins.begin(call.to_string());
        }
        async { HookOutput::none() }
    });
    let options = options.hook(begin);
    if let Approvals::Tool(name) = &setup.approvals
        && !setup.tools.offers(name)
    {
        let words = format!("The user cannot be asked: the application has no tool `{name}`.");
        let why = words.clone();
        return options
            .on_permission(move |_| {
                let words = words.clone();
                async move { Decision::deny(words) }
            })
            .on_question(move |_| {
                let why = why.clone();
                async move { Answers::decline(why) }
            });
    }
    let (permissions, questions) = (desk.clone(), desk.clone());
    options
        .on_permission(move |request| {
            let desk = permissions.clone();
            async move {
                tokio::select! {
                    decision = desk.permission(request.question) => decision,
                    () = request.cancelled.cancelled() => Decision::deny("It is no longer wanted."),
                }
            }
        })
        .on_question(move |request| {
            let desk = questions.clone();
            async move {
                tokio::select! {
                    answers = desk.question(request.questions, request.question) => answers,
                    () = request.cancelled.cancelled() => Answers::decline("It is no longer wanted."),
                }
            }
        })
}

fn add_to(prompt: &mut SystemPrompt, more: Option<&str>) {
    let Some(more) = more else { return };
    match prompt {
        SystemPrompt::Text(text) => {
            text.push_str("\n\n");
            text.push_str(more);
        }
        SystemPrompt::Preset { append } => match append {
            Some(text) => {
                text.push_str("\n\n");
                text.push_str(more);
            }
            None => *append = Some(more.to_owned()),
        },
        _ => *prompt = SystemPrompt::Text(more.to_owned()),
    }
}
