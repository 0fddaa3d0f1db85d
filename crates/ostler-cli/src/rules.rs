//! What may run: settings and flags made into a policy, and a policy explained.

use std::path::{Path, PathBuf};

use anyhow::Context;
use ostler_engine::permission::{self, CallFacts, Policy};
use ostler_engine::settings::{self, Folders, Settings, Sources};
use ostler_proto::permission::PermissionMode;

use crate::args::Args;
use crate::kept::Kept;
use crate::screen::Screen;
use crate::text::clean;

/// What a session may do, and where that is written.
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    pub(crate) folders: Folders,
    pub(crate) settings: Settings,
}

/// Reads all settings. One that cannot be understood is an error: a rule must not be lost quietly.
pub(crate) fn load(args: &Args, cwd: &Path) -> anyhow::Result<Rules> {
    let folders = folders(cwd);
    let sources = Sources {
        user: true,
        project: true,
        local: true,
        flag: args.settings.clone(),
        trusts_project: args.trust_project,
    };
    let mut settings = settings::load(&folders, &sources)?;
    if !args.trust_project
        && let Some(kept) = Kept::of(&folders)
    {
        kept.confirm(&folders, &mut settings);
    }
    let mut policy = Policy::new(cwd, PermissionMode::Default);
    policy.user_folder.clone_from(&folders.user);
    policy.bypass_available = args.permission_mode == Some(PermissionMode::BypassPermissions);
    settings.apply_to(&mut policy);
    if let Some(mode) = &args.permission_mode {
        anyhow::ensure!(
            *mode != PermissionMode::BypassPermissions || policy.bypass_available,
            "the settings forbid the mode bypassPermissions (permissions.disableBypassPermissionsMode); \
             start without it"
        );
        policy.mode = mode.clone();
    }
    Ok(Rules { policy, folders, settings })
}

/// Where settings are kept.
pub(crate) fn folders(cwd: &Path) -> Folders {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let config =
        std::env::var_os("CLAUDE_CONFIG_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    Folders::new(cwd, config, home.as_deref())
}

/// Tells what would become of a call.
pub(crate) fn explain(
    args: &Args,
    tool: &str,
    words: &[String],
    screen: &mut Screen,
) -> anyhow::Result<()> {
    let cwd = std::env::current_dir().context("cannot tell where we are")?;
    let Rules { policy, .. } = load(args, &cwd)?;
    let input = permission::input_of(tool, &words.join(" "));
    let effect = permission::effect_of(tool, &input, &cwd);
    let text = permission::explain(&policy, &CallFacts { tool, input: &input, effect: &effect });
    Ok(screen.line(clean(&text).trim_end())?)
}
