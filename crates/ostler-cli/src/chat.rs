//! The conversation at the terminal: prompts in, text and tool calls out.
//!
//! The terminal is a host like any other: it speaks to the engine in frames and knows nothing else of it.

use std::path::PathBuf;
use std::process::ExitCode;

use ostler::engine::kept::Kept;
use ostler_proto::RequestId;
use ostler_proto::control::{AskHost, CanUseTool, ControlRequest, ControlResponse};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::message::{System, User};
use ostler_proto::permission::PermissionResult;

use crate::args::Args;
use crate::compose::compose;
use crate::editor::Editor;
use crate::engine::Engine;
use crate::input::{Input, Typed};
use crate::permission::Asking;
use crate::piped;
use crate::question;
use crate::screen::Screen;
use crate::show::Show;
use crate::signals::{STOPPED, Signals, Told};
use crate::spinner::BEAT;
use crate::tty::Mode;

/// What there is to know at the prompt.
const HELP: &str = "\
Enter sends. Alt-Enter, Ctrl-J or \\ at the end of a line begins a new one.
Up and Down bring back earlier prompts. Ctrl-A, Ctrl-E, Ctrl-W, Ctrl-U and Ctrl-K work as in a shell.
Ctrl-C stops the agent, or empties the line; on an empty line it ends the program, as Ctrl-D and `exit` do.
What you type while the agent works is the next prompt.
/compact replaces the conversation by a summary. Everything else is for the agent.
`ostler --help` tells the options, `ostler doctor` what is wrong.";

/// Stands in front of what the user says.
const MARK: &str = ">";

/// What greets the user.
pub(crate) struct Greeting {
    pub(crate) model: String,
    pub(crate) remark: Option<&'static str>,
}

/// Answers one prompt, or opens a conversation.
pub(crate) async fn run(
    args: &Args,
    engine: Engine,
    cwd: PathBuf,
    kept: Option<Kept>,
    greeting: Greeting,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let prompt = match &args.prompt {
        None => None,
        Some(prompt) => match piped::prompt(Some(prompt), &mut signals).await? {
            Ok(prompt) => Some(prompt),
            Err(told) => {
                engine.end().await;
                return Ok(told.code());
            }
        },
    };
    let input = Input::from_stdin();
    // With the prompt on the command line, a pipe on standard input is no person to ask.
    let can_ask = args.prompt.is_none() || input.is_terminal;
    let folder = cwd.display().to_string();
    let mut chat = Chat {
        engine,
        input,
        signals,
        show: Show::new(screen),
        can_ask,
        cwd,
        kept,
        editor: Editor::default(),
    };
    let code = match &prompt {
        Some(prompt) => chat.turn(Some(prompt)).await.map(Ended::code),
        None => {
            chat.show.screen.welcome(&greeting.model, &folder, greeting.remark)?;
            chat.converse().await
        }
    };
    // However it ended, nothing that was started is left behind.
    chat.engine.end().await;
    code
}

struct Chat<'a> {
    engine: Engine,
    input: Input,
    signals: Signals,
    show: Show<'a>,
    can_ask: bool,
    cwd: PathBuf,
    kept: Option<Kept>,
    editor: Editor,
}

/// How a turn ended.
enum Ended {
    /// With a result.
    Done { is_error: bool },
    /// With a result, because the user stopped it.
    Stopped,
    /// Not at all: the program is to end.
    Quit(u8),
}

impl Ended {
    fn code(self) -> ExitCode {
        match self {
            Self::Done { is_error: true } => ExitCode::FAILURE,
            Self::Done { is_error: false } => ExitCode::SUCCESS,
            Self::Stopped => ExitCode::from(STOPPED),
            Self::Quit(code) => ExitCode::from(code),
        }
    }
}

/// What happens next in a turn.
#[expect(clippy::large_enum_variant, reason = "made in one place and taken apart in the next")]
enum Event {
    Frame(ToHost),
    Told(Told),
    Beat,
}

