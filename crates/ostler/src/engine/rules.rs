//! What may run: settings and the launch made into a policy.

use std::path::PathBuf;
use std::sync::Arc;

use ostler_engine::live::LiveSettings;
use ostler_engine::permission::{Behavior, Policy, Rule, Source};
use ostler_engine::settings::{self, Folders, Settings, SettingsError, Sources};
use ostler_proto::permission::PermissionMode;
use serde_json::{Map, Value};

use super::kept::Kept;
use super::{Scene, StartError};

/// What a session may do, and where that is written.
#[derive(Debug)]
pub struct Rules {
    /// What decides.
    pub policy: Policy,
    /// Where settings are kept.
    pub folders: Folders,
    /// What they say.
    pub settings: Settings,
}

/// Reads all settings that are asked for.
///
/// # Errors
/// When one cannot be understood, or what the launch asks for is forbidden or makes no sense.
pub fn load(scene: &Scene) -> Result<Rules, StartError> {
    let folders = folders(scene);
    let settings = read(scene, &folders)?;
    let launch = &scene.launch;
    let mut policy = Policy::new(&scene.cwd, PermissionMode::Default);
    policy.user_folder.clone_from(&folders.user);
    policy.home = scene.var("HOME").map(PathBuf::from);
    policy.trusts_project = trusts_project(scene);
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

/// Takes from the settings of a host that manages this engine what makes things stricter, and nothing else.
fn tighten(settings: &mut Settings, managed: &str) -> Result<(), SettingsError> {
    let flag = Some(managed.to_owned());
    let managed = settings::load(&Folders::default(), &Sources { flag, ..Sources::default() })?;
    let forbids = |(behavior, ..): &(Behavior, Rule, Source)| *behavior != Behavior::Allow;
    settings.rules.extend(managed.rules.into_iter().filter(forbids));
    settings.bypass_disabled |= managed.bypass_disabled;
    Ok(())
}

fn read(scene: &Scene, folders: &Folders) -> Result<Settings, SettingsError> {
    let trusts_project = trusts_project(scene);
    let mut settings = settings::load(folders, &sources(scene, trusts_project))?;
    if !trusts_project && let Some(kept) = Kept::of(folders) {
        kept.confirm(folders, &mut settings);
    }
    if let Some(managed) = &scene.launch.managed_settings {
        tighten(&mut settings, managed)?;
    }
    Ok(settings)
}

/// The same settings, to be looked at again while the session runs.
pub(super) fn live(scene: &Scene, folders: &Folders, now: Settings) -> LiveSettings {
    let Sources { user, project, local, .. } = sources(scene, false);
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
    let (scene, folders) = (scene.clone(), folders.clone());
    LiveSettings {
        now,
        files,
        skills: skills.into_iter().flatten().collect(),
        load: Arc::new(move || read(&scene, &folders)),
    }
}

fn add_rules(policy: &mut Policy, behavior: Behavior, rules: &[String]) -> Result<(), StartError> {
    for text in rules {
        let rule: Rule = text.parse().map_err(|error| {
            StartError::Refused(format!("the rule {text} makes no sense: {error}"))
        })?;
        policy.add_rule(behavior, rule, Source::CliArg);
    }
    Ok(())
}

/// Whether the project's files may allow and start things. Whoever names its settings wants them to count.
pub(super) fn trusts_project(scene: &Scene) -> bool {
    let mut sources = scene.launch.setting_sources.iter().flatten();
    scene.trusts_project || sources.any(|source| source == "project" || source == "local")
}

/// Whether settings of a kind are to be read.
pub(super) fn wants(scene: &Scene, name: &str) -> bool {
    let sources = scene.launch.setting_sources.as_ref();
    sources.is_none_or(|sources| sources.iter().any(|source| source == name))
}

fn sources(scene: &Scene, trusts_project: bool) -> Sources {
    Sources {
        user: wants(scene, "user"),
        project: wants(scene, "project"),
        local: wants(scene, "local"),
        flag: scene.launch.settings.clone(),
        trusts_project,
    }
}

/// The settings as they stand in their files and on the command line, for hosts that want to see them.
pub(super) fn as_written(scene: &Scene, folders: &Folders) -> Vec<(String, Map<String, Value>)> {
    let read = |path: PathBuf| std::fs::read_to_string(path).ok();
    let file = |source: Source| folders.file(source).and_then(read);
    let flag = scene.launch.settings.clone().and_then(|flag| {
        if flag.trim_start().starts_with('{') { Some(flag) } else { read(PathBuf::from(flag)) }
    });
    let of = |name: &str, source: Source| file(source).filter(|_| wants(scene, name));
    let texts = [
        ("userSettings", of("user", Source::User)),
        ("projectSettings", of("project", Source::Project)),
        ("localSettings", of("local", Source::Local)),
        ("flagSettings", flag),
        ("policySettings", file(Source::Managed)),
    ];
    let parsed = texts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), serde_json::from_str(&text?).ok()?)));
    parsed.collect()
}

/// Where settings are kept.
pub fn folders(scene: &Scene) -> Folders {
    let home = scene.var("HOME").map(PathBuf::from);
    let config = scene.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let project = scene.launch.project_config_root.as_ref().map(PathBuf::from);
    Folders::new(project.as_deref().unwrap_or(&scene.cwd), config, home.as_deref())
}
