//! The sandbox of a session, as the engine sees it. What enforces it is given by the caller.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_process::Confine;
use serde_json::Value;

use crate::permission::{Decision, Outcome, Policy};

/// The name of the tool in questions about hosts: that of the vendor's program.
pub const NETWORK_TOOL: &str = "SandboxNetworkAccess";

/// A host that a program in the sandbox wants to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuestion {
    /// Its name, in lower case, or its address.
    pub host: String,
    /// The port of the first connection. The answer holds for all ports.
    pub port: u16,
}

/// Asks whether one program in the sandbox may reach hosts that no setting names.
pub trait HostAsker: Debug + Send + Sync {
    /// The policy of the conversation that the program belongs to, as it is now.
    fn policy(&self) -> Policy;

    /// Asks the user. `decision` says why the user is asked.
    fn ask(&self, question: HostQuestion, decision: Decision) -> BoxFuture<'static, HostAnswer>;

    /// Notes that no turn waits for the program any more: an interruption of a turn does not withdraw its questions.
    fn moved_to_background(&self) {}
}

/// The answer to a question about a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAnswer {
    /// The program may connect to it.
    Allow,
    /// It may not: the user said no.
    Deny,
    /// It may not: there was no one to ask.
    NoOneToAsk,
    /// It may not, and the user was not asked or did not answer. The reason ends a sentence.
    Refused(String),
}

/// The questions about hosts of one program, from its start to its end. An answer of the user holds for that long.
pub struct HostQuestions {
    asker: Arc<dyn HostAsker>,
    /// The answers of the user. Locked while a question is open, so that there is one at a time.
    answers: tokio::sync::Mutex<HashMap<String, HostAnswer>>,
}

impl HostQuestions {
    /// Without answers yet.
    pub fn new(asker: Arc<dyn HostAsker>) -> Self {
        Self { asker, answers: tokio::sync::Mutex::default() }
    }

    /// The policy of the program, as it is now.
    pub fn policy(&self) -> Policy {
        self.asker.policy()
    }

    /// Whether the program may reach a host: by rules, by the mode, by an earlier answer, or by asking.
    pub async fn may_reach(&self, question: HostQuestion) -> HostAnswer {
        let host = question.host.clone();
        if let Some(answer) = self.decide(&host).1 {
            return answer;
        }
        let mut answers = self.answers.lock().await;
        // The answer to the question before may have added a rule.
        let (decision, known) = self.decide(&host);
        if let Some(answer) = known.or_else(|| answers.get(&host).cloned()) {
            return answer;
        }
        let answer = self.asker.ask(question, decision).await;
        answers.insert(host.clone(), answer.clone());
        match self.decide(&host).0.outcome {
            Outcome::Deny => HostAnswer::Deny,
            Outcome::Allow | Outcome::Ask => answer,
        }
    }

    /// What rules and mode say, and the answer if they need no user.
    fn decide(&self, host: &str) -> (Decision, Option<HostAnswer>) {
        let decision = self.asker.policy().decide_host(host);
        let answer = match decision.outcome {
            Outcome::Allow => Some(HostAnswer::Allow),
            Outcome::Deny => Some(HostAnswer::Refused(decision.reason.clone())),
            Outcome::Ask => None,
        };
        (decision, answer)
    }
}

impl Debug for HostQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostQuestions").field("asker", &self.asker).finish_non_exhaustive()
    }
}

/// The sandbox in which a session starts its commands, hooks and MCP servers.
pub trait SessionSandbox: Debug + Send + Sync {
    /// The boundary of a program under the policy of `asker`: its directories can be written, and its denied paths cannot
    /// be read or written. Each program that is started in it has questions of its own about hosts.
    ///
    /// # Errors
    /// When it cannot be enforced. Then nothing may be started.
    fn boundary(&self, asker: Arc<dyn HostAsker>) -> Result<Arc<dyn ProgramBoundary>, String>;

    /// What is enforced under a policy, for hosts.
    fn attestation(&self, policy: &Policy) -> Value;

    /// The folder that programs inside see as `/tmp`.
    fn temporary(&self) -> &Path;
}

/// The boundary of one program.
pub trait ProgramBoundary: Confine {
    /// A line for the model about a command that failed inside, if the sandbox may be the reason.
    fn hint(&self, output: &str, code: Option<i32>) -> Option<String>;

    /// What the user must know about a command that has ended, however it ended. Reads folders.
    fn notice(&self) -> Option<String> {
        None
    }
}

/// Whether a program starts in a sandbox.
#[derive(Clone, Debug)]
pub enum Confinement {
    /// It does not.
    None,
    /// It does.
    Inside {
        /// The session's sandbox.
        sandbox: Arc<dyn SessionSandbox>,
        /// The boundary.
        boundary: Arc<dyn ProgramBoundary>,
        /// Who is asked about hosts.
        asker: Arc<dyn HostAsker>,
    },
}

impl Confinement {
    /// The boundary, if there is one.
    pub fn boundary(&self) -> Option<&dyn Confine> {
        match self {
            Self::None => None,
            Self::Inside { boundary, .. } => Some(&**boundary),
        }
    }

    /// Notes that no turn waits for the program any more.
    pub fn moved_to_background(&self) {
        if let Self::Inside { asker, .. } = self {
            asker.moved_to_background();
        }
    }

    /// The confinement of a command.
    ///
    /// # Errors
    /// When the boundary cannot be enforced.
    pub(crate) fn of(
        sandbox: Option<&Arc<dyn SessionSandbox>>,
        asker: Arc<dyn HostAsker>,
        folder: &Path,
        command: &str,
    ) -> Result<Self, String> {
        match sandbox {
            Some(sandbox) if !asker.policy().runs_outside_sandbox(folder, command) => {
                let boundary = sandbox.boundary(Arc::clone(&asker))?;
                Ok(Self::Inside { boundary, sandbox: Arc::clone(sandbox), asker })
            }
            _ => Ok(Self::None),
        }
    }
}
