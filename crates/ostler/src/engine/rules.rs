//! Builds the permission policy of a session from the settings and the launch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::permission::{Behavior, Policy, Rule, Source};
use ostler_engine::project_file::Boundary;
use ostler_engine::settings::{self, Folders, Settings, SettingsError, Sources};
use ostler_engine::settings_watcher::WatchedSettings;
use ostler_proto::launch::SettingSource;
use ostler_proto::permission::PermissionMode;
use serde_json::{Map, Value};

use super::always::AlwaysRules;
use super::{StartContext, StartError};

/// The largest settings file, in bytes.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// The permission policy of a session, and the settings it comes from.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rules {
    /// Decides about calls.
    pub policy: Policy,
    /// The folders of the settings files.
    pub folders: Folders,
    /// The merged settings.
    pub settings: Settings,
}

/// Reads the settings of the chosen sources, and adds the rules of the launch.
///
/// # Errors
/// When settings or rules are invalid, or the settings forbid the mode that the launch names.
pub fn load(context: &StartContext) -> Result<Rules, StartError> {
    let folders = folders(context);
    let settings = read(context, &folders)?;
    let launch = &context.launch;
    let mut policy = Policy::new(&context.cwd, PermissionMode::Default);
    policy.user_folder.clone_from(&folders.user);
    policy.home = context.var("HOME").map(PathBuf::from);
    policy.trusts_project = trusts_project(context);
    policy.trusted_repositories = canonical(&context.trusted_repositories);
    policy.set_environment(&context.env.with(settings.env.clone()));
    policy.bypass_available = launch.allow_skip_permissions
        || launch.permission_mode == Some(PermissionMode::BypassPermissions);
    settings.apply_to(&mut policy);
    if let Some(mode) = &launch.permission_mode {
        if *mode == PermissionMode::BypassPermissions && !policy.bypass_available {
            return Err(StartError::Refused(
                "the settings forbid the mode bypassPermissions (permissions.disableBypassPermissionsMode); \
                 start without it"
                    .to_owned(),
            ));
        }
        policy.mode = mode.clone();
    }
    add_rules(&mut policy, Behavior::Allow, &launch.allowed_tools)?;
    add_rules(&mut policy, Behavior::Deny, &launch.disallowed_tools)?;
    for folder in &launch.add_dirs {
        policy.add_directory(folder, Source::CliArg);
    }
    Ok(Rules { policy, folders, settings })
}

