//! Work given to subagents. Their messages arrive as they work, and their calls require approval like all others.

use ostler::{Decision, Message};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let options = ostler::Options::new().cwd(folder.path()).on_permission(|call| async move {
        // A subagent has an id; the main conversation has none.
        let who = if call.agent_id.is_some() { "a subagent" } else { "the agent" };
        println!("? {who} wants {} {}", call.tool_name, call.input);
        Decision::allow()
    });
    let mut messages = ostler::query("ask a subagent to run `touch a.txt`", options);
    while let Some(message) = messages.next().await {
        let message = message?;
        let depth = if message.parent_tool_use_id().is_some() { "  subagent" } else { "agent" };
        for call in message.tool_uses() {
            println!("{depth} calls {}", call.name);
        }
        match &message {
            Message::Assistant(_) => {
                if let Some(text) = message.text() {
                    println!("{depth}: {text}");
                }
            }
            Message::Result(result) => println!("[{} turns]", result.num_turns),
            _ => {}
        }
    }
    Ok(())
}
