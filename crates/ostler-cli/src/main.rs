//! The `ostler` command: parses the arguments, starts the right part, and returns its exit code.

mod args;
mod auth;
mod chat;
mod client;
mod compose;
mod connection;
mod debug;
mod diff;
mod doctor;
mod editor;
mod elicitation;
mod form;
mod frames;
mod input;
mod keys;
mod mcp;
mod menu;
mod offers;
mod output;
mod permission;
mod pipe;
mod piped;
mod print;
mod question;
mod refusal;
mod reply;
mod rules;
mod scene;
mod screen;
mod serve;
mod session;
mod sessions;
mod show;
mod signals;
mod spare;
mod spinner;
mod status;
mod terminal;
mod text;
mod tty;
mod upkeep;
mod wrap;

use std::process::ExitCode;

use ostler::engine::always::AlwaysRules;
use ostler::engine::{self as host, RunningSession, StartContext, StartError};
use ostler_engine::store::StoreError;

use crate::args::{Args, Command, InputFormat, OutputFormat};
use crate::chat::Greeting;
use crate::screen::Screen;

fn main() -> ExitCode {
    // As a helper of a sandbox, or as a reader of documents; before anything else, and before threads start.
    if let Some(code) = host::sandbox::run_if_called().or_else(ostler_tools::run_if_called) {
        return code;
    }
    // Nothing else in this program starts processes in their own session.
    ostler_process::adopt_orphans();
    let arguments: Vec<_> = std::env::args_os().collect();
    let is_of_program = Args::is_of_program(&arguments);
    let (mut args, unknown) = match Args::read(arguments) {
        Ok(read) => read,
        // A program reads the result frame, a person reads the text.
        Err(error) if is_of_program && error.use_stderr() => {
            // If standard error is closed, the failure cannot be reported.
            let _ = error.print();
            return refused(&error.to_string());
        }
        Err(error) => error.exit(),
    };
    let mut screen = Screen::new();
    if !unknown.is_empty() {
        let list = unknown.join(", ");
        screen.complain(&format!("ignored, because this version does not know them: {list}"));
    }
    if let Err(reason) = args.read_pipes() {
        screen.complain(&reason);
        return if is_of_program { refused(&reason) } else { ExitCode::FAILURE };
    }
    match run(args, &mut screen) {
        Ok(code) => code,
        // The reader of our output has closed it, so there is no one to report an error to.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            screen.complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(Command::Sessions { all, limit }) => {
            sessions::list(&args, *all, *limit, screen)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Command::Explain { tool, input }) => {
            rules::explain(&args, tool, input, screen)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Command::Auth(auth)) => return auth::run(&args, auth, screen),
        Some(
            Command::Doctor
            | Command::Mcp(_)
            | Command::Serve(_)
            | Command::Task(_)
            | Command::Schedule(_)
            | Command::Backup(_)
            | Command::Restore(_)
            | Command::Check(_),
        )
        | None => {}
    }
    // One session waits for a model and for tools, and blocking work has its own threads, so one worker is enough. It
    // is not this thread, which may block on writing output: an interrupt must still get through.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if !matches!(args.command, Some(Command::Serve(_))) {
        runtime.worker_threads(1);
    }
    // The program never changes its working directory, so its threads may have their own.
    #[cfg(target_os = "linux")]
    runtime.on_thread_start(ostler_process::separate_working_directory);
    let runtime = runtime.enable_all().build()?;
    let code = match &args.command {
        Some(Command::Serve(serve)) => runtime.block_on(serve::run(&args, serve, screen)),
        Some(Command::Task(tasks)) => runtime.block_on(client::task(tasks, screen)),
        Some(Command::Schedule(schedules)) => runtime.block_on(client::schedule(schedules, screen)),
        Some(Command::Backup(backup)) => runtime.block_on(upkeep::back_up(backup, screen)),
        Some(Command::Restore(restore)) => runtime.block_on(upkeep::restore(restore, screen)),
        Some(Command::Check(check)) => runtime.block_on(upkeep::check(check, screen)),
        Some(Command::Mcp(mcp)) => runtime.block_on(mcp::run(&args, mcp, screen)),
        Some(Command::Doctor) => runtime.block_on(doctor::run(&args, screen)),
        _ => runtime.block_on(work(&args, screen)),
    };
    // Cancelled tasks still end the processes they started. A thread that reads standard input cannot be stopped, and
    // must not keep the program alive.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    code
}

