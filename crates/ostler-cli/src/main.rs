//! The `ostler` command: reads the arguments, wires the parts, passes on the exit code.

mod args;
mod chat;
mod client;
mod compose;
mod debug;
mod diff;
mod doctor;
mod editor;
mod engine;
mod frames;
mod input;
mod keys;
mod menu;
mod offers;
mod permission;
mod pipe;
mod piped;
mod question;
mod rules;
mod scene;
mod screen;
mod serve;
mod sessions;
mod show;
mod signals;
mod spare;
mod spinner;
mod status;
mod text;
mod tty;
mod wrap;

use std::process::ExitCode;

use ostler::engine::kept::Kept;
use ostler::engine::{self as host, Running, StartError};
use ostler_engine::store::StoreError;

use crate::args::{Args, Command, OutputFormat};
use crate::chat::Greeting;
use crate::engine::Engine;
use crate::screen::Screen;

fn main() -> ExitCode {
    if let Some(code) = ostler_tools::run_if_called() {
        return code;
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    let is_of_program = Args::is_of_program(&arguments);
    let (args, unknown) = match Args::read(arguments) {
        Ok(read) => read,
        // Programs look at whether something failed, people at how.
        Err(error) if is_of_program && error.use_stderr() => {
            // Nobody can be told that standard error is closed.
            let _ = error.print();
            return ExitCode::FAILURE;
        }
        Err(error) => error.exit(),
    };
    let mut screen = Screen::new();
    if !unknown.is_empty() {
        let list = unknown.join(", ");
        screen.complain(&format!("left out, because this version does not know it: {list}"));
    }
    match run(args, &mut screen) {
        Ok(code) => code,
        // Whoever read our output has left: there is nobody to tell.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            screen.complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(Command::Sessions { all }) => {
            sessions::list(&args, *all, screen)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Command::Explain { tool, input }) => {
            rules::explain(&args, tool, input, screen)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Command::Doctor | Command::Serve(_) | Command::Task(_) | Command::Schedule(_))
        | None => {}
    }
    // One session waits for a model and for tools, and what blocks has threads of its own, so one worker is enough. It
    // is not this thread, which waits for whoever reads the output: an interrupt must get through all the same.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if !matches!(args.command, Some(Command::Serve(_))) {
        runtime.worker_threads(1);
    }
    let runtime = runtime.enable_all().build()?;
    let code = match &args.command {
        Some(Command::Serve(serve)) => runtime.block_on(serve::run(&args, serve, screen)),
        Some(Command::Task(tasks)) => runtime.block_on(client::task(tasks, screen)),
        Some(Command::Schedule(schedules)) => runtime.block_on(client::schedule(schedules, screen)),
        Some(Command::Doctor) => runtime.block_on(doctor::run(&args, screen)),
        _ => runtime.block_on(work(&args, screen)),
    };
    // Tasks that were cut off still take along what they started. A thread that reads standard input cannot be
    // stopped, and must not keep the program alive.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    code
}

/// Answers prompts, from a person or a program.
async fn work(args: &Args, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let mut scene = scene::of(args)?;
    let session = &mut scene.launch.session;
    if args.wire.await_claim && session.resume.is_none() && !session.go_on {
        // One name for the session before and after somebody claims it.
        session.id.get_or_insert_with(|| uuid::Uuid::new_v4().to_string());
    }
    scene::refuse_root(&scene)?;
    // It reads settings and perhaps a whole conversation, and nothing else happens meanwhile.
    let Running { connection, model, remark, warnings, cautions, folders, .. } =
        match tokio::task::block_in_place(|| host::start(&scene)) {
            Ok(running) => running,
            Err(StartError::Store(error)) if args.output_format != OutputFormat::Text => {
                let told = host::sessions::failure(&scene.launch.session, &error);
                let Some(result) = told else { return Err(error.into()) };
                pipe::fail(result)?;
                return Ok(ExitCode::FAILURE);
            }
            Err(error @ StartError::Store(StoreError::NotFound(_))) => {
                return Err(anyhow::anyhow!(
                    "{error}; `ostler sessions` lists those of this folder, `ostler sessions --all` all"
                ));
            }
            Err(error) => return Err(error.into()),
        };
    for caution in cautions {
        screen.complain(caution);
    }
    for warning in &warnings {
        screen.complain(&warning.to_string());
    }
    if scene.launch.only_setup {
        return pipe::only_hooks(args, connection, screen).await;
    }
    if args.is_for_programs() {
        return pipe::run(args, scene, connection).await;
    }
    let greeting = Greeting { model, remark };
    let kept = Kept::of(&folders);
    chat::run(args, Engine::new(connection), scene.cwd, kept, greeting, screen).await
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
