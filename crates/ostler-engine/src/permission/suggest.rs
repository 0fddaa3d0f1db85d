//! What would make the question unnecessary next time, from the narrowest to the widest.

use std::path::Path;

use ostler_proto::Extra;
use ostler_proto::control::DecisionReasonType as Kind;
use ostler_proto::permission::{
    DirectoriesUpdate, PermissionBehavior, PermissionDestination, PermissionMode, PermissionUpdate,
    RulesUpdate, SetModeUpdate,
};

use super::command;
use super::decision::Decision;
use super::matching::{Match, Seen, matches};
use super::place::Place;
use super::policy::Policy;
use super::rule::{Behavior, Rule, Source};
use super::shell::Shell;
use crate::tool::Effect;

/// Longer commands are not suggested as rules: nobody would read them.
const LONGEST_RULE: usize = 500;
/// Programs for which "any arguments" is more than anybody means.
const NEVER_WHOLE: &[&str] = &[
    "bash", "curl", "dd", "doas", "env", "eval", "exec", "find", "kill", "node", "perl", "python",
    "python3", "rm", "ruby", "sh", "ssh", "sudo", "wget", "xargs", "zsh",
];

/// Suggestions for a question.
pub(crate) fn suggestions(
    policy: &Policy,
    seen: &Seen<'_>,
    decision: &Decision,
) -> Vec<PermissionUpdate> {
    if !decision.can_be_granted() {
        return Vec::new();
    }
    let tool = seen.call.tool;
    match (seen.call.effect, &seen.shell) {
        (Effect::AskUser, _) => Vec::new(),
        (_, Some(shell)) => for_command(policy, shell),
        (Effect::Write(path), _) => for_edit(policy, seen, decision, path),
        (Effect::Read(path), _) => {
            let rule = folder_rule(policy, "Read", path.parent().unwrap_or(path));
            rule.map(|rule| add(rule, PermissionDestination::Session)).into_iter().collect()
        }
        (Effect::Fetch(url), _) => {
            let host =
                reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            let rule = host.map(|host| Rule::with(tool, format!("domain:{host}")));
            rule.map(|rule| add(rule, PermissionDestination::LocalSettings)).into_iter().collect()
        }
        // Rules for these have no content: the whole tool is the narrowest.
        (Effect::Search(_) | Effect::Outside { .. }, _) => {
            vec![add(Rule::whole(tool), PermissionDestination::LocalSettings)]
        }
        _ if tool.starts_with("mcp__") => {
            vec![add(Rule::whole(tool), PermissionDestination::LocalSettings)]
        }
        _ => Vec::new(),
    }
}

/// For an edit: the folder of the file, then the mode for all edits, never the whole tool.
fn for_edit(
    policy: &Policy,
    seen: &Seen<'_>,
    decision: &Decision,
    path: &Path,
) -> Vec<PermissionUpdate> {
    let mut updates = Vec::new();
    if let Some(folder) = path.parent()
        && let Some(rule) = folder_rule(policy, "Edit", folder)
        // A folder behind a link has two names, and a rule speaks of one.
        && matches(policy, &rule, Behavior::Allow, Source::Session, seen) == Match::Yes
    {
        updates.push(add(rule, PermissionDestination::Session));
    }
    updates.extend(accept_edits(policy));
    if decision.reason_type == Kind::WorkingDir {
        updates.extend(path.parent().map(|folder| directory(folder.display().to_string())));
    }
    updates
}

/// A rule for everything in a folder. `None` where that is more than anybody means (the disk, the home directory, what
/// is above the working directory), or where the folder's name cannot be written as a pattern.
fn folder_rule(policy: &Policy, tool: &str, folder: &Path) -> Option<Rule> {
    let is_above = policy.cwd.starts_with(folder) && policy.cwd != folder;
    let is_home = policy.home.as_deref() == Some(folder);
    if folder == Path::new("/") || is_above || is_home {
        return None;
    }
    let name = folder.to_str().filter(|name| !name.contains(['*', '?', '[', ']', '\\', '\n']))?;
    Some(Rule::with(tool, format!("/{name}/**")))
}

fn for_command(policy: &Policy, shell: &Shell) -> Vec<PermissionUpdate> {
    if shell.command.len() > LONGEST_RULE || shell.command.is_empty() {
        return Vec::new();
    }
    // A rule for the command would open a protected place for good, without naming it.
    let changes_protected =
        |place: &Place, writes: bool| writes && place.protected(policy.home.as_deref()).is_some();
    if shell.touches(changes_protected) == Match::Yes {
        return Vec::new();
    }
    // Nor would one help where the shell stands outside: it is judged by where it starts, too.
    if !shell.starts_inside(policy) {
        return Vec::new();
    }
    let mut updates =
        vec![add(Rule::with("Bash", shell.command.clone()), PermissionDestination::LocalSettings)];
    let blocked: Vec<_> = command::verdicts(policy, shell, false)
        .into_iter()
        .filter(|verdict| !verdict.is_allowed)
        .collect();
    let mut parts = shell.judged.parts.iter();
    // Similar commands, where one part alone stands in the way.
    if let (None, [verdict]) = (&shell.unclear, blocked.as_slice())
        && let Some(part) = parts.find(|part| verdict.what == format!("part `{}`", part.source))
        && !NEVER_WHOLE.contains(&part.name())
        && part.has_safe_environment()
    {
        let second = part.argv.get(1).and_then(|word| word.as_literal());
        let second = second.filter(|word| {
            word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains(['/', '.', ' '])
        });
        let prefix = match second {
            Some(second) => format!("{} {second}:*", part.name()),
            None => format!("{}:*", part.name()),
        };
        updates.push(add(Rule::with("Bash", prefix), PermissionDestination::LocalSettings));
    }
    let allowed = command::verdicts(policy, shell, true).iter().all(|verdict| verdict.is_allowed);
    if allowed {
        updates.extend(accept_edits(policy));
    }
    updates
}

fn accept_edits(policy: &Policy) -> Vec<PermissionUpdate> {
    if policy.effective_mode() != PermissionMode::Default {
        return Vec::new();
    }
    vec![PermissionUpdate::SetMode(SetModeUpdate {
        mode: PermissionMode::AcceptEdits,
        destination: PermissionDestination::Session,
        extra: Extra::default(),
    })]
}

fn directory(directory: String) -> PermissionUpdate {
    PermissionUpdate::AddDirectories(DirectoriesUpdate {
        directories: vec![directory],
        destination: PermissionDestination::Session,
        extra: Extra::default(),
    })
}

fn add(rule: Rule, destination: PermissionDestination) -> PermissionUpdate {
    PermissionUpdate::AddRules(RulesUpdate {
        rules: vec![rule.to_wire()],
        behavior: PermissionBehavior::Allow,
        destination,
        extra: Extra::default(),
    })
}
