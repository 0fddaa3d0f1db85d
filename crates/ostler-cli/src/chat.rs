//! The conversation at the terminal: prompts in, text and tool calls out.
//!
//! The terminal is a client of the SDK (`session`) like any other. `terminal` answers the engine's questions.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use ostler::Message;
use ostler::engine::always::AlwaysRules;
use ostler::engine::pick::OFFLINE;
use ostler_engine::session::Connection;
use ostler_proto::message::System;

use crate::args::Args;
use crate::compose::compose;
use crate::connection;
use crate::debug::Debug;
use crate::editor::Editor;
use crate::input::{Input, Typed};
use crate::mcp::health::Complaints;
use crate::mcp::menu;
use crate::piped;
use crate::screen::Screen;
use crate::session::{Event, Session};
use crate::show::Show;
use crate::signals::{STOPPED, Signals, StopRequest};
use crate::spinner::BEAT;
use crate::terminal::Terminal;
use crate::tty::Mode;

/// The text of `/help`.
const HELP: &str = "\
Enter sends. Alt-Enter, Ctrl-J or \\ at the end of a line begins a new one.
Up and Down bring back earlier prompts. Ctrl-A, Ctrl-E, Ctrl-W, Ctrl-U and Ctrl-K work as in a shell.
Ctrl-C stops the agent, or empties the line; on an empty line it ends the program, as Ctrl-D and `exit` do.
What you type while the agent works is the next prompt.
/compact replaces the conversation by a summary. /mcp shows the MCP servers. Everything else is for the agent.
`ostler --help` lists the options, `ostler doctor` looks for problems.";

/// Stands in front of the user's prompts.
const MARK: &str = ">";

/// The lines shown when a conversation opens.
pub(crate) struct Greeting {
    pub(crate) model: String,
    pub(crate) remark: Option<&'static str>,
}

/// Answers one prompt, or opens a conversation. The input is there if something was asked before.
pub(crate) async fn run(
    args: &Args,
    connection: Connection,
    cwd: PathBuf,
    kept: Option<AlwaysRules>,
    (greeting, input): (Greeting, Option<Input>),
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let debug = Debug::of(args)?;
    let prompt = match &args.prompt {
        None => None,
        Some(prompt) => match piped::prompt(Some(prompt), &mut signals).await? {
            Ok(prompt) => Some(prompt),
            Err(signal) => {
                connection::end(connection).await;
                return Ok(signal.code());
            }
        },
    };
    let input = input.unwrap_or_else(Input::from_stdin);
    if prompt.is_none() {
        screen.welcome(&greeting.model, &cwd.display().to_string())?;
    }
    match greeting.remark {
        // Answers of the demo must never look like those of a model.
        Some(remark) if greeting.model == OFFLINE => screen.banner(remark)?,
        Some(remark) if prompt.is_none() => screen.remark(remark)?,
        _ => {}
    }
    let session = match Session::connect(connection, debug, true, &mut signals).await? {
        Ok(session) => session,
        Err(signal) => return Ok(signal.code()),
    };
    // With the prompt on the command line, a pipe on standard input is not a user who can answer.
    let can_ask = args.prompt.is_none() || input.is_terminal;
    let terminal = Terminal { input, signals, show: Show::new(screen), can_ask, cwd, kept };
    let (editor, complaints) = (Editor::default(), Complaints::default());
    let mut chat = Chat { session, terminal, editor, complaints };
    let code = match &prompt {
        Some(prompt) => chat.turn(Some(prompt)).await.map(Ended::code),
        None => chat.converse().await,
    };
    // However the conversation ended, everything it started ends too.
    chat.session.end().await;
    code
}

struct Chat<'a> {
    session: Session,
    terminal: Terminal<'a>,
    editor: Editor,
    complaints: Complaints,
}

/// How a turn ended.
enum Ended {
    /// With a result.
    Done { is_error: bool },
    /// With a result, because the user stopped it.
    Stopped,
    /// Without a result: the program exits with this code.
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

#[expect(clippy::large_enum_variant, reason = "made in one place and taken apart in the next")]
enum Next {
    Event(Event),
    Signal(StopRequest),
    Beat,
}

impl Chat<'_> {
    async fn converse(&mut self) -> anyhow::Result<ExitCode> {
        loop {
            let Terminal { input, show, signals, .. } = &mut self.terminal;
            let line = tokio::select! {
                line = next(input, &mut self.editor, show.screen) => line?,
                signal = signals.next() => match signal {
                    StopRequest::Stop if !self.editor.is_empty() => {
                        self.editor.clear();
                        continue;
                    }
                    StopRequest::Stop => None,
                    StopRequest::End(code) => {
                        show.screen.echo("")?;
                        return Ok(ExitCode::from(code));
                    }
                },
                event = next_message_without_a_prompt(&mut self.session) => {
                    show.screen.echo("")?;
                    match self.attend(event?).await? {
                        Some(code) => return Ok(code),
                        None => continue,
                    }
                }
            };
            let Some(line) = line else { break };
            let screen = &mut *self.terminal.show.screen;
            if !line.is_shown {
                screen.echo(&line.text)?;
            }
            self.editor.remember(&line.text);
            match line.text.trim() {
                "" => {}
                "exit" | "quit" | "/exit" | "/quit" => return Ok(ExitCode::SUCCESS),
                "/help" | "?" => screen.lines(HELP)?,
                line if menu::words(line).is_some() => {
                    let words = menu::words(line).unwrap_or_default();
                    let (handle, signals) = (self.session.handle(), &mut self.terminal.signals);
                    let stopped = tokio::select! {
                        done = menu::run(&words, &handle, screen) => done.map(|()| None)?,
                        signal = signals.next() => Some(signal),
                    };
                    if let Some(StopRequest::End(code)) = stopped {
                        return Ok(ExitCode::from(code));
                    }
                }
                prompt => {
                    if let ended @ Ended::Quit(_) = self.turn(Some(prompt)).await? {
                        return Ok(ended.code());
                    }
                }
            }
        }
        self.terminal.show.screen.echo("")?;
        Ok(ExitCode::SUCCESS)
    }

