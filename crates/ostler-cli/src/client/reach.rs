//! The way to a server: where it is, the token that opens it, and what is said when it cannot be reached.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use ostler_client::{Address, Client, Error, token};

use crate::args::client::Reach;
use crate::serve;

/// Why something did not come about.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// In words: the server is not there, or says no.
    Server(String),
    /// Nobody reads what we print any more.
    Screen(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Screen(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Server(described(&error))
    }
}

/// What went wrong, and what to do about it at a terminal.
pub(crate) fn described(error: &Error) -> String {
    match error {
        Error::NoServer(_) => format!(
            "{error}: start one with `ostler serve`, or name another with --server or OSTLER_SERVER"
        ),
        error => error.to_string(),
    }
}

/// A server, and how its answers are printed.
pub(crate) struct Server {
    client: Client,
    /// Whether its answers are passed on as they are.
    pub(crate) is_json: bool,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Server {
    pub(crate) fn of(reach: &Reach) -> Result<Self, Trouble> {
        let address = Address::parse(&reach.server)?;
        let token = token_for(&address, reach)?;
        Ok(Self { client: Client::new(address, token, "cli")?, is_json: reach.json })
    }
}

/// From the environment; or, for a server on this machine, from its own file.
fn token_for(address: &Address, reach: &Reach) -> Result<String, Trouble> {
    if let Some(token) = std::env::var("OSTLER_TOKEN").ok().filter(|token| !token.is_empty()) {
        return Ok(token);
    }
    let way_out = "set OSTLER_TOKEN";
    // The token of this machine's server is nothing for another one.
    if !address.is_this_machine() {
        return Err(Trouble::Server(format!("{address} needs a token: {way_out}")));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let folder = reach.data.clone().or_else(|| serve::data_folder(variable));
    let folder = folder.ok_or_else(|| Trouble::Server(format!("there is no home: {way_out}")))?;
    let path = folder.join("token");
    token::read(&path).map_err(|error| {
        Trouble::Server(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no token in {}: start a server with `ostler serve`, say with --data where it keeps things, or {way_out}",
                path.display()
            ),
            _ => format!("the token in {} cannot be used: {error}", path.display()),
        })
    })
}

/// A folder as the server is to see it: from here, if it is not whole.
pub(crate) fn folder(said: &Path) -> Result<PathBuf, Trouble> {
    std::path::absolute(said)
        .map_err(|error| Trouble::Server(format!("{}: {error}", said.display())))
}
