//! The environment of a child process: additions to this process's environment, or a replacement for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

/// The environment of a child process.
///
/// ```
/// use ostler_process::Environment;
///
/// let more = Environment::from([("GREETING", "hello")]);
/// assert_eq!(more.get("GREETING").as_deref(), Some("hello"));
/// assert!(more.get("PATH").is_some());
///
/// let other = Environment { replaces: true, ..more };
/// assert_eq!(other.get("PATH"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Whether the child gets only these variables; otherwise they are added to this process's own.
    pub replaces: bool,
    /// The variables.
    pub variables: BTreeMap<String, String>,
}

impl Environment {
    /// A variable as the child sees it.
    pub fn get(&self, name: &str) -> Option<String> {
        let inherited = || if self.replaces { None } else { std::env::var(name).ok() };
        self.variables.get(name).cloned().or_else(inherited)
    }

    /// All variables as the child sees them. Invalid UTF-8 is shown with replacement characters.
    pub fn all(&self) -> BTreeMap<String, String> {
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let own = std::env::vars_os().filter(|_| !self.replaces);
        let mut all: BTreeMap<_, _> = own.map(|(name, value)| (text(name), text(value))).collect();
        all.extend(self.variables.clone());
        all
    }

    /// All variables as the child sees them.
    pub fn of_child(&self) -> BTreeMap<OsString, OsString> {
        let own = std::env::vars_os().filter(|_| !self.replaces);
        let given = self.variables.iter().map(|(name, value)| (name.into(), value.into()));
        own.chain(given).collect()
    }

    /// A copy with more variables; existing ones are overwritten.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut variables = self.variables.clone();
        variables.extend(more);
        Self { replaces: self.replaces, variables }
    }

    /// Sets it on a command. With `replaces`, variables set there before are removed.
    pub fn give_to(&self, command: &mut Command) {
        if self.replaces {
            command.env_clear();
        }
        command.envs(&self.variables);
    }
}

/// Variables added to this process's own.
impl<N: Into<String>, V: Into<String>, const COUNT: usize> From<[(N, V); COUNT]> for Environment {
    fn from(variables: [(N, V); COUNT]) -> Self {
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        Self { replaces: false, variables: variables.into() }
    }
}

impl From<BTreeMap<String, String>> for Environment {
    fn from(variables: BTreeMap<String, String>) -> Self {
        Self { replaces: false, variables }
    }
}
