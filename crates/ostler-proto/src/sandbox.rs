//! Sandbox settings: what commands may touch, from `sandbox` in settings.

use std::collections::BTreeMap;

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::Extra;

/// The `sandbox` section of settings.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SandboxSettings {
    /// Whether commands run in a sandbox.
    pub enabled: Option<bool>,
    /// Whether to refuse to start if no sandbox is available.
    pub fail_if_unavailable: Option<bool>,
    /// Whether a sandboxed command needs no permission.
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Whether the model may ask to run a command outside.
    pub allow_unsandboxed_commands: Option<bool>,
    /// Commands that always run outside.
    pub excluded_commands: Option<Vec<String>>,
    /// Network access.
    pub network: Option<SandboxNetwork>,
    /// File system access.
    pub filesystem: Option<SandboxFilesystem>,
    /// Secrets hidden from commands.
    pub credentials: Option<SandboxCredentials>,
    /// Violations to ignore, by command.
    pub ignore_violations: Option<BTreeMap<String, Vec<String>>>,
    /// Whether to accept a weaker sandbox inside another container.
    pub enable_weaker_nested_sandbox: Option<bool>,
    /// Whether commands may create user namespaces.
    pub allow_nested_user_namespaces: Option<bool>,
    /// Whether to accept weaker network isolation.
    pub enable_weaker_network_isolation: Option<bool>,
    /// Whether macOS automation passes.
    pub allow_apple_events: Option<bool>,
    /// The search program to use inside.
    pub ripgrep: Option<SandboxRipgrep>,
    /// Where bubblewrap is.
    pub bwrap_path: Option<String>,
    /// Where socat is.
    pub socat_path: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

impl SandboxSettings {
    /// Whether commands must not run without a sandbox. Only `failIfUnavailable: false` lets them run without the requested
    /// one.
    pub fn is_required(&self) -> bool {
        self.enabled == Some(true) && self.fail_if_unavailable != Some(false)
    }
}

/// Network access.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SandboxNetwork {
    /// Domains that may be reached.
    pub allowed_domains: Option<Vec<String>>,
    /// Domains that may not.
    pub denied_domains: Option<Vec<String>>,
    /// Whether everything else is refused without asking.
    pub strict_allowlist: Option<bool>,
    /// Whether only an administrator's list counts.
    pub allow_managed_domains_only: Option<bool>,
    /// Sockets that may be used.
    pub allow_unix_sockets: Option<Vec<String>>,
    /// Whether all may.
    pub allow_all_unix_sockets: Option<bool>,
    /// Whether commands may listen on local ports.
    pub allow_local_binding: Option<bool>,
    /// macOS services that may be looked up.
    pub allow_mach_lookup: Option<Vec<String>>,
    /// An HTTP proxy to use instead of the built-in one.
    pub http_proxy_port: Option<u16>,
    /// A SOCKS proxy to use instead of the built-in one.
    pub socks_proxy_port: Option<u16>,
    /// Certificates for TLS interception.
    pub tls_terminate: Option<SandboxTls>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Certificates for TLS interception.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SandboxTls {
    /// The authority's certificate.
    pub ca_cert_path: Option<String>,
    /// Its key.
    pub ca_key_path: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// File system access.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SandboxFilesystem {
    /// Further writable paths.
    pub allow_write: Option<Vec<String>>,
    /// Paths that must not be written.
    pub deny_write: Option<Vec<String>>,
    /// Paths that must not be read.
    pub deny_read: Option<Vec<String>>,
    /// Exceptions that may be read.
    pub allow_read: Option<Vec<String>>,
    /// Whether only an administrator's list of readable paths counts.
    pub allow_managed_read_paths_only: Option<bool>,
    /// Whether file system rules are disabled.
    pub disabled: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Secrets hidden from commands.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct SandboxCredentials {
    /// In files.
    pub files: Option<Vec<CredentialFile>>,
    /// In environment variables.
    pub env_vars: Option<Vec<CredentialVariable>>,
    /// Whether a secret may be put into an unencrypted request.
    pub allow_plaintext_inject: Option<bool>,
    /// Which variables make up an AWS key.
    pub aws_pairs: Option<Vec<AwsPair>>,
    /// How requests signed for AWS are treated.
    pub sigv4: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file with a secret.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct CredentialFile {
    /// The file.
    pub path: String,
    /// `deny` or `mask`.
    pub mode: String,
    /// A pattern that finds the secret in it.
    pub extract: Option<String>,
    /// What to do when it does not: `deny`, `error` or `warn`.
    pub on_extract_no_match: Option<String>,
    /// `jwt`.
    pub decode: Option<String>,
    /// Claims to mask.
    pub mask_claims: Option<Vec<String>>,
    /// Whether to mask copies of the secret too.
    pub mask_duplicates: Option<bool>,
    /// Hosts that get the real secret.
    pub inject_hosts: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An environment variable with a secret.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct CredentialVariable {
    /// The variable.
    pub name: String,
    /// `deny` or `mask`.
    pub mode: String,
    /// A pattern that finds the secret in it.
    pub extract: Option<String>,
    /// What to do when it does not: `deny`, `error` or `warn`.
    pub on_extract_no_match: Option<String>,
    /// `jwt`.
    pub decode: Option<String>,
    /// Claims to mask.
    pub mask_claims: Option<Vec<String>>,
    /// Hosts that get the real secret.
    pub inject_hosts: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Variables that make up an AWS key.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
pub struct AwsPair {
    /// The key's id.
    pub access_key_id_var: String,
    /// The key.
    pub secret_access_key_var: String,
    /// The session token.
    pub session_token_var: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The search program to use inside.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
pub struct SandboxRipgrep {
    /// The program.
    pub command: String,
    /// Its first arguments.
    pub args: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}
