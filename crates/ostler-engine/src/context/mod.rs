//! What the model reads before the conversation begins: who it is, where it works, what the user wants in general.

mod imports;
pub mod memory;
pub(crate) mod planning;

use ostler_model::base_prompt;
use std::path::Path;

use self::memory::MemoryFile;

/// The system prompt: our own text, the environment, and the user's instructions. It stays the same for the whole
/// session, so that every request begins with the same bytes.
pub(crate) fn system_prompt(
    cwd: &Path,
    custom: Option<&str>,
    append: Option<&str>,
    memory: &[MemoryFile],
) -> String {
    let mut parts = Vec::new();
    match custom {
        Some(custom) => parts.push(custom.to_owned()),
        None => {
            parts.push(base_prompt::TEXT.to_owned());
            parts.push(format!(
                "Working directory: {}\n{}",
                cwd.display(),
                base_prompt::platform()
            ));
        }
    }
    parts.extend(append.map(str::to_owned));
    for file in memory {
        parts.push(format!("Instructions from {}:\n\n{}", file.path.display(), file.text));
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

/// The system prompt of an agent that brings its own text.
pub(crate) fn agent_prompt(
    cwd: &Path,
    words: &str,
    reminder: Option<&str>,
    memory: &[MemoryFile],
) -> String {
    let place = format!("Working directory: {}\n{}", cwd.display(), base_prompt::platform());
    let words = [Some(words), reminder].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    system_prompt(cwd, Some(&words), Some(&place), memory)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn prompt(custom: Option<&str>, append: Option<&str>) -> String {
        let memory = [MemoryFile { path: PathBuf::from("CLAUDE.md"), text: "Use tabs.".into() }];
        system_prompt(Path::new("/work"), custom, append, &memory)
    }

    #[test]
    fn the_hosts_prompt_replaces_ours_and_appended_text_follows() {
        let own = prompt(None, Some("Be kind."));
        assert!(own.starts_with("You are Ostler") && own.contains("Working directory: /work"));
        assert!(own.find("Be kind.") < own.find("Use tabs."), "{own}");
        assert!(prompt(Some("You are a cat."), None).starts_with("You are a cat.\n\nInstructions"));
        assert!(
            prompt(Some(""), None).starts_with("Instructions"),
            "an empty prompt is a prompt too"
        );
    }
}
