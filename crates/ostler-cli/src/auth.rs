//! `ostler auth`: reports the credential of a session in this folder. Its value is never printed.

use std::path::Path;
use std::process::ExitCode;

use ostler::engine::credentials::{self, CredentialSource};
use ostler::engine::rules;
use serde_json::{Value, json};

use crate::args::Args;
use crate::args::auth::{Auth, AuthCommand};
use crate::output;
use crate::scene;
use crate::screen::Screen;

/// The exit code of a command that this program does not have.
const MISSING: u8 = 2;

pub(crate) fn run(args: &Args, auth: &Auth, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let advice = match &auth.command {
        AuthCommand::Status { text, .. } => return status(args, *text, screen),
        AuthCommand::Login { .. } => {
            "Ostler cannot log in: run `claude auth login`, or `claude setup-token` and set CLAUDE_CODE_OAUTH_TOKEN; \
             Ostler uses the login. Or set ANTHROPIC_API_KEY"
        }
        AuthCommand::Logout => {
            "Ostler cannot log out: run `claude auth logout`, or unset the variable that `ostler auth status` names"
        }
    };
    screen.complain(advice);
    Ok(ExitCode::from(MISSING))
}

fn status(args: &Args, is_text: bool, screen: &mut Screen) -> anyhow::Result<ExitCode> {
    let scene = scene::of(args)?;
    let settings = rules::load(&scene)?.settings;
    let found = credentials::find(&scene, &settings)?;
    match (&found, is_text) {
        (Some(found), true) => screen.line(&format!("Logged in: {}", found.text))?,
        (None, true) => {
            screen.line("Not logged in. Set ANTHROPIC_API_KEY, or log in with Claude Code.")?
        }
        (found, false) => {
            let folder = rules::folders(&scene).user;
            let report = report(found.as_ref().map(|found| found.source), folder.as_deref());
            output::write(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
        }
    }
    Ok(if found.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The report for programs, with the fields of the vendor's program that make sense here.
fn report(source: Option<CredentialSource>, folder: Option<&Path>) -> Value {
    let method = match source {
        None => "none",
        Some(CredentialSource::ApiKey | CredentialSource::ManagedKey) => "api_key",
        Some(CredentialSource::Helper) => "api_key_helper",
        Some(CredentialSource::AuthToken | CredentialSource::LoginToken) => "oauth_token",
        Some(CredentialSource::Login) => "claude.ai",
        Some(_) => "other",
    };
    let mut report = json!({
        "loggedIn": source.is_some(),
        "authMethod": method,
        "apiProvider": "firstParty",
        "projectsDirectory": folder.map(|folder| folder.join("projects")),
        "configDirectory": folder,
    });
    if let Some(key) = source.and_then(|source| source.account().api_key_source)
        && key != "none"
    {
        report["apiKeySource"] = json!(key);
    }
    report
}
