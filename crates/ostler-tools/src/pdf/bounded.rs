//! Limits on the decompressed size of a document's streams.
//!
//! A stream of two megabytes can contain two gigabytes of spaces. The library decompresses everything, so streams
//! that would become too large are emptied first.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::Read as _;

use flate2::read::{DeflateDecoder, ZlibDecoder};
use pdf_extract::{Document, LoadOptions, Object, ObjectId, Stream};

/// The size limit of one stream. The text of a long page has some hundred kilobytes.
const MAX_STREAM_BYTES: usize = 8 * 1024 * 1024;
/// The size limit of all object streams, which are decompressed while the document is opened.
const MAX_OBJECT_BYTES: usize = 32 * 1024 * 1024;
/// The size limit of all contents of one page, counted as often as the page refers to them.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
/// LZW expands at most 2,730 times, and is decompressed to be counted. Longer streams of this old format are emptied
/// unread.
const MAX_LZW_BYTES: usize = 32 * 1024;

thread_local! {
    /// The remaining limit for object streams. The library calls [`bound`] on the thread that opens a document.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Opens a document within the limits.
pub(super) fn load(bytes: &[u8]) -> Result<Document, String> {
    LEFT.set(MAX_OBJECT_BYTES);
    let options = LoadOptions::with_filter(bound);
    let document = Document::load_mem_with_options(bytes, options);
    document.map_err(|error| error.to_string())
}

/// Empties every stream that is too large, including images, and returns their ids. For open and decrypted documents.
pub(super) fn limit_streams(document: &mut Document) -> HashSet<ObjectId> {
    let mut emptied = HashSet::new();
    for (id, object) in &mut document.objects {
        if let Object::Stream(stream) = object
            && size(stream, MAX_STREAM_BYTES).is_none()
        {
            empty(stream);
            emptied.insert(*id);
        }
    }
    emptied
}

/// Whether the contents of a page are complete, and together within the limit.
pub(super) fn is_page_within_limit(
    document: &Document,
    emptied: &HashSet<ObjectId>,
    page: ObjectId,
) -> bool {
    let contents = document.get_page_contents(page);
    if contents.iter().any(|id| emptied.contains(id)) {
        return false;
    }
    let stream = |id| document.get_object(id).and_then(Object::as_stream).ok();
    let sizes = contents.into_iter().filter_map(stream).map(|it| size(it, MAX_STREAM_BYTES));
    sizes.fold(0, |sum: usize, size| sum.saturating_add(size.unwrap_or(usize::MAX)))
        <= MAX_PAGE_BYTES
}

/// Checks an object before the library uses it. The return value is used for objects from object streams only, which
/// are never streams themselves.
fn bound(id: ObjectId, object: &mut Object) -> Option<(ObjectId, Object)> {
    let Object::Stream(stream) = object else { return Some((id, object.clone())) };
    if stream.dict.has_type(b"ObjStm") {
        match size(stream, LEFT.get()) {
            Some(n_bytes) => LEFT.set(LEFT.get() - n_bytes),
            None => empty(stream),
        }
    }
    Some((id, Object::Null))
}

/// The decompressed size of a stream; `None` above `most`.
fn size(stream: &Stream, most: usize) -> Option<usize> {
    let filters = stream.filters().unwrap_or_default();
    let mut content = std::borrow::Cow::Borrowed(stream.content.as_slice());
    for filter in filters {
        content = match filter {
            b"FlateDecode" => inflate(&content, most)?.into(),
            b"ASCII85Decode" if content.len() <= most => decode(filter, &content).into(),
            b"LZWDecode" if content.len() <= MAX_LZW_BYTES => decode(filter, &content).into(),
            b"ASCII85Decode" | b"LZWDecode" => return None,
            // The library decodes no others.
            _ => break,
        };
    }
    (content.len() <= most).then_some(content.len())
}

fn inflate(content: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    let limit = most as u64 + 1;
    // A truncated stream counts as far as it can be read, as in the library.
    let _ = ZlibDecoder::new(content).take(limit).read_to_end(&mut output);
    if output.is_empty() && content.len() > 2 {
        let _ = DeflateDecoder::new(&content[2..]).take(limit).read_to_end(&mut output);
    }
    (output.len() <= most).then_some(output)
}

fn decode(filter: &[u8], content: &[u8]) -> Vec<u8> {
    let mut stream = Stream::new(pdf_extract::Dictionary::new(), content.to_vec());
    stream.dict.set("Filter", Object::Name(filter.to_vec()));
    stream.decompressed_content().unwrap_or_default()
}

pub(super) fn empty(stream: &mut Stream) {
    stream.dict.remove(b"Filter");
    stream.dict.remove(b"DecodeParms");
    stream.set_content(Vec::new());
}
