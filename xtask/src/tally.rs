//! Counts passed and failed tests from the output of test programs, and steps that count as one; and how long they
//! took.

use std::time::{Duration, Instant};

/// A test may take this long; see [`ALLOWED`]. One that took longer among others runs once more, alone, and that time
/// counts.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// How many tests may fail among others and pass when they run again, alone. More than that has one cause, which is not
/// load.
pub(crate) const MOST_FLAKY: usize = 3;

/// How many of the slowest tests are listed.
const LISTED: usize = 10;

/// Tests that may take longer, and why.
const ALLOWED: &[(&str, &str)] = &[
    (
        "as_user::all_of_this_holds_for_a_user_without_rights",
        "tries all attacks on the sandbox a second time, as another user",
    ),
    ("containers::no_attack_works_in_a_container", "starts a container for each attack"),
    ("escapes::no_attack_on_files_works", "35 attacks, each in two sandboxes"),
    (
        "sandbox::a_member_with_every_approval_cannot_read_what_belongs_to_the_owner",
        "24 runs on a server, one after the other",
    ),
    (
        "backends::the_newer_vendor_program_matches_the_stories",
        "starts the vendor's program for every scenario that changed",
    ),
    (
        "backends::the_older_vendor_program_matches_the_stories",
        "starts the vendor's program for every scenario that changed",
    ),
    (
        "foreign::schemathesis_finds_no_answer_that_the_document_does_not_promise",
        "sends thousands of requests",
    ),
    ("agui::peers::the_official_client_passes_every_check", "one client goes through all checks"),
    (
        "agui::peers::the_official_client_before_1_0_passes_every_check",
        "one client goes through all checks",
    ),
    (
        "slow::a_client_that_does_not_read_is_disconnected_and_receives_where_to_resume",
        "fills the buffers of a connection",
    ),
    (
        "kills::kills_lose_nothing_that_the_server_acknowledged",
        "kills a server 25 times under load",
    ),
    (
        "kills::print::a_killed_print_run_can_be_continued_and_leaves_nothing",
        "kills a program 20 times and resumes each",
    ),
    (
        "task::a_planned_time_has_one_run_whenever_the_server_is_killed",
        "kills a server at every step",
    ),
    ("faults::a_real_full_disk_loses_no_run_and_no_answer", "fills a disk in every state of a run"),
    ("faults::a_file_size_limit_loses_no_run_and_no_answer", "one state of a run after the other"),
    (
        "faults::a_disk_whose_writes_fail_for_a_while_needs_no_restart",
        "one state of a run after the other",
    ),
    (
        "faults::a_disk_that_cannot_be_read_for_a_while_loses_no_run_and_no_answer",
        "one state of a run after the other",
    ),
    ("faults::a_lost_lease_loses_no_run_and_no_answer", "one state of a run after the other"),
    ("faults::a_full_disk_loses_no_run_and_no_answer", "one state of a run after the other"),
    ("endings::nothing_is_left_of_the_older_vendor_program", "starts the vendor's program often"),
    ("endings::nothing_is_left_of_the_newer_vendor_program", "starts the vendor's program often"),
    (
        "hostile::peers::no_spelling_of_a_denied_command_runs_in_bypass_mode_through_official_sdks",
        "every spelling through three SDKs",
    ),
    (
        "bounds::requests::a_model_that_sends_300_megabytes_to_a_server",
        "a debug build reads 300 MB",
    ),
    ("security::a_hundred_thousand_small_files_are_copied", "copies a hundred thousand files"),
    ("wire::a_frame_of_fifty_megabytes_is_read", "a debug build reads 50 MB"),
    (
        "permission::tests::commands::accepting_edits_allows_no_other_part",
        "a property of many nested commands",
    ),
];

/// What passed, what failed, and the names of the failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) failures: Vec<String>,
    /// Tests that failed once and passed when they ran again, alone.
    pub(crate) flaky: Vec<String>,
    /// The times of tests that report them.
    times: Vec<(Duration, String)>,
    steps: Vec<Step>,
}

/// What a step of the tests took.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    processor: Duration,
    wall: Duration,
    name: String,
}