    /// Handles a message that the engine sends while no prompt is running. Returns the exit code if it is the last one.
    async fn attend(&mut self, event: Event) -> anyhow::Result<Option<ExitCode>> {
        let ended = match event {
            // A background agent asks; there is no turn to stop.
            Event::Question(question) => match self.terminal.answer(question).await? {
                Some(StopRequest::End(code)) => Ended::Quit(code),
                Some(StopRequest::Stop) => Ended::Quit(STOPPED),
                None => {
                    self.terminal.show.screen.erase()?;
                    return Ok(None);
                }
            },
            Event::Message(message) if is_for_user(&message) => {
                self.terminal.show.message(&message)?;
                return Ok(None);
            }
            Event::Message(_) => self.turn(None).await?,
        };
        Ok(matches!(ended, Ended::Quit(_)).then(|| ended.code()))
    }

    /// Shows one turn to its result; without a prompt, one that the agent began. Text typed meanwhile is the next
    /// prompt.
    async fn turn(&mut self, prompt: Option<&str>) -> anyhow::Result<Ended> {
        let is_quiet = self.terminal.input.is_terminal && self.terminal.show.screen.is_live();
        let quiet = is_quiet.then(Mode::quiet).transpose()?;
        let ended = self.take_turn(prompt).await;
        if self.terminal.input.is_terminal {
            self.terminal.input.keep_lines();
        }
        drop(quiet);
        ended
    }

    /// Runs one turn. The first Ctrl-C stops the agent, the second one ends the program.
    async fn take_turn(&mut self, prompt: Option<&str>) -> anyhow::Result<Ended> {
        if let Some(prompt) = prompt {
            self.session.send(prompt).await?;
        }
        let (handle, terminal) = (self.session.handle(), &mut self.terminal);
        let mut turn = self.session.turn();
        terminal.show.begin()?;
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut is_stopped, mut is_error) = (false, None);
        loop {
            let next = tokio::select! {
                event = turn.next() => match event? {
                    Some(event) => Next::Event(event),
                    // Without a result, the turn ends when the engine ends.
                    None => return is_error.map(|is_error| Ended::Done { is_error }).context("the engine has ended"),
                },
                signal = terminal.signals.next() => Next::Signal(signal),
                _ = beats.tick(), if terminal.show.screen.is_live() => Next::Beat,
            };
            let signal = match next {
                Next::Beat => {
                    terminal.show.beat()?;
                    None
                }
                Next::Signal(signal) => Some(signal),
                Next::Event(Event::Question(question)) => terminal.answer(question).await?,
                Next::Event(Event::Message(Message::Result(result))) => {
                    terminal.show.finish(&result)?;
                    if is_stopped {
                        return Ok(Ended::Stopped);
                    }
                    // The result may belong to a background task and not to the prompt.
                    is_error = Some(result.is_error);
                    None
                }
                Next::Event(Event::Message(message)) => {
                    for complaint in self.complaints.after(&message, &handle).await {
                        terminal.show.screen.remark(&format!("{complaint} (/mcp)"))?;
                    }
                    terminal.show.message(&message)?;
                    None
                }
            };
            match signal {
                None => {}
                Some(StopRequest::End(code)) => return Ok(Ended::Quit(code)),
                Some(StopRequest::Stop) if is_stopped => return Ok(Ended::Quit(STOPPED)),
                Some(StopRequest::Stop) => {
                    is_stopped = true;
                    terminal.show.screen.remark("stopping (Ctrl-C again to quit)")?;
                    let handle = handle.clone();
                    // The result reports that the turn has stopped. Until then Ctrl-C must still work.
                    tokio::spawn(async move { handle.interrupt().await });
                }
            }
        }
    }
}

/// The user's next prompt; `None` at the end of the input.
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

/// Waits for a message that no prompt caused: the beginning of a turn (a background task has ended, and the model is
/// asked), a question, or a warning.
async fn next_message_without_a_prompt(session: &mut Session) -> anyhow::Result<Event> {
    loop {
        match session.next().await?.context("the engine has ended")? {
            Event::Message(message)
                if !matches!(message, Message::System(System::Init(_)))
                    && !is_for_user(&message) => {}
            event => return Ok(event),
        }
    }
}

/// Whether the user should see the message even without a prompt: a warning of a hook, or that nothing is saved.
fn is_for_user(message: &Message) -> bool {
    matches!(
        message,
        Message::System(
            System::Informational(_) | System::SessionWritesLost(_) | System::ModelFallback(_)
        )
    )
}
