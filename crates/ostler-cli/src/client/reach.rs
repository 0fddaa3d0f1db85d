//! How to reach a server: its address, the token, and error texts when it cannot be reached.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use ostler_client::{Address, Client, Error, token};

use crate::args::client::Reach;
use crate::serve;

#[derive(Debug)]
pub(crate) enum Trouble {
    /// The server cannot be reached, or refuses. The text is for the user.
    Server(String),
    /// The output cannot be written: its reader is gone.
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

/// The error, and what the user can do about it at a terminal.
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
    /// Whether its answers are printed as JSON.
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

/// The token from the environment, or for a server on this machine from the server's file.
fn token_for(address: &Address, reach: &Reach) -> Result<String, Trouble> {
    if let Some(token) = std::env::var("OSTLER_TOKEN").ok().filter(|token| !token.is_empty()) {
        return Ok(token);
    }
    let way_out = "set OSTLER_TOKEN";
    // Never send the token of this machine's server to another server.
    if !address.is_this_machine() {
        return Err(Trouble::Server(format!("{address} needs a token: {way_out}")));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let folder = reach.data.clone().or_else(|| serve::data_folder(variable));
    let folder = folder.ok_or_else(|| {
        Trouble::Server(format!("there is no home folder with a token: {way_out}"))
    })?;
    let path = folder.join("token");
    token::read(&path).map_err(|error| {
        Trouble::Server(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no token in {}: start a server with `ostler serve`, name its data folder with --data, or {way_out}",
                path.display()
            ),
            _ => format!("the token in {} cannot be used: {error}", path.display()),
        })
    })
}

/// A folder as an absolute path. A relative one starts at the current folder.
pub(crate) fn folder(said: &Path) -> Result<PathBuf, Trouble> {
    std::path::absolute(said)
        .map_err(|error| Trouble::Server(format!("{}: {error}", said.display())))
}
