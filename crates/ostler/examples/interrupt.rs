//! Stop an agent that takes too long. The session stays usable.

use ostler::{Client, Message};

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let options = ostler::Options::new().allow(["Bash(sleep:*)"]);
    let mut client = Client::connect(options).await?;
    // A handle can be used from any task, also while this one reads messages.
    let handle = client.handle();

    client.send("run `sleep 600`").await?;
    let mut turn = client.turn();
    while let Some(message) = turn.next().await {
        let message = message?;
        if message.tool_uses().next().is_some() {
            println!("the agent is busy; stopping it");
            handle.interrupt().await?;
        }
        if let Message::Result(result) = message {
            println!("stopped: {}", result.subtype);
        }
    }

    let result = client.prompt("count the files").await?;
    println!("{}", result.result.unwrap_or_default());
    client.close().await
}
