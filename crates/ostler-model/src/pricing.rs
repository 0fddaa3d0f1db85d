//! Facts about models: list prices in USD per million tokens, windows, limits, thinking. Pure.
//!
//! The numbers are those of the vendor's public pages in October 2026 (platform.claude.com: pricing, models
//! overview, effort, thinking), and of older copies of them for retired models. They are list prices on the vendor's
//! own API, not actual bills: no discounts, batches, fast mode or cloud resale. A model that is not in the list has no
//! price here rather than a guessed one.

use ostler_proto::api::Usage;

/// What is known about a model.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Family {
    /// The prefix of its name; a date or an alias such as `latest` may follow.
    pub name: &'static str,
    /// Its list price.
    pub price: Price,
    /// The size of its context window, in tokens.
    pub context_window: u64,
    /// The most tokens of one answer.
    pub max_output: u64,
    /// The most tokens of one answer, unless the user sets a limit.
    pub usual_output: u64,
    pub(crate) thinking: ThinkingSupport,
    pub(crate) efforts: Efforts,
}

/// USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Input outside the cache.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input written to the cache for five minutes.
    pub write_5m: f64,
    /// Input written to the cache for an hour.
    pub write_1h: f64,
    /// Input read from the cache.
    pub read: f64,
    /// The surcharge for a long prompt.
    pub long: Option<Surcharge>,
}

/// A request with more input than this costs more as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surcharge {
    /// The most input tokens at the normal price.
    pub above: u64,
    /// The factor on the price of input.
    pub input: f64,
    /// The factor on the price of output.
    pub output: f64,
}

/// How thinking is requested of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingSupport {
    /// It cannot think.
    None,
    /// With a budget.
    Budget,
    /// With a budget, or adaptively.
    Both,
    /// Adaptively, if requested.
    Adaptive,
    /// Adaptively, unless disabled.
    OnByDefault,
    /// Adaptively; if disabled, it still thinks between tool calls.
    BetweenTools,
    /// Always adaptively; requests have no effect.
    Always,
}

/// Which efforts a model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Efforts {
    None,
    UpToHigh,
    WithoutXhigh,
    All,
}

/// The `costBasis` of a model without a price.
pub(crate) const UNKNOWN: &str = "unknown";

/// USD per web search.
const WEB_SEARCH: f64 = 10.0 / 1000.0;

/// The family of a model, if it is known. Names of clouds (`us.anthropic.claude-…-v1:0`, `claude-…@20251001`) count.
pub fn family(model: &str) -> Option<&'static Family> {
    let name = &model[model.find("claude-")?..];
    FAMILIES.iter().find(|family| {
        name.strip_prefix(family.name).is_some_and(|rest| {
            // Another number means another, unknown version; eight digits are a date.
            let number = rest.strip_prefix('-').map(|rest| rest.split(['-', '@', '[', ':']).next());
            let is_version = |word: &str| {
                word.len() < 8 && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
            };
            let ends = rest.is_empty() || rest.starts_with(['-', '@', '[', ':']);
            ends && !number.flatten().is_some_and(is_version)
        })
    })
}

/// The models that are still available, newest first.
pub fn current() -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().filter(|family| !family.name.starts_with("claude-3"))
}

impl Family {
    /// The efforts it knows.
    pub fn effort_words(&self) -> &'static [&'static str] {
        match self.efforts {
            Efforts::None => &[],
            Efforts::UpToHigh => &["low", "medium", "high"],
            Efforts::WithoutXhigh => &["low", "medium", "high", "max"],
            Efforts::All => &["low", "medium", "high", "xhigh", "max"],
        }
    }

    /// Whether it decides by itself how long to think.
    pub fn is_adaptive(&self) -> bool {
        !matches!(self.thinking, ThinkingSupport::None | ThinkingSupport::Budget)
    }
}

/// The large window, which a beta gives to some models.
pub const LARGE_WINDOW: u64 = 1_000_000;

/// Whether the beta `context-1m-…` makes a model's window larger. Others refuse it or have a large one anyway.
pub fn has_large_window(model: &str) -> bool {
    model.contains("sonnet-4") && family(model).is_some()
}

/// The most tokens of one answer of a model that is not in the list.
const UNKNOWN_OUTPUT: u64 = 32_000;

/// The most tokens of one answer, unless the user sets a limit; as the vendor's program 2.1.325 requests them.
pub fn usual_output(model: &str) -> u64 {
    family(model).map_or(UNKNOWN_OUTPUT, |family| family.usual_output)
}

