//! What a server may be, by who configured it.
//!
//! A program runs with the rights of the process that starts it, so one that anyone but the owner of the server configured runs in
//! a sandbox or not at all. An address is reached by the server's own process, also one in its own network, so only
//! administrators of the server configure addresses.

use ostler_base::error::{ApiError, Fallible};
use ostler_door::users::Role;

use crate::config::{Config, EngineChoice, SandboxChoice};
use crate::model::mcp_server::ServerConfig;

/// How a program starts in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confinement {
    /// In a sandbox, whatever other settings say.
    Sandbox,
    /// As the session's commands start.
    None,
    /// Not at all.
    Refused(&'static str),
}

/// Refuses a configuration that a user with this role must not make.
pub(super) fn check(config: &Config, role: Role, server: &ServerConfig) -> Fallible<()> {
    if let EngineChoice::Program(_) = config.engine {
        let message = "the engine of this server is another program (--engine), which keeps users apart neither by sandbox \
                       nor by account";
        return Err(ApiError::conflict("no_mcp_servers", message));
    }
    match server {
        ServerConfig::Http(_) | ServerConfig::Sse(_) if role < Role::Admin => {
            let message =
                "only administrators of the server configure MCP servers behind an address";
            Err(ApiError::forbidden("address_not_allowed", message).field("url").hint(
                "ask an administrator, or use a program that reaches the address from the sandbox",
            ))
        }
        ServerConfig::Stdio(_) if role < Role::Owner && config.sandbox == SandboxChoice::Off => {
            let message =
                "this server has no sandbox for programs that its owner did not configure";
            Err(ApiError::forbidden("no_sandbox", message).field("command").hint(
                "ask the owner of the server to configure the MCP server, or to start the server with --sandbox required",
            ))
        }
        _ => Ok(()),
    }
}

/// How a program starts, by who owns the server: the session's user, the user who configured the program, or both.
pub(super) fn confinement(
    session_is_owners: bool,
    program_is_owners: bool,
    sandbox: SandboxChoice,
) -> Confinement {
    let is_inside = !session_is_owners && sandbox != SandboxChoice::Off;
    match (is_inside, program_is_owners) {
        (true, _) => Confinement::Sandbox,
        (false, true) => Confinement::None,
        (false, false) => Confinement::Refused(
            "the owner of the server did not configure it, so it runs in a sandbox only, and this session has none",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::mcp_server::{ProgramConfig, RemoteConfig};

    // Mutants: `confinement` that looks at the session's user only; `check` that lets members configure addresses.
    #[test]
    fn a_program_that_the_owner_did_not_configure_never_starts_outside_of_a_sandbox() {
        for (session_is_owners, program_is_owners, sandbox) in [
            (false, false, SandboxChoice::Off),
            (true, false, SandboxChoice::Off),
            (true, false, SandboxChoice::Required),
        ] {
            let how = confinement(session_is_owners, program_is_owners, sandbox);
            assert!(matches!(how, Confinement::Refused(_)), "{how:?}");
        }
        for program_is_owners in [false, true] {
            let how = confinement(false, program_is_owners, SandboxChoice::Required);
            assert_eq!(how, Confinement::Sandbox);
        }
        for sandbox in [SandboxChoice::Off, SandboxChoice::Required] {
            assert_eq!(confinement(true, true, sandbox), Confinement::None);
        }
        // The operator trusts the members with the owner's rights (`--trust-members`).
        assert_eq!(confinement(false, true, SandboxChoice::Off), Confinement::None);
    }

    // Mutant: `check` that accepts everything.
    #[test]
    fn addresses_are_for_administrators_and_programs_without_a_sandbox_for_the_owner() {
        let address = ServerConfig::Http(RemoteConfig::default());
        let program = ServerConfig::Stdio(ProgramConfig::default());
        let mut config = Config::new("/no/data", "/no/workspace");
        for (sandbox, role, is_address_allowed, is_program_allowed) in [
            (SandboxChoice::Required, Role::Member, false, true),
            (SandboxChoice::Required, Role::Admin, true, true),
            (SandboxChoice::Off, Role::Member, false, false),
            (SandboxChoice::Off, Role::Admin, true, false),
            (SandboxChoice::Off, Role::Owner, true, true),
        ] {
            config.sandbox = sandbox;
            assert_eq!(check(&config, role, &address).is_ok(), is_address_allowed, "{role:?}");
            assert_eq!(check(&config, role, &program).is_ok(), is_program_allowed, "{role:?}");
        }
        config.engine = EngineChoice::Program("/bin/other".into());
        assert!(check(&config, Role::Owner, &program).is_err());
    }
}
