//! Suggested rules that make the question unnecessary next time, from the narrowest to the widest.

use std::path::Path;

use ostler_proto::Extra;
use ostler_proto::control::DecisionReasonType as Kind;
use ostler_proto::permission::{
    DirectoriesUpdate, PermissionBehavior, PermissionDestination, PermissionMode, PermissionRule,
    PermissionUpdate, RulesUpdate, SetModeUpdate,
};
use ostler_shell::Part;

use super::command;
use super::covers::{covers_part, prefix_of};
use super::decision::Decision;
use super::effect::Effect;
use super::matching::{Match, ResolvedCall, matches};
use super::path_forms::PathForms;
use super::policy::Policy;
use super::rule::{Behavior, Rule, Source};
use super::shell::{Access, Shell};

/// Longer commands are not suggested as rules: users would not read them.
const LONGEST_RULE: usize = 500;
/// Programs for which a rule with any arguments is too wide to suggest.
const NEVER_WHOLE: &[&str] = &[
    "bash", "curl", "dd", "doas", "env", "eval", "exec", "find", "kill", "node", "perl", "python",
    "python3", "rm", "ruby", "sh", "ssh", "sudo", "wget", "xargs", "zsh",
];

/// Suggestions for a question.
pub(crate) fn suggestions(
    policy: &Policy,
    seen: &ResolvedCall<'_>,
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
            let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            let rule = host.map(|host| Rule::with(tool, format!("domain:{host}")));
            rule.map(|rule| add(rule, PermissionDestination::LocalSettings)).into_iter().collect()
        }
        // Rules for these tools have no content, so the whole tool is the narrowest rule.
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
    seen: &ResolvedCall<'_>,
    decision: &Decision,
    path: &Path,
) -> Vec<PermissionUpdate> {
    let mut updates = Vec::new();
    if let Some(folder) = path.parent()
        && let Some(rule) = folder_rule(policy, "Edit", folder)
        // A folder behind a link has two paths, and a rule has one.
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

/// A rule for everything in a folder. `None` if that is too wide (the disk, the home directory, folders above the
/// working directory), or if the folder's name cannot be written as a pattern.
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
    // A rule for the command would allow changing a protected path for good, without naming it.
    let is_protected = |place: &PathForms| place.protected(policy.home.as_deref()).is_some();
    if shell.touches(Access::Writes, is_protected) == Match::Yes {
        return Vec::new();
    }
    // Nor would one help if the shell is outside: the decision also depends on the folder it starts in.
    if !shell.starts_inside(policy) {
        return Vec::new();
    }
    let mut updates = Vec::new();
    if is_exact(&shell.command) {
        let rule = Rule::with("Bash", shell.command.clone());
        updates.push(add(rule, PermissionDestination::LocalSettings));
    }
    let rules = for_parts(policy, shell).filter(|rules| !rules.is_empty());
    let is_new = |rules: &Vec<PermissionRule>| {
        rules.iter().any(|rule| rule.rule_content.as_deref() != Some(shell.command.as_str()))
    };
    if let Some(rules) = rules.filter(is_new) {
        updates.push(PermissionUpdate::AddRules(RulesUpdate {
            rules,
            behavior: PermissionBehavior::Allow,
            destination: PermissionDestination::LocalSettings,
            extra: Extra::default(),
        }));
    }
    let allowed = command::verdicts(policy, shell, true).iter().all(|verdict| verdict.is_allowed);
    if allowed {
        updates.extend(accept_edits(policy));
    }
    updates
}

/// One rule for each part that needs one; `None` if rules for parts would not allow the command.
fn for_parts(policy: &Policy, shell: &Shell) -> Option<Vec<PermissionRule>> {
    let list = shell.list.as_ref().ok()?;
    let mut rules = Vec::new();
    for verdict in command::verdicts(policy, shell, false) {
        if verdict.is_allowed {
            continue;
        }
        let part = list.parts.get(verdict.part?)?;
        let content = content_for(part)?;
        let rule = Rule::with("Bash", content).to_wire();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    Some(rules)
}

/// The rule that covers a part and similar ones, or only this part where similar ones may do much more.
fn content_for(part: &Part) -> Option<String> {
    let is_narrow = NEVER_WHOLE.contains(&part.name())
        || ostler_shell::is_harmless(part) && part.name() != "git"
        || matches!(part.name(), "cp" | "mv" | "rmdir");
    let second = part.argv.get(1).and_then(|word| word.as_literal()).filter(|word| {
        word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains(['/', '.', ' '])
    });
    let prefix = match second {
        Some(second) => format!("{} {second}:*", part.name()),
        None => format!("{}:*", part.name()),
    };
    let exact = Some(part.source.clone()).filter(|source| is_exact(source));
    let prefix = Some(prefix).filter(|_| !is_narrow);
    prefix.or_else(|| exact.clone()).filter(|content| covers_part(content, part)).or(exact)
}

/// Whether a rule with this text matches exactly this text, and not everything that begins with it.
fn is_exact(text: &str) -> bool {
    prefix_of(text).is_none() && text.trim() != "*"
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
