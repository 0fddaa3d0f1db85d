//! Validates names and sizes before anything is written.

use serde_json::Value;

use super::writer::LARGEST_REQUEST;
use crate::{Due, Error, Filter, NewEvent, Page, Put};

/// The limit of one body, in bytes. A frame with a large image fits.
pub(super) const LARGEST_BODY: usize = 16 << 20;

/// The maximum number of events or records in one request or answer.
const MOST: usize = 10_000;

const LONGEST_KIND: usize = 64;
const LONGEST_ID: usize = 512;

pub(super) fn kind(kind: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-/".contains(&byte);
    if kind.is_empty() || kind.len() > LONGEST_KIND || !kind.bytes().all(allowed) {
        return Err(Error::Invalid(format!(
            "{:?} is not a valid kind: use 1 to {LONGEST_KIND} ASCII letters, digits, and any of . _ : - /",
            beginning(kind)
        )));
    }
    Ok(())
}

/// Validates a name chosen by a caller: an id, a key, an owner.
pub(super) fn id(what: &str, id: &str) -> Result<(), Error> {
    let forbidden = |c: char| c.is_control() || c == char::MAX;
    if id.is_empty() || id.len() > LONGEST_ID || id.contains(forbidden) {
        return Err(Error::Invalid(format!(
            "{:?} cannot be {what}: use 1 to {LONGEST_ID} bytes without control characters",
            beginning(id)
        )));
    }
    Ok(())
}

/// Validates an append and returns its size in bytes.
pub(super) fn append(events: &[NewEvent], puts: &[Put]) -> Result<usize, Error> {
    if events.iter().any(|event| event.key.is_some())
        && !events.iter().all(|event| event.key.is_some())
    {
        return Err(Error::Invalid(
            "only some of the events have a key, so a repeated append could not be recognised; give every event a key".to_owned(),
        ));
    }
    let mut bytes = self::puts(puts)?;
    for event in events {
        kind(&event.kind)?;
        if let Some(key) = &event.key {
            id("a key", key)?;
        }
        if event.key.is_some() && event.draft.is_some() {
            let why = "a draft cannot have a key, because a dropped draft could not be recognised; remove the key";
            return Err(Error::Invalid(why.to_owned()));
        }
        for whole in event.draft.iter().chain(&event.drops) {
            id("the name of a draft's whole", whole)?;
        }
        bytes += body(|| format!("the event {}", event.kind), event.body.as_str().len())?;
    }
    request(events.len(), bytes)
}

/// Validates changes of records and returns their size in bytes.
pub(super) fn puts(puts: &[Put]) -> Result<usize, Error> {
    let mut bytes = 0;
    for put in puts {
        kind(&put.kind)?;
        id("an id", &put.id)?;
        if let Some(owner) = &put.owner {
            id("an owner", owner)?;
        }
        bytes += body(|| format!("{} {}", put.kind, put.id), size(&put.body))?;
    }
    request(puts.len(), bytes)
}

pub(super) fn due(due: &Due) -> Result<usize, Error> {
    id("an id", &due.id)?;
    body(|| format!("the timer {}", due.id), due.body.as_str().len())
}

/// Validates a list request and returns the page with its limit clamped.
pub(super) fn list(of: &str, filter: &Filter, page: &Page) -> Result<Page, Error> {
    kind(of)?;
    let looked_for =
        [&filter.field, &filter.contains].into_iter().flatten().map(|(field, _)| field);
    let looked_for = looked_for.chain(filter.any_of.as_ref().map(|(field, _)| field));
    looked_for.chain(&page.by).try_for_each(|name| field(name))?;
    Ok(Page { limit: limit(page.limit), ..page.clone() })
}

/// Field names become part of an SQL statement. A field of a field is named with a dot between the two.
fn field(name: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = |part: &str| {
        part.bytes().all(allowed) && !part.is_empty() && !part.as_bytes()[0].is_ascii_digit()
    };
    if name.len() <= LONGEST_KIND && name.split('.').all(is_plain) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{:?} is not a valid field name: use ASCII letters, digits and _, and a dot before the field of a field",
        beginning(name)
    )))
}

pub(super) fn limit(limit: usize) -> usize {
    limit.min(MOST)
}

fn body(what: impl FnOnce() -> String, bytes: usize) -> Result<usize, Error> {
    if bytes > LARGEST_BODY {
        return Err(Error::TooLarge { what: what(), bytes, limit: LARGEST_BODY });
    }
    Ok(bytes)
}

fn request(count: usize, bytes: usize) -> Result<usize, Error> {
    if count > MOST {
        return Err(Error::Invalid(format!("{count} items in one request; the limit is {MOST}")));
    }
    if bytes > LARGEST_REQUEST {
        let what = "the whole request".to_owned();
        return Err(Error::TooLarge { what, bytes, limit: LARGEST_REQUEST });
    }
    Ok(bytes)
}

/// The size of a value as JSON, without building the text.
fn size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("a value has JSON, and counting cannot fail");
    count.0
}

fn beginning(text: &str) -> String {
    text.chars().take(80).collect()
}