/// The context window of a model; `[1m]` at the end of its name asks for the large one.
pub fn context_window(model: &str) -> Option<u64> {
    if model.ends_with("[1m]") {
        return Some(1_000_000);
    }
    family(model).map(|family| family.context_window)
}

/// The built-in model that answers without a key, and costs nothing.
pub const OFFLINE: &str = "offline-demo";

/// Why a limit in dollars cannot be enforced with a model.
pub fn no_price(model: &str, limit: f64) -> String {
    format!(
        "the limit of ${limit} cannot be enforced: the price of the model {model} is unknown. Give it, in dollars per \
         million tokens (--model-price {model}=IN/OUT, or modelPrices in the user's settings), choose a model with a known \
         price, or limit the tokens (--max-tokens) instead of the dollars"
    )
}

/// The list price of one response, in USD; `None` when the price is unknown.
///
/// `usage` must be that of a single response: the price of a long prompt depends on its length.
pub fn cost(model: &str, usage: &Usage) -> Option<f64> {
    cost_at(&family(model)?.price, usage)
}

/// The cost of one response at a price; `None` for a response at another speed, which costs more.
pub fn cost_at(price: &Price, usage: &Usage) -> Option<f64> {
    if usage.speed.as_deref().is_some_and(|speed| speed != "standard") {
        return None;
    }
    let (more_input, more_output) = match price.long {
        Some(long) if usage.total_input() > long.above => (long.input, long.output),
        _ => (1.0, 1.0),
    };
    let written = usage.cache_creation_input_tokens.unwrap_or(0);
    let one_hour = usage.cache_creation.as_ref().and_then(|written| written.one_hour).unwrap_or(0);
    let one_hour = one_hour.min(written);
    let input = price.input * count(usage.input_tokens)
        + price.write_5m * (written - one_hour) as f64
        + price.write_1h * one_hour as f64
        + price.read * count(usage.cache_read_input_tokens);
    let output = price.output * count(usage.output_tokens);
    let searches = usage.server_tool_use.as_ref().and_then(|used| used.web_search_requests);
    Some((input * more_input + output * more_output) / 1e6 + WEB_SEARCH * count(searches))
}

/// The share of the input that was read from the cache, from 0 to 1; `None` without any input.
pub fn cache_read_share(usage: &Usage) -> Option<f64> {
    let total = usage.total_input();
    (total > 0).then(|| count(usage.cache_read_input_tokens) / total as f64)
}

fn count(tokens: Option<u64>) -> f64 {
    tokens.unwrap_or(0) as f64
}

const fn price(input: f64, output: f64, write_5m: f64, write_1h: f64, read: f64) -> Price {
    Price { input, output, write_5m, write_1h, read, long: None }
}

impl Price {
    const fn above(self, above: u64, input: f64, output: f64) -> Self {
        Self { long: Some(Surcharge { above, input, output }), ..self }
    }
}

const fn model(
    name: &'static str,
    price: Price,
    (context_window, max_output, usual_output): (u64, u64, u64),
    thinking: ThinkingSupport,
    efforts: Efforts,
) -> Family {
    Family { name, price, context_window, max_output, usual_output, thinking, efforts }
}

const NEWEST: (u64, u64, u64) = (1_000_000, 128_000, 128_000);
const LARGE: (u64, u64, u64) = (1_000_000, 128_000, 64_000);
const FABLE: Price = price(10.0, 50.0, 12.5, 20.0, 1.0);
const FABLE_5_1: Price = price(10.0, 50.0, 12.5, 20.0, 0.25);
const OPUS: Price = price(5.0, 25.0, 6.25, 10.0, 0.5);
const OLD_OPUS: Price = price(15.0, 75.0, 18.75, 30.0, 1.5);
const SONNET: Price = price(3.0, 15.0, 3.75, 6.0, 0.3);
const LONG_SONNET: Price = SONNET.above(200_000, 2.0, 1.5);
const HAIKU_5_5: Price = price(0.1, 0.5, 0.125, 0.2, 0.01).above(100_000, 5.0, 5.0);

