//! Options set by the name of their argument.

use super::{Launch, rows};

/// An invalid argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{name} {reason}")]
#[non_exhaustive]
pub struct OddArgument {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Launch {
    /// Whether an argument of this name, without its dashes, is known.
    pub fn knows(name: &str) -> bool {
        rows().any(|row| row.names.contains(&name))
    }

    /// The names of all arguments; one that has several names is listed once.
    pub fn names() -> impl Iterator<Item = &'static str> {
        rows().filter_map(|row| row.names.first().copied())
    }

    /// Sets an option by the name of its argument, without dashes, and its values: none for a flag. Lists are appended;
    /// of several values of anything else the last one counts.
    ///
    /// ```
    /// use ostler_proto::launch::Launch;
    ///
    /// let mut launch = Launch::default();
    /// launch.set("allowedTools", &["Read,Grep", "Bash(git log:*)"]).unwrap();
    /// launch.set("continue", &[]).unwrap();
    /// assert_eq!(launch.allowed_tools, ["Read", "Grep", "Bash(git log:*)"]);
    /// assert!(launch.session.go_on);
    /// ```
    ///
    /// # Errors
    /// When the argument is not known, or a value is missing, superfluous or not valid.
    pub fn set(&mut self, name: &str, values: &[&str]) -> Result<(), OddArgument> {
        let row = rows().find(|row| row.names.contains(&name));
        let done = match row.map(|row| (row, row.takes_value, values.is_empty())) {
            None => Err(UNKNOWN.to_owned()),
            Some((_, true, true)) => Err("needs a value".to_owned()),
            Some((_, false, false)) => Err("takes no value".to_owned()),
            Some((row, ..)) => (row.read)(self, values),
        };
        done.map_err(|reason| OddArgument { name: name.to_owned(), reason })
    }

    /// Parses the arguments in [`Launch::extra`], for an engine without a command line. The last value of a repeated
    /// argument counts; lists are appended.
    ///
    /// ```
    /// use ostler_proto::launch::Launch;
    ///
    /// let extra = vec![("max-turns".to_owned(), Some("3".to_owned()))];
    /// let mut launch = Launch { extra, ..Launch::default() };
    /// launch.take_extra().unwrap();
    /// let mut expected = Launch::default();
    /// expected.limits.max_turns = Some(3);
    /// assert_eq!(launch, expected);
    /// ```
    ///
    /// # Errors
    /// When one is unknown or invalid; none is skipped.
    pub fn take_extra(&mut self) -> Result<(), OddArgument> {
        for (name, value) in std::mem::take(&mut self.extra) {
            self.set(&name, value.as_deref().as_slice())?;
        }
        Ok(())
    }
}

/// The message for an unknown argument.
const UNKNOWN: &str =
    "is not known to the engine in this process: remove it, or start an executable";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::SettingSource;

    fn read(extra: &[(&str, Option<&str>)]) -> Result<Launch, String> {
        let of =
            |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.map(str::to_owned));
        let mut launch = Launch { extra: extra.iter().map(of).collect(), ..Launch::default() };
        launch.take_extra().map_err(|error| error.to_string())?;
        assert_eq!(launch.extra, []);
        Ok(launch)
    }

    #[test]
    fn the_last_value_counts_and_lists_are_appended() {
        let launch = read(&[
            ("model", Some("a")),
            ("allowedTools", Some("Read,Bash(git log:*)")),
            ("model", Some("b")),
            ("allowed-tools", Some("Grep")),
            ("mcp-config", Some("{\"mcpServers\":{}}")),
            ("mcp-config", Some("a.json")),
            ("continue", None),
        ])
        .unwrap();
        assert_eq!(launch.model.name.as_deref(), Some("b"));
        assert_eq!(launch.allowed_tools, ["Read", "Bash(git log:*)", "Grep"]);
        assert_eq!(launch.mcp_config, Some(serde_json::json!([{"mcpServers": {}}, "a.json"])));
        assert!(launch.session.go_on);
    }

    #[test]
    fn a_setting_source_of_a_newer_version_is_left_out() {
        let launch = read(&[("setting-sources", Some("user, cloud"))]).unwrap();
        assert_eq!(launch.setting_sources, Some(vec![SettingSource::User]));
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (name, value, message) in [
            ("no-such-thing", None, "--no-such-thing is not known"),
            ("no-such-thing", Some("1"), "--no-such-thing is not known"),
            ("cwd", Some("/"), "--cwd is not known"),
            ("model", None, "--model needs a value"),
            ("max-turns", None, "--max-turns needs a value"),
            ("thinking", None, "--thinking needs a value"),
            ("continue", Some("yes"), "--continue takes no value"),
            ("verbose", Some("yes"), "--verbose takes no value"),
            ("max-turns", Some("many"), "--max-turns is \"many\", which is not a valid number"),
            ("max-turns", Some("-1"), "--max-turns is \"-1\""),
            ("max-turns", Some("0"), "--max-turns must be 1 or more"),
            ("permission-mode", Some("sure"), "must be default, acceptEdits"),
            ("permission-prompts", Some("all"), "must be none"),
            ("thinking", Some("hard"), "must be adaptive or disabled"),
            (
                "effort",
                Some("hard"),
                "--effort is \"hard\", but must be low, medium, high, xhigh or max",
            ),
            ("replay-tools", Some("none"), "must be real or recorded"),
            ("json-schema", Some("{"), "--json-schema is not valid JSON"),
            ("agents", Some("[]"), "--agents is not valid JSON"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
