//! Where the instructions of a session are: CLAUDE.md, rules, and the notes of an agent.

use std::path::PathBuf;
use std::sync::Arc;

use ostler_engine::context::memory::{Lookup, MemorySources};
use ostler_engine::permission::Policy;
use ostler_engine::settings::{Folders, Settings};
use ostler_proto::launch::SettingSource;
use ostler_sdk::session_store::project_key;
use serde_json::Value;

use super::{StartContext, rules};

/// Switches an agent's notes off.
const NO_NOTES: &str = "CLAUDE_CODE_DISABLE_AUTO_MEMORY";
/// Switches all instructions off.
const NO_INSTRUCTIONS: &str = "CLAUDE_CODE_DISABLE_CLAUDE_MDS";

/// The places, from the setting sources of the launch.
pub(super) fn lookup(context: &StartContext, policy: &Policy, settings: &Settings) -> Lookup {
    let is_on = |name: &str| context.var(name).is_some_and(|value| value == "1" || value == "true");
    let is_off = is_on(NO_INSTRUCTIONS);
    let wants = |source: SettingSource| rules::wants(context, source) && !is_off;
    let sources = MemorySources {
        user: wants(SettingSource::User),
        project: wants(SettingSource::Project),
        local: wants(SettingSource::Local),
    };
    let home = context.var("HOME").map(PathBuf::from);
    let config = context.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let config = config.or_else(|| Some(home.as_ref()?.join(".claude")));
    let has_notes =
        settings.extra.get("autoMemoryEnabled") != Some(&Value::Bool(false)) && !is_on(NO_NOTES);
    let notes = config.as_ref().filter(|_| has_notes);
    let notes = notes.map(|config| {
        config.join("projects").join(project_key(&context.cwd)).join("memory/MEMORY.md")
    });
    let excludes = settings.extra.get("claudeMdExcludes").and_then(Value::as_array);
    let excludes = excludes.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Lookup {
        cwd: context.cwd.clone(),
        managed: Some(Folders::of_administrator().to_owned()).filter(|_| !is_off),
        config,
        home,
        notes,
        excludes: excludes.collect(),
        sources,
        trusts_project: rules::trusts_project(context),
        denied: Arc::new(policy.file_guard()),
    }
}
