//! Errors, and how to distinguish them.

use ostler::{Error, ErrorKind, Options};

/// What a program would do about an error.
fn advice(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Engine => "install an engine, or use the embedded one: Options::new()",
        ErrorKind::MaxTurns | ErrorKind::Budget => "allow more, or ask for less",
        ErrorKind::Usage => "correct the options",
        _ if error.is_retryable() => "try again in a moment",
        _ => "tell the user",
    }
}

#[tokio::main]
async fn main() {
    let attempts = [
        ("no engine", "hello", Options::new().executable("no/such/engine")),
        ("no folder", "hello", Options::new().cwd("no/such/folder")),
        ("too little", "list the files, then count the files", Options::new().max_turns(1)),
    ];
    for (name, prompt, options) in attempts {
        match ostler::prompt(prompt, options).await {
            Ok(result) => println!("{name}: {}", result.result.unwrap_or_default()),
            Err(error) => println!("{name}: {error}\n  -> {}", advice(&error)),
        }
    }
}