/// Reports to a program why its command line is refused.
fn refused(reason: &str) -> ExitCode {
    if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
        // If the output is closed too, the failure cannot be reported.
        let _ = runtime.block_on(refusal::tell(reason.trim(), None));
        runtime.shutdown_background();
    }
    ExitCode::FAILURE
}

/// Answers prompts from a person or a program.
async fn work(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let prepared = scene_of(args);
    let is_conversation = !args.has_frames() && !args.is_for_programs();
    let input = match &prepared {
        Ok(scene) if is_conversation && !scene.launch.only_setup => {
            match mcp::approval::ask(scene, screen).await? {
                Ok(input) => input,
                Err(signal) => return Ok(signal.code()),
            }
        }
        _ => None,
    };
    let (scene, running) = match prepared.and_then(start) {
        Ok(started) => started,
        Err(error) => return not_started(args, error, screen).await,
    };
    let RunningSession { connection, model, remark, warnings, cautions, folders, .. } = running;
    for caution in cautions {
        screen.complain(&caution);
    }
    for warning in &warnings {
        screen.complain(&warning.to_string());
    }
    if scene.launch.only_setup {
        return pipe::only_hooks(args, connection, screen).await;
    }
    if args.has_frames() {
        return pipe::run(args, scene, connection).await;
    }
    if args.is_for_programs() {
        return print::run(args, connection, screen).await;
    }
    let greeting = Greeting { model, remark };
    let kept = AlwaysRules::of(&folders);
    chat::run(args, connection, scene.cwd, kept, (greeting, input), screen).await
}

fn scene_of(args: &Args) -> anyhow::Result<StartContext> {
    let mut scene = scene::of(args)?;
    let session = &mut scene.launch.session;
    if args.wire.await_claim && session.resume.is_none() && !session.go_on {
        // The session has the same id before and after a host claims it.
        session.id.get_or_insert_with(|| uuid::Uuid::new_v4().to_string());
    }
    scene::refuse_root(&scene)?;
    Ok(scene)
}

fn start(scene: StartContext) -> anyhow::Result<(StartContext, RunningSession)> {
    // Reads settings and maybe a whole transcript. Nothing else runs meanwhile.
    let running = tokio::task::block_in_place(|| host::start(&scene))?;
    Ok((scene, running))
}

/// Reports why the session cannot start, as text or as frames.
async fn not_started(
    args: &Args,
    error: anyhow::Error,
    screen: &mut Screen,
) -> anyhow::Result<ExitCode> {
    let missing = match error.downcast_ref() {
        Some(StartError::Store(missing)) => Some(missing),
        _ => None,
    };
    let session = missing.and_then(|missing| {
        host::sessions::failure(&scene::of(args).ok()?.launch.session, missing)
    });
    match session {
        result if args.input_format == InputFormat::StreamJson => {
            let reason = format!("{error:#}");
            screen.complain(&reason);
            refusal::tell(&reason, result).await?;
            Ok(ExitCode::FAILURE)
        }
        Some(result) if args.output_format != OutputFormat::Text => {
            output::result(result)?;
            Ok(ExitCode::FAILURE)
        }
        _ if matches!(missing, Some(StoreError::NotFound(_))) => Err(anyhow::anyhow!(
            "{error}; `ostler sessions` lists the sessions of this folder, `ostler sessions --all` those of all folders"
        )),
        _ => Err(error),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
