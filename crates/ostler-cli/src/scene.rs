//! Turns the command line into the `StartContext` of an engine.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use ostler::engine::{StartContext, StartError};
use ostler_engine::project_file::Boundary;
use ostler_proto::permission::PermissionMode;

use crate::args::Args;

/// The longest system prompt, in bytes: far more than a model accepts.
const LONGEST_PROMPT: u64 = 4 * 1024 * 1024;

/// The start context of a session.
pub(crate) fn of(args: &Args) -> Result<StartContext, StartError> {
    let mut scene = at(args, folder(args)?);
    if let Some(path) = &args.wire.system_prompt_file {
        let text = Boundary::default().read_text(&scene.cwd.join(path), LONGEST_PROMPT);
        let text = text.map_err(|refusal| {
            StartError::Refused(format!("--system-prompt-file {}: {refusal}", path.display()))
        })?;
        scene.launch.system_prompt = Some(text);
    }
    Ok(scene)
}

/// The same in a given folder.
pub(crate) fn at(args: &Args, cwd: PathBuf) -> StartContext {
    let mut scene = StartContext::new(args.launch.clone(), cwd);
    scene.trusts_project = args.trust_project;
    scene.is_interactive = !args.is_for_programs();
    scene.is_conversation = scene.is_interactive && args.prompt.is_none();
    scene.offers_demo =
        scene.is_interactive && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    // A program that only reads answers cannot give any.
    scene.answers_elicitation = scene.is_interactive || args.reads_frames();
    scene.entrypoint = scene_entrypoint();
    scene.time_limit = args.max_time;
    scene.token_limit = args.max_tokens;
    scene
}

/// Root can do everything, so without approvals nothing would protect the machine from the model, except a container.
///
/// # Errors
/// When root, outside a container, asks for the mode `bypassPermissions` or wants to choose it later.
pub(crate) fn refuse_root(scene: &StartContext) -> Result<(), StartError> {
    let launch = &scene.launch;
    let wants_bypass = launch.permission_mode == Some(PermissionMode::BypassPermissions)
        || launch.allow_skip_permissions;
    ostler::engine::rules::refuse_root(scene, wants_bypass)
}

/// The program that started this one, from the environment.
fn scene_entrypoint() -> String {
    let said = std::env::var("CLAUDE_CODE_ENTRYPOINT").ok();
    said.filter(|said| !said.is_empty()).unwrap_or_else(|| "cli".to_owned())
}

/// The folder to work in.
fn folder(args: &Args) -> Result<PathBuf, StartError> {
    let folder = args.cwd.clone().unwrap_or_else(|| ".".into());
    let odd = |reason: String| StartError::Folder { folder: folder.clone(), reason };
    let cwd = folder.canonicalize().map_err(|error| match args.cwd {
        Some(_) => odd(error.to_string()),
        None => odd(format!(
            "the current folder does not exist any more ({error}): go to another, or name one with --cwd"
        )),
    })?;
    match cwd.is_dir() {
        true => Ok(cwd),
        false => Err(odd("it is not a folder".to_owned())),
    }
}
