//! Records that could not be read, put aside as they were. The operator is told by the check-up.

use ostler_store::{Expected, Filter, Page, Put, Record, Store};
use serde_json::json;

/// What they are in the store. Their ids are the kind and the id that they had.
const KIND: &str = "quarantine";

/// How many are named.
const NAMED: usize = 5;

/// The record as it was, and why it could not be read.
pub(super) fn put(record: &Record, why: &str) -> Put {
    Put {
        kind: KIND.to_owned(),
        id: format!("{}:{}", record.kind, record.id),
        owner: record.owner.clone(),
        body: json!({"record": record, "why": why}),
        expected: Expected::Any,
    }
}

/// How many there are, and the names of some.
pub async fn found(store: &dyn Store) -> Result<(usize, Vec<String>), ostler_store::Error> {
    let all = Filter::default();
    let count = store.count(KIND, &all, 10_000).await?;
    let page = Page { limit: NAMED, ..Page::default() };
    let named = store.list(KIND, &all, &page).await?;
    Ok((count, named.into_iter().map(|record| record.id).collect()))
}

/// All of them. There are few: each is the trace of a defect.
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
