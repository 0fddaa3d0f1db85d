//! Unreadable records, stored unchanged in quarantine. The check-up reports them to the operator.

use ostler_store::{Expected, Filter, Page, Put, Record, Store};
use serde_json::json;

/// The kind of quarantined records. Their ids consist of the original kind and id.
const KIND: &str = "quarantine";

/// How many are named in a report.
const NAMED: usize = 5;

/// Quarantines a record, with the reason why it is unreadable.
pub(super) fn put(record: &Record, why: &str) -> Put {
    Put {
        kind: KIND.to_owned(),
        id: format!("{}:{}", record.kind, record.id),
        owner: record.owner.clone(),
        body: json!({"record": record, "why": why}),
        expected: Expected::Any,
    }
}

/// The number of quarantined records, and the ids of some.
pub async fn found(store: &dyn Store) -> Result<(usize, Vec<String>), ostler_store::Error> {
    let all = Filter::default();
    let count = store.count(KIND, &all, 10_000).await?;
    let page = Page { limit: NAMED, ..Page::default() };
    let named = store.list(KIND, &all, &page).await?;
    Ok((count, named.into_iter().map(|record| record.id).collect()))
}

/// All quarantined records. There are few: each is the result of a defect.
pub(crate) async fn all(store: &dyn Store) -> Result<Vec<Record>, ostler_store::Error> {
    let mut found: Vec<Record> = Vec::new();
    loop {
        let after = found.last().map(|record| record.id.clone());
        let page = Page { after, limit: 500, ..Page::default() };
        let some = store.list(KIND, &Filter::default(), &page).await?;
        if some.is_empty() {
            return Ok(found);
        }
        found.extend(some);
    }
}
