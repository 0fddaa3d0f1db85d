//! What a failed command tells the model: that the sandbox may be the reason, and the one thing that would allow it.

use std::path::PathBuf;

use ostler_sandbox::{Boundary, Network, Sandbox, UnixSockets};

use super::hosts::RefusedHost;

/// What a command prints when the file system refuses a change.
const READ_ONLY: [&str; 2] = ["Read-only file system", "EROFS"];
/// When something is not there, which hidden paths are not.
const MISSING: [&str; 4] =
    ["No such file or directory", "ENOENT", "Permission denied", "FileNotFoundError"];
/// When a system call is forbidden.
const FORBIDDEN: [&str; 2] = ["Operation not permitted", "EPERM"];
/// What a command prints about a Unix socket.
const SOCKET: [&str; 5] = ["socket", ".sock", "AF_UNIX", "Docker daemon", "docker daemon"];

/// A line about a command that failed, if the sandbox may be the reason.
pub(super) fn hint(
    sandbox: &Sandbox,
    refused: &[RefusedHost],
    output: &str,
    code: Option<i32>,
    may_leave: bool,
) -> Option<String> {
    if let Some(limit) = sandbox.reached_limit() {
        // Certain, unlike what the output says. Outside the sandbox nothing would limit it, so that is not offered.
        return Some(format!(
            "[This ran in a sandbox: {limit}. Use less, or ask the user to change the setting.]"
        ));
    }
    let known = sandbox.reason_of_failure(output, code);
    let (reason, advice) = match cause(sandbox.boundary(), refused, output) {
        Some(Cause { reason, advice }) => (reason.or(known)?, advice),
        None => (known?, None),
    };
    let advice = advice.unwrap_or_else(|| leaving(may_leave).to_owned());
    Some(format!("[This ran in a sandbox: {reason}. {advice}]"))
}

/// Why a command failed, where something smaller than leaving the sandbox would allow it.
#[derive(Debug, PartialEq, Eq)]
struct Cause {
    /// `None` if the sandbox itself has a better text.
    reason: Option<String>,
    /// `None` if only leaving the sandbox would allow it.
    advice: Option<String>,
}

fn leaving(may_leave: bool) -> &'static str {
    match may_leave {
        true => {
            "If that was the cause and the command must run anyway, call it again with dangerouslyDisableSandbox: the \
             user is asked."
        }
        false => {
            "No answer allows it here: sandbox.allowUnsandboxedCommands is false, so ask the user to run it."
        }
    }
}

fn cause(boundary: &Boundary, refused: &[RefusedHost], output: &str) -> Option<Cause> {
    hosts(refused)
        .or_else(|| write(boundary, output))
        .or_else(|| unix_socket(boundary, output))
        .or_else(|| hidden(boundary, output))
        .or_else(|| no_network(boundary, output))
}

fn hosts(refused: &[RefusedHost]) -> Option<Cause> {
    let first = refused.first()?;
    let all = refused.iter().map(|it| format!("{}:{} ({})", it.host, it.port, it.reason));
    let reason = format!("it could not reach {}", all.collect::<Vec<_>>().join(", "));
    Some(Cause { reason: Some(reason), advice: Some(first.advice.clone()) })
}

fn no_network(boundary: &Boundary, output: &str) -> Option<Cause> {
    const UNRESOLVED: [&str; 7] = [
        "Could not resolve host",
        "Network is unreachable",
        "Temporary failure in name resolution",
        "Name or service not known",
        "ENOTFOUND",
        "EAI_AGAIN",
        "ENETUNREACH",
    ];
    let advice = match boundary.network {
        Network::None => {
            "To allow it, add the host to sandbox.network.allowedDomains and start the session again."
        }
        Network::Proxy(_) => {
            "To allow it, let the program use the proxy in HTTPS_PROXY; other ways to the network do not exist here."
        }
        Network::UserProxy(_) | Network::Host => return None,
    };
    prints(output, &UNRESOLVED).then(|| Cause { reason: None, advice: Some(advice.to_owned()) })
}

