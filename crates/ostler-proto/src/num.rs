//! Numbers that are written back as they were read.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// A JSON number used as a quantity: seconds, dollars, shares.
///
/// JavaScript writes `3` where Rust would write `3.0`; this type remembers which it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Num(Number);

impl Num {
    /// The value as a float.
    pub fn get(&self) -> f64 {
        // Without arbitrary precision every JSON number has a float value.
        self.0.as_f64().unwrap_or(f64::NAN)
    }
}

impl Default for Num {
    fn default() -> Self {
        Self::from(0)
    }
}

impl From<u64> for Num {
    fn from(value: u64) -> Self {
        Self(value.into())
    }
}

impl From<i32> for Num {
    fn from(value: i32) -> Self {
        Self(value.into())
    }
}

/// Written without a fraction when it has none, as JavaScript does. JSON has no infinities: they become 0.
impl From<f64> for Num {
    fn from(value: f64) -> Self {
        // Beyond 2^53, a float does not represent single integers.
        if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
            return Self((value as i64).into());
        }
        Self(Number::from_f64(value).unwrap_or_else(|| 0.into()))
    }
}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Number::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::Num;

    #[test]
    fn a_number_is_written_as_it_was_read() {
        for text in ["0", "-3", "3.0", "0.1", "18446744073709551615", "1e-7"] {
            let num: Num = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&num).unwrap(), text);
        }
    }

    #[test]
    fn whole_floats_are_written_without_a_fraction() {
        assert_eq!(Num::from(2.0).to_string(), "2");
        assert_eq!(Num::from(0.25).to_string(), "0.25");
        assert_eq!(Num::from(f64::INFINITY).to_string(), "0");
    }
}
