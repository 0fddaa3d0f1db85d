//! The prices of models in one session: prices that the user gave, and the list for every other model. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_proto::api::Usage;
use ostler_proto::launch::ModelPrice;

use super::pricing::{self, OFFLINE, Price};

/// Prices that the user gave, by the name of the model; a `*` at the end of a name matches any suffix. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(Arc<BTreeMap<String, ModelPrice>>);

impl Prices {
    /// These prices; the list holds for all other models.
    pub fn new(given: BTreeMap<String, ModelPrice>) -> Self {
        Self(Arc::new(given))
    }

    /// Whether the price of a model is known.
    pub fn is_priced(&self, model: &str) -> bool {
        model == OFFLINE || self.price(model).is_some()
    }

    /// The cost of one response in dollars, and the source of the price for `costBasis`: `managed` for a price that the
    /// user gave, `list` otherwise. `None` when the price is unknown.
    pub(crate) fn cost(&self, model: &str, usage: &Usage) -> Option<(f64, &'static str)> {
        let basis = if self.given(model).is_some() { "managed" } else { "list" };
        Some((pricing::cost_at(&self.price(model)?, usage)?, basis))
    }

    /// The price of a model; one that the user gave wins.
    pub fn price(&self, model: &str) -> Option<Price> {
        let given = self.given(model).map(Price::from);
        given.or_else(|| pricing::family(model).map(|family| family.price))
    }

    /// The price that the user gave for a model: by its name, or by the longest matching prefix.
    fn given(&self, model: &str) -> Option<&ModelPrice> {
        // `[1m]` asks for a large window.
        let name = model.split('[').next().unwrap_or(model);
        let begins =
            |pattern: &str| pattern.strip_suffix('*').is_some_and(|it| name.starts_with(it));
        let patterns = self.0.iter().filter(|(pattern, _)| begins(pattern));
        let exact = self.0.get(model).or_else(|| self.0.get(name));
        exact.or_else(|| Some(patterns.max_by_key(|(pattern, _)| pattern.len())?.1))
    }
}

impl From<&ModelPrice> for Price {
    /// Missing cache prices are at least those of other input, so that a limit is not exceeded unnoticed.
    fn from(given: &ModelPrice) -> Self {
        Self {
            input: given.input,
            output: given.output,
            write_5m: given.cache_write.unwrap_or(given.input * 1.25),
            write_1h: given.cache_write.unwrap_or(given.input * 2.0),
            read: given.cache_read.unwrap_or(given.input),
            long: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_proto::build;

    fn prices(given: &[&str]) -> Prices {
        Prices::new(given.iter().map(|text| ModelPrice::read(text).unwrap()).collect())
    }

    fn cost(prices: &Prices, model: &str, usage: &Usage) -> Option<(f64, &'static str)> {
        prices.cost(model, usage)
    }

    // Mutant: `given` looks for the exact name only.
    #[test]
    fn a_given_price_wins_over_the_list_and_the_longest_matching_name_over_others() {
        let prices =
            prices(&["mine=3/15", "ours-*=1/2", "ours-large*=10/20", "claude-opus-5-5=1/1"]);
        let usage = build!(Usage { input_tokens: Some(1_000_000) });
        for (model, expected) in [
            ("mine", Some((3.0, "managed"))),
            ("mine[1m]", Some((3.0, "managed"))),
            ("mine-2", None),
            ("ours-small", Some((1.0, "managed"))),
            ("ours-large-2026", Some((10.0, "managed"))),
            ("claude-opus-5-5", Some((1.0, "managed"))),
            ("claude-sonnet-5-5", Some((2.0, "list"))),
            ("other-vendor", None),
        ] {
            assert_eq!(cost(&prices, model, &usage), expected, "{model}");
            assert_eq!(prices.is_priced(model), expected.is_some(), "{model}");
        }
        assert!(prices.is_priced(OFFLINE));
    }

    #[test]
    fn the_cache_costs_at_least_as_much_as_other_input_unless_given() {
        let million = Some(1_000_000);
        let read = build!(Usage { cache_read_input_tokens: million });
        let written = build!(Usage { cache_creation_input_tokens: million });
        let of = |text: &str, usage: &Usage| prices(&[text]).cost("m", usage).unwrap().0;
        assert_eq!((of("m=4/20", &read), of("m=4/20", &written)), (4.0, 5.0));
        assert_eq!((of("m=4/20/0.5", &read), of("m=4/20/0.5/7", &written)), (0.5, 7.0));
    }
}
