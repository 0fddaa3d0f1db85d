//! Headers that are replaced when a server refuses them.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use tokio::sync::Mutex;

use super::http;
use super::options::RenewHeaders;

type Headers = HashMap<HeaderName, HeaderValue>;

/// The headers of one connection that have replaced those of its beginning.
pub(super) struct RenewedHeaders {
    renew: Option<Arc<RenewHeaders>>,
    /// How often they were renewed, and what came of it. Locked while they are renewed, so that requests that are
    /// refused together renew them once.
    now: Mutex<(u64, Headers)>,
}

impl RenewedHeaders {
    pub(super) fn new(renew: Option<Arc<RenewHeaders>>) -> Self {
        Self { renew, now: Mutex::default() }
    }

    /// The headers for a request, and how often they were renewed before.
    pub(super) async fn current(&self, headers: &Headers) -> (u64, Headers) {
        let now = self.now.lock().await;
        let (count, renewed) = &*now;
        let mut headers = headers.clone();
        headers.extend(renewed.clone());
        (*count, headers)
    }

    /// Renews them after the server has refused those with this count; `None` if that is not possible.
    pub(super) async fn after(&self, count: u64, headers: &Headers) -> Option<Headers> {
        let renew = self.renew.as_ref()?;
        let mut now = self.now.lock().await;
        if now.0 == count {
            // Why it failed is said when the connection is made again; the request fails with the server's refusal.
            let renewed = renew().await.ok()?;
            *now = (count + 1, http::read_headers(&renewed).ok()?);
        }
        let mut headers = headers.clone();
        headers.extend(now.1.clone());
        Some(headers)
    }
}
