//! Permission rules as people write them: `Bash(git:*)`, `Read(src/**)`, `WebFetch(domain:x)`, `mcp__server__get_*`.

use std::fmt;
use std::str::FromStr;

use ignore::gitignore::GitignoreBuilder;
use ostler_proto::permission::{PermissionBehavior, PermissionDestination, PermissionRule};

/// A tool, or some uses of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The tool's name.
    pub tool: String,
    /// The uses; all when absent.
    pub content: Option<String>,
}

/// Why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{rule}\" is not a valid permission rule: {reason}")]
pub struct RuleError {
    /// The text.
    pub rule: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// Do not run.
    Deny,
    /// Ask first.
    Ask,
    /// Run without asking.
    Allow,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The user's settings file.
    User,
    /// The project's shared settings file.
    Project,
    /// The project's private settings file.
    Local,
    /// Settings given when the session was started.
    Flag,
    /// The command line or the SDK's options.
    CliArg,
    /// An answer given in this session.
    Session,
    /// The administrator's settings file.
    Managed,
}

impl Rule {
    /// A rule for all uses of a tool.
    pub fn whole(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), content: None }
    }

    /// A rule for some uses of a tool.
    pub fn with(tool: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool: tool.into(), content: Some(content.into()) }
    }

    /// Whether its content names a protected file or folder; a rule for all uses of a tool does not.
    pub(crate) fn names(&self, protected: &str) -> bool {
        self.content.as_deref().is_some_and(|content| content.contains(protected))
    }

    /// Reads a rule from the wire.
    ///
    /// # Errors
    /// When it is not a valid rule.
    pub fn from_wire(rule: &PermissionRule) -> Result<Self, RuleError> {
        match &rule.rule_content {
            None => rule.tool_name.parse(),
            Some(content) => format!("{}({content})", rule.tool_name).parse(),
        }
    }

    /// The rule in the wire's format.
    pub fn to_wire(&self) -> PermissionRule {
        PermissionRule {
            tool_name: self.tool.clone(),
            rule_content: self.content.clone(),
            ..PermissionRule::default()
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let wrong = |reason| RuleError { rule: text.to_owned(), reason };
        let text = text.trim();
        let (tool, content) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let content = rest.strip_suffix(')');
                (tool, Some(content.ok_or_else(|| wrong("it does not end with a parenthesis"))?))
            }
        };
        if tool.is_empty() {
            return Err(wrong("it names no tool"));
        }
        let is_name = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
        let of_servers = tool.strip_prefix("mcp__");
        if of_servers == Some("") {
            return Err(wrong("it names no MCP server; mcp__* is every tool of every server"));
        }
        if !tool.chars().all(|c| is_name(c) || (c == '*' && of_servers.is_some())) {
            return Err(wrong(
                "a tool's name has only letters, digits, _ and -; a * is possible in the names of MCP tools (mcp__…)",
            ));
        }
        match content.map(str::trim) {
            Some("") => Err(wrong("there is nothing between the parentheses")),
            Some(content) if is_path_tool(tool) && content.starts_with('!') => {
                Err(wrong("a pattern cannot be negated; write a rule of the other kind instead"))
            }
            // An invalid pattern matches nothing, and a deny rule must not silently have no effect.
            Some(content) if is_path_tool(tool) && !is_pattern(content) => {
                Err(wrong("the text between the parentheses is not a valid pattern for paths"))
            }
            None | Some("*") => Ok(Self::whole(tool)),
            Some(content) => Ok(Self::with(tool, content)),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            None => f.write_str(&self.tool),
            Some(content) => write!(f, "{}({content})", self.tool),
        }
    }
}

/// Whether it is a valid pattern for paths.
fn is_pattern(content: &str) -> bool {
    let mut builder = GitignoreBuilder::new("/");
    let is_valid = builder.add_line(None, content).is_ok();
    is_valid && builder.build().is_ok_and(|matcher| matcher.num_ignores() == 1)
}

/// Whether the content of this tool's rules is a path.
pub(crate) fn is_path_tool(tool: &str) -> bool {
    matches!(
        tool,
        "Read" | "Edit" | "Write" | "NotebookEdit" | "MultiEdit" | "Glob" | "Grep" | "LS"
    )
}

impl Behavior {
    /// Reads it from the wire. An unknown value is the strictest.
    pub fn from_wire(behavior: &PermissionBehavior) -> Self {
        match behavior {
            PermissionBehavior::Allow => Self::Allow,
            PermissionBehavior::Ask => Self::Ask,
            _ => Self::Deny,
        }
    }

    /// The name in settings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

impl Source {
    /// The source for a change with this destination; `None` for an unknown destination.
    pub fn from_wire(destination: &PermissionDestination) -> Option<Self> {
        match destination {
            PermissionDestination::UserSettings => Some(Self::User),
            PermissionDestination::ProjectSettings => Some(Self::Project),
            PermissionDestination::LocalSettings => Some(Self::Local),
            PermissionDestination::Session => Some(Self::Session),
            PermissionDestination::CliArg => Some(Self::CliArg),
            _ => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user settings",
            Self::Project => "project settings",
            Self::Local => "local settings",
            Self::Flag => "the settings given at the start",
            Self::CliArg => "the command line",
            Self::Session => "this session",
            Self::Managed => "managed settings",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_were_read() {
        for text in [
            "Bash",
            "Bash(git:*)",
            "Bash(git push origin main)",
            "Bash(echo (a))",
            "Read(src/**)",
            "Read(//etc/hosts)",
            "Edit(~/notes/*.md)",
            "WebFetch(domain:example.com)",
            "mcp__github",
            "mcp__github__*",
            "mcp__github__get_*",
            "mcp__*",
            "mcp__*__delete",
            "mcp__github__create_issue",
            "Agent(reviewer)",
            "Skill(pdf)",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        assert_eq!("Bash(*)".parse::<Rule>().unwrap(), Rule::whole("Bash"));
        assert_eq!(
            " Read ( x ) ".trim().replace(" (", "(").parse::<Rule>().unwrap(),
            Rule::with("Read", "x")
        );
    }

    #[test]
    fn a_text_that_is_not_a_rule_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "names no tool"),
            ("(x)", "names no tool"),
            ("Bash(git", "parenthesis"),
            ("Bash(git) x", "parenthesis"),
            ("Bash()", "nothing between"),
            ("Ba sh", "letters"),
            ("Ba*", "letters"),
            ("*", "letters"),
            ("mcp_*", "letters"),
            ("mcp__ *", "letters"),
            ("mcp__", "names no MCP server"),
            ("Read(!x)", "negated"),
            ("Read(a[z-a])", "not a valid pattern"),
            ("Edit(#x)", "not a valid pattern"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
