//! Small documents with a version, as typed values. An unreadable one is quarantined and does not block anything.

pub mod quarantine;

use ostler_base::error::{self, Fallible};
use ostler_store::{Expected, Filter, Page, Put, Record, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Every kind of record that belongs to a user. `kept!` does not compile for a kind that is missing here.
pub const KINDS: [&str; 25] = [
    "session",
    "run",
    "attached",
    "about",
    "changes",
    "usage",
    "sessionTotals",
    "approval",
    "audit",
    "rule",
    "space",
    "seen_memory",
    "schedule",
    "firing",
    "firingKey",
    "hook",
    "owed",
    "task",
    "thread",
    "promptKey",
    "deletion",
    "cancelRequest",
    "uncountedUsage",
    "dayUsage",
    "mcpServers",
];

/// Whether a kind is in [`KINDS`].
pub const fn is_kind(kind: &str) -> bool {
    let mut place = 0;
    while place < KINDS.len() {
        if is_same(KINDS[place].as_bytes(), kind.as_bytes()) {
            return true;
        }
        place += 1;
    }
    false
}

/// `==` on slices is not available in constants yet.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}

/// How often a change is tried again after a concurrent change.
const RETRIES: usize = 20;

/// The format of records, in a field of each. Increased when older programs could not read them.
const FORMAT: u64 = 1;
const FORMAT_FIELD: &str = "recordFormat";

/// A document in the store.
pub trait Kept: Serialize + DeserializeOwned + Send + Sync {
    /// Its kind.
    const KIND: &'static str;
    /// Its id, unique in its kind.
    fn id(&self) -> &str;
    /// The user to whom it belongs.
    fn owner(&self) -> Option<&str>;

    /// A write of this document, for a transaction with others.
    fn put(&self, expected: Expected) -> Fallible<Put> {
        let mut body = serde_json::to_value(self).map_err(error::internal)?;
        if let Some(fields) = body.as_object_mut() {
            fields.insert(FORMAT_FIELD.to_owned(), FORMAT.into());
        }
        Ok(Put {
            kind: Self::KIND.to_owned(),
            id: self.id().to_owned(),
            owner: self.owner().map(str::to_owned),
            body,
            expected,
        })
    }
}

/// Implements `Kept` for a type with the fields `id` and `owner`.
#[macro_export]
macro_rules! kept {
    ($type:ty, $kind:literal) => {
        const _: () = assert!($crate::records::is_kind($kind), "add the kind to records::KINDS");

        impl $crate::records::Kept for $type {
            const KIND: &'static str = $kind;

            fn id(&self) -> &str {
                &self.id
            }

            fn owner(&self) -> Option<&str> {
                Some(&self.owner)
            }
        }
    };
}

pub use kept;

/// Typed access to the documents of the store.
#[derive(Clone)]
pub struct Records {
    store: std::sync::Arc<dyn Store>,
}

impl Records {
    pub fn new(store: std::sync::Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub async fn create<T: Kept>(&self, value: &T) -> Fallible<()> {
        self.store.put(vec![value.put(Expected::Absent)?]).await?;
        Ok(())
    }

    /// Stores a document that only the caller changes.
    pub async fn save<T: Kept>(&self, value: &T) -> Fallible<()> {
        self.store.put(vec![value.put(Expected::Any)?]).await?;
        Ok(())
    }

    /// The document, with its version.
    pub async fn find<T: Kept>(&self, id: &str) -> Fallible<Option<(T, u64)>> {
        match self.store.get(T::KIND, id).await? {
            Some(record) => match read(&record) {
                Ok(value) => Ok(Some((value, record.version))),
                Err(why @ Unreadable::Newer(_)) => {
                    Err(error::internal(format!("{} {id}: {why}", T::KIND)))
                }
                // As if it had been removed, which is the effect of quarantine.
                Err(why) => {
                    self.unreadable(record, &why).await;
                    Ok(None)
                }
            },
            None => Ok(None),
        }
    }

    /// Changes a document, also with concurrent changes. Returns the result of `change`; an error of it changes
    /// nothing.
    pub async fn update<T: Kept, R>(
        &self,
        id: &str,
        mut change: impl FnMut(&mut T) -> Fallible<R>,
    ) -> Fallible<(T, R)> {
        for _ in 0..RETRIES {
            let Some((mut value, version)) = self.find::<T>(id).await? else {
                return Err(error::not_found(T::KIND, id));
            };
            let answer = change(&mut value)?;
            match self.store.put(vec![value.put(Expected::Version(version))?]).await {
                Ok(_) => return Ok((value, answer)),
                Err(ostler_store::Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(error::internal(format!("{} {id} changes too fast", T::KIND)))
    }

    /// The number of documents, counted up to `most`.
    pub async fn count<T: Kept>(&self, filter: &Filter, most: usize) -> Fallible<usize> {
        Ok(self.store.count(T::KIND, filter, most).await?)
    }

    /// A page of documents. Unreadable ones are left out and quarantined.
    pub async fn list<T: Kept>(&self, filter: &Filter, page: &Page) -> Fallible<Vec<T>> {
        let records = self.store.list(T::KIND, filter, page).await?;
        Ok(self.readable(records).await)
    }

    /// All documents, over all pages.
    pub async fn all<T: Kept>(&self, filter: Filter) -> Fallible<Vec<T>> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = Page { after, limit: 500, ..Page::default() };
            let records = self.store.list(T::KIND, &filter, &page).await?;
            let Some(last) = records.last() else { return Ok(found) };
            after = Some(last.id.clone());
            found.extend(self.readable(records).await);
        }
    }

    /// The newest documents by their field `place`, newest first.
    pub async fn newest<T: Kept>(&self, filter: &Filter, most: usize) -> Fallible<Vec<T>> {
        let by = Some("place".to_owned());
        let mut page = Page { after: None, limit: most, descending: true, by };
        let mut found = Vec::new();
        // The store returns fewer if they are large.
        while page.limit > 0 {
            let records = self.store.list(T::KIND, filter, &page).await?;
            let Some(last) = records.last() else { break };
            page.after = last.body["place"].as_str().map(str::to_owned);
            page.limit -= records.len();
            found.extend(self.readable(records).await);
        }
        Ok(found)
    }

    async fn readable<T: Kept>(&self, records: Vec<Record>) -> Vec<T> {
        let mut found = Vec::with_capacity(records.len());
        for record in records {
            match read(&record) {
                Ok(value) => found.push(value),
                Err(why) => self.unreadable(record, &why).await,
            }
        }
        found
    }

    /// Quarantines an unreadable record, so that it does not block anything and is not lost. A record of a newer
    /// program stays where it is.
    async fn unreadable(&self, record: Record, why: &Unreadable) {
        let Record { kind, id, version, .. } = &record;
        tracing::error!(kind, id, %why, "a record cannot be read and is left out");
        if matches!(why, Unreadable::Newer(_)) {
            return;
        }
        let aside = quarantine::put(&record, &why.to_string());
        let moved = async {
            self.store.put(vec![aside]).await?;
            self.store.remove(kind, id, Expected::Version(*version)).await
        };
        match moved.await {
            // Another task has just moved or changed it.
            Ok(()) | Err(ostler_store::Error::Conflict { .. }) => {}
            Err(error) => tracing::warn!(kind, id, %error, "a record could not be quarantined"),
        }
    }

    /// The number of documents for each value of a field.
    pub async fn count_by<T: Kept>(
        &self,
        filter: &Filter,
        field: &str,
        most: usize,
    ) -> Fallible<Vec<(String, usize)>> {
        Ok(self.store.count_by(T::KIND, filter, field, most).await?)
    }

    /// Removes a document and stores another one, both or neither.
    pub(crate) async fn replace<T: Kept, U: Kept>(
        &self,
        gone: &T,
        version: u64,
        new: &U,
    ) -> Fallible<()> {
        let removed = (T::KIND.to_owned(), gone.id().to_owned(), Expected::Version(version));
        Ok(self.store.replace(vec![new.put(Expected::Absent)?], vec![removed]).await?)
    }

    /// Stores documents and removes others, by kind and id: all or nothing.
    pub(crate) async fn exchange(
        &self,
        puts: Vec<Put>,
        removed: Vec<(String, String, Expected)>,
    ) -> Result<(), ostler_store::Error> {
        self.store.replace(puts, removed).await
    }

    pub async fn remove<T: Kept>(&self, id: &str) -> Fallible<()> {
        Ok(self.store.remove(T::KIND, id, Expected::Any).await?)
    }
}

fn read<T: Kept>(record: &Record) -> Result<T, Unreadable> {
    let format = record.body.get(FORMAT_FIELD).and_then(serde_json::Value::as_u64).unwrap_or(0);
    if format > FORMAT {
        return Err(Unreadable::Newer(format));
    }
    T::deserialize(&record.body).map_err(|error| Unreadable::Damaged(error.to_string()))
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("a newer program wrote it (format {0}, this one knows {FORMAT}); use that program")]
    Newer(u64),
    #[error("{0}")]
    Damaged(String),
}

#[cfg(test)]
mod tests;
