//! Counting passed and failed tests, from the lines that test programs print and from steps that count as one.

/// What passed, what failed, and the names of the failures.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) failures: Vec<String>,
}

impl Tally {
    /// Takes a line of a test program's output; most mean nothing here.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(summary) = line.strip_prefix("test result: ") {
            self.passed += count(summary, "passed");
            self.failed += count(summary, "failed");
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
    }

    /// A whole step that counts as one test.
    pub(crate) fn step(&mut self, name: &str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.fail(name);
        }
    }

    pub(crate) fn fail(&mut self, name: impl Into<String>) {
        self.failed += 1;
        self.failures.push(name.into());
    }

    pub(crate) fn closing_line(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

/// The number before a word, as in `ok. 3 passed; 1 failed; …`.
fn count(summary: &str, word: &str) -> u64 {
    let words: Vec<_> = summary.split([' ', ';']).collect();
    let pair = words.windows(2).find(|pair| pair[1] == word);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn results_of_several_programs_add_up() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test codec::tests::a ... ok",
            "test codec::tests::b ... FAILED",
            "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
            "the test result: 7 passed",
        ] {
            tally.line(line);
        }
        assert_eq!(tally.closing_line(), "15 passed, 1 failed");
        assert_eq!(tally.failures, ["codec::tests::b"]);
    }

    #[test]
    fn steps_count_as_one_test_each() {
        let mut tally = Tally::default();
        tally.step("tidy", true);
        tally.step("fuzz", false);
        tally.fail("peers: no npm");
        assert_eq!(tally.closing_line(), "1 passed, 2 failed");
        assert_eq!(tally.failures, ["fuzz", "peers: no npm"]);
    }
}
