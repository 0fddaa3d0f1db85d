//! Reads all settings of a session and joins them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_proto::launch::ModelPrice;
use ostler_proto::permission::PermissionMode;
use serde_json::{Map, Value};

use super::file::{self, FilePrice, FileSettings};
use super::{Folders, Problem, Settings, SettingsError, sandbox};
use crate::permission::{Behavior, Rule, Source};
use crate::project_file::{Boundary, Refusal};

/// The largest settings file, in bytes.
pub(super) const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// Which settings to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The user's file.
    pub user: bool,
    /// The project's shared file.
    pub project: bool,
    /// The project's private file.
    pub local: bool,
    /// `--settings`: JSON, or the path of a file.
    pub flag: Option<String>,
    /// Whether the user trusts the project. If not, its files can only add restrictions.
    pub trusts_project: bool,
}

/// Reads and joins settings. The administrator's file is always read.
///
/// # Errors
/// When a file cannot be read or is malformed, or has an invalid deny or ask rule: all such problems at once.
pub fn load(folders: &Folders, sources: &Sources) -> Result<Settings, SettingsError> {
    let mut joined = MergedSettings {
        settings: Settings::default(),
        problems: Vec::new(),
        sandboxes: Vec::new(),
        sources,
    };
    let wanted = [
        (Source::User, sources.user),
        (Source::Project, sources.project),
        (Source::Local, sources.local),
    ];
    for (source, _) in wanted.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        if let Some(path) = folders.file(source) {
            joined.file(&path, source, &boundary(folders, source, sources.trusts_project), true);
        }
    }
    if let Some(flag) = &sources.flag {
        if flag.trim_start().starts_with('{') {
            joined.text(Path::new("--settings"), flag, Source::Flag);
        } else {
            joined.file(Path::new(flag), Source::Flag, &Boundary::default(), false);
        }
    }
    // Read last: the administrator's values win.
    if let Some(path) = folders.file(Source::Managed) {
        joined.file(&path, Source::Managed, &Boundary::default(), true);
    }
    joined.disable_hooks();
    joined.settings.sandbox = sandbox::join(joined.sandboxes);
    match joined.problems.is_empty() {
        true => Ok(joined.settings),
        false => Err(SettingsError { problems: joined.problems }),
    }
}

/// The boundary for the settings file of a source. A link in an untrusted project must not lead out of it.
pub(super) fn boundary(folders: &Folders, source: Source, trusts_project: bool) -> Boundary {
    let is_of_project = matches!(source, Source::Project | Source::Local);
    // In the home directory the user's file is also that of the project.
    let is_of_user = folders.file(source) == folders.file(Source::User);
    match is_of_project && !is_of_user && !trusts_project {
        true => Boundary::inside(&folders.project, Arc::default()),
        false => Boundary::default(),
    }
}

struct MergedSettings<'s> {
    settings: Settings,
    problems: Vec<Problem>,
    sandboxes: Vec<sandbox::OfFile>,
    sources: &'s Sources,
}

