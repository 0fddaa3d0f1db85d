//! How much disk space a streamed text needs after its run.

use ostler_testkit::{Script, reply, when};

use crate::desk::Desk;

/// The bytes of the database, without free pages.
async fn used(desk: &Desk) -> i64 {
    let file = desk.data().join("backup-of-the-moment.db");
    ostler_store::Store::backup(desk.store(), &file).await.unwrap();
    let bytes = std::fs::metadata(&file).unwrap().len();
    std::fs::remove_file(&file).unwrap();
    i64::try_from(bytes).unwrap()
}

async fn run(desk: &Desk, prompt: &str) -> i64 {
    let client = desk.client();
    let session = client.session().await;
    let before = used(desk).await;
    let run = client.prompt(&session, prompt).await;
    client.until(&run, "completed").await;
    used(desk).await - before
}

// A bound on bytes. That no delta stays is shown by `history::deltas_are_gone_when_the_message_is_there`.
#[tokio::test]
async fn after_a_run_of_many_deltas_only_its_text_is_on_disk() {
    let count = if std::env::var_os("OSTLER_MEASURE").is_some() { 20_000 } else { 2_000 };
    let deltas = move || (0..count).map(|number| format!("{:04} ", number % 10_000));
    let script = Script::new()
        .rule(when().prompt_contains("long"), reply().text_pieces(deltas()))
        .rule(when(), reply().text("done"));
    let desk = Desk::open(script).await;
    run(&desk, "first").await;
    let (short, long) = (run(&desk, "short").await, run(&desk, "long").await);
    let text = i64::from(count) * 5;
    let per_delta = (long - short) as f64 / f64::from(count);
    println!(
        "{count} deltas of 5 bytes: {long} bytes on disk, {short} for a run with one word; {per_delta:.1} bytes for each delta, \
         {:.2} times the text",
        (long - short) as f64 / text as f64
    );
    // The text is in the message, in the result and in the record of the run.
    assert!(long - short < 6 * text + 100_000, "{long} bytes for a text of {text}");
}
