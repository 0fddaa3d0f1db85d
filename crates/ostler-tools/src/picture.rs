//! Images for the model: checked before they are sent, and scaled down if the API would not accept them.
//!
//! An image that the API refuses would stay in the conversation and break every later request, so none is sent
//! unchecked.

use std::io::Cursor;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use image::imageops::FilterType;
use image::{DynamicImage, ImageError, ImageFormat, ImageReader, Limits};
use ostler_engine::tool::{ToolError, ToolOutput};
use ostler_proto::Extra;
use ostler_proto::api::{Base64Source, ContentBlock, ImageBlock, Source};
use ostler_proto::build;
use ostler_proto::tool::{ImageDimensions, ImageFile, ImageType, ReadImage, ReadOutput};

/// The API accepts 5 MB of base64.
const MAX_BYTES: usize = 3_750_000;
/// The API's limit in pixels for requests with many images; the model sees no more in any case.
const MAX_SIDE: u32 = 2_000;
const MAX_DECODED_SIDE: u32 = 16_384;
/// The memory limit of a decoded image: 40 megapixels of a photograph. More would let one file exhaust a small
/// machine.
const MAX_DECODED_BYTES: u64 = 120 * 1024 * 1024;

/// The image format of a file, by its first bytes.
pub(crate) fn format(bytes: &[u8]) -> Option<ImageFormat> {
    let format = image::guess_format(bytes).ok()?;
    let known = matches!(
        format,
        ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP
    );
    known.then_some(format)
}

/// An image as a content block.
pub(crate) fn show(
    path: &Path,
    bytes: &[u8],
    format: ImageFormat,
) -> Result<ToolOutput, ToolError> {
    let (size, shown) = fitted(bytes, format)
        .map_err(|reason| ToolError::Refused(format!("{} {reason}", path.display())))?;
    Ok(output(bytes.len(), size, &shown))
}

/// An image as a content block that the API accepts, and how it was scaled, for images that do not come from files.
///
/// # Errors
/// Why it cannot be shown: a sentence that follows the name of the image.
pub fn fit(bytes: &[u8]) -> Result<(ContentBlock, Option<String>), String> {
    let format = format(bytes).ok_or("is not a PNG, JPEG, GIF or WebP image")?;
    let (size, shown) = fitted(bytes, format)?;
    let data = BASE64_STANDARD.encode(&shown.bytes);
    Ok((block(shown.format, data), scaled(size, &shown)))
}

/// The size of an image, and the image as the API accepts it.
fn fitted(bytes: &[u8], format: ImageFormat) -> Result<((u32, u32), EncodedImage), String> {
    let picture = decode(bytes, format).map_err(|error| match error {
        ImageError::Limits(_) => format!(
            "is too large to show: unpacked it has more than {} MiB, or more than {MAX_DECODED_SIDE} pixels on a \
             side. Make a smaller copy with Bash (for example with ImageMagick: convert -resize 2000x2000).",
            MAX_DECODED_BYTES / (1024 * 1024)
        ),
        error => format!("is not a valid image: {error}"),
    })?;
    let (width, height) = (picture.width(), picture.height());
    let fits = bytes.len() <= MAX_BYTES && width <= MAX_SIDE && height <= MAX_SIDE;
    let shown = if fits {
        EncodedImage { bytes: bytes.to_vec(), format, width, height }
    } else {
        shrink(&picture).ok_or_else(|| {
            format!(
                "({width} × {height} pixels, {} bytes) is too large to show, and could not be made smaller.",
                bytes.len()
            )
        })?
    };
    Ok(((width, height), shown))
}

struct EncodedImage {
    bytes: Vec<u8>,
    format: ImageFormat,
    width: u32,
    height: u32,
}

fn decode(bytes: &[u8], format: ImageFormat) -> image::ImageResult<DynamicImage> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DECODED_SIDE);
    limits.max_image_height = Some(MAX_DECODED_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    reader.decode()
}

fn shrink(picture: &DynamicImage) -> Option<EncodedImage> {
    let side = MAX_SIDE.min(picture.width().max(picture.height()));
    // The smooth filter needs a second image, as high as the first and with larger pixels.
    let small = match picture.height() > 2 * MAX_SIDE || picture.width() > 2 * MAX_SIDE {
        true => picture.thumbnail(side, side),
        false => picture.resize(side, side, FilterType::Triangle),
    };
    // Drawings stay sharp as PNG; photographs may be too large for it. JPEG has no transparency.
    let encoded = encode(&small, ImageFormat::Png)
        .or_else(|| encode(&DynamicImage::ImageRgb8(small.to_rgb8()), ImageFormat::Jpeg));
    let (bytes, format) = encoded?;
    Some(EncodedImage { bytes, format, width: small.width(), height: small.height() })
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> Option<(Vec<u8>, ImageFormat)> {
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), format).ok()?;
    (bytes.len() <= MAX_BYTES).then_some((bytes, format))
}

fn output(original_size: usize, (width, height): (u32, u32), shown: &EncodedImage) -> ToolOutput {
    let base64 = BASE64_STANDARD.encode(&shown.bytes);
    let mut blocks = vec![block(shown.format, base64.clone())];
    blocks.extend(scaled((width, height), shown).map(ContentBlock::text));
    let file = build!(ImageFile {
        original_size: original_size as u64,
        dimensions: Some(build!(ImageDimensions {
            original_width: Some(width.into()),
            original_height: Some(height.into()),
            display_width: Some(shown.width.into()),
            display_height: Some(shown.height.into())
        })),
        ..ImageFile::new(image_type(shown.format), base64)
    });
    ToolOutput::blocks(blocks, ReadOutput::Image(ReadImage::new(file)))
}

fn block(format: ImageFormat, data: String) -> ContentBlock {
    let media_type = format.to_mime_type().to_owned();
    let source = Source::Base64(Base64Source { media_type, data, ..Base64Source::default() });
    ContentBlock::Image(ImageBlock { source, cache_control: None, extra: Extra::default() })
}

/// A line about the size of an image that was scaled.
fn scaled((width, height): (u32, u32), shown: &EncodedImage) -> Option<String> {
    ((shown.width, shown.height) != (width, height)).then(|| {
        let (shown_width, shown_height) = (shown.width, shown.height);
        format!(
            "[shown with {shown_width} × {shown_height} pixels; the file has {width} × {height}]"
        )
    })
}

fn image_type(format: ImageFormat) -> ImageType {
    match format {
        ImageFormat::Png => ImageType::Png,
        ImageFormat::Jpeg => ImageType::Jpeg,
        ImageFormat::Gif => ImageType::Gif,
        ImageFormat::WebP => ImageType::Webp,
        other => ImageType::Other(other.to_mime_type().into()),
    }
}
