//! How an adapter runs prompts. Configurations are immutable: every method returns a new value.

use std::path::{Path, PathBuf};

use ostler_sdk::PermissionMode;
use serde::Deserialize;

/// How the engine is run.
///
/// ```
/// use ostler_prompt::ClientConfig;
///
/// let config = ClientConfig::default().with_max_turns(20);
/// assert_eq!(config.permission_mode(), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConfig {
    permission_mode: Option<PermissionMode>,
    cwd: Option<PathBuf>,
    max_turns: Option<u64>,
    suppress_stderr: bool,
    stop_on_structured_output: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            permission_mode: None,
            cwd: None,
            max_turns: None,
            suppress_stderr: true,
            stop_on_structured_output: true,
        }
    }
}

impl ClientConfig {
    /// The defaults: permissions of the adapter's options, and no limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the permission mode. In all modes except `bypassPermissions`, calls that need approval are denied unless a
    /// rule or a callback of the adapter's options allows them; this includes calls of the prompt's own tools.
    ///
    /// Without this call, the mode of the adapter's options applies. If those set neither a mode nor a permission
    /// callback, the prompt's own tools may run, and other calls that need approval require a rule.
    #[must_use]
    pub fn with_permission_mode(self, permission_mode: PermissionMode) -> Self {
        Self { permission_mode: Some(permission_mode), ..self }
    }

    /// Sets the working directory. Without it, a prompt with one workspace runs in that workspace.
    #[must_use]
    pub fn with_cwd(self, cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..self }
    }

    /// Limits the number of requests to the model.
    #[must_use]
    pub fn with_max_turns(self, turns: u64) -> Self {
        Self { max_turns: Some(turns), ..self }
    }

    /// Sets whether the engine's stderr is not written to this program's stderr. Errors contain its end in any case.
    #[must_use]
    pub fn with_suppress_stderr(self, suppress_stderr: bool) -> Self {
        Self { suppress_stderr, ..self }
    }

    /// Sets whether the turn ends as soon as the answer is given. If not, the agent continues until it is finished, and
    /// its last valid answer counts. Claude Code 2.1.325 and later end the turn in any case.
    #[must_use]
    pub fn with_stop_on_structured_output(self, stop_on_structured_output: bool) -> Self {
        Self { stop_on_structured_output, ..self }
    }

    /// The permission mode, if one is set here.
    pub fn permission_mode(&self) -> Option<&PermissionMode> {
        self.permission_mode.as_ref()
    }

    /// The working directory.
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// The most requests to the model.
    pub fn max_turns(&self) -> Option<u64> {
        self.max_turns
    }

    /// Whether the engine's stderr is not written to this program's stderr.
    pub fn suppress_stderr(&self) -> bool {
        self.suppress_stderr
    }

    /// Whether the turn ends as soon as the answer is given.
    pub fn stop_on_structured_output(&self) -> bool {
        self.stop_on_structured_output
    }
}

/// The model that is used if neither the adapter nor its options set one.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-5-20250929";

/// The model and its settings. [`ModelSettings`] convert to it, unless they contain settings that engines do not
/// support.
///
/// ```
/// use ostler_prompt::{ModelConfig, ModelSettings};
///
/// assert_eq!(ModelConfig::default().model(), "claude-sonnet-4-5-20250929");
/// let settings = ModelSettings { seed: Some(7), ..ModelSettings::default() };
/// assert!(ModelConfig::try_from(settings).unwrap_err().to_string().contains("`seed`"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    model: String,
    max_tokens: Option<u64>,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self { model: DEFAULT_MODEL.to_owned(), max_tokens: None }
    }
}

impl ModelConfig {
    /// This model.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// The model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The most tokens of one response.
    pub fn max_tokens(&self) -> Option<u64> {
        self.max_tokens
    }
}

/// Settings of other adapters. Engines do not support all of them; see [`ModelConfig`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The model.
    pub model: Option<String>,
    /// The most tokens of one response.
    pub max_tokens: Option<u64>,
    /// Not supported.
    pub temperature: Option<f64>,
    /// Not supported.
    pub top_p: Option<f64>,
    /// Not supported.
    pub presence_penalty: Option<f64>,
    /// Not supported.
    pub frequency_penalty: Option<f64>,
    /// Not supported.
    pub stop: Option<Vec<String>>,
    /// Not supported.
    pub seed: Option<i64>,
}

impl TryFrom<ModelSettings> for ModelConfig {
    type Error = ConfigError;

    fn try_from(settings: ModelSettings) -> Result<Self, ConfigError> {
        let unsupported = [
            ("seed", settings.seed.is_some()),
            ("stop", settings.stop.is_some()),
            ("presence_penalty", settings.presence_penalty.is_some()),
            ("frequency_penalty", settings.frequency_penalty.is_some()),
            ("temperature", settings.temperature.is_some()),
            ("top_p", settings.top_p.is_some()),
        ];
        if let Some((field, _)) = unsupported.into_iter().find(|(_, is_set)| *is_set) {
            return Err(ConfigError::Unsupported { field });
        }
        if settings.max_tokens == Some(0) {
            return Err(ConfigError::Zero { field: "max_tokens" });
        }
        let model = settings.model.unwrap_or_else(|| DEFAULT_MODEL.to_owned());
        Ok(Self { model, max_tokens: settings.max_tokens })
    }
}

/// Invalid settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Engines of agents do not support the setting.
    #[error("the model setting `{field}` is not supported by agent engines; leave it out")]
    #[non_exhaustive]
    Unsupported {
        /// The setting.
        field: &'static str,
    },
    /// Zero would allow nothing.
    #[error("the model setting `{field}` must be 1 or more")]
    #[non_exhaustive]
    Zero {
        /// The setting.
        field: &'static str,
    },
}