/// Newest first, only for readers: at most one name matches.
#[rustfmt::skip]
const FAMILIES: &[Family] = &[
    model("claude-fable-5-2", price(8.0, 40.0, 10.0, 16.0, 0.2), NEWEST, ThinkingSupport::Always, Efforts::All),
    model("claude-fable-5-1", FABLE_5_1, NEWEST, ThinkingSupport::Always, Efforts::All),
    model("claude-mythos-5-1", FABLE_5_1, NEWEST, ThinkingSupport::Always, Efforts::All),
    model("claude-opus-5-5", price(4.0, 20.0, 5.0, 8.0, 0.2), NEWEST, ThinkingSupport::Always, Efforts::All),
    model("claude-sonnet-5-5", price(2.0, 10.0, 2.5, 4.0, 0.1), NEWEST, ThinkingSupport::BetweenTools, Efforts::All),
    model("claude-haiku-5-5", HAIKU_5_5, NEWEST, ThinkingSupport::OnByDefault, Efforts::All),
    model("claude-fable-5", FABLE, LARGE, ThinkingSupport::Always, Efforts::All),
    model("claude-mythos-5", FABLE, LARGE, ThinkingSupport::Always, Efforts::All),
    model("claude-opus-5", OPUS, LARGE, ThinkingSupport::OnByDefault, Efforts::All),
    model("claude-sonnet-5", price(2.0, 10.0, 2.5, 4.0, 0.2), LARGE, ThinkingSupport::OnByDefault, Efforts::All),
    model("claude-opus-4-8", OPUS, LARGE, ThinkingSupport::Adaptive, Efforts::All),
    model("claude-opus-4-7", OPUS, LARGE, ThinkingSupport::Adaptive, Efforts::All),
    model("claude-opus-4-6", OPUS, LARGE, ThinkingSupport::Both, Efforts::WithoutXhigh),
    model("claude-opus-4-5", OPUS, (200_000, 64_000, 32_000), ThinkingSupport::Budget, Efforts::UpToHigh),
    model("claude-opus-4-1", OLD_OPUS, (200_000, 32_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-opus-4-0", OLD_OPUS, (200_000, 32_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-opus-4", OLD_OPUS, (200_000, 32_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-sonnet-4-6", SONNET, (1_000_000, 64_000, 32_000), ThinkingSupport::Both, Efforts::WithoutXhigh),
    model("claude-sonnet-4-5", LONG_SONNET, (200_000, 64_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-sonnet-4-0", LONG_SONNET, (200_000, 64_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-sonnet-4", LONG_SONNET, (200_000, 64_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-haiku-4-5", price(1.0, 5.0, 1.25, 2.0, 0.1), (200_000, 64_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-3-7-sonnet", SONNET, (200_000, 64_000, 32_000), ThinkingSupport::Budget, Efforts::None),
    model("claude-3-5-sonnet", SONNET, (200_000, 8192, 8192), ThinkingSupport::None, Efforts::None),
    model("claude-3-5-haiku", price(0.8, 4.0, 1.0, 1.6, 0.08), (200_000, 8192, 8192), ThinkingSupport::None, Efforts::None),
    model("claude-3-opus", OLD_OPUS, (200_000, 4096, 4096), ThinkingSupport::None, Efforts::None),
    model("claude-3-sonnet", SONNET, (200_000, 4096, 4096), ThinkingSupport::None, Efforts::None),
    model("claude-3-haiku", price(0.25, 1.25, 0.3, 0.5, 0.03), (200_000, 4096, 4096), ThinkingSupport::None, Efforts::None),
];

#[cfg(test)]
mod tests {
    use ostler_proto::api::{CacheCreation, ServerToolUsage};
    use ostler_proto::build;
    use proptest::prelude::*;

    use ostler_proto::api::ModelUsage;

    use super::*;
    use crate::Prices;
    use crate::ledger::add;

    fn usage(input: u64, output: u64, written: u64, read: u64) -> Usage {
        build!(Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cache_creation_input_tokens: Some(written),
            cache_read_input_tokens: Some(read)
        })
    }

    #[test]
    fn names_with_dates_and_of_clouds_are_known_and_other_versions_are_not() {
        for (model, expected) in [
            ("claude-opus-5-5", Some("claude-opus-5-5")),
            ("claude-opus-4-5-20251101", Some("claude-opus-4-5")),
            ("claude-opus-4-20250514", Some("claude-opus-4")),
            ("claude-sonnet-4-0", Some("claude-sonnet-4-0")),
            ("claude-3-7-sonnet-latest", Some("claude-3-7-sonnet")),
            ("claude-sonnet-4-5-20250929[1m]", Some("claude-sonnet-4-5")),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some("claude-haiku-4-5")),
            ("claude-haiku-4-5@20251001", Some("claude-haiku-4-5")),
            ("claude-opus-4-9", None),
            ("claude-opus-5-50", None),
            ("claude-opus-55", None),
            ("claude-opusculum", None),
            ("opus", None),
            ("", None),
        ] {
            assert_eq!(family(model).map(|family| family.name), expected, "{model}");
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let million = 1_000_000;
        let cost = |usage: &Usage| cost("claude-opus-5-5", usage).unwrap();
        assert_eq!(cost(&usage(million, 0, 0, 0)), 4.0);
        assert_eq!(cost(&usage(0, million, 0, 0)), 20.0);
        assert_eq!(cost(&usage(0, 0, million, 0)), 5.0);
        assert_eq!(cost(&usage(0, 0, 0, million)), 0.2);
        let one_hour = build!(CacheCreation { one_hour: Some(million) });
        let hourly = build!(Usage { cache_creation: Some(one_hour), ..usage(0, 0, million, 0) });
        assert_eq!(cost(&hourly), 8.0);
        let searches = build!(ServerToolUsage { web_search_requests: Some(100) });
        assert_eq!(cost(&build!(Usage { server_tool_use: Some(searches) })), 1.0);
    }

    #[test]
    fn a_long_prompt_costs_more_with_models_that_have_a_surcharge() {
        let cost = |model, usage: &Usage| cost(model, usage).unwrap();
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-12, "{left} {right}");
        close(cost("claude-haiku-5-5", &usage(50_000, 1000, 0, 50_000)), 0.005 + 0.0005 + 0.0005);
        close(cost("claude-haiku-5-5", &usage(50_001, 0, 0, 50_000)), 5.0 * (0.0050001 + 0.0005));
        close(cost("claude-sonnet-4-5", &usage(300_000, 1000, 0, 0)), 1.8 + 0.0225);
        close(cost("claude-opus-5", &usage(300_000, 1000, 0, 0)), 1.5 + 0.025);
    }

    #[test]
    fn an_unknown_model_has_no_price_and_the_cost_basis_says_so() {
        assert_eq!(cost("other-vendor", &usage(1, 1, 1, 1)), None);
        let fast = build!(Usage { speed: Some("fast".into()), ..usage(1, 1, 1, 1) });
        assert_eq!(cost("claude-opus-5-5", &fast), None);
        let mut total = ModelUsage::default();
        add(&mut total, "other-vendor", &usage(1, 2, 3, 4), &Prices::default());
        assert_eq!((total.cost_usd.get(), total.cost_basis.as_deref()), (0.0, Some("unknown")));
        assert_eq!((total.input_tokens, total.context_window), (1, None));
    }

    #[test]
    fn the_window_is_that_of_the_family_or_the_large_one() {
        assert_eq!(context_window("claude-haiku-4-5"), Some(200_000));
        assert_eq!(context_window("claude-sonnet-4-5[1m]"), Some(1_000_000));
        assert_eq!(context_window("other-vendor"), None);
    }

    #[test]
    fn prices_have_their_usual_proportions() {
        for Family { name, price, .. } in FAMILIES {
            assert!(price.read < price.input && price.input < price.write_5m, "{name}");
            assert!(price.write_5m < price.write_1h && price.write_1h < price.output, "{name}");
            assert_eq!(price.output, price.input * 5.0, "{name}");
            assert_eq!(family(name).map(|family| family.name), Some(*name));
        }
    }

    #[test]
    fn the_share_read_from_the_cache() {
        assert_eq!(cache_read_share(&usage(10, 99, 15, 75)), Some(0.75));
        assert_eq!(cache_read_share(&Usage::default()), None);
    }

    proptest! {
        #[test]
        fn a_total_is_the_sum_of_its_responses(
            responses in prop::collection::vec((0..400_000_u64, 0..9000_u64, 0..9000_u64, 0..400_000_u64), 1..9),
            at in 0..FAMILIES.len(),
        ) {
            let name = FAMILIES[at].name;
            let (mut total, mut sum) = (ModelUsage::default(), 0.0);
            for (input, output, written, read) in responses {
                let usage = usage(input, output, written, read);
                add(&mut total, name, &usage, &Prices::default());
                sum += cost(name, &usage).unwrap();
            }
            prop_assert!((total.cost_usd.get() - sum).abs() < 1e-9);
            prop_assert_eq!(total.cost_basis.as_deref(), Some("list"));
        }

        #[test]
        fn no_name_breaks_the_search(name in "\\PC*(claude-)?(opus)?[-0-9]*\\PC*") {
            let _ = family(&name);
        }
    }
}
