//! Matches rules against calls.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;

use super::disk::OnDisk as _;
use super::effect::Effect;
use super::path_forms::PathForms;
use super::rule::{Behavior, Rule, Source, is_path_tool};
use super::shell::{Access, Shell};
use super::{CallFacts, Policy};
use crate::wildcard;

/// Whether a rule matches a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    Yes,
    No,
    /// Unknown, with the reason. Counts as no for an allow rule, and leads to a question for the others.
    Maybe(String),
}

impl Match {
    fn sure(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A call with the resolved values that rules are compared with.
#[derive(Debug)]
pub struct ResolvedCall<'c> {
    pub(crate) call: CallFacts<'c>,
    pub(crate) place: Option<PathForms>,
    pub(crate) shell: Option<Shell>,
}

impl<'c> ResolvedCall<'c> {
    pub fn new(policy: &Policy, call: CallFacts<'c>) -> Self {
        let place = match call.effect {
            Effect::Read(path) | Effect::Write(path) => Some(PathForms::of(&policy.cwd.join(path))),
            _ => None,
        };
        let shell = match call.effect {
            Effect::Execute(command) => Some(Shell::new(policy, command)),
            Effect::ExecuteIn { folder, command } => {
                Some(Shell::starting_in(policy, folder, command))
            }
            _ => None,
        };
        Self { call, place, shell }
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.call.input.get(field).and_then(Value::as_str)
    }
}

/// Whether a rule of a given behaviour matches the call as a whole.
pub fn matches(
    policy: &Policy,
    rule: &Rule,
    behavior: Behavior,
    source: Source,
    seen: &ResolvedCall<'_>,
) -> Match {
    let narrows = behavior != Behavior::Allow;
    // Commands also read and write files, so deny and ask rules about files hold for them.
    if let (Some(shell), true, true) = (&seen.shell, narrows, is_path_tool(&rule.tool)) {
        let Some(access) = access_of(&rule.tool) else { return Match::No };
        let rule = PathRule::new(policy, rule, narrows, source);
        let found = shell.touches(access, |place| rule.covers(place));
        // Files that a command finds by itself are near its folder. For a rule about another place, the command must
        // name the path.
        let is_near = policy.working_directories().any(|folder| rule.may_cover_below(folder))
            || shell.start.as_ref().is_some_and(|start| rule.may_cover_below(&start.written));
        return if matches!(found, Match::Maybe(_)) && !is_near { Match::No } else { found };
    }
    if !names_tool(&rule.tool, seen) {
        return Match::No;
    }
    let Some(content) = rule.content.as_deref() else { return Match::Yes };
    if let Some(shell) = &seen.shell {
        return if narrows {
            shell.any_part_matches(content)
        } else {
            Match::sure(shell.is_exactly(content) && shell.starts_inside(policy))
        };
    }
    if let Some(place) = seen.place.as_ref().filter(|_| is_path_tool(&rule.tool)) {
        return Match::sure(matches_place(policy, rule, narrows, source, place));
    }
    match seen.call.tool {
        "WebFetch" => match seen.call.effect {
            Effect::Fetch(url) => web(content, Some(url)),
            _ => web(content, seen.text("url")),
        },
        "Agent" | "Task" => {
            Match::sure(seen.text("subagent_type").unwrap_or("general-purpose") == content)
        }
        "Skill" => skill(content, seen.text("skill").or_else(|| seen.text("command"))),
        _ if narrows => Match::Maybe(format!("the meaning of {content} for this tool is unknown")),
        _ => Match::No,
    }
}

/// Whether a rule names the called tool, or one that covers it.
pub(crate) fn names_tool(rule: &str, seen: &ResolvedCall<'_>) -> bool {
    let tool = seen.call.tool;
    if rule == tool {
        return true;
    }
    match rule {
        "Edit" => matches!(seen.call.effect, Effect::Write(_)),
        "Read" => matches!(seen.call.effect, Effect::Read(_)),
        "Task" | "Agent" => matches!(tool, "Task" | "Agent"),
        _ => names_server_tool(rule, tool),
    }
}

/// Whether a rule's tool is this tool of an MCP server, or stands for several tools of servers: `mcp__server`,
/// `mcp__server__*`, `mcp__server__get_*`, `mcp__*`.
pub fn names_server_tool(rule: &str, tool: &str) -> bool {
    if rule == tool {
        return true;
    }
    let Some(name) = rule.strip_prefix("mcp__") else { return false };
    if name.contains('*') {
        return wildcard::fits(rule, tool);
    }
    let is_server = !name.is_empty() && !name.contains("__");
    is_server && tool.strip_prefix(rule).is_some_and(|rest| rest.starts_with("__"))
}

/// Whether a tool's rules about files are about reading or writing.
fn access_of(tool: &str) -> Option<Access> {
    match tool {
        "Edit" | "Write" => Some(Access::Writes),
        "Read" => Some(Access::Reads),
        _ => None,
    }
}

/// Whether a path rule covers a path.
pub(crate) fn matches_place(
    policy: &Policy,
    rule: &Rule,
    narrows: bool,
    source: Source,
    place: &PathForms,
) -> bool {
    PathRule::new(policy, rule, narrows, source).covers(place)
}

/// A rule about paths, prepared for many comparisons.
#[derive(Debug)]
pub(crate) struct PathRule {
    /// Absent for a rule about all paths.
    roots: Option<Vec<PatternRoot>>,
    narrows: bool,
}

impl PathRule {
    pub(crate) fn new(policy: &Policy, rule: &Rule, narrows: bool, source: Source) -> Self {
        let content = rule.content.as_deref();
        let roots = content.map(|content| roots(policy, content, narrows, source));
        Self { roots, narrows }
    }

