//! Prices of models that the engine's own list does not have.

use std::fmt;

/// The price of a model, in dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelPrice {
    /// Input outside the cache.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input read from the cache; as much as other input if `None`.
    pub cache_read: Option<f64>,
    /// Input written to the cache; 1.25 times as much as other input if `None`, or twice as much for an hour.
    pub cache_write: Option<f64>,
}

impl ModelPrice {
    /// A price without separate cache prices.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Reads `NAME=IN/OUT`, `NAME=IN/OUT/CACHE_READ` or `NAME=IN/OUT/CACHE_READ/CACHE_WRITE`.
    ///
    /// ```
    /// use ostler_proto::launch::ModelPrice;
    ///
    /// let (name, price) = ModelPrice::read("my-model=3/15/0.3").unwrap();
    /// assert_eq!((name.as_str(), price.input, price.output, price.cache_read), ("my-model", 3.0, 15.0, Some(0.3)));
    /// assert_eq!(price.to_string(), "3/15/0.3");
    /// for odd in ["my-model", "=3/15", "my-model=3", "my-model=3/-1", "my-model=3/NaN", "my-model=1/2/3/4/5"] {
    ///     assert!(ModelPrice::read(odd).is_err(), "{odd}");
    /// }
    /// ```
    ///
    /// # Errors
    /// When it has another form; the text says what to write.
    pub fn read(text: &str) -> Result<(String, Self), String> {
        let price = text.rsplit_once('=').filter(|(name, _)| !name.trim().is_empty());
        let numbers = price.and_then(|(name, price)| {
            let numbers: Option<Vec<f64>> = price.split('/').map(dollars).collect();
            Some((name.trim(), numbers?))
        });
        let (name, price) = match numbers.as_ref().map(|(name, numbers)| (name, &numbers[..])) {
            Some((name, [input, output])) => (name, Self::new(*input, *output)),
            Some((name, [input, output, read])) => {
                (name, Self { cache_read: Some(*read), ..Self::new(*input, *output) })
            }
            Some((name, [input, output, read, write])) => {
                let (cache_read, cache_write) = (Some(*read), Some(*write));
                (name, Self { input: *input, output: *output, cache_read, cache_write })
            }
            _ => {
                return Err(
                    "write MODEL=IN/OUT in dollars per million tokens, such as my-model=3/15"
                        .to_owned(),
                );
            }
        };
        Ok(((*name).to_owned(), price))
    }

    /// Why this is not a valid price, if so.
    pub fn refusal(&self) -> Option<String> {
        let numbers = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        let odd =
            numbers.into_iter().flatten().find(|number| !number.is_finite() || *number < 0.0)?;
        Some(format!("{odd} is not a price: write dollars per million tokens, 0 or more"))
    }
}

fn dollars(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

impl fmt::Display for ModelPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.input, self.output)?;
        match (self.cache_read, self.cache_write) {
            (None, None) => Ok(()),
            (Some(read), None) => write!(f, "/{read}"),
            (read, Some(write)) => write!(f, "/{}/{write}", read.unwrap_or(self.input)),
        }
    }
}
