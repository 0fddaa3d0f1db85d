//! Thinking and effort: the user's options, reduced to those that a model accepts. Pure.
//!
//! Models refuse what they do not offer with an error, and what they offer differs from one to the next. A user who
//! sets a thinking budget means "think about this much", not "fail on a model without budgets".

pub use ostler_proto::launch::{Effort, Thinking, ThinkingDisplay};
use serde::Serialize;

use super::Sampling;
use super::pricing::{self, Efforts, ThinkingSupport};

/// `thinking` in the API's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ThinkingBody {
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<ThinkingDisplay>,
    },
    Enabled {
        budget_tokens: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<ThinkingDisplay>,
    },
    Disabled,
    /// The least thinking of a model that always thinks.
    BetweenTools,
}

/// The smallest budget the API accepts.
const MIN_BUDGET: u64 = 1024;

/// The budget of a model that thinks only with one, unless the user sets another; as the vendor's program requests it.
const USUAL_BUDGET: u64 = 31_999;

/// The options that this model accepts. An unknown model gets them unchanged.
pub(crate) fn fit(
    wishes: &Sampling,
    model: &str,
    max_tokens: u64,
) -> (Option<ThinkingBody>, Option<Effort>) {
    let family = pricing::family(model);
    let efforts = family.map_or(Efforts::All, |family| family.efforts);
    let effort = wishes.effort.and_then(|effort| fit_effort(effort, efforts));
    let support = family.map(|family| family.thinking);
    let adaptive = ThinkingBody::Adaptive { display: wishes.display };
    let budget = |tokens: u64| {
        let budget_tokens = tokens.max(MIN_BUDGET).min(max_tokens.saturating_sub(1));
        (budget_tokens >= MIN_BUDGET)
            .then_some(ThinkingBody::Enabled { budget_tokens, display: wishes.display })
    };
    // Thinking can be disabled only up to this effort.
    let modest = effort <= Some(Effort::High);
    let thinking = match (wishes.thinking, support) {
        (_, Some(ThinkingSupport::None)) => None,
        // A request with little room, such as one for a title, is for a short answer.
        (None, Some(ThinkingSupport::Budget)) => {
            (max_tokens > USUAL_BUDGET).then(|| budget(USUAL_BUDGET)).flatten()
        }
        // Such a model does not think unless requested. A user who wants to see its thinking wants it to think; a user
        // who wants to see none needs no request.
        (None, Some(ThinkingSupport::Both | ThinkingSupport::Adaptive)) => {
            (wishes.display == Some(ThinkingDisplay::Summarized)).then_some(adaptive)
        }
        // Without an option for thinking itself, the display still counts for models that think by default.
        (None, _) => wishes.display.map(|_| adaptive),
        (Some(Thinking::Adaptive), Some(ThinkingSupport::Budget)) => budget(max_tokens),
        (Some(Thinking::Adaptive), _) => Some(adaptive),
        (Some(Thinking::Budget(0)), None) => Some(ThinkingBody::Disabled),
        (Some(Thinking::Budget(tokens)), None) => budget(tokens),
        (Some(Thinking::Budget(tokens)), Some(ThinkingSupport::Budget | ThinkingSupport::Both))
            if tokens > 0 =>
        {
            budget(tokens)
        }
        (Some(Thinking::Budget(tokens)), Some(_)) if tokens > 0 => Some(adaptive),
        // From here on thinking is disabled.
        (_, None) => Some(ThinkingBody::Disabled),
        (_, Some(ThinkingSupport::OnByDefault)) => modest.then_some(ThinkingBody::Disabled),
        (_, Some(ThinkingSupport::BetweenTools)) => modest.then_some(ThinkingBody::BetweenTools),
        (_, Some(_)) => None,
    };
    (thinking, effort)
}

