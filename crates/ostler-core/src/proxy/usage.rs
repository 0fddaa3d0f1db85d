//! The usage of an engine's pass, and its limits. It is counted from the model's responses, because the engine and
//! everything it starts cannot be trusted.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use ostler::proto::api::Usage;
use serde_json::Value;

use crate::config::Config;

/// The size limit of a line of a response that is parsed for usage, in bytes.
const LONGEST: usize = 16 << 20;

/// The limits of one pass.
#[derive(Clone, Debug)]
pub struct PassLimits {
    /// Concurrent requests.
    pub(crate) in_flight: usize,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    /// Dollars, by the list price.
    pub(crate) usd: Option<f64>,
    /// The allowed models; all if empty.
    pub models: Vec<String>,
}

impl PassLimits {
    pub fn of(config: &Config) -> Self {
        let limits = &config.limits;
        Self {
            in_flight: limits.engine_requests,
            tokens: limits.engine_tokens,
            usd: limits.engine_usd,
            models: config.models.clone(),
        }
    }

    /// Whether a model is allowed. A date or an alias may follow the allowed name.
    pub(super) fn allows(&self, model: &str) -> bool {
        let is_it = |allowed: &String| {
            let rest = model.strip_prefix(allowed.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-') && is_version(rest))
        };
        self.models.is_empty() || self.models.iter().any(is_it)
    }
}

/// `-20250929` and `-latest` name another version of a model; `-mini` would name another model.
fn is_version(rest: &str) -> bool {
    let rest = rest.trim_start_matches('-');
    rest == "latest" || (rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Why a request is not passed on.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// It may be sent when another one has ended.
    TooMany(String),
    /// It is never sent.
    Spent(String),
}

/// The usage of one pass.
#[derive(Debug, Default)]
pub(super) struct Used {
    in_flight: AtomicUsize,
    /// Whether a model without a known price was used.
    is_unpriced: AtomicBool,
    total: Mutex<(u64, f64)>,
}

impl Used {
    /// Tokens and dollars so far.
    pub(super) fn total(&self) -> (u64, f64) {
        *self.total.lock()
    }

    /// Begins a request, if the limits allow it.
    pub(super) fn begin(self: &Arc<Self>, limits: &PassLimits) -> Result<Flight, Refused> {
        let (tokens, usd) = self.total();
        if let Some(most) = limits.tokens.filter(|most| tokens >= *most) {
            let message = format!(
                "this agent has used {tokens} tokens of the {most} that the operator allows (--engine-tokens)"
            );
            return Err(Refused::Spent(message));
        }
        if let Some(most) = limits.usd {
            let why = if self.is_unpriced.load(Relaxed) {
                "this agent used a model without a known price, so its cost cannot be counted"
                    .to_owned()
            } else {
                format!("this agent has used ${usd:.2} of the ${most:.2} that the operator allows")
            };
            if usd >= most || self.is_unpriced.load(Relaxed) {
                return Err(Refused::Spent(format!("{why} (--engine-usd)")));
            }
        }
        let before = self.in_flight.fetch_add(1, Relaxed);
        let flight = Flight(Arc::clone(self));
        if before >= limits.in_flight {
            let most = limits.in_flight;
            let message =
                format!("{most} requests of this agent are in progress, which is the maximum");
            return Err(Refused::TooMany(message));
        }
        Ok(flight)
    }

    fn add(&self, model: &str, usage: &Usage) {
        let tokens = usage.total_input().saturating_add(usage.output_tokens.unwrap_or(0));
        let cost = ostler::engine::list_price(model, usage);
        if cost.is_none() && tokens > 0 {
            self.is_unpriced.store(true, Relaxed);
        }
        let mut total = self.total.lock();
        total.0 = total.0.saturating_add(tokens);
        total.1 += cost.unwrap_or(0.0);
    }
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Flight(Arc<Used>);

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// Parses a response as it passes: events of a stream, or one JSON document. Its usage is added when it ends, also when
/// the engine does not read all of it.
pub(super) struct Scanner {
    flight: Flight,
    line: Vec<u8>,
    is_too_long: bool,
    model: String,
    usage: Usage,
}

impl Scanner {
    pub(super) fn new(flight: Flight) -> Self {
        Self {
            flight,
            line: Vec::new(),
            is_too_long: false,
            model: String::new(),
            usage: Usage::default(),
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() > LONGEST {
                self.is_too_long = true;
            }
            if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.end_of_line();
            }
        }
    }

    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return;
        }
        let json = line.strip_prefix(b"data:").unwrap_or(&line);
        let Ok(said) = serde_json::from_slice::<Value>(json) else { return };
        for place in [&said, &said["message"]] {
            if let Some(model) = place["model"].as_str() {
                model.clone_into(&mut self.model);
            }
            if let Ok(usage) = serde_json::from_value::<Usage>(place["usage"].clone()) {
                self.usage = larger(&self.usage, usage);
            }
        }
    }
}

