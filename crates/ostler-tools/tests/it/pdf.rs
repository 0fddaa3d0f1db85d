//! Text of PDF documents, which are built by hand here.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::session::Session;

/// A document of these objects; the first is the catalogue.
fn document(objects: &[String]) -> Vec<u8> {
    let mut text = "%PDF-1.7\n".to_owned();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(text.len());
        text += &format!("{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let start = text.len();
    text += &format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for offset in offsets {
        text += &format!("{offset:010} 00000 n \n");
    }
    text += &format!(
        "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    );
    text.into_bytes()
}

fn stream(dictionary: &str, content: &str) -> String {
    format!("<< {dictionary} /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A document with a page for each of these contents. Objects after 3 are pages and contents in turn, then `more`.
fn with_pages(contents: &[String], resources: &str, more: &[String]) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len()).map(|n| format!("{} 0 R", 4 + 2 * n)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), contents.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (n, content) in contents.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> {resources} >> >>",
            5 + 2 * n
        ));
        objects.push(stream("", content));
    }
    objects.extend_from_slice(more);
    document(&objects)
}

fn words(text: &str) -> String {
    format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET")
}

pub(crate) fn pages(n: usize) -> Vec<u8> {
    let contents: Vec<String> = (1..=n).map(|n| words(&format!("Words of page {n}."))).collect();
    with_pages(&contents, "", &[])
}