fn write(boundary: &Boundary, output: &str) -> Option<Cause> {
    let line = output.lines().find(|line| prints(line, &READ_ONLY))?;
    let is_protected =
        |path: &PathBuf| boundary.protected.iter().any(|it| path.starts_with(&it.path));
    let paths = absolute_paths(line);
    let is_inside = |path: &PathBuf| boundary.writable.iter().any(|root| path.starts_with(root));
    if paths.iter().any(is_protected) {
        let reason =
            "it may not change files that later run commands, such as .git/hooks and .claude";
        return Some(Cause { reason: Some(reason.to_owned()), advice: None });
    }
    if paths.iter().any(is_inside) || paths.is_empty() {
        // A relative path: it may be one that is protected.
        let advice = "To allow a folder, the user adds it with --add-dir or to sandbox.filesystem.allowWrite; files that \
                      later run commands stay read-only.";
        return Some(Cause { reason: None, advice: Some(advice.to_owned()) });
    }
    let path = paths.first()?;
    let folder = path.parent().unwrap_or(path).display();
    let reason = format!("{} is outside the folders that it can write", path.display());
    let advice = format!(
        "To allow it, the user adds {folder} with --add-dir or to sandbox.filesystem.allowWrite."
    );
    Some(Cause { reason: Some(reason), advice: Some(advice) })
}

fn hidden(boundary: &Boundary, output: &str) -> Option<Cause> {
    let lines = output.lines().filter(|line| prints(line, &MISSING));
    let is_hidden = |path: &PathBuf| {
        let by = boundary.hidden.iter().filter(|it| path.starts_with(it)).max()?;
        let shown = boundary.readable.iter().chain(&boundary.writable);
        // The deeper entry counts.
        let is_shown = shown.filter(|it| path.starts_with(it)).any(|it| it.starts_with(by));
        (!is_shown).then(|| path.clone())
    };
    let path = lines.flat_map(absolute_paths).find_map(|path| is_hidden(&path))?;
    Some(Cause {
        reason: Some(format!("{} is hidden in it", path.display())),
        advice: Some(format!(
            "To allow it, the user adds {} to sandbox.filesystem.allowRead.",
            path.display()
        )),
    })
}

fn unix_socket(boundary: &Boundary, output: &str) -> Option<Cause> {
    let is_refused =
        |line: &str| prints(line, &SOCKET) && (prints(line, &FORBIDDEN) || prints(line, &MISSING));
    if boundary.unix_sockets != UnixSockets::None || !output.lines().any(is_refused) {
        return None;
    }
    Some(Cause {
        reason: Some("it may not use Unix sockets".to_owned()),
        advice: Some(
            "To allow it, the user adds the path of the socket to sandbox.network.allowUnixSockets."
                .to_owned(),
        ),
    })
}

fn prints(output: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| output.contains(text))
}

