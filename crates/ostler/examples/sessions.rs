//! Sessions are kept on disk: go on with one later, or try something in a copy of it.

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let first = ostler::prompt("list the files", ostler::options()).await?;
    println!("a new session");

    // The same session, with everything that was said.
    let again = ostler::options().resume(&first.session_id);
    let second = ostler::prompt("count the files", again).await?;
    println!("the same session: {}", second.session_id == first.session_id);

    // A copy: the original does not learn of what is said there.
    let copy = ostler::options().resume(&first.session_id).fork();
    let third = ostler::prompt("help", copy).await?;
    println!("another session: {}", third.session_id != first.session_id);

    // The newest session of this folder, whichever that is.
    let newest = ostler::options().continue_newest();
    let fourth = ostler::prompt("count the files", newest).await?;
    println!("the copy again: {}", fourth.session_id == third.session_id);
    Ok(())
}
