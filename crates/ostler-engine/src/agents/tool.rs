//! `Agent`: hand a piece of work to a subagent, and wait for its report or continue without.

use std::sync::Arc;

use ostler_proto::AgentId;
use ostler_proto::api::ContentBlock;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::system::TaskOutcome;
use ostler_proto::permission::PermissionMode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::finished::FinishedSubagent;
use super::report::{Author, Report, output};
use super::run::{SubagentOverrides, below};
use super::{GENERAL, kind, kinds};
use crate::disk::on_disk;
use crate::drive::{TurnContext, drive};
use crate::hooks::Event;
use crate::library::{AgentKind, Library};
use crate::model::ChatMessage;
use crate::outbox::SubagentIdentity;
use crate::rescue::{LentConversation, Rescue};
use crate::store::AgentMeta;
use crate::tasks::{AgentTask, Task, TaskResult};
use crate::tool::{AnyTool, Described, Effect, Tool, ToolCx, ToolError, ToolOutput};

/// The most characters of a kind's description: every request pays for it.
const MAX_DESCRIPTION: usize = 300;

/// The tool, with the context that its subagents start from.
pub(crate) struct Agent(TurnContext);

impl Agent {
    /// The tool as the model sees it: its description lists all kinds of subagents.
    pub(crate) fn offered(context: TurnContext) -> Arc<dyn AnyTool> {
        let description = description(&context.library);
        Arc::new(Described::new(Self(context), description))
    }
}

fn description(library: &Library) -> String {
    let mut text = <Agent as Tool>::DESCRIPTION.to_owned();
    for kind in kinds(library) {
        let what: String = kind.definition.description.chars().take(MAX_DESCRIPTION).collect();
        text.push_str(&format!("\n- {}: {}", kind.name, what.replace('\n', " ")));
    }
    text
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The work in three to five words.
    description: String,
    /// Everything the subagent needs to know; it sees nothing of this conversation.
    prompt: String,
    /// The kind of subagent; `general-purpose` when left out.
    subagent_type: Option<String>,
    /// Another model: `haiku`, `sonnet`, `opus`.
    model: Option<String>,
    /// Continue without waiting; its report comes by itself.
    run_in_background: Option<bool>,
    /// The id of an earlier subagent to resume, with this as its next prompt.
    resume: Option<String>,
    #[schemars(skip)]
    effort: Option<String>,
    #[schemars(skip)]
    max_turns: Option<u64>,
    #[schemars(skip)]
    mode: Option<PermissionMode>,
    #[schemars(skip)]
    isolation: Option<String>,
}

impl Tool for Agent {
    const NAME: &'static str = super::NAME;
    const DESCRIPTION: &'static str = "Hands a self-contained piece of work to a subagent and returns its report. \
        What it may do is decided as for you. Kinds:";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        // What the subagent touches is decided call by call.
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        if let Some(isolation) = &args.isolation {
            return Err(ToolError::Refused(format!(
                "subagents work in the same folder as you; leave out isolation ({isolation})"
            )));
        }
        let work = self.prepare(cx, args).await?;
        match work.subagent().is_in_background() {
            true => work.launch().await,
            false => work.carry_out().await,
        }
    }
}

