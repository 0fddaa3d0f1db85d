//! Records a run once. After that the recording answers, without a key and a network, and always the same.

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let (prompt, tape) = ("read apple.txt", "recordings/apple.jsonl");
    let first = ostler::prompt(prompt, ostler::Options::new().record(tape)).await?;
    println!("recorded: {}", first.result.unwrap_or_default());

    // The tools still run, so this fails as soon as the content of the file changes.
    let again = ostler::prompt(prompt, ostler::Options::new().replay(tape)).await?;
    println!("replayed: {}", again.result.unwrap_or_default());

    // With `replay_tools` their results come from the recording too.
    std::fs::write("apple.txt", "green\n").expect("the folder can be written");
    let tools = ostler::prompt(prompt, ostler::Options::new().replay(tape).replay_tools()).await?;
    println!("replayed with its tools: {}", tools.result.unwrap_or_default());

    match ostler::prompt(prompt, ostler::Options::new().replay(tape)).await {
        Ok(_) => println!("the change was not noticed"),
        Err(error) => println!("noticed: {error}"),
    }
    Ok(())
}