    /// A deny or ask rule must match one form of the path, an allow rule all of them.
    pub(crate) fn covers(&self, place: &PathForms) -> bool {
        let Some(roots) = &self.roots else { return true };
        let matches = |path: &Path| roots.iter().any(|root| root.matches(path));
        if self.narrows {
            place.forms().any(matches)
        } else {
            place.resolved.is_some() && place.forms().all(matches)
        }
    }

    /// Whether the rule may cover a path in a folder.
    pub(crate) fn may_cover_below(&self, folder: &Path) -> bool {
        let real = folder.with_links_followed().ok();
        let forms = || std::iter::once(folder).chain(real.as_deref());
        self.roots.as_ref().is_none_or(|roots| {
            roots.iter().any(|root| {
                let mut bases = root.folders.iter().map(|base| base.join(&root.beginning));
                bases.any(|base| forms().any(|at| base.starts_with(at) || at.starts_with(&base)))
            })
        })
    }
}

/// A folder and a pattern for paths in it.
#[derive(Debug)]
struct PatternRoot {
    /// The folder, as written and with links followed.
    folders: Vec<PathBuf>,
    /// The common beginning of all matching paths, relative to the folder.
    beginning: PathBuf,
    /// `None` for an invalid pattern, which matches nothing.
    pattern: Option<Gitignore>,
    /// A searched folder counts as its contents.
    is_within: bool,
}

impl PatternRoot {
    fn new(folder: &Path, pattern: &str) -> Self {
        let mut folders = vec![folder.to_owned()];
        folders.extend(folder.with_links_followed().ok().filter(|real| real != folder));
        let mut builder = GitignoreBuilder::new("/");
        let is_valid = builder.add_line(None, pattern).is_ok();
        Self {
            folders,
            beginning: beginning(pattern),
            pattern: builder.build().ok().filter(|_| is_valid),
            is_within: pattern.ends_with("/**") || pattern.ends_with('/'),
        }
    }

    fn matches(&self, path: &Path) -> bool {
        let Some(pattern) = &self.pattern else { return false };
        self.folders.iter().any(|folder| {
            let Ok(relative) = path.strip_prefix(folder) else { return false };
            let inside = relative.join("x");
            pattern.matched_path_or_any_parents(relative, false).is_ignore()
                || (self.is_within
                    && pattern.matched_path_or_any_parents(inside, false).is_ignore())
        })
    }
}

/// The folders of a pattern before its first wildcard.
fn beginning(pattern: &str) -> PathBuf {
    let pattern = pattern.trim_end_matches('/');
    // Without a slash a pattern matches at any depth.
    if !pattern.contains('/') {
        return PathBuf::new();
    }
    let pattern = pattern.trim_start_matches('/');
    let plain = match pattern.find(['*', '?', '[', '\\']) {
        Some(end) => pattern[..end].rsplit_once('/').map_or("", |(folders, _)| folders),
        None => pattern,
    };
    PathBuf::from(plain)
}

/// The base of a path rule: `//` the disk, `~/` the home directory, `/` the folder of its settings, anything else the
/// working directory. A deny or ask rule also holds in the additional directories.
fn roots(policy: &Policy, content: &str, narrows: bool, source: Source) -> Vec<PatternRoot> {
    let root = PatternRoot::new;
    if content.starts_with("//") {
        return vec![root(Path::new("/"), &content[1..])];
    }
    if let Some(rest) = content.strip_prefix("~/") {
        return policy.home.iter().map(|home| root(home, &format!("/{rest}"))).collect();
    }
    if content.starts_with('/') {
        return vec![root(policy.base(source), content)];
    }
    let anchored = content.strip_prefix("./").map(|rest| format!("/{rest}"));
    let pattern = match &anchored {
        Some(anchored) => anchored.as_str(),
        None if content == "." => "/**",
        None => content,
    };
    let mut roots = vec![root(&policy.cwd, pattern)];
    if narrows {
        roots.extend(policy.directories().map(|folder| root(folder, pattern)));
    }
    roots
}

/// `domain:x` matches the host x and its subdomains.
fn web(content: &str, url: Option<&str>) -> Match {
    let Some(domain) = content.strip_prefix("domain:") else {
        return Match::Maybe(format!("{content} is not of the form domain:example.com"));
    };
    let host = url
        .and_then(|url| url::Url::parse(url).ok())
        .and_then(|url| url.host_str().map(str::to_lowercase));
    let Some(host) = host else { return Match::Maybe("the address has no host".to_owned()) };
    let host = host.trim_end_matches('.');
    let domain = domain.trim_start_matches("*.").trim_end_matches('.').to_lowercase();
    let below = host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'));
    Match::sure(domain == "*" || host == domain || below)
}

fn skill(content: &str, name: Option<&str>) -> Match {
    let Some(name) = name else { return Match::Maybe("the skill has no name".to_owned()) };
    let name = name.trim_start_matches('/');
    match content.strip_suffix(":*") {
        Some(prefix) => Match::sure(name.starts_with(prefix)),
        None => Match::sure(name == content),
    }
}
