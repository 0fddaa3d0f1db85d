//! Joins the sandbox settings of several files. Lists are joined, so that no file removes what another one denies; of other
//! values the last file wins.
//!
//! A project may only make the sandbox stricter if it is not trusted, or if the administrator or `--settings` says that
//! commands must stay inside.

use ostler_proto::Extra;
use ostler_proto::sandbox::{
    SandboxCredentials, SandboxFilesystem, SandboxNetwork, SandboxSettings,
};
use serde_json::Value;

use crate::permission::Source;

/// The sandbox settings of one file.
#[derive(Debug)]
pub(super) struct OfFile {
    pub(super) source: Source,
    pub(super) settings: SandboxSettings,
    /// Whether the file may loosen what others say.
    pub(super) is_trusted: bool,
}

impl OfFile {
    fn is_of_project(&self) -> bool {
        matches!(self.source, Source::Project | Source::Local)
    }

    /// Whether it keeps projects from loosening the sandbox.
    fn locks(&self) -> bool {
        let network = self.settings.network.as_ref();
        let only_managed = network.and_then(|it| it.allow_managed_domains_only) == Some(true);
        let keeps_inside = self.settings.allow_unsandboxed_commands == Some(false);
        match self.source {
            Source::Managed => keeps_inside || only_managed,
            Source::Flag => keeps_inside,
            _ => false,
        }
    }
}

/// Joins the settings of files, in the order in which they were read.
pub(super) fn join(files: Vec<OfFile>) -> Option<SandboxSettings> {
    let is_locked = files.iter().any(OfFile::locks);
    let mut joined: Option<SandboxSettings> = None;
    for file in files {
        let is_of_project = file.is_of_project();
        let only_narrows = !file.is_trusted || (is_of_project && is_locked);
        let mut settings = file.settings;
        if only_narrows {
            settings = restrictions(settings);
        }
        if is_of_project {
            // Which program builds the sandbox is not up to what runs in it.
            settings.bwrap_path = None;
            settings.extra = without(&settings.extra, &["backend", "containerImage"]);
            if let Some(network) = &mut settings.network {
                network.strict_allowlist = None;
            }
        }
        let is_managed = file.source == Source::Managed;
        if settings != SandboxSettings::default() {
            joined = Some(add(joined.unwrap_or_default(), settings, is_managed));
        }
    }
    joined
}

fn without(extra: &Extra, names: &[&str]) -> Extra {
    let mut others = Extra::default();
    for (name, value) in extra.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        others.insert(name.clone(), value.clone());
    }
    others
}

/// What makes a sandbox stricter.
fn restrictions(settings: SandboxSettings) -> SandboxSettings {
    let network = settings.network.unwrap_or_default();
    let files = settings.filesystem.unwrap_or_default();
    let mut narrowed = SandboxSettings {
        enabled: settings.enabled.filter(|is_on| *is_on),
        fail_if_unavailable: settings.fail_if_unavailable.filter(|fails| *fails),
        allow_unsandboxed_commands: settings.allow_unsandboxed_commands.filter(|allows| !allows),
        ..SandboxSettings::default()
    };
    if network.denied_domains.is_some() {
        let denied_domains = network.denied_domains;
        narrowed.network = Some(SandboxNetwork { denied_domains, ..SandboxNetwork::default() });
    }
    let (deny_write, deny_read) = (files.deny_write, files.deny_read);
    if deny_write.is_some() || deny_read.is_some() {
        narrowed.filesystem =
            Some(SandboxFilesystem { deny_write, deny_read, ..SandboxFilesystem::default() });
    }
    narrowed
}

/// The values of both objects; the later one counts for names that both have.
fn merged(before: Option<&Value>, later: Option<&Value>) -> Option<Value> {
    let (Some(Value::Object(before)), Some(Value::Object(later))) = (before, later) else {
        return None;
    };
    let mut all = before.clone();
    for (name, value) in later {
        let value = merged(before.get(name), Some(value)).unwrap_or_else(|| value.clone());
        all.insert(name.clone(), value);
    }
    Some(Value::Object(all))
}

