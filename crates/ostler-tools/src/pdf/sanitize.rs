//! Removes parts of a document that would make the reader recurse without end or stop halfway.

use std::collections::{HashMap, HashSet};

use pdf_extract::{Dictionary, Document, Object, ObjectId, Stream};

/// How deep forms may be nested.
const MAX_DEPTH: usize = 20;

/// Makes a document safe to read.
///
/// # Errors
/// The reason, if its page tree is circular.
pub(super) fn sanitize(document: &mut Document) -> Result<(), String> {
    for page in document.get_pages().into_values() {
        check_parents(document, page)?;
    }
    let ending = ending(&forms(document));
    let emptied: Vec<ObjectId> = document
        .objects
        .iter()
        .filter_map(|(id, object)| Some((*id, object.as_stream().ok()?)))
        .filter(|(id, stream)| is_picture(stream) || !ending.contains(id))
        .map(|(id, _)| id)
        .collect();
    for id in emptied {
        // An empty stream; the reader would interpret the bytes of an image as drawing commands.
        if let Ok(stream) = document.get_object_mut(id).and_then(Object::as_stream_mut) {
            super::bounded::empty(stream);
        }
    }
    Ok(())
}

/// A page inherits from its parents; that chain must end.
fn check_parents(document: &Document, page: ObjectId) -> Result<(), String> {
    let mut seen = HashSet::from([page]);
    let mut at = page;
    while let Ok(parent) = document
        .get_dictionary(at)
        .and_then(|dictionary| dictionary.get(b"Parent"))
        .and_then(Object::as_reference)
    {
        if !seen.insert(parent) {
            return Err("its page tree is circular".to_owned());
        }
        at = parent;
    }
    Ok(())
}

fn is_picture(stream: &Stream) -> bool {
    stream.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Image")
}

/// Which streams each stream may draw. One without its own resources may draw whatever its caller may.
fn forms(document: &Document) -> HashMap<ObjectId, Vec<ObjectId>> {
    let streams = document.objects.iter().filter_map(|(id, object)| {
        let resources = resources(document, &object.as_stream().ok()?.dict)?;
        Some((*id, drawn(document, resources)))
    });
    let mut forms: HashMap<ObjectId, Vec<ObjectId>> = streams.collect();
    let without: Vec<ObjectId> = document
        .objects
        .iter()
        .filter(|(id, object)| object.as_stream().is_ok() && !forms.contains_key(id))
        .map(|(id, _)| *id)
        .collect();
    for id in without {
        let draws = document.get_object(id).and_then(Object::as_stream).is_ok_and(draws_something);
        // Treated as drawing itself: its callers are not followed.
        forms.insert(id, if draws { vec![id] } else { Vec::new() });
    }
    forms
}

fn draws_something(stream: &Stream) -> bool {
    let is_form =
        stream.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Form");
    is_form
        && stream
            .decompressed_content()
            .unwrap_or_else(|_| stream.content.clone())
            .windows(2)
            .any(|word| word == b"Do")
}

fn resources<'a>(document: &'a Document, dictionary: &'a Dictionary) -> Option<&'a Dictionary> {
    let resources = dictionary.get(b"Resources").ok()?;
    document.dereference(resources).ok()?.1.as_dict().ok()
}

/// The streams that these resources name for drawing.
fn drawn(document: &Document, resources: &Dictionary) -> Vec<ObjectId> {
    let named = resources.get(b"XObject").and_then(|named| document.dereference(named));
    let Ok(Ok(named)) = named.map(|(_, named)| named.as_dict()) else { return Vec::new() };
    let id = |object: &Object| match document.dereference(object) {
        Ok((Some(id), _)) => Some(id),
        _ => object.as_reference().ok(),
    };
    named.iter().filter_map(|(_, object)| id(object)).collect()
}

/// The streams whose drawing ends: they draw nothing, or only streams whose drawing ends.
fn ending(forms: &HashMap<ObjectId, Vec<ObjectId>>) -> HashSet<ObjectId> {
    let mut ending = HashSet::new();
    for _ in 0..MAX_DEPTH {
        let ends = |drawn: &ObjectId| ending.contains(drawn) || !forms.contains_key(drawn);
        let more = forms.iter().filter(|(_, drawn)| drawn.iter().all(ends));
        ending = more.map(|(id, _)| *id).collect();
    }
    ending
}