impl Tally {
    /// Handles a line of a test program's output; most are ignored.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(summary) = line.strip_prefix("test result: ") {
            self.passed += count(summary, "passed");
            self.failed += count(summary, "failed");
        } else if let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        {
            let (outcome, time) = outcome.split_once(" <").unwrap_or((outcome, ""));
            if outcome == "FAILED" {
                self.failures.push(name.to_owned());
            }
            let seconds = time.strip_suffix("s>").and_then(|seconds| seconds.parse().ok());
            if let Some(time) = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
                self.times.push((time, name.to_owned()));
            }
        }
    }

    /// The tests that took too long without a reason.
    pub(crate) fn too_slow(&self) -> Vec<String> {
        let is_allowed = |name: &str| ALLOWED.iter().any(|(allowed, _)| *allowed == name);
        let slow = self.times.iter().filter(|(time, _)| *time > LIMIT);
        slow.filter(|(_, name)| !is_allowed(name)).map(|(_, name)| name.clone()).collect()
    }

    /// A slow test has run again, alone: its time there is the one that counts.
    pub(crate) fn ran_alone(&mut self, name: &str, alone: &Self) {
        if let Some(time) = alone.times.iter().find(|(_, timed)| timed == name) {
            self.times.retain(|(_, timed)| timed != name);
            self.times.push(time.clone());
        }
    }

    /// The slowest tests, slowest first, one line each. One that takes longer than the limit without a reason is a
    /// failure.
    pub(crate) fn judge_times(&mut self, limit: Option<Duration>) -> Vec<String> {
        let limit = limit.unwrap_or(Duration::MAX);
        let mut times = std::mem::take(&mut self.times);
        times.sort_by(|one, other| other.cmp(one));
        for (time, name) in times.iter().take_while(|(time, _)| *time > limit) {
            if !ALLOWED.iter().any(|(allowed, _)| allowed == name) {
                let (took, limit) = (time.as_secs_f64(), limit.as_secs());
                self.fail(format!(
                    "{name} took {took:.1} s; make it faster than {limit} s or say why it may take longer, in xtask/src/tally.rs"
                ));
            }
        }
        let line =
            |(time, name): &(Duration, String)| format!("{:7.1} s  {name}", time.as_secs_f64());
        times.iter().take(LISTED).map(line).collect()
    }

    /// A step has ended. Steps of the same name are added up.
    pub(crate) fn took(&mut self, name: &str, start: Instant, processor: Option<Duration>) {
        let (processor, wall) = (processor.unwrap_or_default(), start.elapsed());
        self.add_step(Step { processor, wall, name: name.to_owned() });
    }

    fn add_step(&mut self, step: Step) {
        match self.steps.iter_mut().find(|known| known.name == step.name) {
            Some(known) => {
                known.processor += step.processor;
                known.wall += step.wall;
            }
            None => self.steps.push(step),
        }
    }

    /// The steps that took most of the processors' time, and the sum of all, one line each.
    pub(crate) fn steps(&self) -> Vec<String> {
        let mut steps: Vec<_> = self.steps.iter().collect();
        steps.sort_by(|one, other| other.cmp(one));
        let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
        let line = |processor: Duration, wall: &str, name: &str| {
            format!("{:>7} s of processor time, {wall:>6} s  {name}", seconds(processor))
        };
        let sum = steps.iter().map(|step| step.processor).sum();
        let most = steps.iter().take(LISTED);
        let lines = most.map(|step| line(step.processor, &seconds(step.wall), &step.name));
        lines.chain([line(sum, "", "all steps")]).collect()
    }

    /// Adds the counts of a concurrent step.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.flaky.extend(other.flaky);
        self.times.extend(other.times);
        other.steps.into_iter().for_each(|step| self.add_step(step));
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

    /// A failed test has run again, alone. If it passed, it counts as passed and is listed as flaky, unless too many
    /// are.
    pub(crate) fn ran_again(&mut self, name: &str, passed: bool) {
        let Some(place) = self.failures.iter().position(|failure| failure == name) else { return };
        if passed && self.flaky.len() < MOST_FLAKY {
            self.failures.remove(place);
            self.failed = self.failed.saturating_sub(1);
            self.passed += 1;
            // The time of the failed run means nothing: it may have waited for something that never came.
            self.times.retain(|(_, timed)| timed != name);
            self.flaky.push(name.to_owned());
        }
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
    use std::time::{Duration, Instant};

    use super::{LIMIT, Tally};

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

    // Mutant: `ran_again` without the limit.
    #[test]
    fn a_few_tests_may_fail_once_and_pass_alone() {
        let mut tally = Tally::default();
        for name in ["a", "b", "c", "d", "e"] {
            tally.fail(name);
        }
        tally.ran_again("a", false);
        for name in ["b", "c", "d", "e", "not a failure"] {
            tally.ran_again(name, true);
        }
        assert_eq!(tally.closing_line(), "3 passed, 2 failed");
        assert_eq!(
            (tally.failures, tally.flaky),
            (vec!["a".into(), "e".into()], vec!["b".into(), "c".into(), "d".into()])
        );
    }

    #[test]
    fn slow_tests_are_listed_and_one_that_is_too_slow_fails() {
        let mut tally = Tally::default();
        for line in [
            "test a::quick ... ok <0.004s>",
            "test b::slow ... ok <20.500s>",
            "test c::bad ... FAILED <1.000s>",
            "test d::without_a_time ... ok",
        ] {
            tally.line(line);
        }
        assert_eq!(tally.failures, ["c::bad"]);
        let judged = |mut tally: Tally, limit| (tally.judge_times(limit).len(), tally.failed);
        assert_eq!(judged(tally.clone(), None), (3, 0), "a night is long");
        assert_eq!(tally.too_slow(), ["b::slow"]);
        let mut alone = Tally::default();
        alone.line("test b::slow ... ok <19.000s>");
        let mut faster = tally.clone();
        faster.ran_alone("b::slow", &alone);
        assert_eq!(judged(faster, Some(LIMIT)), (3, 0), "other tests had slowed it down");
        let listed = tally.judge_times(Some(LIMIT));
        assert_eq!(listed, ["   20.5 s  b::slow", "    1.0 s  c::bad", "    0.0 s  a::quick"]);
        assert_eq!(tally.failed, 1);
        assert!(tally.failures[1].starts_with("b::slow took 20.5 s; "), "{:?}", tally.failures);
    }

    #[test]
    fn steps_are_listed_by_their_processor_time_with_the_sum() {
        let (mut tally, mut other) = (Tally::default(), Tally::default());
        let start = Instant::now();
        tally.took("quick", start, None);
        tally.took("twice", start, Some(Duration::from_secs(2)));
        other.took("twice", start, Some(Duration::from_millis(2500)));
        tally.add(other);
        let steps = tally.steps();
        let names: Vec<_> = steps.iter().filter_map(|line| line.rsplit("  ").next()).collect();
        assert_eq!(names, ["twice", "quick", "all steps"]);
        assert!(steps[0].starts_with("    4.5 s of processor time, "), "{}", steps[0]);
        assert!(steps[2].starts_with("    4.5 s of processor time, "), "{}", steps[2]);
    }

    #[test]
    fn every_slow_test_that_is_allowed_has_a_reason_and_is_named_once() {
        let mut names: Vec<_> = super::ALLOWED.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert!(super::ALLOWED.iter().all(|(_, reason)| reason.split(' ').count() > 2));
    }

    #[test]
    fn steps_count_as_one_test_each() {
        let mut tally = Tally::default();
        tally.step("tidy", true);
        tally.step("fuzz", false);
        tally.fail("peers: no npm");
        assert_eq!(tally.closing_line(), "1 passed, 2 failed");
        assert_eq!(tally.failures, ["fuzz", "peers: no npm"]);
        let mut sum = Tally::default();
        sum.line("test a::quick ... ok <0.004s>");
        sum.add(tally.clone());
        sum.add(tally);
        assert_eq!(sum.closing_line(), "2 passed, 4 failed");
        assert_eq!((sum.failures.len(), sum.judge_times(Some(LIMIT)).len()), (4, 1));
    }
}
