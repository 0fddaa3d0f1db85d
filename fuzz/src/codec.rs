//! The codec: frames do not depend on how bytes are cut into portions, and a limit bounds the memory.

use std::fmt::Debug;

use ostler_proto::DecodeError;
use ostler_proto::codec::FrameDecoder;
use ostler_proto::frame::{Frame, ToEngine, ToHost};

/// Decodes `data` as a stream in both directions.
pub fn codec(data: &[u8]) {
    check::<ToHost>(data);
    check::<ToEngine>(data);
}

fn check<F: Frame + PartialEq + Debug>(data: &[u8]) {
    let whole = decode::<F>(FrameDecoder::new(), [data]);
    let cut = decode::<F>(FrameDecoder::new(), portions(data));
    assert!(cut == whole, "{}: portions make a difference: {cut:?}, whole {whole:?}", F::NAME);

    let limit = 1 + checksum(data) as usize % 200;
    let bounded: Vec<_> =
        decode_bounded::<F>(limit, portions(data)).into_iter().map(without_quotation).collect();
    let expected = expected_within::<F>(limit, data);
    assert!(bounded == expected, "{}: limit {limit}: {bounded:?}, not {expected:?}", F::NAME);
}

fn decode<'a, F: Frame>(
    mut decoder: FrameDecoder<F>,
    portions: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<F, DecodeError>> {
    let mut results = Vec::new();
    for portion in portions {
        decoder.push(portion);
        results.extend(std::iter::from_fn(|| decoder.next_frame()));
    }
    decoder.finish();
    results.extend(std::iter::from_fn(|| decoder.next_frame()));
    results
}

fn decode_bounded<'a, F: Frame + Debug>(
    limit: usize,
    portions: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<F, DecodeError>> {
    let mut decoder = FrameDecoder::<F>::with_limit(limit);
    let mut results = Vec::new();
    for (index, portion) in portions.into_iter().enumerate() {
        decoder.push(portion);
        results.extend(std::iter::from_fn(|| decoder.next_frame()));
        // The decoder's debug text shows how much it holds: at most five characters a byte. Formatting it is slow, so
        // it is checked only now and then; unbounded growth is still visible then.
        if index % 64 == 63 {
            let held = format!("{decoder:?}").len() / 5;
            assert!(held <= limit + portion.len() + 100, "{}: holds {held} bytes", F::NAME);
        }
    }
    decoder.finish();
    results.extend(std::iter::from_fn(|| decoder.next_frame()));
    results
}

/// The same by the shortest route: split, then look at each line.
fn expected_within<F: Frame>(limit: usize, data: &[u8]) -> Vec<Result<F, DecodeError>> {
    data.split(|byte| *byte == b'\n')
        .filter_map(|line| {
            if line.len() > limit {
                return Some(Err(DecodeError::too_long(limit, b"")));
            }
            // Nothing is too long for itself: what is left of the decoder is one line without a newline.
            decode::<F>(FrameDecoder::new(), [line]).pop()
        })
        .collect()
}

/// How much of a line is there to be quoted when it proves too long does depend on the portions.
fn without_quotation<F>(mut result: Result<F, DecodeError>) -> Result<F, DecodeError> {
    if let Err(DecodeError::TooLong { text, .. }) = &mut result {
        text.clear();
    }
    result
}

/// `data` in portions of 0 to 2^n bytes, chosen by the data itself so that a run can be repeated.
fn portions(mut data: &[u8]) -> Vec<&[u8]> {
    let mut state = checksum(data) | 1;
    let largest = [2, 8, 64, 1024][(state >> 40) as usize % 4];
    let mut portions = Vec::new();
    while !data.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = ((state >> 33) as usize % largest).min(data.len());
        let (portion, rest) = data.split_at(length);
        portions.push(portion);
        data = rest;
    }
    portions
}

/// FNV-1a.
fn checksum(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