fn fit_effort(effort: Effort, efforts: Efforts) -> Option<Effort> {
    match efforts {
        Efforts::None => None,
        Efforts::UpToHigh => Some(effort.min(Effort::High)),
        Efforts::WithoutXhigh if effort == Effort::Xhigh => Some(Effort::High),
        Efforts::WithoutXhigh | Efforts::All => Some(effort),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(model: &str, thinking: Option<Thinking>, effort: Option<Effort>) -> String {
        let wishes = Sampling { thinking, effort, ..Sampling::default() };
        let (thinking, effort) = fit(&wishes, model, 32_000);
        let json = |value: serde_json::Value| value.to_string().replace('"', "");
        format!("{} {}", json(serde_json::json!(thinking)), json(serde_json::json!(effort)))
    }

    #[test]
    fn thinking_is_asked_for_in_the_way_the_model_knows() {
        use Thinking::{Adaptive, Budget, Disabled};
        let adaptive = "{type:adaptive} null";
        let budget = |tokens: u64| format!("{{type:enabled,budget_tokens:{tokens}}} null");
        let disabled = "{type:disabled} null";
        for (model, wish, expected) in [
            ("claude-opus-5-5", None, "null null"),
            ("claude-opus-5-5", Some(Adaptive), adaptive),
            ("claude-opus-5-5", Some(Budget(5000)), adaptive),
            ("claude-opus-5-5", Some(Budget(0)), "null null"),
            ("claude-opus-5-5", Some(Disabled), "null null"),
            ("claude-sonnet-5-5", Some(Disabled), "{type:between_tools} null"),
            ("claude-opus-5", Some(Disabled), disabled),
            ("claude-opus-4-7", Some(Disabled), "null null"),
            ("claude-opus-4-7", Some(Budget(5000)), adaptive),
            ("claude-opus-4-6", Some(Budget(5000)), &budget(5000)),
            ("claude-sonnet-4-5-20250929", None, &budget(31_999)),
            ("claude-sonnet-4-5-20250929", Some(Adaptive), &budget(31_999)),
            ("claude-sonnet-4-5-20250929", Some(Budget(10)), &budget(1024)),
            ("claude-sonnet-4-5-20250929", Some(Budget(99_000)), &budget(31_999)),
            ("claude-sonnet-4-5-20250929", Some(Disabled), "null null"),
            ("claude-3-5-haiku-20241022", Some(Adaptive), "null null"),
            ("other-vendor", Some(Adaptive), adaptive),
            ("other-vendor", Some(Budget(5000)), &budget(5000)),
            ("other-vendor", Some(Disabled), disabled),
            ("other-vendor", Some(Budget(0)), disabled),
        ] {
            assert_eq!(fitted(model, wish, None), expected, "{model} {wish:?}");
        }
    }

    #[test]
    fn effort_is_lowered_to_what_the_model_knows() {
        for (model, wish, expected) in [
            ("claude-opus-5-5", Effort::Xhigh, "null xhigh"),
            ("claude-opus-4-6", Effort::Xhigh, "null high"),
            ("claude-opus-4-6", Effort::Max, "null max"),
            ("claude-opus-4-5", Effort::Max, "{type:enabled,budget_tokens:31999} high"),
            ("claude-haiku-4-5", Effort::Low, "{type:enabled,budget_tokens:31999} null"),
            ("other-vendor", Effort::Max, "null max"),
        ] {
            assert_eq!(fitted(model, None, Some(wish)), expected, "{model} {wish:?}");
        }
    }

    #[test]
    fn high_effort_without_thinking_is_not_sent_because_the_api_refuses_it() {
        let off = Some(Thinking::Disabled);
        assert_eq!(fitted("claude-opus-5", off, Some(Effort::Max)), "null max");
        assert_eq!(fitted("claude-opus-5", off, Some(Effort::High)), "{type:disabled} high");
    }

    #[test]
    fn a_budget_that_leaves_no_room_is_left_out() {
        let wishes = Sampling { thinking: Some(Thinking::Budget(2000)), ..Sampling::default() };
        assert_eq!(fit(&wishes, "claude-opus-4-1", 1024).0, None);
    }

    #[test]
    fn the_display_option_alone_has_an_effect() {
        let wishes = |display| Sampling { display: Some(display), ..Sampling::default() };
        let adaptive = |display| Some(ThinkingBody::Adaptive { display: Some(display) });
        let (summarized, omitted) = (ThinkingDisplay::Summarized, ThinkingDisplay::Omitted);
        for (model, display, expected) in [
            // These think by default.
            ("claude-opus-5-5", summarized, adaptive(summarized)),
            ("claude-opus-5-5", omitted, adaptive(omitted)),
            // These think when requested: shown thinking needs the request, hidden thinking does not.
            ("claude-opus-4-7", summarized, adaptive(summarized)),
            ("claude-opus-4-6", summarized, adaptive(summarized)),
            ("claude-opus-4-6", omitted, None),
            // This thinks only with a budget, and there is none.
            ("claude-opus-4-1", summarized, None),
        ] {
            assert_eq!(fit(&wishes(display), model, 9000).0, expected, "{model} {display:?}");
        }
        let budget = Sampling { thinking: Some(Thinking::Budget(2000)), ..wishes(omitted) };
        let enabled = ThinkingBody::Enabled { budget_tokens: 2000, display: Some(omitted) };
        assert_eq!(fit(&budget, "claude-opus-4-1", 9000).0, Some(enabled));
    }
}
