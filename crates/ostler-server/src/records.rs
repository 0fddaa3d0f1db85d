//! Small documents with a version, as typed values.

use ostler_store::{Expected, Filter, Page, Put, Record, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::{self, Fallible};

/// How often a change is tried again when somebody else was faster.
const RETRIES: usize = 20;

/// A document that the store keeps.
pub(crate) trait Kept: Serialize + DeserializeOwned + Send + Sync {
    /// What it is.
    const KIND: &'static str;
    /// Its name among those.
    fn id(&self) -> &str;
    /// The user it belongs to.
    fn owner(&self) -> Option<&str>;

    /// To be written with others in one go.
    fn put(&self, expected: Expected) -> Fallible<Put> {
        Ok(Put {
            kind: Self::KIND.to_owned(),
            id: self.id().to_owned(),
            owner: self.owner().map(str::to_owned),
            body: serde_json::to_value(self).map_err(fault::internal)?,
            expected,
        })
    }
}

/// Makes a type one that the store keeps, by its `id` and for its `owner`.
macro_rules! kept {
    ($type:ty, $kind:literal) => {
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

pub(crate) use kept;

/// The store, for documents.
#[derive(Clone)]
pub(crate) struct Records {
    store: std::sync::Arc<dyn Store>,
}

impl Records {
    pub(crate) fn new(store: std::sync::Arc<dyn Store>) -> Self {
        Self { store }
    }

    pub(crate) async fn create<T: Kept>(&self, value: &T) -> Fallible<()> {
        self.store.put(vec![value.put(Expected::Absent)?]).await?;
        Ok(())
    }

    /// Keeps a document that only its caller changes.
    pub(crate) async fn save<T: Kept>(&self, value: &T) -> Fallible<()> {
        self.store.put(vec![value.put(Expected::Any)?]).await?;
        Ok(())
    }

    /// The document, with its version.
    pub(crate) async fn find<T: Kept>(&self, id: &str) -> Fallible<Option<(T, u64)>> {
        match self.store.get(T::KIND, id).await? {
            Some(record) => Ok(Some((read(record.body)?, record.version))),
            None => Ok(None),
        }
    }

    /// Changes a document, however many others do so too. What `change` returns is handed back; an error of it leaves
    /// everything as it was.
    pub(crate) async fn update<T: Kept, R>(
        &self,
        id: &str,
        mut change: impl FnMut(&mut T) -> Fallible<R>,
    ) -> Fallible<(T, R)> {
        for _ in 0..RETRIES {
            let Some((mut value, version)) = self.find::<T>(id).await? else {
                return Err(fault::not_found(T::KIND, id));
            };
            let answer = change(&mut value)?;
            match self.store.put(vec![value.put(Expected::Version(version))?]).await {
                Ok(_) => return Ok((value, answer)),
                Err(ostler_store::Error::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(fault::internal(format!("{} {id} changes too fast", T::KIND)))
    }

    pub(crate) async fn list<T: Kept>(&self, filter: &Filter, page: &Page) -> Fallible<Vec<T>> {
        let records = self.store.list(T::KIND, filter, page).await?;
        records.into_iter().map(|record: Record| read(record.body)).collect()
    }

    /// All of them, however many pages they fill.
    pub(crate) async fn all<T: Kept>(&self, filter: Filter) -> Fallible<Vec<T>> {
        let mut found: Vec<T> = Vec::new();
        loop {
            let after = found.last().map(|value| value.id().to_owned());
            let page = Page { after, limit: 500, ..Page::default() };
            let some = self.list(&filter, &page).await?;
            if some.is_empty() {
                return Ok(found);
            }
            found.extend(some);
        }
    }

    pub(crate) async fn remove<T: Kept>(&self, id: &str) -> Fallible<()> {
        Ok(self.store.remove(T::KIND, id, Expected::Any).await?)
    }
}

fn read<T: Kept>(body: serde_json::Value) -> Fallible<T> {
    serde_json::from_value(body)
        .map_err(|error| fault::internal(format!("a stored {} cannot be read: {error}", T::KIND)))
}
