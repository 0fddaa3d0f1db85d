//! `memory`: the memory of a server after many sessions have ended, compared with the same server before the first.
//!
//! Each session has one run: two model calls and one Glob. An engine is kept for ten minutes after its run by
//! default; here for five seconds (`--idle-timeout 5s`), so that all of them end during the benchmark. The C
//! library's free memory is returned every half minute, if an engine ended. So the memory is measured after [`WAIT`].

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::load::desk::Desk;
use crate::load::raise_file_limit;
use crate::table;

/// The option for the number of sessions; the promise is about 5,000.
pub(crate) const SESSIONS: &str = "--sessions";
const DEFAULT: usize = 300;
/// How many runs are active at the same time.
const AT_ONCE: usize = 32;
const IDLE: &str = "5s";
/// From the end of the last run: the idle time, and two rounds in which memory is returned, with some reserve.
const WAIT: Duration = Duration::from_secs(75);
/// The promise, in MB.
const LIMIT: f64 = 120.0;

pub(crate) fn run() -> Result<Vec<String>> {
    raise_file_limit();
    let count = sessions(&std::env::args().collect::<Vec<_>>())?;
    let runtime = Runtime::new().context("starting a runtime")?;
    let [empty, ended, later] = runtime.block_on(measure(count))?;
    println!(
        "memory: {count} sessions of one run, {AT_ONCE} at a time, --idle-timeout {IDLE}; resident memory of the server, MB"
    );
    let rows = [
        ["before the first".to_owned(), format!("{empty:.0}")],
        ["after the last".to_owned(), format!("{ended:.0}")],
        [
            format!("{} s later: engines have ended, memory was returned", WAIT.as_secs()),
            format!("{later:.0}"),
        ],
    ];
    print!("{}", table::render(&rows));
    Ok(broken(count, later).into_iter().collect())
}

fn broken(count: usize, megabytes: f64) -> Option<String> {
    (megabytes > LIMIT).then(|| {
        format!("memory: a server uses {megabytes:.0} MB after {count} sessions; the promise is {LIMIT} MB")
    })
}

fn sessions(words: &[String]) -> Result<usize> {
    let Some(place) = words.iter().position(|word| word == SESSIONS) else { return Ok(DEFAULT) };
    let number = words.get(place + 1).with_context(|| format!("{SESSIONS} needs a number"))?;
    number.parse().with_context(|| format!("{SESSIONS} {number} is not a number"))
}

async fn measure(count: usize) -> Result<[f64; 3]> {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Glob", json!({"pattern": "*.txt"})))
        .rule(when(), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    let desk = Desk::with(&api, AT_ONCE, &["--idle-timeout", IDLE]).await?;
    let megabytes = || anyhow::Ok(desk.resident_kib()? * 1024.0 / 1e6);
    let empty = megabytes()?;
    let runs = stream::iter(0..count).map(|_| async {
        let session = desk.session().await?;
        desk.prompt(&session, "Look around.").await?;
        desk.until_completed(&session, 1).await
    });
    runs.buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    ensure!(api.requests().len() == 2 * count, "every run asked its model twice");
    let ended = megabytes()?;
    tokio::time::sleep(WAIT).await;
    Ok([empty, ended, megabytes()?])
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, broken, sessions};

    #[test]
    fn the_number_of_sessions_is_an_option() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(sessions(&words("bench memory")).unwrap(), DEFAULT);
        assert_eq!(sessions(&words("bench memory --sessions 5000")).unwrap(), 5_000);
        assert!(sessions(&words("bench --sessions many")).is_err());
        assert!(sessions(&words("bench --sessions")).is_err());
    }

    #[test]
    fn more_than_120_megabytes_exceeds_the_limit() {
        assert_eq!(broken(5_000, 120.0), None);
        assert!(broken(5_000, 121.0).is_some());
    }
}
