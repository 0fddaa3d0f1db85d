//! How busy other programs keep this machine while the tests run. Test times mean little on a shared machine.

use std::fs;

/// Processor time so far, in ticks of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Of all programs on this machine.
    all: u64,
    /// Of this program and those that it has started and that have ended.
    ours: u64,
}

impl Load {
    /// `None` if the kernel does not report it.
    pub(crate) fn now() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn parse(machine: &str, process: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok();
        // user, nice, system, then idle and iowait, which do not count as work; irq and softirq do.
        let first = machine.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> = first.split_whitespace().filter_map(number).collect();
        let all = fields.get(..3)?.iter().sum::<u64>() + fields.get(5..7)?.iter().sum::<u64>();
        // After the name, which may contain anything: utime, stime, cutime and cstime are fields 14 to 17 of the line.
        let (_, rest) = process.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ours = fields.get(11..15)?.iter().filter_map(|field| number(field)).sum();
        Some(Self { all, ours })
    }

    /// The part of the work since `earlier` that was not ours: 0 to 1.
    pub(crate) fn of_others_since(self, earlier: Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all);
        let ours = self.ours.saturating_sub(earlier.ours).min(all);
        if all == 0 { 0.0 } else { 1.0 - ours as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::Load;

    const MACHINE: &str = "cpu  100 20 30 4000 500 6 7 0 0 0\ncpu0 1 2 3 4 5 6 7 0 0 0\n";
    const PROCESS: &str = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 200 0 0 10 20 30 40 20 0 1";

    #[test]
    fn idle_time_does_not_count_and_children_are_ours() {
        let load = Load::parse(MACHINE, PROCESS).unwrap();
        assert_eq!((load.all, load.ours), (163, 100));
        assert!(Load::parse("", PROCESS).is_none() && Load::parse(MACHINE, "42 (a) S").is_none());
    }

    #[test]
    fn the_share_of_others_is_the_work_that_we_did_not_do() {
        let at = |all, ours| Load { all, ours };
        assert!((at(300, 150).of_others_since(at(100, 0)) - 0.25).abs() < 1e-9);
        assert_eq!(at(100, 900).of_others_since(at(0, 0)), 0.0, "ticks of children come late");
        assert_eq!(at(5, 5).of_others_since(at(5, 5)), 0.0);
    }
}
