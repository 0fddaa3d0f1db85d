//! The `ostler` command: reads the arguments, wires the parts, passes on the exit code.

mod args;
mod chat;
mod lines;
mod pick;
mod pipe;
mod question;
mod rules;
mod screen;
mod sessions;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::screen::Screen;

fn main() -> ExitCode {
    let args = Args::parse();
    let mut screen = Screen::new();
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
            sessions::list(*all, screen)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Command::Explain { tool, input }) => {
            rules::explain(&args, tool, input, screen)?;
            return Ok(ExitCode::SUCCESS);
        }
        None => {}
    }
    let picked = pick::model(&args, |name| std::env::var(name).ok())?;
    // One session waits for a model and for tools, and what blocks has threads of its own, so one worker is enough. It
    // is not this thread, which waits for whoever reads the output: an interrupt must get through all the same.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let code = runtime.block_on(chat::run(&args, picked, screen));
    // The thread that reads the keyboard cannot be stopped, and must not keep the program alive.
    runtime.shutdown_background();
    code
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
