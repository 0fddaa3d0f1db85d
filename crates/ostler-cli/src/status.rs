//! The line that ends a turn: tokens, cost, time.

use std::time::Duration;

use ostler_proto::message::TurnResult;

use crate::spinner::elapsed;
use ostler::engine::pick::OFFLINE;

/// The usage of a turn. `before` is the cost of the conversation until then.
pub(crate) fn line(result: &TurnResult, before: f64) -> String {
    let usage = &result.usage;
    let input = usage.total_input();
    let mut parts = vec![format!("{} in", short(input))];
    if let cached @ 1.. = usage.cache_read_input_tokens.unwrap_or(0) {
        parts[0] = format!("{} in ({}% cached)", short(input), cached * 100 / input.max(1));
    }
    parts.push(format!("{} out", short(usage.output_tokens.unwrap_or(0))));
    parts.push(cost(result, before));
    parts.push(elapsed(Duration::from_millis(result.duration_ms.get() as u64)));
    parts.push(match result.num_turns {
        1 => "1 turn".to_owned(),
        n => format!("{n} turns"),
    });
    parts.join(" · ")
}

fn cost(result: &TurnResult, before: f64) -> String {
    let total = result.total_cost_usd.get();
    if result.model_usage.keys().all(|model| model == OFFLINE) && !result.model_usage.is_empty() {
        return "free".to_owned();
    }
    let is_known =
        |usage: &ostler_proto::api::ModelUsage| usage.cost_basis.as_deref() != Some("unknown");
    if !result.model_usage.values().all(is_known) {
        return "unknown price".to_owned();
    }
    match total - before {
        turn if before > 0.0 => format!("{} of {}", dollars(turn), dollars(total)),
        turn => dollars(turn),
    }
}

fn dollars(amount: f64) -> String {
    if amount > 0.0 && amount < 1.0 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use ostler_proto::Num;
    use ostler_proto::api::{ModelUsage, Usage};
    use ostler_proto::build;

    use super::*;

    fn result(input: u64, cached: u64, dollars: f64) -> TurnResult {
        build!(TurnResult {
            usage: build!(Usage {
                input_tokens: Some(input),
                cache_read_input_tokens: Some(cached),
                output_tokens: Some(340)
            }),
            total_cost_usd: Num::from(dollars),
            duration_ms: Num::from(4_200_u64),
            num_turns: 3
        })
    }

    #[test]
    fn it_shows_the_usage_of_a_turn() {
        let text = line(&result(200, 1_000, 0.01234), 0.0);
        assert_eq!(text, "1.2k in (83% cached) · 340 out · $0.0123 · 4.2s · 3 turns");
        let text = line(&result(7, 0, 2.5), 0.5);
        assert_eq!(text, "7 in · 340 out · $2.00 of $2.50 · 4.2s · 3 turns");
    }

    #[test]
    fn a_model_without_a_price_is_not_free() {
        let mut result = result(7, 0, 0.0);
        let unknown = build!(ModelUsage { cost_basis: Some("unknown".into()) });
        result.model_usage.insert("x".into(), unknown);
        assert!(line(&result, 0.0).contains("unknown price"));
        result.model_usage = [(OFFLINE.to_owned(), ModelUsage::default())].into();
        assert!(line(&result, 0.0).contains("free"), "the demo is free");
    }
}