/// Every count is the total of the response so far, so the larger one is the later one.
fn larger(known: &Usage, mut new: Usage) -> Usage {
    for (new, known) in [
        (&mut new.input_tokens, known.input_tokens),
        (&mut new.cache_creation_input_tokens, known.cache_creation_input_tokens),
        (&mut new.cache_read_input_tokens, known.cache_read_input_tokens),
        (&mut new.output_tokens, known.output_tokens),
    ] {
        *new = known.max(*new);
    }
    new.cache_creation = new.cache_creation.or_else(|| known.cache_creation.clone());
    new
}

impl Drop for Scanner {
    fn drop(&mut self) {
        self.end_of_line();
        self.flight.0.add(&self.model, &self.usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> PassLimits {
        PassLimits { in_flight: 2, tokens: Some(100), usd: None, models: Vec::new() }
    }

    // Mutant: `begin` that counts nothing, and a scanner that forgets an answer that was not read to its end.
    #[test]
    fn usage_is_counted_from_responses_and_limited() {
        let used = Arc::<Used>::default();
        let mut scanner = Scanner::new(used.begin(&limits()).unwrap());
        let start = r#"{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":60,"output_tokens":1}}}"#;
        for piece in [
            &b"event: message_start\ndata: "[..],
            &start.as_bytes()[..40],
            &start.as_bytes()[40..],
            b"\n\n",
        ] {
            scanner.read(piece);
        }
        scanner.read(b"data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":30}}\n");
        drop(scanner);
        assert_eq!(used.total().0, 90);
        assert!(used.total().1 > 0.0);
        let mut whole = Scanner::new(used.begin(&limits()).unwrap());
        whole
            .read(br#"{"model":"claude-sonnet-4-5","usage":{"input_tokens":5,"output_tokens":5}}"#);
        drop(whole);
        let Err(Refused::Spent(why)) = used.begin(&limits()) else {
            panic!("the limit must be reached")
        };
        assert!(why.contains("100"), "{why}");
    }

    #[test]
    fn with_a_dollar_limit_a_model_without_a_price_is_refused() {
        let limits = PassLimits { tokens: None, usd: Some(5.0), ..limits() };
        let used = Arc::<Used>::default();
        let mut scanner = Scanner::new(used.begin(&limits).unwrap());
        scanner.read(br#"{"model":"unheard-of","usage":{"input_tokens":5,"output_tokens":5}}"#);
        drop(scanner);
        let Err(Refused::Spent(why)) = used.begin(&limits) else {
            panic!("the limit must be reached")
        };
        assert!(why.contains("price"), "{why}");
    }

    #[test]
    fn concurrent_requests_are_limited() {
        let used = Arc::<Used>::default();
        let (one, _two) = (used.begin(&limits()).unwrap(), used.begin(&limits()).unwrap());
        assert!(matches!(used.begin(&limits()), Err(Refused::TooMany(_))));
        drop(one);
        assert!(used.begin(&limits()).is_ok());
    }

    #[test]
    fn a_model_is_allowed_by_its_name_with_or_without_a_version() {
        let limits = PassLimits { models: vec!["claude-sonnet-4-5".to_owned()], ..limits() };
        for model in ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-latest"]
        {
            assert!(limits.allows(model), "{model}");
        }
        for model in [
            "claude-opus-4-5",
            "claude-sonnet-4",
            "claude-sonnet-4-50",
            "claude-sonnet-4-5-max",
            "",
        ] {
            assert!(!limits.allows(model), "{model}");
        }
    }
}
