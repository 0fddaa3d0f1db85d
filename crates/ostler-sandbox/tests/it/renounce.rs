//! A process that renounces everything can still compute, and nothing else.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};

/// Set in the process that tries it.
const TRY: &str = "OSTLER_TRY_TO_REACH";

// Mutants: `renounce` does nothing; `openat`, `socket`, `clone` or `execve` in the list of what is allowed.
#[test]
fn it_reaches_no_file_no_network_and_no_program() {
    if let Some(renounces) = std::env::var_os(TRY) {
        return attempt(renounces == "with");
    }
    let reached = |renounces: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "renounce::it_reaches_no_file_no_network_and_no_program";
        command.args(["--exact", "--nocapture", "--test-threads=1", test]).env(TRY, renounces);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"data").unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|line| line.split_once("REACHED")).map(|(_, rest)| rest);
        line.unwrap_or_else(|| panic!("{text}")).trim().to_owned()
    };
    assert_eq!(reached("with"), "input memory");
    assert_eq!(
        reached("without"),
        "input memory file listing write datagram stream program thread",
        "the test itself does not work"
    );
}

/// Prints what can be reached and ends the process, because the test harness cannot do its work any more.
fn attempt(renounces: bool) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    if renounces {
        ostler_sandbox::renounce().unwrap();
    }
    let mut reached = Vec::new();
    let mut note = |name, works: bool| {
        if works {
            reached.push(name);
        }
    };
    let mut text = String::new();
    note("input", std::io::stdin().read_to_string(&mut text).is_ok() && text == "data");
    note("memory", vec![1_u8; 50 << 20].iter().all(|byte| *byte == 1));
    note("file", File::open("/etc/passwd").is_ok());
    note("listing", std::fs::read_dir("/").is_ok());
    note("write", std::fs::write(folder.path().join("x"), "x").is_ok());
    note("datagram", UdpSocket::bind("127.0.0.1:0").is_ok());
    note("stream", TcpStream::connect(address).is_ok());
    note("program", Command::new("/bin/true").status().is_ok());
    note("thread", std::thread::Builder::new().spawn(|| ()).is_ok());
    println!("REACHED {}", reached.join(" "));
    std::io::stdout().flush().unwrap();
    std::process::exit(0);
}