fn add(before: SandboxSettings, of_file: SandboxSettings, is_managed: bool) -> SandboxSettings {
    let keeps_inside = before.allow_unsandboxed_commands == Some(false);
    let mut extra = before.extra;
    let required = lists(extra.get("required"), of_file.extra.get("required"));
    let limits = merged(extra.get("limits"), of_file.extra.get("limits"));
    for (name, value) in of_file.extra.iter() {
        extra.insert(name.clone(), value.clone());
    }
    if let Some(limits) = limits {
        extra.insert("limits", limits);
    }
    if let Some(required) = required {
        extra.insert("required", required);
    }
    SandboxSettings {
        enabled: of_file.enabled.or(before.enabled),
        fail_if_unavailable: of_file.fail_if_unavailable.or(before.fail_if_unavailable),
        auto_allow_bash_if_sandboxed: of_file
            .auto_allow_bash_if_sandboxed
            .or(before.auto_allow_bash_if_sandboxed),
        allow_unsandboxed_commands: match keeps_inside {
            true => Some(false),
            false => of_file.allow_unsandboxed_commands.or(before.allow_unsandboxed_commands),
        },
        excluded_commands: union(before.excluded_commands, of_file.excluded_commands),
        network: either(before.network, of_file.network, |before, of_file| {
            network(before, of_file, is_managed)
        }),
        filesystem: either(before.filesystem, of_file.filesystem, |before, of_file| {
            filesystem(before, of_file, is_managed)
        }),
        credentials: either(before.credentials, of_file.credentials, credentials),
        ignore_violations: of_file.ignore_violations.or(before.ignore_violations),
        enable_weaker_nested_sandbox: of_file
            .enable_weaker_nested_sandbox
            .or(before.enable_weaker_nested_sandbox),
        allow_nested_user_namespaces: of_file
            .allow_nested_user_namespaces
            .or(before.allow_nested_user_namespaces),
        enable_weaker_network_isolation: of_file
            .enable_weaker_network_isolation
            .or(before.enable_weaker_network_isolation),
        allow_apple_events: of_file.allow_apple_events.or(before.allow_apple_events),
        ripgrep: of_file.ripgrep.or(before.ripgrep),
        bwrap_path: of_file.bwrap_path.or(before.bwrap_path),
        socat_path: of_file.socat_path.or(before.socat_path),
        extra,
    }
}

fn network(before: SandboxNetwork, of_file: SandboxNetwork, is_managed: bool) -> SandboxNetwork {
    let only_managed = is_managed && of_file.allow_managed_domains_only == Some(true);
    let is_strict = [before.strict_allowlist, of_file.strict_allowlist].contains(&Some(true));
    let mut extra = before.extra;
    for (name, value) in of_file.extra.iter() {
        extra.insert(name.clone(), value.clone());
    }
    SandboxNetwork {
        allowed_domains: match only_managed {
            // Without a list of the administrator no host is allowed.
            true => Some(of_file.allowed_domains.unwrap_or_default()),
            false => union(before.allowed_domains, of_file.allowed_domains),
        },
        denied_domains: union(before.denied_domains, of_file.denied_domains),
        strict_allowlist: is_strict.then_some(true),
        allow_managed_domains_only: only_managed.then_some(true),
        allow_unix_sockets: union(before.allow_unix_sockets, of_file.allow_unix_sockets),
        allow_all_unix_sockets: of_file.allow_all_unix_sockets.or(before.allow_all_unix_sockets),
        allow_local_binding: of_file.allow_local_binding.or(before.allow_local_binding),
        allow_mach_lookup: union(before.allow_mach_lookup, of_file.allow_mach_lookup),
        http_proxy_port: of_file.http_proxy_port.or(before.http_proxy_port),
        socks_proxy_port: of_file.socks_proxy_port.or(before.socks_proxy_port),
        tls_terminate: of_file.tls_terminate.or(before.tls_terminate),
        extra,
    }
}

fn filesystem(
    before: SandboxFilesystem,
    of_file: SandboxFilesystem,
    is_managed: bool,
) -> SandboxFilesystem {
    let only_managed = is_managed && of_file.allow_managed_read_paths_only == Some(true);
    let mut extra = before.extra;
    for (name, value) in of_file.extra.iter() {
        extra.insert(name.clone(), value.clone());
    }
    SandboxFilesystem {
        allow_write: union(before.allow_write, of_file.allow_write),
        deny_write: union(before.deny_write, of_file.deny_write),
        deny_read: union(before.deny_read, of_file.deny_read),
        allow_read: match only_managed {
            true => of_file.allow_read,
            false => union(before.allow_read, of_file.allow_read),
        },
        allow_managed_read_paths_only: only_managed.then_some(true),
        disabled: of_file.disabled.or(before.disabled),
        extra,
    }
}

fn credentials(before: SandboxCredentials, of_file: SandboxCredentials) -> SandboxCredentials {
    SandboxCredentials {
        files: union(before.files, of_file.files),
        env_vars: union(before.env_vars, of_file.env_vars),
        ..of_file
    }
}

/// The one that is there, or both joined. A single one passes through `join` as well: it may hold a value that its file
/// must not set.
fn either<T: Default>(
    before: Option<T>,
    of_file: Option<T>,
    join: impl FnOnce(T, T) -> T,
) -> Option<T> {
    match (before, of_file) {
        (None, None) => None,
        (before, None) => before,
        (before, Some(of_file)) => Some(join(before.unwrap_or_default(), of_file)),
    }
}

/// Both lists, each entry once.
fn union<T: PartialEq>(before: Option<Vec<T>>, of_file: Option<Vec<T>>) -> Option<Vec<T>> {
    let Some(of_file) = of_file else { return before };
    let mut all = before.unwrap_or_default();
    for entry in of_file {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    Some(all)
}

/// Both lists of JSON values. What is not a list is left as it is, so that it is refused when it is read.
fn lists(before: Option<&Value>, of_file: Option<&Value>) -> Option<Value> {
    match (before?, of_file?) {
        (Value::Array(before), Value::Array(more)) => {
            union(Some(before.clone()), Some(more.clone())).map(Value::Array)
        }
        _ => None,
    }
}
