//! `ostler auth …`: whether there is a key, and where it comes from.

/// The key or login for the model.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Auth {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum AuthCommand {
    /// Say whether there is a key or a login, and where it comes from; exits with 1 if there is none
    Status {
        /// Accepted for compatibility: without --text JSON is printed
        #[arg(long, conflicts_with = "text")]
        json: bool,
        /// Print text for people
        #[arg(long)]
        text: bool,
    },
    /// Not part of Ostler: log in with Claude Code, whose login is used here too
    Login {
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        ignored: Vec<String>,
    },
    /// Not part of Ostler: log out with Claude Code
    Logout,
}