impl Chat<'_> {
    async fn converse(&mut self) -> anyhow::Result<ExitCode> {
        loop {
            let next = next(&mut self.input, &mut self.editor, self.show.screen);
            let line = tokio::select! {
                line = next => line?,
                told = self.signals.next() => match told {
                    Told::Stop if !self.editor.is_empty() => {
                        self.editor.clear();
                        continue;
                    }
                    Told::Stop => None,
                    Told::End(code) => {
                        self.show.screen.echo("")?;
                        return Ok(ExitCode::from(code));
                    }
                },
                frame = unasked(&mut self.engine) => {
                    self.show.screen.echo("")?;
                    match self.attend(frame?).await? {
                        Some(code) => return Ok(code),
                        None => continue,
                    }
                }
            };
            let Some(line) = line else { break };
            if !line.is_shown {
                self.show.screen.echo(&line.text)?;
            }
            self.editor.remember(&line.text);
            match line.text.trim() {
                "" => {}
                "exit" | "quit" | "/exit" | "/quit" => return Ok(ExitCode::SUCCESS),
                "/help" | "?" => self.show.screen.lines(HELP)?,
                prompt => {
                    if let ended @ Ended::Quit(_) = self.turn(Some(prompt)).await? {
                        return Ok(ended.code());
                    }
                }
            }
        }
        self.show.screen.echo("")?;
        Ok(ExitCode::SUCCESS)
    }

    /// Something comes from the engine while nobody has asked for anything. Gives the exit code if it is the last.
    async fn attend(&mut self, frame: ToHost) -> anyhow::Result<Option<ExitCode>> {
        let ended = match frame {
            // A background agent asks; there is no turn to stop.
            ToHost::ControlRequest(request) => match self.answer(request).await? {
                Some(Told::End(code)) => Ended::Quit(code),
                Some(Told::Stop) => Ended::Quit(STOPPED),
                None => {
                    self.show.screen.erase()?;
                    return Ok(None);
                }
            },
            frame if is_for_user(&frame) => {
                self.frame(&frame)?;
                return Ok(None);
            }
            _ => self.turn(None).await?,
        };
        Ok(matches!(ended, Ended::Quit(_)).then(|| ended.code()))
    }

    /// One prompt, or what the agent has begun by itself, to its result. What is typed meanwhile is the next prompt.
    async fn turn(&mut self, prompt: Option<&str>) -> anyhow::Result<Ended> {
        let is_quiet = self.input.is_terminal && self.show.screen.is_live();
        let quiet = is_quiet.then(Mode::quiet).transpose()?;
        let ended = self.take_turn(prompt).await;
        if self.input.is_terminal {
            self.input.keep_lines();
        }
        drop(quiet);
        ended
    }

    /// Ctrl-C once stops the agent, twice the program.
    async fn take_turn(&mut self, prompt: Option<&str>) -> anyhow::Result<Ended> {
        if let Some(prompt) = prompt {
            self.engine.send(ToEngine::User(Box::new(User::prompt(prompt)))).await?;
        }
        self.show.begin()?;
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_stopped = false;
        loop {
            let event = tokio::select! {
                frame = self.engine.next() => Event::Frame(frame?),
                told = self.signals.next() => Event::Told(told),
                _ = beats.tick(), if self.show.screen.is_live() => Event::Beat,
            };
            let told = match event {
                Event::Beat => {
                    self.show.beat()?;
                    None
                }
                Event::Told(told) => Some(told),
                Event::Frame(ToHost::ControlRequest(request)) => self.answer(request).await?,
                Event::Frame(ToHost::Result(result)) => {
                    self.show.finish(&result)?;
                    // The answer to something that ended in the background, not yet to the prompt.
                    if prompt.is_some() && result.origin.is_some() && !is_stopped {
                        continue;
                    }
                    let done = Ended::Done { is_error: result.is_error };
                    return Ok(if is_stopped { Ended::Stopped } else { done });
                }
                Event::Frame(frame) => {
                    self.frame(&frame)?;
                    None
                }
            };
            match told {
                None => {}
                Some(Told::End(code)) => return Ok(Ended::Quit(code)),
                Some(Told::Stop) if is_stopped => return Ok(Ended::Quit(STOPPED)),
                Some(Told::Stop) => {
                    is_stopped = true;
                    self.show.screen.remark("stopping (Ctrl-C again to quit)")?;
                    self.engine.interrupt().await?;
                }
            }
        }
    }

    fn frame(&mut self, frame: &ToHost) -> anyhow::Result<()> {
        match frame {
            ToHost::StreamEvent(event) => self.show.stream(&event.event)?,
            ToHost::Assistant(assistant) => self.show.calls(assistant)?,
            ToHost::User(user) => self.show.results(user)?,
            ToHost::System(system) => self.show.system(system)?,
            _ => {}
        }
        Ok(())
    }

    /// Answers a request of the engine, unless something else happens first: then that is what it returns.
    async fn answer(&mut self, request: ControlRequest<AskHost>) -> anyhow::Result<Option<Told>> {
        let id = request.request_id.unwrap_or_default();
        let response = match &request.request {
            AskHost::CanUseTool(request) if self.can_ask => {
                if self.input.is_terminal {
                    self.show.asked(request.tool_use_id.as_ref());
                }
                let asked = self.ask(request, &id).await?;
                self.show.answered(request.tool_use_id.as_ref())?;
                match asked {
                    Asked::Answered(answer) => {
                        ControlResponse::success(id, Some(serde_json::to_value(answer)?))
                    }
                    Asked::Withdrawn => return Ok(None),
                    Asked::Told(told) => return Ok(Some(told)),
                }
            }
            AskHost::CanUseTool(request) => {
                let answer = question::nobody(request);
                ControlResponse::success(id, Some(serde_json::to_value(answer)?))
            }
            other => {
                let subtype = other.tag().unwrap_or("none");
                ControlResponse::error(id, format!("the terminal cannot answer {subtype}"))
            }
        };
        self.engine.send(ToEngine::ControlResponse(response)).await?;
        Ok(None)
    }

    async fn ask(&mut self, request: &CanUseTool, id: &RequestId) -> anyhow::Result<Asked> {
        if self.engine.has_withdrawn(id) {
            return Ok(Asked::Withdrawn);
        }
        let is_nested = self.show.is_nested(request.tool_use_id.as_ref());
        let asking = Asking {
            input: &mut self.input,
            screen: self.show.screen,
            cwd: &self.cwd,
            kept: self.kept.as_ref(),
            is_nested,
        };
        let asked = tokio::select! {
            answer = question::ask(request, asking) => Asked::Answered(answer?),
            told = self.signals.next() => Asked::Told(told),
            withdrawn = self.engine.withdrawal(id) => {
                withdrawn?;
                Asked::Withdrawn
            }
        };
        if matches!(asked, Asked::Withdrawn) {
            self.show.screen.remark("the question has been settled elsewhere")?;
        }
        Ok(asked)
    }
}

