//! Show the answer while it is being written, and what the agent does in between.

use std::io::Write as _;

use ostler::Message;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = ostler::Options::new().partial_messages();
    let mut messages = ostler::query("list the files, then count the files", options);
    while let Some(message) = messages.next().await {
        let message = message?;
        if let Some(piece) = message.text_delta() {
            print!("{piece}");
            std::io::stdout().flush()?;
        }
        for call in message.tool_uses() {
            println!("\n[{} {}]", call.name, call.input);
        }
        if let Message::Result(result) = &message {
            println!("\n[{} turns, {} $]", result.num_turns, result.total_cost_usd);
        }
    }
    Ok(())
}
