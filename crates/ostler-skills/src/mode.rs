//! How freely a task's tools run: the names of the task API, and what they are to the engine.

use axum::http::StatusCode;
use ostler::hook::{HookOutput, PreToolUseInput};
use ostler::{Hook, Options, PermissionMode};
use ostler_base::error::{ApiError, shown};

/// How freely tools run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// That of the operator, `serve --permission-mode`.
    OfServer,
    /// What is approved runs, what looks around in the project runs, everything else is asked about.
    #[default]
    Default,
    /// Everything is asked about, also what is approved.
    Ask,
    /// As `Default`, and files may be changed.
    AcceptEdits,
    /// Nothing is changed.
    Plan,
    /// Everything runs; only if the operator allows it.
    Bypass,
}

impl Mode {
    /// The mode of this name.
    ///
    /// # Errors
    /// When there is none, or the operator does not allow it.
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
                let message = format!("there is no permission mode {}", shown(odd));
                let hint = "use default, ask, acceptEdits, plan or bypass";
                Err(ApiError::invalid("permissionMode", message).hint(hint))
            }
        }
    }

    /// Whether tools may be approved beforehand.
    pub(crate) fn takes_approvals(self) -> bool {
        self != Self::Ask
    }

    /// As the engine calls it.
    pub(crate) fn engine_mode(self) -> PermissionMode {
        match self {
            Self::OfServer | Self::Default | Self::Ask => PermissionMode::Default,
            Self::AcceptEdits => PermissionMode::AcceptEdits,
            Self::Plan => PermissionMode::Plan,
            Self::Bypass => PermissionMode::BypassPermissions,
        }
    }

    /// Says it to the engine.
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
    fn the_names_of_tasks_are_modes_of_the_engine() {
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

    // Seen to fail when the operator is not asked, and when an unknown name counts as the default.
    #[test]
    fn nothing_else_is_a_mode_and_bypass_is_the_operators() {
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
