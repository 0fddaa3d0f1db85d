//! Sessions are stored on disk: resume one later, or try something in a copy of it.

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let first = ostler::prompt("list the files", ostler::Options::new()).await?;
    println!("a new session");

    // The same session, with all its messages.
    let again = ostler::Options::new().resume(&first.session_id);
    let second = ostler::prompt("count the files", again).await?;
    println!("the same session: {}", second.session_id == first.session_id);

    // A copy: prompts sent to it do not change the original.
    let copy = ostler::Options::new().resume(&first.session_id).fork();
    let third = ostler::prompt("help", copy).await?;
    println!("another session: {}", third.session_id != first.session_id);

    // The newest session of this folder.
    let newest = ostler::Options::new().continue_newest();
    let fourth = ostler::prompt("count the files", newest).await?;
    println!("the copy again: {}", fourth.session_id == third.session_id);

    // All sessions of this folder, without an engine.
    let sessions = ostler::Sessions::new().folder(".");
    sessions.rename(&first.session_id, "Files").await?;
    let listed = sessions.info(&first.session_id).await?;
    println!("its title: {}", listed.map(|session| session.summary).unwrap_or_default());
    Ok(())
}
