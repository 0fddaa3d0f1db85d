//! A run is recorded once, and answered from the recording ever after: no key, no network, the same every time.

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let (prompt, tape) = ("read apple.txt", "recordings/apple.jsonl");
    let first = ostler::prompt(prompt, ostler::Options::new().record(tape)).await?;
    println!("recorded: {}", first.result.unwrap_or_default());

    // The tools run as always, so this fails as soon as the file says something else.
    let again = ostler::prompt(prompt, ostler::Options::new().replay(tape)).await?;
    println!("replayed: {}", again.result.unwrap_or_default());

    // From the recording come their results, too, if that is wanted.
    std::fs::write("apple.txt", "green\n").expect("the folder can be written");
    let tools = ostler::prompt(prompt, ostler::Options::new().replay(tape).replay_tools()).await?;
    println!("replayed with its tools: {}", tools.result.unwrap_or_default());

    match ostler::prompt(prompt, ostler::Options::new().replay(tape)).await {
        Ok(_) => println!("nobody noticed"),
        Err(error) => println!("noticed: {error}"),
    }
    Ok(())
}
