//! An MCP server that is a program and that several sessions share.
//!
//! A program has one client, so it cannot tell sessions apart: what it keeps between calls, every session sees. That is
//! why sharing is a choice of who configures the server, `shared: true`, and why sessions share a program only if they
//! belong to the same user and space, work in the same folder, are confined in the same way, and give the program the
//! same variables. Requests have ids of their own, so answers and progress reach only the session that asked. What could
//! not be assigned to a session is not passed on (`Listeners`), and what the program could ask of a user or a session is
//! not offered: it can elicit nothing, knows no folders, and is told no log level.

use std::io;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_engine::permission::{Decision, Policy};
use ostler_engine::sandbox::{
    HostAnswer, HostAsker, HostQuestion, ProgramBoundary, SessionSandbox,
};
use ostler_mcp::{Endpoint, Program};
use ostler_process::{Confine, ConfinedProgram, InsideProgram};
use ostler_proto::mcp::{McpServerConfig, StdioServer};
use ostler_sdk::transport::Environment;
use serde_json::{Value, json};

use super::sandbox::SandboxPlan;
use super::server_pool::ServerHosting;

/// The variables that a shared program gets besides those of its configuration. Others, such as the pass for the model,
/// belong to one session.
const PASSED: [&str; 26] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Whether a server's configuration says that sessions share it.
pub(super) fn is_shared(config: &McpServerConfig) -> bool {
    flag(config, "shared")
}

/// Whether a server must not start outside of a sandbox, whatever the settings say.
pub(super) fn must_be_confined(config: &McpServerConfig) -> bool {
    flag(config, "confined")
}

fn flag(config: &McpServerConfig, name: &str) -> bool {
    let McpServerConfig::Stdio(server) = config else { return false };
    server.extra.get(name) == Some(&Value::Bool(true))
}

/// A program to share, and what it is shared by.
pub(super) struct SharedProgram {
    /// Equal only if everything is equal that the program could tell sessions apart by.
    pub(super) key: String,
    program: Program,
    sandbox: Option<SandboxPlan>,
}

impl SharedProgram {
    /// # Errors
    /// When the sandbox that the settings request cannot be described.
    pub(super) fn of(
        (name, server): (&str, &StdioServer),
        hosting: &ServerHosting,
        (env, cwd): (&Environment, &std::path::Path),
        sandbox: Option<SandboxPlan>,
    ) -> Result<Self, String> {
        let passed = PASSED.iter().filter_map(|name| Some(((*name).to_owned(), env.get(name)?)));
        let own = server.env.clone().unwrap_or_default();
        let env = Environment { replaces: true, variables: passed.chain(own).collect() };
        let args = server.args.clone().unwrap_or_default();
        let words = std::iter::once(&server.command).chain(&args);
        let line = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        let must_be_confined = must_be_confined(&McpServerConfig::Stdio(server.clone()));
        let is_outside = |plan: &SandboxPlan| {
            !must_be_confined && plan.policy().runs_outside_sandbox(cwd, &line)
        };
        let sandbox = sandbox.filter(|plan| !is_outside(plan));
        let enforced = sandbox.as_ref().map(SandboxPlan::fingerprint).transpose()?;
        if must_be_confined && enforced.is_none() {
            return Err(NO_SANDBOX.to_owned());
        }
        let identity = &hosting.identity;
        let parts = json!([
            hosting.user,
            identity,
            name,
            server.command,
            args,
            env.variables,
            cwd,
            enforced
        ]);
        let command = server.command.clone();
        let program = Program { command, args, env, cwd: Some(cwd.to_owned()), boundary: None };
        Ok(Self { key: parts.to_string(), program, sandbox })
    }

    /// The program inside its boundary.
    ///
    /// # Errors
    /// When the boundary cannot be enforced.
    pub(super) fn endpoint(self) -> Result<Endpoint, String> {
        let mut program = self.program;
        if let Some(plan) = self.sandbox {
            let sandbox = plan.build()?;
            let boundary = sandbox.boundary(Arc::new(AsksNoOne(plan.policy().clone())))?;
            program.boundary = Some(Arc::new(OwnBoundary { boundary, _sandbox: sandbox }));
        }
        Ok(Endpoint::Stdio(program))
    }
}

/// Why a server that must be confined does not start.
pub(super) const NO_SANDBOX: &str = "it may only run in a sandbox, and this session has none";

/// The boundary of a shared program, with the sandbox whose folders it uses.
#[derive(Debug)]
struct OwnBoundary {
    boundary: Arc<dyn ProgramBoundary>,
    _sandbox: Arc<dyn SessionSandbox>,
}

impl Confine for OwnBoundary {
    fn confine(&self, program: InsideProgram<'_>) -> io::Result<ConfinedProgram> {
        self.boundary.confine(program)
    }
}

/// Decides about hosts by settings and rules only: a question would reach the user of one session about the call of
/// another.
#[derive(Debug)]
struct AsksNoOne(Policy);

impl HostAsker for AsksNoOne {
    fn policy(&self) -> Policy {
        self.0.clone()
    }

    fn ask(&self, question: HostQuestion, _: Decision) -> BoxFuture<'static, HostAnswer> {
        let reason = format!(
            "no setting and no rule names {}, and a server that sessions share cannot ask; name the host in \
             sandbox.network.allowedDomains (--sandbox-domain), or do not share the server",
            question.host
        );
        std::future::ready(HostAnswer::Refused(reason)).boxed()
    }
}
