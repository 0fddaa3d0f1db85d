//! The command line of `judge`.

use std::ffi::OsString;

pub(super) const USAGE: &str = "\
usage: ostler-fuzz judge [--count N] [--seed S] [--show N] [--stop]    make N commands and run the harmless ones
       ostler-fuzz judge COMMAND…                                     the same with these commands
       ostler-fuzz judge --matrix [--every N]                         every program with every option and form of a path; or
                                                                      with every Nth of its options";

#[derive(Debug, PartialEq)]
pub(super) struct Options {
    /// How many commands are made.
    pub(super) count: u64,
    pub(super) seed: u64,
    /// How many findings are shortened and printed.
    pub(super) show: usize,
    /// Whether the first finding ends the run.
    pub(super) stop: bool,
    /// Whether the matrix is tried instead.
    pub(super) matrix: bool,
    /// The matrix tries one of so many options of each program. 1 means all of them.
    pub(super) every: usize,
    /// Commands to judge and run instead of making some.
    pub(super) commands: Vec<String>,
}

impl Options {
    pub(super) fn parse(args: &[OsString]) -> Result<Self, String> {
        let mut options = Self {
            count: 100_000,
            seed: 1,
            show: 20,
            stop: false,
            matrix: false,
            every: 1,
            commands: Vec::new(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let arg = arg.to_str().ok_or_else(|| format!("{} is not UTF-8", arg.display()))?;
            let mut number = || {
                let value = args.next().and_then(|value| value.to_str());
                let value = value.ok_or_else(|| format!("{arg} needs a number"))?;
                value.parse::<u64>().map_err(|_| format!("{arg} needs a number, not {value:?}"))
            };
            match arg {
                "--count" => options.count = number()?,
                "--seed" => options.seed = number()?,
                "--show" => options.show = number()? as usize,
                "--stop" => options.stop = true,
                "--matrix" => options.matrix = true,
                "--every" => options.every = number()?.max(1) as usize,
                _ if arg.starts_with("--") => return Err(format!("judge has no option {arg}")),
                _ => options.commands.push(arg.to_owned()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::Options;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn count_seed_and_commands_are_read() {
        let options = parse("--count 3 --seed 9 --stop ls").unwrap();
        assert_eq!((options.count, options.seed, options.stop), (3, 9, true));
        assert_eq!(options.commands, ["ls"]);
    }

    #[test]
    fn the_matrix_tries_every_option_unless_told_otherwise() {
        let every = |line| parse(line).map(|options| (options.matrix, options.every));
        assert_eq!(every("--matrix"), Ok((true, 1)));
        assert_eq!(every("--matrix --every 6"), Ok((true, 6)));
        assert_eq!(every("--matrix --every 0"), Ok((true, 1)));
    }

    #[test]
    fn invalid_options_are_reported() {
        for (line, message) in [
            ("--seed", "--seed needs a number"),
            ("--count many", "--count needs a number, not \"many\""),
            ("--fast", "judge has no option --fast"),
        ] {
            assert_eq!(parse(line).unwrap_err(), message);
        }
    }
}
