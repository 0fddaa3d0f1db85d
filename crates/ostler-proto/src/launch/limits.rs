//! The limits of a turn.

use super::table::{One, Row, Text as _, last, row};

/// The limits of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LimitOptions {
    /// The most model calls per prompt.
    pub max_turns: Option<u64>,
    /// The most dollars.
    pub max_budget_usd: Option<f64>,
    /// The API's own budget for a task, in tokens.
    pub task_budget: Option<u64>,
}

pub(super) const ROWS: &[Row] = &[
    Row {
        names: &["max-turns"],
        takes_value: true,
        write: |launch, args| args.value("max-turns", launch.limits.max_turns),
        read: |launch, values| match u64::read(last(values))? {
            0 => Err("must be 1 or more".to_owned()),
            turns => {
                launch.limits.max_turns = Some(turns);
                Ok(())
            }
        },
    },
    row!(One<f64>, "max-budget-usd", limits.max_budget_usd),
    row!(One<u64>, "task-budget", limits.task_budget),
];
