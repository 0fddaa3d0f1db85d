//! What would make the question unnecessary next time, from the narrowest to the widest.

use ostler_proto::Extra;
use ostler_proto::control::DecisionReasonType as Kind;
use ostler_proto::permission::{
    DirectoriesUpdate, PermissionBehavior, PermissionDestination, PermissionMode, PermissionUpdate,
    RulesUpdate, SetModeUpdate,
};

use super::command;
use super::decision::Decision;
use super::matching::{Match, Seen};
use super::place::Place;
use super::policy::Policy;
use super::rule::Rule;
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
    // What a rule or a protected place demands, a new rule would not change.
    if matches!(decision.reason_type, Kind::Rule | Kind::SafetyCheck | Kind::SandboxOverride) {
        return Vec::new();
    }
    let tool = seen.call.tool;
    match (seen.call.effect, &seen.shell) {
        (Effect::AskUser, _) => Vec::new(),
        (_, Some(shell)) => for_command(policy, shell),
        (Effect::Write(path), _) => {
            let mut updates = accept_edits(policy);
            if decision.reason_type == Kind::WorkingDir {
                updates.extend(path.parent().map(|folder| directory(folder.display().to_string())));
            }
            updates
        }
        (Effect::Read(path), _) => {
            let folder = path.parent().unwrap_or(path);
            vec![add(
                Rule::with("Read", format!("/{}/**", folder.display())),
                PermissionDestination::Session,
            )]
        }
        (Effect::Fetch(url), _) => {
            let host =
                reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            let rule = host.map(|host| Rule::with(tool, format!("domain:{host}")));
            rule.map(|rule| add(rule, PermissionDestination::LocalSettings)).into_iter().collect()
        }
        _ => vec![add(Rule::whole(tool), PermissionDestination::LocalSettings)],
    }
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
