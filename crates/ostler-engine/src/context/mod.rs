//! What the model reads before the conversation begins: who it is, where it works, what the user wants in general.

mod imports;
pub mod memory;
pub(crate) mod planning;
pub mod workplace;

use ostler_model::base_prompt;

use self::memory::MemoryFile;

/// The system prompt: our own text, the environment, and the user's instructions. It stays the same for the whole
/// session, so that every request begins with the same bytes.
///
/// A host that brings its own prompt, also an empty one, replaces only our text: the model still has to know where it is.
pub(crate) fn system_prompt(
    place: &str,
    custom: Option<&str>,
    append: Option<&str>,
    memory: &[MemoryFile],
) -> String {
    let mut parts = vec![custom.unwrap_or(base_prompt::TEXT).to_owned()];
    parts.extend(append.map(str::to_owned));
    parts.push(place.to_owned());
    for file in memory {
        parts.push(format!("Instructions from {}:\n\n{}", file.path.display(), file.text));
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

/// The system prompt of an agent that brings its own text.
pub(crate) fn agent_prompt(
    place: &str,
    words: &str,
    reminder: Option<&str>,
    memory: &[MemoryFile],
) -> String {
    let words = [Some(words), reminder].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    system_prompt(place, Some(&words), None, memory)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::workplace::Workplace;
    use super::*;

    fn prompt(custom: Option<&str>, append: Option<&str>) -> String {
        let memory = [MemoryFile { path: PathBuf::from("CLAUDE.md"), text: "Use tabs.".into() }];
        let place = Workplace { date: Some("2026-11-18".to_owned()), repository: None };
        system_prompt(&place.text(Path::new("/work")), custom, append, &memory)
    }

    #[test]
    fn the_hosts_prompt_replaces_ours_and_appended_text_follows() {
        let own = prompt(None, Some("Be kind."));
        assert!(own.starts_with("You are Ostler"));
        assert!(own.find("Be kind.") < own.find("Use tabs."), "{own}");
        assert!(
            prompt(Some("You are a cat."), None).starts_with("You are a cat.\n\n<environment>")
        );
        assert!(
            prompt(Some(""), None).starts_with("<environment>"),
            "an empty prompt is a prompt too"
        );
    }

    // Mutant: the place is left out if the host brings a prompt.
    #[test]
    fn every_form_of_prompt_contains_the_place_and_the_date() {
        let agent = agent_prompt("<environment>\n/work 2026-11-18 Platform:", "Look.", None, &[]);
        for prompt in
            [prompt(None, None), prompt(Some(""), None), prompt(Some("x"), Some("y")), agent]
        {
            for part in ["/work", "2026-11-18", "Platform:"] {
                assert_eq!(prompt.matches(part).count(), 1, "{part} in {prompt}");
            }
        }
    }
}
