//! Send a prompt and read the agent's answer. `OSTLER_OFFLINE=1` chooses the offline demo, which needs no key.

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