/// The absolute paths in a line, as programs write them: in quotes, or up to a space or colon.
fn absolute_paths(line: &str) -> Vec<PathBuf> {
    let is_end = |character: char| "'\"`‘’“”:,;()".contains(character) || character.is_whitespace();
    line.split(is_end)
        .filter(|word| word.starts_with('/') && word.len() > 1)
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use ostler_sandbox::{Kind, Protected};

    use super::*;

    fn boundary() -> Boundary {
        let mut boundary = Boundary::default();
        boundary.writable = vec!["/work".into()];
        boundary.protected =
            vec![Protected { path: "/work/.git/hooks".into(), kind: Kind::Folder }];
        boundary.hidden = vec!["/people".into(), "/srv/secret".into()];
        boundary.readable = vec!["/people/me/.cargo/bin".into()];
        boundary
    }

    fn refused(reason: &str) -> RefusedHost {
        let (host, reason) = ("new.example".to_owned(), reason.to_owned());
        let advice =
            "To allow it, add \"new.example\" to sandbox.network.allowedDomains.".to_owned();
        RefusedHost { host, port: 443, reason, advice }
    }

    // Mutants: a kind of refusal is not known; refused hosts come last; what is shown in a hidden folder counts as hidden; the
    // file itself is named instead of its folder.
    #[test]
    fn each_refusal_names_the_one_setting_that_allows_it() {
        for (output, expected) in [
            (
                "touch: cannot touch '/etc/x': Read-only file system",
                Some("adds /etc with --add-dir"),
            ),
            ("OSError: [Errno 30] Read-only file system: '/opt/a/b'", Some("adds /opt/a with")),
            ("Error: EROFS: read-only file system, open '/opt/x'", Some("filesystem.allowWrite")),
            ("touch: cannot touch '../x': Read-only file system", Some("filesystem.allowWrite")),
            (
                "cat: /people/me/.ssh/id: No such file or directory",
                Some("/people/me/.ssh/id to sandbox.filesystem.allowRead"),
            ),
            ("cat: /srv/secret: Permission denied", Some("filesystem.allowRead")),
            ("curl: (6) Could not resolve host: a.example", Some("network.allowedDomains")),
            ("getaddrinfo ENOTFOUND a.example", Some("network.allowedDomains")),
            (
                "socket.socket(socket.AF_UNIX): Operation not permitted",
                Some("network.allowUnixSockets"),
            ),
            (
                "dial unix /var/run/docker.sock: connect: operation: Operation not permitted",
                Some("allowUnixSockets"),
            ),
            (
                "ssh-add: Could not open a connection: /run/a.sock: No such file or directory",
                Some("allowUnixSockets"),
            ),
            // These have no smaller permission than to leave.
            ("rm: cannot remove '/work/.git/hooks/x': Read-only file system", None),
            ("strace: ptrace(PTRACE_TRACEME): Operation not permitted", None),
            ("mount: permission denied", None),
            ("cat: /people/me/.cargo/bin/x: No such file or directory", None),
            ("cat: /work/missing: No such file or directory", None),
        ] {
            let found = cause(&boundary(), &[], output).and_then(|cause| cause.advice);
            match expected {
                Some(part) => {
                    let found = found.unwrap_or_else(|| panic!("{output}: no advice"));
                    assert!(found.contains(part), "{output}: {found}");
                }
                None => assert_eq!(found, None, "{output}"),
            }
        }
        let found = cause(&boundary(), &[refused("the user denied it")], "EROFS").unwrap();
        assert_eq!(
            found.reason.unwrap(),
            "it could not reach new.example:443 (the user denied it)"
        );
        assert!(found.advice.unwrap().contains("allowedDomains"));
    }

    // Mutants: a setting that is on is named; a network that is not limited is the cause; a file in another line of the output
    // counts; a file inside counts as one outside.
    #[test]
    fn what_is_allowed_already_is_not_named() {
        let advice = |boundary: &Boundary, output: &str| {
            cause(boundary, &[], output).and_then(|cause| cause.advice)
        };
        let socket = "socket.socket(socket.AF_UNIX): Operation not permitted";
        let unresolved = "curl: (6) Could not resolve host: a.example";
        let mut open = boundary();
        open.unix_sockets = UnixSockets::All;
        assert_eq!(advice(&open, socket), None);
        for network in [Network::Host, Network::UserProxy("/p".into())] {
            open.network = network;
            assert_eq!(advice(&open, unresolved), None);
        }
        open.network = Network::Proxy("/p".into());
        assert!(advice(&open, unresolved).unwrap().contains("HTTPS_PROXY"));
        // A folder inside may be one that is protected: the text says so, and does not offer what would not help.
        let inside = "touch: cannot touch '/work/.env': Read-only file system";
        let cause = cause(&boundary(), &[], inside).unwrap();
        assert_eq!(cause.reason, None);
        assert!(cause.advice.unwrap().contains("stay read-only"));
        // Only the line with the error names the file.
        let several =
            "compiling /opt/src/main.c\ntouch: cannot touch '/etc/x': Read-only file system";
        assert!(advice(&boundary(), several).unwrap().contains("adds /etc with"));
    }

    #[test]
    fn the_way_out_is_offered_only_where_the_settings_allow_it() {
        assert!(leaving(true).contains("dangerouslyDisableSandbox"));
        assert!(!leaving(false).contains("dangerouslyDisableSandbox"));
    }

    #[test]
    fn a_protected_file_is_named_as_the_reason() {
        let output = "cannot create /work/.git/hooks/pre-commit: Read-only file system";
        let reason = cause(&boundary(), &[], output).unwrap().reason.unwrap();
        assert!(reason.contains("later run commands"), "{reason}");
        assert_eq!(absolute_paths("a '/b c' /d: e"), [PathBuf::from("/b"), PathBuf::from("/d")]);
    }
}
