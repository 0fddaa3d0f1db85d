//! The conversation at the terminal: prompts in, text and tool calls out.
//!
//! The terminal is a host like any other: it speaks to the engine in frames and knows nothing else of it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use ostler_engine::context::memory::{self, MemoryFile, Sources};
use ostler_engine::session::{self, Connection, Limits, SessionOptions};
use ostler_proto::api::{Content, ContentBlock, Delta, StreamEvent};
use ostler_proto::control::{AskEngine, AskHost, ControlRequest, ControlResponse, Interrupt};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::message::{Assistant, System, TurnResult, User};
use ostler_proto::{Extra, RequestId, ToolUseId};

use crate::args::Args;
use crate::lines::Lines;
use crate::pick::Picked;
use crate::screen::Screen;
use crate::{pipe, question, rules, sessions};

/// Answers one prompt, or opens a conversation.
pub(crate) async fn run(
    args: &Args,
    picked: Picked,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let folder = args.cwd.clone().unwrap_or_else(|| ".".into());
    let cwd =
        folder.canonicalize().with_context(|| format!("cannot work in {}", folder.display()))?;
    anyhow::ensure!(cwd.is_dir(), "cannot work in {}: it is not a folder", cwd.display());
    let rules = rules::load(args, &cwd)?;
    for warning in &rules.settings.warnings {
        screen.complain(&warning.to_string());
    }
    let model = picked.model.name().to_owned();
    let connection = session::start(SessionOptions {
        model: picked.model,
        tools: ostler_tools::session_tools(),
        cwd: cwd.clone(),
        policy: rules.policy,
        folders: rules.folders,
        limits: Limits {
            max_turns: args.max_turns,
            max_budget_usd: args.max_budget_usd,
            ..Limits::default()
        },
        system_prompt: args.system_prompt.clone(),
        append_system_prompt: args.append_system_prompt.clone(),
        memory: memory(&cwd),
        opened: sessions::open(args, &cwd).await?,
        json_schema: args.json_schema.clone(),
        hooks: rules.settings.hooks.into_iter().map(|(_, hooks)| hooks).collect(),
        idle_notice: Some(Duration::from_secs(60)),
        hook_events: args.include_hook_events,
        partial_messages: !args.is_for_programs() || args.include_partial_messages,
    })
    .map_err(anyhow::Error::msg)?;
    if args.is_for_programs() {
        return pipe::run(args, connection).await;
    }
    let lines = Lines::from_stdin();
    // With the prompt on the command line, a pipe on standard input is no person to ask.
    let can_ask = args.prompt.is_none() || lines.is_terminal;
    let mut chat = Chat { connection, lines, screen, can_ask, depths: HashMap::new() };
    match &args.prompt {
        Some(prompt) => {
            let result = chat.turn(prompt).await?;
            chat.leave().await;
            Ok(if result.is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        None => {
            chat.screen.welcome(&model, &cwd.display().to_string(), picked.remark)?;
            chat.converse().await?;
            chat.leave().await;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The user's and the project's standing instructions.
fn memory(cwd: &Path) -> Vec<MemoryFile> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let config = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let config = config.or_else(|| Some(home.as_ref()?.join(".claude")));
    memory::load(cwd, config.as_deref(), home.as_deref(), Sources::ALL)
}

struct Chat<'a> {
    connection: Connection,
    lines: Lines,
    screen: &'a mut Screen,
    can_ask: bool,
    /// How deep the agent is nested that made a call.
    depths: HashMap<ToolUseId, usize>,
}

impl Chat<'_> {
    async fn converse(&mut self) -> anyhow::Result<()> {
        loop {
            self.screen.prompt(">")?;
            let line = tokio::select! {
                line = self.lines.next() => line,
                _ = tokio::signal::ctrl_c() => None,
            };
            let Some(line) = line else { break };
            if !self.lines.is_terminal {
                self.screen.echo(&line)?;
            }
            match line.trim() {
                "" => {}
                "exit" | "quit" | "/exit" | "/quit" => return Ok(()),
                prompt => _ = self.turn(prompt).await?,
            }
        }
        self.screen.echo("")?;
        Ok(())
    }

    /// One prompt, to its result.
    async fn turn(&mut self, prompt: &str) -> anyhow::Result<TurnResult> {
        self.send(ToEngine::User(Box::new(User::prompt(prompt)))).await?;
        let mut interrupted = false;
        loop {
            let frame = tokio::select! {
                frame = self.connection.from_engine.recv() => frame.context("the engine has gone")?,
                _ = tokio::signal::ctrl_c() => {
                    // Once stops the agent, twice the program.
                    anyhow::ensure!(!interrupted, "stopped");
                    interrupted = true;
                    self.interrupt().await?;
                    continue;
                }
            };
            match frame {
                ToHost::StreamEvent(event) => self.stream(&event.event)?,
                ToHost::Assistant(assistant) => self.calls(&assistant)?,
                ToHost::User(user) => self.results(&user)?,
                ToHost::System(system) => self.remark(&system)?,
                ToHost::ControlRequest(request) => self.answer(request).await?,
                ToHost::Result(result) => {
                    self.finish(&result)?;
                    return Ok(*result);
                }
                _ => {}
            }
        }
    }

    fn stream(&mut self, event: &StreamEvent) -> anyhow::Result<()> {
        match event {
            StreamEvent::ContentBlockDelta(delta) => {
                if let Delta::TextDelta(delta) = &delta.delta {
                    self.screen.text(&delta.text)?;
                }
            }
            StreamEvent::ContentBlockStop(_) => self.screen.end_line()?,
            _ => {}
        }
        Ok(())
    }

    /// What the user should know while waiting, or about what is lost.
    fn remark(&mut self, system: &System) -> anyhow::Result<()> {
        let text = match system {
            System::ApiRetry(retry) => {
                let seconds = retry.retry_delay_ms.get() / 1000.0;
                let (attempt, of) = (retry.attempt, retry.max_retries);
                format!(
                    "the model does not answer ({}); trying again in {seconds:.1} s ({attempt} of {of})",
                    retry.error
                )
            }
            System::ModelFallback(fallback) => fallback.content.clone(),
            System::Informational(remark) => remark.content.clone(),
            System::SessionWritesLost(lost) => {
                format!("this conversation is not being saved ({})", lost.error_code)
            }
            _ => return Ok(()),
        };
        Ok(self.screen.remark(&text)?)
    }

    /// Text was shown while it came; a subagent's is its own business until it reports.
    fn calls(&mut self, assistant: &Assistant) -> anyhow::Result<()> {
        let parent = assistant.parent_tool_use_id.as_ref();
        let depth = parent.and_then(|call| self.depths.get(call)).map_or(0, |depth| depth + 1);
        for call in assistant.message.content.iter().filter_map(ContentBlock::as_tool_use) {
            self.depths.insert(call.id.clone(), depth);
            self.screen.call(call, depth)?;
        }
        Ok(())
    }

    fn results(&mut self, user: &User) -> anyhow::Result<()> {
        let Some(Content::Blocks(blocks)) = &user.message.content else { return Ok(()) };
        for block in blocks {
            if let ContentBlock::ToolResult(result) = block {
                let depth = self.depths.get(&result.tool_use_id).copied().unwrap_or_default();
                self.screen.result(result, depth)?;
            }
        }
        Ok(())
    }

    async fn answer(&mut self, request: ControlRequest<AskHost>) -> anyhow::Result<()> {
        let id = request.request_id.unwrap_or_default();
        let response = match &request.request {
            AskHost::CanUseTool(request) => {
                let answer = if self.can_ask {
                    tokio::select! {
                        answer = question::ask(request, &mut self.lines, self.screen) => answer?,
                        _ = tokio::signal::ctrl_c() => return self.interrupt().await,
                    }
                } else {
                    question::nobody(request)
                };
                ControlResponse::success(id, Some(serde_json::to_value(answer)?))
            }
            other => {
                let subtype = other.tag().unwrap_or("none");
                ControlResponse::error(id, format!("the terminal cannot answer {subtype}"))
            }
        };
        self.send(ToEngine::ControlResponse(response)).await
    }

    /// Ends the session. Hooks have a last word, which may take a moment; Ctrl-C cuts it short.
    async fn leave(self) {
        let Connection { to_engine, mut from_engine } = self.connection;
        drop(to_engine);
        let last_words = async { while from_engine.recv().await.is_some() {} };
        tokio::select! {
            () = last_words => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }

    async fn interrupt(&mut self) -> anyhow::Result<()> {
        self.screen.remark("stopping (Ctrl-C again to quit)")?;
        let request = AskEngine::Interrupt(Interrupt::default());
        let request_id = Some(RequestId::from("terminal-interrupt"));
        self.send(ToEngine::ControlRequest(ControlRequest {
            request_id,
            request,
            extra: Extra::default(),
        }))
        .await
    }

    fn finish(&mut self, result: &TurnResult) -> anyhow::Result<()> {
        self.screen.end_line()?;
        match &result.errors {
            Some(errors) => self.screen.error(&errors.join("; "))?,
            None if result.is_error => {
                self.screen.error(result.result.as_deref().unwrap_or("it failed"))?
            }
            None => {}
        }
        Ok(())
    }

    async fn send(&self, frame: ToEngine) -> anyhow::Result<()> {
        self.connection.to_engine.send(frame).await.context("the engine has gone")
    }
}
