//! The activity line: a spinner with the running calls, or with the model that thinks.

use std::time::{Duration, Instant};

use ostler_proto::ToolUseId;

use crate::screen::{CYAN, DIM};
use crate::text::{clipped, width};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How often the line moves.
pub(crate) const BEAT: Duration = Duration::from_millis(100);

/// The running calls.
#[derive(Debug)]
pub(crate) struct Spinner {
    running: Vec<Running>,
    /// Since when no call is running.
    idle_since: Instant,
    n_beats: usize,
}

#[derive(Debug)]
struct Running {
    id: ToolUseId,
    label: String,
    since: Instant,
}

impl Spinner {
    pub(crate) fn new(now: Instant) -> Self {
        Self { running: Vec::new(), idle_since: now, n_beats: 0 }
    }

    /// A call begins, or begins again after the user was asked.
    pub(crate) fn begin(&mut self, id: &ToolUseId, label: &str, now: Instant) {
        match self.running.iter_mut().find(|call| call.id == *id) {
            Some(call) => call.since = now,
            None => {
                self.running.push(Running { id: id.clone(), label: label.to_owned(), since: now })
            }
        }
    }

    /// A call is over. Returns its duration.
    pub(crate) fn end(&mut self, id: &ToolUseId, now: Instant) -> Option<Duration> {
        let at = self.running.iter().position(|call| call.id == *id)?;
        self.idle_since = now;
        Some(now - self.running.remove(at).since)
    }

    /// The call that has run longest.
    pub(crate) fn running(&self) -> Option<ToolUseId> {
        self.running.first().map(|call| call.id.clone())
    }

    /// The model is asked now.
    pub(crate) fn waiting(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// The next frame of the animation, at most this wide.
    pub(crate) fn beat(&mut self, now: Instant, columns: usize) -> String {
        self.n_beats += 1;
        let frame = FRAMES[self.n_beats % FRAMES.len()];
        let (label, since) = match self.running.as_slice() {
            [] => ("thinking…".to_owned(), self.idle_since),
            [call] => (call.label.clone(), call.since),
            [call, others @ ..] => {
                (format!("{} and {} more", call.label, others.len()), call.since)
            }
        };
        let time = elapsed(now - since);
        let label = clipped(&label, columns.saturating_sub(3 + width(&time)));
        format!("{CYAN}{frame}{CYAN:#} {label} {DIM}{time}{DIM:#}")
    }
}

/// A duration for people.
pub(crate) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..10 => format!("{seconds}.{}s", time.subsec_millis() / 100),
        seconds @ 10..60 => format!("{seconds}s"),
        seconds => format!("{}m{:02}s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str) -> String {
        anstream::adapter::strip_str(line).to_string()
    }

    #[test]
    fn times_are_short() {
        for (milliseconds, text) in [
            (0, "0.0s"),
            (1_250, "1.2s"),
            (12_900, "12s"),
            (61_000, "1m01s"),
            (3_600_000, "60m00s"),
        ] {
            assert_eq!(elapsed(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn it_shows_the_running_calls_and_their_time_and_fits_the_width() {
        let start = Instant::now();
        let later = start + Duration::from_secs(12);
        let mut spinner = Spinner::new(start);
        assert_eq!(plain(&spinner.beat(later, 80)), "⠙ thinking… 12s");
        let [one, two] = [ToolUseId::from("1"), ToolUseId::from("2")];
        spinner.begin(&one, "Bash make", start);
        assert_eq!(plain(&spinner.beat(later, 80)), "⠹ Bash make 12s");
        spinner.begin(&two, "Read a", start);
        assert_eq!(plain(&spinner.beat(later, 80)), "⠸ Bash make and 1 more 12s");
        assert!(width(&plain(&spinner.beat(later, 16))) <= 16);
        assert_eq!(spinner.end(&one, later), Some(Duration::from_secs(12)));
        assert_eq!(spinner.end(&one, later), None);
        spinner.begin(&two, "Read a", later);
        assert_eq!(plain(&spinner.beat(later, 80)), "⠴ Read a 0.0s");
    }
}
