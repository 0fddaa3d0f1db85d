//! The command line.

use std::time::{Duration, SystemTime};

#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) time: Duration,
    pub(crate) seed: u64,
    /// Inputs to replay instead of making new ones.
    pub(crate) files: Vec<String>,
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options =
            Self { time: Duration::from_secs(20), seed: seed_from_clock(), files: Vec::new() };
        while let Some(arg) = args.next() {
            let mut number = || {
                let value = args.next().ok_or_else(|| format!("{arg} needs a number"))?;
                value.parse::<u64>().map_err(|_| format!("{arg} needs a number, not {value:?}"))
            };
            match arg.as_str() {
                "--seconds" => options.time = Duration::from_secs(number()?),
                "--seed" => options.seed = number()?,
                _ if arg.starts_with('-') => return Err(format!("there is no option {arg}")),
                _ => options.files.push(arg),
            }
        }
        Ok(options)
    }
}

/// Another one each time; it is printed, so that the run can be repeated.
fn seed_from_clock() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(1, |time| time.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Options;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn time_seed_and_files_are_read() {
        let options = parse("--seconds 3 --seed 9 a b").unwrap();
        assert_eq!((options.time, options.seed), (Duration::from_secs(3), 9));
        assert_eq!(options.files, ["a", "b"]);
    }

    #[test]
    fn mistakes_are_told() {
        for (line, message) in [
            ("--seed", "--seed needs a number"),
            ("--seconds soon", "--seconds needs a number, not \"soon\""),
            ("--fast", "there is no option --fast"),
        ] {
            assert_eq!(parse(line).unwrap_err(), message);
        }
    }
}