impl Agent {
    async fn prepare(&self, cx: &ToolCx, args: Args) -> Result<SubagentRun, ToolError> {
        let parent = TurnContext { cx: cx.clone(), ..self.0.clone() };
        let earlier = args.resume.as_deref().map(|id| self.earlier(id)).transpose()?;
        let name = args.subagent_type.as_deref();
        let name = earlier.as_ref().map(|it| it.kind.as_str()).or(name).unwrap_or(GENERAL);
        let kind = kind(&parent.library, name).ok_or_else(|| self.no_such_kind(name))?;
        let wishes = SubagentOverrides {
            model: args.model,
            effort: args.effort,
            mode: args.mode,
            max_turns: args.max_turns,
        };
        let mut context = below(&parent, &kind, &wishes).await;
        let in_background = args.run_in_background.or(kind.definition.background);
        let in_background = in_background.unwrap_or(parent.delegation.in_background);
        let id = earlier.as_ref().map_or_else(|| new_id(cx), |it| it.id.clone());
        let prompt = args.prompt;
        let agent = AgentTask { kind: kind.name.clone(), prompt: prompt.clone(), in_background };
        let task = Task::agent(&cx.call, &cx.scratch, id.as_str(), &args.description, agent)
            .map_err(|error| {
                ToolError::Failed(format!(
                    "the file for the subagent's output cannot be created: {error}"
                ))
            })?;
        let (conversation, transcript) =
            earlier.map_or_else(Default::default, |it| (it.conversation, it.transcript));
        let shows_text = in_background || parent.delegation.forwards_text;
        let mut outbox = context.outbox.clone();
        outbox.subagent = Some(Arc::new(SubagentIdentity::new(
            (id.clone(), cx.call.clone()),
            (&kind.name, &args.description),
            in_background,
            shows_text,
            task.output_file.clone(),
        )));
        let meta = AgentMeta {
            agent_type: kind.name.clone(),
            description: args.description,
            tool_use_id: cx.call.clone(),
            spawn_depth: 1,
            parent_agent_id: None,
        };
        outbox.transcript = transcript
            .or_else(|| outbox.transcript.as_ref().and_then(|main| main.subagent(&id, &meta)));
        context.set_outbox(outbox);
        // A subagent in the background continues when the turn is interrupted. One that a call waits for ends with the
        // call, unless it is moved to the background.
        context.cx.cancelled = CancellationToken::new();
        Ok(SubagentRun { id, context, kind, prompt, conversation, task })
    }

    fn earlier(&self, id: &str) -> Result<FinishedSubagent, ToolError> {
        self.0.finished_subagents.take(id).ok_or_else(|| {
            let words = format!("there is no finished subagent {id} to resume; start a new one");
            ToolError::Refused(words)
        })
    }

    fn no_such_kind(&self, name: &str) -> ToolError {
        let known: Vec<String> = kinds(&self.0.library).into_iter().map(|it| it.name).collect();
        let known = known.join(", ");
        ToolError::Refused(format!("there is no subagent of type {name}; there are: {known}"))
    }
}

/// A subagent that is about to begin.
struct SubagentRun {
    id: AgentId,
    context: TurnContext,
    kind: AgentKind,
    prompt: String,
    conversation: Vec<ChatMessage>,
    task: Task,
}

impl SubagentRun {
    fn subagent(&self) -> &SubagentIdentity {
        self.context.outbox.subagent.as_ref().expect("the outbox belongs to a subagent")
    }

    /// The tool result for a conversation that does not wait.
    fn launched(&self) -> ToolOutput {
        let output_file = self.task.output_file.display().to_string();
        let structured = json!({
            "isAsync": true,
            "status": "async_launched",
            "agentId": self.id,
            "description": self.task.description,
            "resolvedModel": self.context.model_name.as_ref(),
            "prompt": self.prompt,
            "outputFile": output_file,
            "canReadOutputFile": true,
            "canContinueAgent": true,
        });
        let text = format!(
            "[agent {} works in the background; its report comes by itself, do not wait for it or make it up]",
            self.id
        );
        ToolOutput::blocks(vec![ContentBlock::text(text)], structured)
    }

    /// Starts the subagent and does not wait for it.
    async fn launch(self) -> Result<ToolOutput, ToolError> {
        let (stop, tasks) = (self.context.cx.cancelled.clone(), self.context.cx.tasks.clone());
        let (task, launched) = (self.task.clone(), self.launched());
        let work = async move { self.work().await.0 };
        tasks.start_agent(task, stop, work).await?;
        Ok(launched)
    }

