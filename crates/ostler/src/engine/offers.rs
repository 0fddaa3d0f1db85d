//! Loads the agents, commands, skills and output styles of a session from files, plugins and arguments.

use std::path::PathBuf;
use std::sync::Arc;

use ostler_engine::library::{self, Library, Places};
use ostler_engine::permission::ReadGuard;
use ostler_engine::session::Reload;
use ostler_engine::settings::{Folders, Problem};
use ostler_proto::launch::SettingSource;

use super::{StartContext, StartError, rules};

/// Reads agents, commands, skills and styles from the setting sources that the launch names.
///
/// # Errors
/// When an agent that an argument names is invalid.
pub(super) fn library(
    context: &StartContext,
    folders: &Folders,
    denied: &Arc<ReadGuard>,
) -> Result<Library, StartError> {
    let launch = &context.launch;
    let wants_project = rules::wants(context, SettingSource::Project);
    let places = |paths: &[String]| paths.iter().map(|path| context.cwd.join(path)).collect();
    let added: Vec<PathBuf> = places(&launch.add_dirs);
    let mut library = library::load(&Places {
        user: folders.user.clone().filter(|_| rules::wants(context, SettingSource::User)),
        project: Some(folders.project.clone()).filter(|_| wants_project),
        trusts_project: rules::trusts_project(context),
        denied: Arc::clone(denied),
        added: if wants_project { added } else { Vec::new() },
        plugins: places(&launch.plugin_dirs),
    });
    let n_plugins = library.plugins.len();
    for folder in &launch.plugin_dirs_without_servers {
        library.take_plugin(&context.cwd.join(folder));
    }
    library.plugins.iter_mut().skip(n_plugins).for_each(|plugin| plugin.servers.clear());
    library.take_agents(&launch.agents);
    if !context.runs_hooks {
        library.plugins.iter_mut().for_each(|plugin| plugin.hooks = None);
    }
    let ignored = launch.agents.iter().filter_map(|(name, it)| library::without_effect(name, it));
    let problem = |reason| Problem { path: "--agents".into(), pointer: String::new(), reason };
    library.problems.extend(ignored.map(problem));
    Ok(library)
}

/// A function that reads the library again.
pub(super) fn reload(context: &StartContext, folders: &Folders, denied: Arc<ReadGuard>) -> Reload {
    let (context, folders) = (context.clone(), folders.clone());
    // The arguments were valid when the session began.
    Arc::new(move || library(&context, &folders, &denied).unwrap_or_default())
}

/// A warning if the chosen output style does not exist. Agents are not checked: the host may still provide them.
pub(super) fn missing(
    context: &StartContext,
    library: &Library,
    style: Option<&str>,
) -> Option<Problem> {
    let style = style.filter(|name| *name != "default")?;
    if library.style(style).is_some() {
        return None;
    }
    let known = library.style_names().join(", ");
    Some(Problem {
        path: context.cwd.clone(),
        pointer: "outputStyle".to_owned(),
        reason: format!("the output style {style} does not exist; available: {known}"),
    })
}
