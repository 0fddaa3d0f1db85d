//! The table of scenarios and SDKs, for people; and the same in the format of a test program, for counting.

use std::fmt::Write as _;

use crate::sdk::Sdk;
use crate::suite::Outcome;

/// A row for each scenario, a column for each SDK, and the first difference of every run that failed.
pub(crate) fn render(outcomes: &[Outcome]) -> String {
    let mut names: Vec<&str> = outcomes.iter().map(|outcome| outcome.scenario.as_str()).collect();
    names.dedup();
    let played = |sdk: &Sdk| outcomes.iter().any(|outcome| outcome.sdk == *sdk);
    let sdks: Vec<Sdk> = Sdk::ALL.into_iter().filter(played).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0).max("scenario".len());
    let mut text = format!("{:width$}", "scenario");
    for sdk in &sdks {
        let _ = write!(text, "  {sdk}");
    }
    text.push('\n');
    for name in &names {
        let _ = write!(text, "{name:width$}");
        for sdk in &sdks {
            let outcome = outcomes.iter().find(|one| one.scenario == **name && one.sdk == *sdk);
            let word =
                outcome.map_or("-", |one| if one.difference.is_none() { "pass" } else { "FAIL" });
            let _ = write!(text, "  {word:5}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for outcome in outcomes {
        if let Some(difference) = &outcome.difference {
            let Outcome { scenario, sdk, about, .. } = outcome;
            let _ = writeln!(text, "\n{scenario} with {sdk}: {about}\n  {difference}");
        }
    }
    text
}

/// As `cargo test` prints it.
pub(crate) fn as_tests(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for Outcome { scenario, sdk, difference, .. } in outcomes {
        let word = if difference.is_none() { "ok" } else { "FAILED" };
        let _ = writeln!(text, "test conformance::{scenario}::{sdk} ... {word}");
    }
    let failed = outcomes.iter().filter(|outcome| outcome.difference.is_some()).count();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let passed = outcomes.len() - failed;
    let _ = writeln!(text, "test result: {word}. {passed} passed; {failed} failed;");
    text
}

#[cfg(test)]
mod tests {
    use super::{as_tests, render};
    use crate::sdk::Sdk;
    use crate::suite::Outcome;

    fn outcomes() -> Vec<Outcome> {
        let outcome = |scenario: &str, sdk, difference: Option<&str>| Outcome {
            scenario: scenario.to_owned(),
            about: "There is a result.".to_owned(),
            sdk,
            difference: difference.map(str::to_owned),
        };
        vec![
            outcome("text", Sdk::Ts050, None),
            outcome("text", Sdk::Py182, Some("no result")),
            outcome("tool-allowed", Sdk::Py182, None),
        ]
    }

    #[test]
    fn the_table_has_a_row_for_each_scenario() {
        let expected = "\
scenario      ts050  py182
text          pass   FAIL
tool-allowed  -      pass

text with py182: There is a result.
  no result
";
        assert_eq!(render(&outcomes()), expected);
    }

    #[test]
    fn counting_lines_are_those_of_a_test_program() {
        let text = as_tests(&outcomes());
        assert!(text.contains("test conformance::text::py182 ... FAILED\n"));
        assert!(text.ends_with("test result: FAILED. 2 passed; 1 failed;\n"));
    }
}
