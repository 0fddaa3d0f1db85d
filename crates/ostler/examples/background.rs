//! A command that runs in the background during the conversation. The agent is notified when it ends; the query waits.

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
