//! Requests about models, the session's title and its folders.

use std::path::Path;

use ostler_proto::Extra;
use ostler_proto::build;
use ostler_proto::control::{ModelInfo, RegisterRepoRoot, RenameSession};
use ostler_proto::permission::{DirectoriesUpdate, PermissionDestination, PermissionUpdate};
use serde_json::{Value, json};

use crate::drive::TurnContext;
use crate::model::pricing::{self, Family};
use crate::session::Session;

/// The models that can be chosen; `default` is the one that the session was started with.
pub(in crate::session) fn models(default: &str) -> Vec<ModelInfo> {
    let usual = build!(ModelInfo {
        value: "default".to_owned(),
        resolved_model: Some(default.to_owned()),
        display_name: "Default".to_owned(),
        description: format!("The model this session was started with: {default}"),
        ..pricing::family(default).map(info).unwrap_or_default()
    });
    std::iter::once(usual).chain(pricing::current().map(info)).collect()
}

fn info(family: &Family) -> ModelInfo {
    let efforts = family.effort_words();
    build!(ModelInfo {
        value: family.name.to_owned(),
        resolved_model: Some(family.name.to_owned()),
        display_name: display_name(family.name),
        description: format!(
            "{}k tokens of context, ${}/${} per million tokens in and out",
            family.context_window / 1000,
            family.price.input,
            family.price.output
        ),
        supports_effort: Some(!efforts.is_empty()),
        supported_effort_levels: (!efforts.is_empty())
            .then(|| efforts.iter().map(|word| (*word).to_owned()).collect()),
        supports_adaptive_thinking: Some(family.is_adaptive())
    })
}

/// `claude-opus-5-5` becomes Opus 5.5.
fn display_name(name: &str) -> String {
    let words: Vec<&str> = name.trim_start_matches("claude-").split('-').collect();
    let is_number = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let version: Vec<&str> = words.iter().filter(is_number).copied().collect();
    let kind: Vec<String> = words.iter().filter(|word| !is_number(word)).map(capital).collect();
    format!("{} {}", kind.join(" "), version.join("."))
}

fn capital(word: &&str) -> String {
    let mut characters = word.chars();
    characters
        .next()
        .map(|first| first.to_uppercase().chain(characters).collect())
        .unwrap_or_default()
}

impl Session {
    /// Gives this session a title, for listings.
    pub(super) async fn rename(&mut self, rename: &RenameSession) -> Result<Value, String> {
        let outbox = &self.context.outbox;
        if rename.session_id.as_ref().is_some_and(|id| *id != outbox.session_id) {
            return Err("only the session of this process can be renamed here".to_owned());
        }
        if rename.title.trim().is_empty() {
            return Err("a title must not be empty".to_owned());
        }
        if outbox.transcript.is_none() {
            return Err("this session is not stored on disk, so it cannot have a title".to_owned());
        }
        match outbox.record(|writer| writer.title(&rename.title)) {
            None => Ok(json!({})),
            Some(lost) => {
                outbox.send(lost).await;
                Err("the title could not be written".to_owned())
            }
        }
    }

    /// Registers another folder as part of the project. It must be inside the working directories.
    /// Touches the disk.
    pub(in crate::session) fn registration(
        &self,
        root: &RegisterRepoRoot,
    ) -> impl FnOnce() -> Result<Value, String> + Send + use<> {
        let TurnContext { permissions, hooks, servers, .. } = self.context.clone();
        let directory = root.directory.clone();
        let folder = self.context.cx.cwd.join(&directory);
        move || {
            let odd = |why: &str| format!("register_repo_root: {directory} {why}");
            let folder = folder.canonicalize().map_err(|error| odd(&error.to_string()))?;
            let policy = permissions.policy();
            let is_inside =
                |known: &Path| known.canonicalize().is_ok_and(|known| folder.starts_with(known));
            if !folder.is_dir() || !policy.working_directories().any(is_inside) {
                return Err(odd("is not a folder inside the working directories of this session"));
            }
            let update = DirectoriesUpdate {
                directories: vec![folder.display().to_string()],
                destination: PermissionDestination::Session,
                extra: Extra::default(),
            };
            let update = PermissionUpdate::AddDirectories(update);
            let added = permissions.change_session(&update).map_err(|error| error.to_string())?;
            hooks.directories_added(&added);
            if !added.is_empty() {
                servers.folders_changed();
            }
            Ok(json!({}))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_names_for_people() {
        assert_eq!(display_name("claude-opus-5-5"), "Opus 5.5");
        assert_eq!(display_name("claude-sonnet-5"), "Sonnet 5");
        let models = models("claude-opus-5-5");
        assert_eq!(models[0].value, "default");
        assert_eq!(models[0].resolved_model.as_deref(), Some("claude-opus-5-5"));
        assert_eq!(models[0].supports_effort, Some(true));
        assert!(models.iter().any(|model| model.value == "claude-haiku-5-5"), "{models:?}");
        assert!(!models.iter().any(|model| model.value.starts_with("claude-3")), "{models:?}");
        assert_eq!(self::models("mine")[0].supports_effort, None);
    }
}
