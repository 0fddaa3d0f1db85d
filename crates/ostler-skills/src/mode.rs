//! How freely a task's tools run: the names in the task API, and the engine's modes for them.

use axum::http::StatusCode;
use ostler::hook::{HookOutput, PreToolUseInput};
use ostler::{Hook, Options, PermissionMode};
use ostler_base::error::{ApiError, shown};

/// How freely tools run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The operator's mode, `serve --permission-mode`.
    OfServer,
    /// Approved calls and calls that only read in the project run; every other call requires approval.
    #[default]
    Default,
    /// Every call requires approval, also those approved beforehand.
    Ask,
    /// Like `Default`, and edits need no approval.
    AcceptEdits,
    /// Changes nothing.
    Plan,
    /// Every call runs; available only if the operator allows it.
    Bypass,
}

impl Mode {
    /// Parses the name of a mode. `None` is the operator's mode.
    ///
    /// # Errors
    /// When the name is unknown, or the operator does not allow the mode.
    pub(crate) fn named(name: Option<&str>, is_bypass_allowed: bool) -> Result<Self, ApiError> {
        match name {
            None => Ok(Self::OfServer),
            Some("default") => Ok(Self::Default),
            Some("ask") => Ok(Self::Ask),
            Some("acceptEdits") => Ok(Self::AcceptEdits),
            Some("plan") => Ok(Self::Plan),
            Some("bypass" | "bypassPermissions") if is_bypass_allowed => Ok(Self::Bypass),
            Some("bypass" | "bypassPermissions") => {
                let message = "the operator of this server does not allow the mode bypass";
                let error = ApiError::new(StatusCode::FORBIDDEN, "bypass_not_allowed", message);
                Err(error.field("permissionMode").hint("use default, and approve what is asked"))
            }
            Some(odd) => {
                let message = format!("unknown permission mode {}", shown(odd));
                let hint = "use default, ask, acceptEdits, plan or bypass";
                Err(ApiError::invalid("permissionMode", message).hint(hint))
            }
        }
    }

    /// Whether tools may be approved beforehand in this mode.
    pub(crate) fn takes_approvals(self) -> bool {
        self != Self::Ask
    }

    /// The engine's mode.
    pub(crate) fn engine_mode(self) -> PermissionMode {
        match self {
            Self::OfServer | Self::Default | Self::Ask => PermissionMode::Default,
            Self::AcceptEdits => PermissionMode::AcceptEdits,
            Self::Plan => PermissionMode::Plan,
            Self::Bypass => PermissionMode::BypassPermissions,
        }
    }

    /// Sets the options of the engine.
    pub fn apply(self, options: &mut Options) {
        if self == Self::OfServer {
            return;
        }
        options.permissions.mode = self.engine_mode();
        options.permissions.allow_dangerously_skip_permissions = self == Self::Bypass;
        if self == Self::Ask {
            options.permissions.allowed.clear();
            options.hooks.push(Hook::new(|_: PreToolUseInput, _| async {
                HookOutput::ask("this task asks before every tool")
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modes_of_the_task_api_map_to_modes_of_the_engine() {
        for (name, expected) in [
            (None, PermissionMode::Default),
            (Some("default"), PermissionMode::Default),
            (Some("ask"), PermissionMode::Default),
            (Some("acceptEdits"), PermissionMode::AcceptEdits),
            (Some("plan"), PermissionMode::Plan),
            (Some("bypass"), PermissionMode::BypassPermissions),
            (Some("bypassPermissions"), PermissionMode::BypassPermissions),
        ] {
            let mode = Mode::named(name, true).unwrap();
            let mut options = Options::new().allow(["Read"]);
            mode.apply(&mut options);
            assert_eq!(options.permissions.mode, expected, "{name:?}");
            let skips = expected == PermissionMode::BypassPermissions;
            assert_eq!(options.permissions.allow_dangerously_skip_permissions, skips);
            assert_eq!(options.permissions.allowed.is_empty(), name == Some("ask"), "{name:?}");
        }
    }

    // Seen to fail when the operator's setting is ignored, and when an unknown name counts as the default.
    #[test]
    fn unknown_modes_are_refused_and_bypass_needs_the_operators_permission() {
        for name in ["bypass", "bypassPermissions"] {
            let error = Mode::named(Some(name), false).unwrap_err();
            assert_eq!(
                (error.status().as_u16(), error.detail().code.as_ref()),
                (403, "bypass_not_allowed")
            );
        }
        for odd in ["", "Bypass", "dontAsk", "auto", "bypassPermissions ", "accept-edits"] {
            let error = Mode::named(Some(odd), true).unwrap_err();
            assert_eq!(
                (error.status().as_u16(), error.detail().field.as_deref()),
                (422, Some("permissionMode"))
            );
        }
    }
}
