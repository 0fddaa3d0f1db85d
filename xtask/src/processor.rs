//! How much processor time a step of the tests takes. On a busy machine wall time says little, and two lanes share the
//! processors, so this is the number to compare before and after a change.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::tally::Tally;

/// The kernel counts in these units on every Linux machine (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// How often a process is looked at that has closed its output and is about to end.
const PAUSE: Duration = Duration::from_millis(5);

/// The processor time of a process and of everything that it waited for. Call it when the output of the process has ended;
/// it waits for the end of the process and leaves the exit code to `wait`. `None` on systems without `/proc`.
pub(crate) fn time_of_ended(child: &Child) -> Option<Duration> {
    let file = format!("/proc/{}/stat", child.id());
    loop {
        let stat = fs::read_to_string(&file).ok()?;
        let (state, time) = parse(&stat)?;
        // Only then its numbers are final.
        if state == "Z" {
            return Some(time);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs a step to its end and returns its standard output. Its time counts under this name.
pub(crate) fn output(
    name: &str,
    command: &mut Command,
    tally: &mut Tally,
) -> std::io::Result<Output> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    let mut stdout = Vec::new();
    child.stdout.take().map(|mut pipe| pipe.read_to_end(&mut stdout)).transpose()?;
    tally.took(name, start, time_of_ended(&child));
    Ok(Output { status: child.wait()?, stdout, stderr: Vec::new() })
}

/// State and processor time out of a line of `/proc/*/stat`.
fn parse(stat: &str) -> Option<(&str, Duration)> {
    // The name of the program is in parentheses and may have spaces in it.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    // User and system time, its own and that of its children.
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    let ticks: u64 = ticks.sum::<Option<u64>>()?;
    #[expect(clippy::cast_precision_loss, reason = "centuries of ticks are exact")]
    let seconds = ticks as f64 / TICKS_PER_SECOND;
    Some((fields.first()?, Duration::from_secs_f64(seconds)))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::{parse, time_of_ended};

    #[test]
    fn the_time_of_a_process_includes_what_it_waited_for() {
        let line = "7 (a b) c) Z 1 7 7 0 -1 4 1 2 0 0 150 25 300 25 20 0 1 0 5 0 0";
        assert_eq!(parse(line), Some(("Z", Duration::from_secs(5))));
        assert_eq!(parse("7 (short) Z 1"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_exit_code_of_a_measured_process_is_still_there() {
        let mut child =
            Command::new("sh").args(["-c", "exit 3"]).stdin(Stdio::null()).spawn().unwrap();
        assert!(time_of_ended(&child).is_some());
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
}
