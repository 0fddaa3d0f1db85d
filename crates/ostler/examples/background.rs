//! Work that goes on while the conversation does: the agent is told when it ends, and a query waits for that.

use ostler::Message;
use ostler::proto::message::System;

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let options = ostler::Options::new().allow(["Bash"]);
    let prompt = "run `sleep 1; echo done` in the background";
    let mut messages = ostler::query(prompt, options);
    while let Some(message) = messages.next().await {
        match message? {
            Message::System(System::TaskStarted(task)) => println!("started: {}", task.description),
            Message::System(System::TaskNotification(task)) => println!("ended: {}", task.summary),
            Message::Result(result) => println!("agent: {}", result.result.unwrap_or_default()),
            _ => {}
        }
    }
    Ok(())
}