/// What the user says next; `None` at the end of the input.
async fn next(
    input: &mut Input,
    editor: &mut Editor,
    screen: &mut Screen,
) -> std::io::Result<Option<Typed>> {
    if input.is_terminal && screen.is_live() {
        screen.end_line()?;
        return compose(MARK, editor, input, screen).await;
    }
    screen.prompt(MARK)?;
    Ok(input.line().await)
}

/// Waits for something that nobody asked for: the beginning of a turn (what ran in the background has ended, and the
/// model is told), a question, or a warning.
async fn unasked(engine: &mut Engine) -> anyhow::Result<ToHost> {
    loop {
        let frame = engine.next().await?;
        let begins = matches!(frame, ToHost::System(System::Init(_)) | ToHost::ControlRequest(_));
        if begins || is_for_user(&frame) {
            return Ok(frame);
        }
    }
}

/// Whether it is something that the user should know, whoever is at work: a warning of hooks, a session that is not
/// saved.
fn is_for_user(frame: &ToHost) -> bool {
    matches!(
        frame,
        ToHost::System(
            System::Informational(_) | System::SessionWritesLost(_) | System::ModelFallback(_)
        )
    )
}

/// What came of a question.
enum Asked {
    Answered(PermissionResult),
    /// It need not be answered any more.
    Withdrawn,
    /// Something else came first.
    Told(Told),
}
