//! Which model answers, and how.

use std::collections::BTreeMap;

use super::ModelPrice;
use super::keyword::keywords;
use super::table::{List, One, Row, Text as _, last, row};

/// Which model answers, and how.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// The model; the engine's own choice if `None`.
    pub name: Option<String>,
    /// The model that takes over when the other one is overloaded.
    pub fallback: Option<String>,
    /// How it thinks.
    pub thinking: Option<Thinking>,
    /// How much of its thinking is shown.
    pub thinking_display: Option<ThinkingDisplay>,
    /// How much trouble it takes.
    pub effort: Option<Effort>,
    /// Beta features of the API, such as `context-1m-2025-08-07`.
    pub betas: Vec<String>,
    /// Model prices by name; a name may end in `*`. Only `ostler` supports them.
    pub prices: BTreeMap<String, ModelPrice>,
}

/// Whether and how much a model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thinking {
    /// As much as it finds right.
    Adaptive,
    /// Up to this many tokens; 0 for none.
    Budget(u64),
    /// Not at all, where the model can.
    Disabled,
}

keywords! {
    /// How much of its thinking a model shows.
    #[non_exhaustive]
    pub enum ThinkingDisplay {
        /// A summary. Newer models write their notes between tool calls there.
        Summarized = "summarized",
        /// Nothing.
        Omitted = "omitted",
    }
}

keywords! {
    /// The effort of a model. A model that does not know a level uses the next lower one.
    #[non_exhaustive]
    pub enum Effort {
        /// The least.
        Low = "low",
        /// Less than usual, for most models.
        Medium = "medium",
        /// The usual, for most models.
        High = "high",
        /// More.
        Xhigh = "xhigh",
        /// The most.
        Max = "max",
    }
}

pub(super) const ROWS: &[Row] = &[
    row!(One<String>, "model", model.name),
    row!(One<String>, "fallback-model", model.fallback),
    row!(List, "betas", model.betas),
    Row {
        names: &["thinking"],
        takes_value: true,
        write: |launch, args| match launch.model.thinking {
            Some(Thinking::Adaptive) => args.value("thinking", Some("adaptive")),
            Some(Thinking::Disabled) => args.value("thinking", Some("disabled")),
            Some(Thinking::Budget(_)) | None => {}
        },
        read: |launch, values| {
            launch.model.thinking = Some(match last(values) {
                "adaptive" => Thinking::Adaptive,
                "disabled" => Thinking::Disabled,
                word => return Err(format!("is {word:?}, but must be adaptive or disabled")),
            });
            Ok(())
        },
    },
    Row {
        names: &["max-thinking-tokens"],
        takes_value: true,
        write: |launch, args| {
            if let Some(Thinking::Budget(tokens)) = launch.model.thinking {
                args.value("max-thinking-tokens", Some(tokens));
            }
        },
        read: |launch, values| {
            launch.model.thinking = Some(Thinking::Budget(u64::read(last(values))?));
            Ok(())
        },
    },
    row!(One<ThinkingDisplay>, "thinking-display", model.thinking_display),
    row!(One<Effort>, "effort", model.effort),
];

/// Prices come after the limits on a command line.
pub(super) const PRICE_ROWS: &[Row] = &[Row {
    names: &["model-price"],
    takes_value: true,
    write: |launch, args| {
        for (name, price) in &launch.model.prices {
            args.value("model-price", Some(format_args!("{name}={price}")));
        }
    },
    read: |launch, values| {
        for value in values {
            launch.model.prices.extend([ModelPrice::read(value)?]);
        }
        Ok(())
    },
}];