    /// Starts the subagent and waits for its end, unless the host moves it to the background. Dropping the future stops
    /// the subagent; the host receives no more frames of it.
    async fn carry_out(self) -> Result<ToolOutput, ToolError> {
        let (stop, tasks) = (self.context.cx.cancelled.clone(), self.context.cx.tasks.clone());
        let guard = stop.clone().drop_guard();
        // Dropped before the guard: the host receives no frames about its being stopped.
        let mut hush = Hush(self.context.outbox.subagent.clone());
        let (task, launched) = (self.task.clone(), self.launched());
        let promotion = tasks.promotion(&task.call);
        let (answer, answered) = oneshot::channel();
        let work = async move {
            let (ended, output) = self.work().await;
            // The call may have been interrupted.
            let _ = answer.send(output);
            ended
        };
        tasks.start_agent(task.clone(), stop, work).await?;
        tokio::select! {
            _ = tasks.wait(&task.id) => {}
            () = promotion.wanted() => {
                if tasks.put_behind(&task.id).await {
                    if let Some(subagent) = hush.0.take() {
                        subagent.put_behind();
                    }
                    guard.disarm();
                    return Ok(launched);
                }
                tasks.wait(&task.id).await;
            }
        }
        guard.disarm();
        let lost = || {
            Err(ToolError::Failed("the subagent failed with a panic, which is a bug".to_owned()))
        };
        answered.await.unwrap_or_else(|_| lost())
    }

    async fn work(self) -> (TaskResult, Result<ToolOutput, ToolError>) {
        let Self { id, context, kind, prompt, conversation, .. } = self;
        let TurnContext { outbox, hooks, .. } = &context;
        let mut blocks = match conversation.is_empty() {
            true => preloaded(&context.library, &kind).await,
            false => Vec::new(),
        };
        blocks.push(ContentBlock::text(prompt.as_str()));
        let subagent = outbox.subagent.clone().expect("the outbox belongs to a subagent");
        // A host that waits sees the prompt; for background tasks it is in `task_started`.
        match subagent.is_in_background() {
            true => outbox.record_prompt(blocks.clone()).await,
            false => outbox.send_user(blocks.clone()).await,
        }
        let fields = json!({"agent_id": subagent.id, "agent_type": subagent.kind});
        let event = Event::new(HookEvent::SubagentStart, fields);
        let verdict = hooks.run(event).await;
        blocks.extend(verdict.context.into_iter().map(ContentBlock::text));
        // The type of this future would contain itself without the box.
        let conversation = LentConversation::new(conversation, Rescue::default());
        let mut finished = Box::pin(drive(&context, conversation, blocks)).await;
        let conversation = std::mem::take(&mut finished.conversation);
        let report = Report::of(&finished);
        let ended = report.ended(&subagent);
        let author =
            Author { id: &id, subagent: &subagent, prompt: &prompt, model: &context.model_name };
        let output = output(report, &author, &finished.usage);
        if ended.outcome != TaskOutcome::Failed {
            let transcript = outbox.transcript.clone();
            let kind = kind.name;
            context.finished_subagents.remember(FinishedSubagent {
                id,
                kind,
                conversation,
                transcript,
            });
        }
        (ended, output)
    }
}

/// An id that follows from the call, so that a replayed run has the same ids.
fn new_id(cx: &ToolCx) -> AgentId {
    let id = format!("a{:.16x}", Sha256::digest(cx.call.as_str()));
    // An API may use the id of a call twice; two subagents must not share an id.
    match cx.tasks.get(&id.as_str().into()) {
        None => id.into(),
        Some(_) => format!("a{}", &uuid::Uuid::new_v4().simple().to_string()[..16]).into(),
    }
}

/// The texts of the skills that a kind of subagent begins with.
async fn preloaded(library: &Library, kind: &AgentKind) -> Vec<ContentBlock> {
    let names = kind.definition.skills.iter().flatten();
    let skills: Vec<_> = names.filter_map(|name| library.command(name).cloned()).collect();
    // A skill that cannot be read is missing, which the agent will notice.
    let read = |skill| crate::commands::skill_text(&skill).ok().map(ContentBlock::text);
    on_disk(move || skills.into_iter().filter_map(read).collect()).await
}

/// Silences a subagent once its call no longer waits for it.
struct Hush(Option<Arc<SubagentIdentity>>);

impl Drop for Hush {
    fn drop(&mut self) {
        if let Some(subagent) = &self.0 {
            subagent.silence();
        }
    }
}