impl MergedSettings<'_> {
    fn file(&mut self, path: &Path, source: Source, boundary: &Boundary, may_be_absent: bool) {
        match boundary.read_text(path, LONGEST_FILE) {
            Ok(text) => self.text(path, &text, source),
            Err(Refusal::Missing) if may_be_absent => {}
            Err(refusal) => self.problems.extend(SettingsError::one(path, "", refusal).problems),
        }
    }

    fn text(&mut self, path: &Path, text: &str, source: Source) {
        match file::parse(path, text) {
            Ok(file) => self.join(path, file, source),
            Err(error) => self.problems.extend(error.problems),
        }
    }

    fn join(&mut self, path: &Path, file: FileSettings, source: Source) {
        let is_of_project = matches!(source, Source::Project | Source::Local);
        let only_narrows = is_of_project && !self.sources.trusts_project;
        let permissions = file.permissions;
        self.rules(path, Behavior::Deny, &permissions.deny, source);
        self.rules(path, Behavior::Ask, &permissions.ask, source);
        if let Some(mode) = permissions.default_mode {
            self.mode(path, mode, source, only_narrows);
        }
        self.settings.server_lists.denied.extend(file.denied_mcp_servers);
        self.settings.server_lists.allowed.extend(file.allowed_mcp_servers);
        if let Err(reason) = self.settings.mcpjson.reject(&file.extra) {
            let problems = SettingsError::one(path, "disabledMcpjsonServers", reason).problems;
            self.problems.extend(problems);
        }
        self.refuse_unenforced(path, &file.extra);
        // Any value can only be meant to disable it, also an unknown one.
        self.settings.bypass_disabled |= permissions.disable_bypass_permissions_mode.is_some();
        let is_trusted = !only_narrows;
        let of_file = file.sandbox;
        self.sandboxes.extend(of_file.map(|settings| sandbox::OfFile {
            source,
            settings,
            is_trusted,
        }));
        if only_narrows {
            self.warn(path, "", "the project is not trusted: only its restrictions take effect");
            return;
        }
        self.rules(path, Behavior::Allow, &permissions.allow, source);
        let directories = permissions.additional_directories.into_iter().map(PathBuf::from);
        self.settings.directories.extend(directories.map(|directory| (directory, source)));
        self.settings.hooks.extend(file.hooks.map(|hooks| (source, hooks)));
        if file.disable_all_hooks == Some(true) {
            self.settings.hooks_disabled_by.push(source);
        }
        for (name, value) in file.env {
            if is_of_project && is_ours_to_choose(&name) {
                self.warn(path, &format!("env.{name}"), "a project cannot set this variable");
            } else {
                self.settings.env.insert(name, value);
            }
        }
        self.settings.mcpjson.approve(&file.extra);
        self.prices(path, file.model_prices, is_of_project);
        let settings = &mut self.settings;
        settings.model = file.model.or(settings.model.take());
        settings.api_key_helper = file.api_key_helper.or(settings.api_key_helper.take());
        settings.output_style = file.output_style.or(settings.output_style.take());
        settings.extra.extend(file.extra);
    }

    /// Takes over prices of models. A project must not weaken a limit in dollars with low prices.
    fn prices(&mut self, path: &Path, given: BTreeMap<String, FilePrice>, is_of_project: bool) {
        for (name, price) in given {
            let (pointer, price) = (format!("modelPrices.{name}"), ModelPrice::from(price));
            match price.refusal() {
                Some(reason) => {
                    self.problems.extend(SettingsError::one(path, &pointer, reason).problems);
                }
                None if is_of_project => self.warn(path, &pointer, "a project cannot set prices"),
                None => _ = self.settings.model_prices.insert(name, price),
            }
        }
    }

    /// Refuses restrictions that this version cannot enforce: a session without them would allow more than intended.
    fn refuse_unenforced(&mut self, path: &Path, extra: &Map<String, Value>) {
        let is_meant = |name: &&&str| {
            extra.get(**name).is_some_and(|value| *value != Value::Bool(false) && !value.is_null())
        };
        for name in UNENFORCED.iter().filter(is_meant) {
            let reason = "this version cannot enforce this restriction, so it does not start; remove it to run without it";
            self.problems.extend(SettingsError::one(path, name, reason).problems);
        }
    }

    /// Removes disabled hooks. Only the administrator can disable the administrator's.
    fn disable_hooks(&mut self) {
        let disabled = &self.settings.hooks_disabled_by;
        let by_administrator = disabled.contains(&Source::Managed);
        self.settings.hooks.retain(|(source, _)| match source {
            Source::Managed => !by_administrator,
            _ => disabled.is_empty(),
        });
    }

    fn rules(&mut self, path: &Path, behavior: Behavior, rules: &[String], source: Source) {
        for (index, text) in rules.iter().enumerate() {
            match text.parse::<Rule>() {
                Ok(rule) => self.settings.rules.push((behavior, rule, source)),
                Err(error) => {
                    let pointer = format!("permissions.{}[{index}]", behavior.word());
                    // Leaving out an allow rule is safe, leaving out a deny or ask rule is not.
                    if behavior == Behavior::Allow {
                        self.warn(path, &pointer, error);
                    } else {
                        self.problems.extend(SettingsError::one(path, &pointer, error).problems);
                    }
                }
            }
        }
    }

    /// Takes over a mode. No file of a project may disable permission questions.
    fn mode(&mut self, path: &Path, mode: PermissionMode, source: Source, only_narrows: bool) {
        let pointer = "permissions.defaultMode";
        let is_of_project = matches!(source, Source::Project | Source::Local);
        match mode {
            PermissionMode::Other(word) => {
                let reason = format!("{word} is not a valid mode");
                self.problems.extend(SettingsError::one(path, pointer, reason).problems);
            }
            PermissionMode::BypassPermissions if is_of_project => {
                self.warn(path, pointer, "a project cannot choose to bypass permissions");
            }
            PermissionMode::AcceptEdits | PermissionMode::Auto if only_narrows => {}
            mode => self.settings.default_mode = Some(mode),
        }
    }

    fn warn(&mut self, path: &Path, pointer: &str, reason: impl ToString) {
        self.settings.warnings.extend(SettingsError::one(path, pointer, reason).problems);
    }
}

/// Restrictions of the vendor's settings that this version does not support.
const UNENFORCED: &[&str] = &[
    "allowManagedHooksOnly",
    "allowManagedPermissionRulesOnly",
    "blockedMarketplaces",
    "strictKnownMarketplaces",
];

/// Whether a variable affects where keys are sent or which programs run: a project must not set it.
fn is_ours_to_choose(name: &str) -> bool {
    const BEGINNINGS: &[&str] = &["ANTHROPIC_", "CLAUDE_", "OSTLER_", "LD_", "DYLD_", "GIT_"];
    const NAMES: &[&str] = &[
        "PATH",
        "HOME",
        "SHELL",
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PERL5OPT",
        "RUBYOPT",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "PAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
    ];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}