/// Refuses `bypassPermissions` to root outside a container: no permission of the system would stop the model.
///
/// # Errors
/// When root runs the engine without a container and `bypassPermissions` is on or may be turned on later.
pub fn refuse_root(context: &StartContext, wants_bypass: bool) -> Result<(), StartError> {
    if wants_bypass && !is_contained(context) && rustix::process::geteuid().is_root() {
        return Err(StartError::Refused(
            "the mode bypassPermissions cannot be used as root, because the system allows root everything: run as another \
             user, or, in a container, set IS_SANDBOX=1"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Whether the engine runs in a container. The user declares that with `IS_SANDBOX`, which other programs read too. The
/// `env` of settings does not count here, because settings may come with a project.
pub(super) fn is_contained(context: &StartContext) -> bool {
    context.var("IS_SANDBOX").is_some_and(|value| value == "1")
}

/// Adds the managed settings of the host, but only those that make the policy stricter.
fn tighten(settings: &mut Settings, managed: &str) -> Result<(), SettingsError> {
    let flag = Some(managed.to_owned());
    let managed = settings::load(&Folders::default(), &Sources { flag, ..Sources::default() })?;
    let forbids = |(behavior, ..): &(Behavior, Rule, Source)| *behavior != Behavior::Allow;
    settings.rules.extend(managed.rules.into_iter().filter(forbids));
    settings.bypass_disabled |= managed.bypass_disabled;
    settings.server_lists.denied.extend(managed.server_lists.denied);
    settings.server_lists.allowed.extend(managed.server_lists.allowed);
    settings.mcpjson.disabled.extend(managed.mcpjson.disabled);
    if let Some(wanted) = managed.sandbox {
        let sandbox = settings.sandbox.get_or_insert_default();
        if wanted.enabled == Some(true) {
            sandbox.enabled = wanted.enabled;
            sandbox.fail_if_unavailable =
                wanted.fail_if_unavailable.or(sandbox.fail_if_unavailable);
        }
        if wanted.allow_unsandboxed_commands == Some(false) {
            sandbox.allow_unsandboxed_commands = Some(false);
        }
    }
    Ok(())
}

fn read(context: &StartContext, folders: &Folders) -> Result<Settings, SettingsError> {
    let trusts_project = trusts_project(context);
    let mut settings = settings::load(folders, &sources(context, trusts_project))?;
    if !trusts_project && let Some(always) = AlwaysRules::of(folders) {
        always.confirm(folders, &mut settings);
    }
    if let Some(managed) = &context.launch.managed_settings {
        tighten(&mut settings, managed)?;
    }
    if !context.runs_hooks {
        settings.hooks.clear();
    }
    Ok(settings)
}

/// The settings files and skill folders to watch while the session runs.
pub(super) fn live(context: &StartContext, folders: &Folders, now: Settings) -> WatchedSettings {
    let Sources { user, project, local, .. } = sources(context, false);
    let wanted = [
        (Source::User, user),
        (Source::Project, project),
        (Source::Local, local),
        (Source::Managed, true),
    ];
    let files = wanted.into_iter().filter(|(_, is_wanted)| *is_wanted);
    let files = files.filter_map(|(source, _)| Some((source, folders.file(source)?))).collect();
    let skills = [
        folders.user.as_ref().filter(|_| user).map(|folder| folder.join("skills")),
        project.then(|| folders.project.join(".claude/skills")),
    ];
    let (context, folders) = (context.clone(), folders.clone());
    WatchedSettings {
        now,
        files,
        skills: skills.into_iter().flatten().collect(),
        load: Arc::new(move || read(&context, &folders)),
    }
}

fn add_rules(policy: &mut Policy, behavior: Behavior, rules: &[String]) -> Result<(), StartError> {
    for text in rules {
        let rule: Rule = text.parse().map_err(|error| {
            StartError::Refused(format!("the rule {text} is not valid: {error}"))
        })?;
        policy.add_rule(behavior, rule, Source::CliArg);
    }
    Ok(())
}

/// The folders that exist, with links resolved.
pub(super) fn canonical(folders: &[PathBuf]) -> Vec<PathBuf> {
    folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect()
}

/// Whether the project's files may allow tools and start programs. They may if `--setting-sources` names them.
pub(super) fn trusts_project(context: &StartContext) -> bool {
    let mut sources = context.launch.setting_sources.iter().flatten();
    let is_of_project =
        |source: &SettingSource| matches!(source, SettingSource::Project | SettingSource::Local);
    context.trusts_project || sources.any(is_of_project)
}

/// Whether the launch includes a source of settings. Without `--setting-sources` it includes all.
pub(super) fn wants(context: &StartContext, source: SettingSource) -> bool {
    let sources = context.launch.setting_sources.as_ref();
    sources.is_none_or(|sources| sources.contains(&source))
}

fn sources(context: &StartContext, trusts_project: bool) -> Sources {
    Sources {
        user: wants(context, SettingSource::User),
        project: wants(context, SettingSource::Project),
        local: wants(context, SettingSource::Local),
        flag: context.launch.settings.clone(),
        trusts_project,
    }
}

/// The settings as written in their files and on the command line, for hosts that request them.
pub(super) fn as_written(
    context: &StartContext,
    folders: &Folders,
) -> Vec<(String, Map<String, Value>)> {
    let file = |source: Source| folders.text(source, trusts_project(context));
    let flag = context.launch.settings.clone().and_then(|flag| {
        if flag.trim_start().starts_with('{') {
            Some(flag)
        } else {
            Boundary::default().read_text(Path::new(&flag), LONGEST_FILE).ok()
        }
    });
    let of = |name: SettingSource, source: Source| file(source).filter(|_| wants(context, name));
    let texts = [
        ("userSettings", of(SettingSource::User, Source::User)),
        ("projectSettings", of(SettingSource::Project, Source::Project)),
        ("localSettings", of(SettingSource::Local, Source::Local)),
        ("flagSettings", flag),
        ("policySettings", file(Source::Managed)),
    ];
    let parsed = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), serde_json::from_str(&text?).ok()?)));
    parsed.collect()
}

/// The folders of the settings files.
pub fn folders(context: &StartContext) -> Folders {
    let home = context.var("HOME").map(PathBuf::from);
    let config = context.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let project = context.launch.project_config_root.as_ref().map(PathBuf::from);
    let folders = Folders::new(project.as_deref().unwrap_or(&context.cwd), config, home.as_deref());
    let managed = Some(Folders::of_administrator().join("managed-settings.json"));
    Folders { managed, ..folders }
}
