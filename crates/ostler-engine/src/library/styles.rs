//! Output styles: how the model writes. Three are built in, others are files (`output-styles/*.md`).

use std::path::{Path, PathBuf};

use super::{Library, Origin, head, read, stem};
use crate::project_file::Boundary;

/// The style that adds nothing.
pub(crate) const DEFAULT: &str = "default";

/// An output style.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Style {
    /// Its name.
    pub name: String,
    /// A short description for lists.
    pub description: String,
    source: Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Text {
    BuiltIn(&'static str),
    File(PathBuf, Boundary),
}

impl Style {
    /// The text for the model.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn text(&self) -> Result<String, String> {
        match &self.source {
            Text::BuiltIn(text) => Ok((*text).to_owned()),
            Text::File(path, boundary) => {
                let document = read(boundary, path);
                let body = document.map(|document| document.body.trim().to_owned());
                body.map_err(|reason| format!("{} cannot be used: {reason}", path.display()))
            }
        }
    }
}

impl Library {
    pub(super) fn take_styles(&mut self, folder: &Path, origin: &Origin, boundary: &Boundary) {
        for (_, path) in self.markdown_files(folder, boundary) {
            match head(boundary, &path) {
                Ok(head) => {
                    let name = head.text("name").unwrap_or_else(|| stem(&path).to_owned());
                    let name = origin.name(&name);
                    let description = head.text("description").unwrap_or_default();
                    self.styles.retain(|style| style.name != name);
                    let source = Text::File(path, boundary.clone());
                    self.styles.push(Style { name, description, source });
                }
                Err(reason) => {
                    self.problem(&path, format!("the output style is left out: {reason}"));
                }
            }
        }
    }
}

/// The styles that need no file.
pub(super) fn built_in() -> Vec<Style> {
    let style = |name: &str, description: &str, text| Style {
        name: name.to_owned(),
        description: description.to_owned(),
        source: Text::BuiltIn(text),
    };
    vec![
        style("Concise", "Answers in as few words as possible", CONCISE),
        style("Explanatory", "Explains the reasons for each step", EXPLANATORY),
        style("Learning", "Leaves some of the work to you", LEARNING),
    ]
}

const CONCISE: &str = "Answer in as few words as the answer needs: no introduction, no summary of what was done unless \
it is asked for, no offers at the end.";

const EXPLANATORY: &str = "While you work, say why you do things the way you do: which choice there was, what in this \
code base decided it, what a newcomer to it should know. Two or three sentences where they help, next to the step \
they are about; the work itself stays as it would be.";

const LEARNING: &str = "The user wants to learn by doing. Where a piece of the work is small, instructive and not \
urgent, leave it to them: prepare everything around it, mark the place with TODO(you), say in a few sentences what is \
to be done and what to think about, and wait for them. Look at what they wrote with care before you continue.";
