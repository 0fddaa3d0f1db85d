//! Why a connection was not made, as text for the program in the sandbox and for the model that reads its output.

use std::io;

use crate::host::HostError;
use crate::rules::DenyReason;

/// The most characters of a host that a text repeats.
const LONGEST_SHOWN: usize = 300;

/// Why a connection was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Malformed(#[from] HostError),
    #[error(transparent)]
    Rules(#[from] DenyReason),
    #[error("the user denied it")]
    Answer,
    #[error("it is not in sandbox.network.allowedDomains, and there is no one to ask")]
    NoOneToAsk,
    #[error("{0}")]
    NotAsked(String),
    #[error("it is not in sandbox.network.allowedDomains, and too many questions are open")]
    TooManyQuestions,
    #[error("the Host header names another host than the request")]
    HostHeader,
    #[error("of SOCKS5 only the command CONNECT is supported")]
    SocksCommand,
    #[error("its name cannot be resolved ({0})")]
    Resolve(io::Error),
    #[error("no connection to it could be made ({0})")]
    Connect(io::Error),
    #[error("it is unknown whether its address belongs to this machine ({0})")]
    OwnAddress(io::Error),
}

impl Refusal {
    /// Whether the rules or the user refused it, and not the network.
    pub(crate) fn is_denial(&self) -> bool {
        !matches!(self, Self::Resolve(_) | Self::Connect(_))
    }

    /// What the reader can do about it.
    pub(crate) fn advice(&self, host: &str) -> String {
        match self {
            Self::Rules(DenyReason::Denied(_)) => {
                "To allow it, remove that entry from sandbox.network.deniedDomains.".to_owned()
            }
            Self::Rules(DenyReason::Inside { address, .. } | DenyReason::Own(address)) => format!(
                "To allow it, add the address itself with its port to sandbox.network.allowedDomains, such as {}.",
                std::net::SocketAddr::new(*address, 8080)
            ),
            Self::Malformed(_) | Self::HostHeader | Self::SocksCommand => {
                "Correct the request.".to_owned()
            }
            Self::Answer => "Ask the user before you try it again.".to_owned(),
            Self::Resolve(_) | Self::Connect(_) | Self::OwnAddress(_) => {
                "The sandbox allows this host; check its name, the port and the network.".to_owned()
            }
            Self::Rules(_) | Self::NoOneToAsk | Self::NotAsked(_) | Self::TooManyQuestions => {
                format!(
                    "To allow it, add {host:?} to sandbox.network.allowedDomains, or run the command outside the sandbox with the user's approval."
                )
            }
        }
    }

    /// One line: which host, why, and what to do. `target` is as the client wrote it.
    pub(crate) fn text(&self, target: &str, host: &str) -> String {
        let what =
            if self.is_denial() { "The sandbox refused" } else { "The sandbox could not make" };
        let (target, host) = (shown(target), shown(host));
        format!("{what} a connection to {target}: {self}. {}", self.advice(&host))
    }
}

/// Text of a client without control characters and not too long.
pub(crate) fn shown(text: &str) -> String {
    let escaped: String = text.chars().flat_map(char::escape_debug).take(LONGEST_SHOWN).collect();
    if escaped.len() < LONGEST_SHOWN { escaped } else { format!("{escaped}…") }
}
