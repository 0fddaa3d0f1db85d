//! When a server that is down is tried again.

use std::time::Duration;

use ostler_proto::mcp::McpServerConfig;

/// When a server that is down is tried again: after `first`, and each time after twice as long, up to `longest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The wait before the first attempt.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How many attempts in a row to start a program. After that it stays down until the host reconnects it.
    pub most_starts: u32,
    /// How many attempts in a row to reach a server behind a URL.
    pub most_connections: u32,
    /// A connection that lasts this long ends the row of attempts.
    pub stable: Duration,
    /// How long a call waits for a server that is down.
    pub patience: Duration,
}

impl Default for Retry {
    /// A program is started five times within half a minute, a URL is tried for about an hour.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
            most_starts: 5,
            most_connections: 60,
            stable: Duration::from_secs(30),
            patience: Duration::from_secs(15),
        }
    }
}

impl Retry {
    /// The wait before an attempt; the first one of a row has number 1.
    pub(super) fn wait(&self, attempt: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }

    /// How many attempts in a row there are for a server. One inside the host is as reachable as the host.
    pub(super) fn most(&self, config: &McpServerConfig) -> u32 {
        match config {
            McpServerConfig::Stdio(_) => self.most_starts,
            McpServerConfig::Http(_) | McpServerConfig::Sse(_) => self.most_connections,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_is_twice_as_long_up_to_the_longest() {
        let retry = Retry::default();
        let waits: Vec<u64> = (1..=8).map(|attempt| retry.wait(attempt).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(retry.wait(u32::MAX), retry.longest);
        // A crash loop: all starts of a program are within one minute, and then it ends.
        let in_all: u64 = (1..=retry.most_starts).map(|n| retry.wait(n).as_secs()).sum();
        assert!(in_all < 60, "{in_all}");
    }
}