async fn read(bytes: &[u8], more: Value) -> Result<String, String> {
    let session = Session::new();
    session.file("a.pdf", bytes);
    let mut input = more;
    input["file_path"] = json!("a.pdf");
    let output = session.run("Read", input).await;
    output.map(|output| output.content.text()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_document_is_shown_page_by_page() {
    let text = read(&pages(2), json!({})).await.unwrap();
    assert_eq!(text, "[page 1]\nWords of page 1.\n\n[page 2]\nWords of page 2.\n\n");
}

#[tokio::test]
async fn pages_are_selected_and_the_rest_is_announced() {
    for (wanted, first, last) in [
        ("2", "2", "2"),
        ("2-3", "2", "3"),
        (" 4 - 5 ", "4", "5"),
        ("4-", "4", "5"),
        ("5-99", "5", "5"),
    ] {
        let text = read(&pages(5), json!({ "pages": wanted })).await.unwrap();
        assert!(text.starts_with(&format!("[page {first}]\n")), "{wanted}: {text}");
        assert!(text.contains(&format!("Words of page {last}.")), "{wanted}: {text}");
        assert_eq!(text.contains("continue with pages"), last != "5", "{wanted}: {text}");
    }
    for (wanted, why) in [
        ("0", "must be like"),
        ("x", "must be like"),
        ("", "must be like"),
        ("3-2", "must be like"),
        ("-3", "must be like"),
        ("6", "page 6 does not exist, the document has 5"),
    ] {
        let error = read(&pages(5), json!({ "pages": wanted })).await.unwrap_err();
        assert!(error.contains(why), "{wanted}: {error}");
    }
}

#[tokio::test]
async fn a_long_document_is_shown_in_parts() {
    let text = read(&pages(45), json!({})).await.unwrap();
    assert!(text.ends_with("[pages 1 to 20 of 45; continue with pages \"21-40\"]\n"), "{text}");
    let text = read(&pages(45), json!({ "pages": "40-45" })).await.unwrap();
    assert!(text.ends_with("Words of page 45.\n\n"), "{text}");
    let long = vec![words(&"word ".repeat(12_000)); 3];
    let text = read(&with_pages(&long, "", &[]), json!({})).await.unwrap();
    assert!(text.ends_with("[pages 1 to 1 of 3; continue with pages \"2-3\"]\n"));
    assert!(text.len() < 101_000);
}

#[tokio::test]
async fn the_structured_output_is_the_text() {
    let session = Session::new();
    let path = session.file("a.pdf", pages(1));
    let structured = session.structured("Read", json!({ "file_path": "a.pdf" })).await;
    let content = "[page 1]\nWords of page 1.\n\n";
    let file = json!({ "filePath": path, "content": content, "numLines": 3, "startLine": 1, "totalLines": 3 });
    assert_eq!(structured, json!({ "type": "text", "file": file }));
}

#[tokio::test]
async fn a_scan_is_reported_as_having_no_text() {
    let picture = stream("/Type /XObject /Subtype /Image /Width 1 /Height 1", "BT (x) Tj \u{1}");
    let scan = with_pages(&["/Im1 Do".to_owned()], "/XObject << /Im1 6 0 R >>", &[picture]);
    let text = read(&scan, json!({})).await.unwrap();
    assert!(text.contains("probably pictures, such as scans"), "{text}");
}

#[tokio::test]
async fn text_in_forms_is_found_and_recursive_forms_end() {
    let form = |resources: &str, content: &str| {
        stream(&format!("/Type /XObject /Subtype /Form /BBox [0 0 9 9] {resources}"), content)
    };
    let contents = [words("Outside.") + " /Fm1 Do"];
    let named = "/XObject << /Fm1 6 0 R /Fm2 7 0 R >>";
    let fonts = "/Font << /F1 3 0 R >>";
    let both = format!("/Resources << {fonts} {named} >>");
    let inner = form(&format!("/Resources << {fonts} >>"), &words("Inside."));
    let harmless = [form(&both.replace("/Fm1 6 0 R", ""), "/Fm2 Do"), inner];
    let text = read(&with_pages(&contents, named, &harmless), json!({})).await.unwrap();
    assert!(text.contains("Outside.") && text.contains("Inside."), "{text}");
    for forms in [
        // Itself, by its own resources and by the page's.
        [form(&both, "/Fm1 Do"), "null".to_owned()],
        [form("", "/Fm1 Do"), "null".to_owned()],
        // Each other.
        [form(&both, "/Fm2 Do"), form(&both, "/Fm1 Do")],
        [form(&both, "/Fm2 Do"), form("", "/Fm1 Do")],
    ] {
        let text = read(&with_pages(&contents, named, &forms), json!({})).await.unwrap();
        assert!(text.contains("[page 1]"), "{text}");
    }
}

#[tokio::test]
async fn a_circular_page_tree_is_refused() {
    // A reader looks up missing values in the parent, and so on.
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 /Parent 2 0 R >>",
        "<< /Type /Page /Parent 2 0 R >>",
    ];
    let error = read(&document(&objects.map(str::to_owned)), json!({})).await.unwrap_err();
    assert!(error.contains("page tree is circular"), "{error}");
}

#[tokio::test]
async fn the_error_for_a_broken_document_suggests_an_alternative() {
    let whole = pages(2);
    for bytes in [&b"%PDF-1.7\n"[..], &whole[..40], &whole[..whole.len() / 2], b"%PDF-\xff\xff\xff"]
    {
        let error = read(bytes, json!({})).await.unwrap_err();
        assert!(error.contains("pdftotext"), "{error}");
    }
    let no_box = String::from_utf8(pages(2)).unwrap().replacen("/MediaBox", "/Mediabox", 1);
    let text = read(no_box.as_bytes(), json!({})).await.unwrap();
    assert!(
        text.contains("[page 1]\n[this page is broken") && text.contains("Words of page 2."),
        "{text}"
    );
}

#[tokio::test]
async fn pages_are_for_documents_only() {
    let session = Session::new();
    session.file("a.txt", "x");
    let error = session.error("Read", json!({ "file_path": "a.txt", "pages": "1" })).await;
    assert!(error.contains("use offset and limit"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_damaged_document_never_panics_the_tool(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = pages(3);
        for (index, byte) in damage {
            let index = index.index(bytes.len() - 5) + 5;
            bytes[index] = byte;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let result = runtime.block_on(read(&bytes, json!({})));
        if let Err(error) = result {
            prop_assert!(!error.contains("broke down"), "{}", error);
        }
    }
}

/// A page with compressed contents: `n_copies` of `text`.
fn with_bomb(text: &str, n_copies: usize, dictionary: &str) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..n_copies {
        encoder.write_all(text.as_bytes()).unwrap();
    }
    let bytes = encoder.finish().unwrap();
    // The document is made as text; the compressed bytes replace as many characters.
    let marker = "B".repeat(bytes.len());
    let page = |contents| {
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {contents} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>"
        )
    };
    let mut document = document(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R 6 0 R] /Count 2 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
        page(5),
        stream("", &words("Words of page 1.")),
        page(7),
        stream(&format!("/Filter /FlateDecode {dictionary}"), &marker),
    ]);
    let is_marker = |window: &[u8]| window == marker.as_bytes();
    let at = document.windows(marker.len()).position(is_marker).unwrap();
    document[at..at + bytes.len()].copy_from_slice(&bytes);
    document
}

// Mutant: `limit_streams` empties nothing; the whole page is then parsed.
#[tokio::test]
async fn a_decompression_bomb_in_one_page_does_not_affect_the_others() {
    let bomb = with_bomb(&" ".repeat(4096), 64 * 256, "");
    assert!(bomb.len() < 200_000, "{}", bomb.len());
    let text = read(&bomb, json!({})).await.unwrap();
    assert!(text.contains("Words of page 1."), "{text}");
    assert!(text.contains("[page 2]\n[this page is too large to be read here"), "{text}");
    // The same at a small size is an ordinary page.
    let text = read(&with_bomb("BT /F1 12 Tf 72 700 Td (Squeezed.) Tj ET ", 1, ""), json!({}))
        .await
        .unwrap();
    assert!(text.contains("[page 2]\nSqueezed."), "{text}");
}

// Mutant: documents are opened without the filter; the stream is then decompressed while the document is opened.
#[tokio::test]
async fn objects_in_a_decompression_bomb_are_left_out() {
    let bomb = with_bomb(&" ".repeat(4096), 64 * 256, "/Type /ObjStm /N 1 /First 4");
    let text = read(&bomb, json!({})).await.unwrap();
    assert!(text.contains("Words of page 1."), "{text}");
}
