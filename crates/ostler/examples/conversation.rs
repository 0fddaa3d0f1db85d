//! A conversation: a client keeps the session open for any number of prompts.

use ostler::{Client, Decision};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options =
        ostler::Options::new().cwd(folder.path()).on_permission(|_| async { Decision::allow() });
    let mut client = Client::connect(options).await?;

    // The short way: send a prompt and wait for the result.
    let result = client.prompt("write \"good morning\" to notes.txt").await?;
    println!("agent: {}", result.result.unwrap_or_default());

    // The long way: send a prompt and read all messages up to the result.
    client.send("read notes.txt").await?;
    let mut turn = client.turn();
    while let Some(message) = turn.next().await {
        if let Some(text) = message?.text() {
            println!("agent: {text}");
        }
    }

    client.close().await?;
    Ok(())
}
