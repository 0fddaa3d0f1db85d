//! Send a prompt and read the agent's answer. Without a key in the environment an offline demo answers.

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let mut messages = ostler::query("What is in this folder?", ostler::Options::new());
    while let Some(message) = messages.next().await {
        if let Some(text) = message?.text() {
            println!("{text}");
        }
    }
    Ok(())
}
