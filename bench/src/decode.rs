//! `decode`: typed frames cost at most half as much again as parsing the same bytes into a JSON tree.
//!
//! A tree is what a client in a dynamic language works with, and the minimum for any reader; the types also check
//! every field, name every error and keep unknown fields.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result};
use ostler_proto::codec::FrameDecoder;
use ostler_proto::frame::{Frame, ToEngine, ToHost};
use serde_json::Value;

use crate::traffic::{self, Line, Reader};
use crate::{measure, table};

const FRAMES: usize = 100_000;

/// The most that one read from a pipe returns on Linux.
const PIECE: usize = 64 * 1024;

/// Frames to encode are kept in memory, so only a part is used, and encoded this many times.
const ENCODE_ROUNDS: usize = 10;

/// The promise: time of `from_line` divided by the time of [`Value`].
const LIMIT: f64 = 1.5;

pub(crate) fn run() -> Result<Vec<String>> {
    let lines = traffic::lines(FRAMES)?;
    let sample = &lines[..FRAMES / ENCODE_ROUNDS];
    let frames = decoded(sample)?;
    let values: Vec<Value> = sample
        .iter()
        .map(|line| serde_json::from_str(&line.text))
        .collect::<Result<_, _>>()
        .context("the recorded traffic is JSON")?;
    let (to_host, to_engine) = (stream(&lines, Reader::Host), stream(&lines, Reader::Engine));

    let times = measure::medians(&mut [
        &mut || {
            for line in &lines {
                black_box(serde_json::from_str::<Value>(black_box(&line.text)).is_ok());
            }
        },
        &mut || {
            for line in &lines {
                let text = black_box(&line.text);
                match line.reader {
                    Reader::Host => drop(black_box(ToHost::from_line(text))),
                    Reader::Engine => drop(black_box(ToEngine::from_line(text))),
                }
            }
        },
        &mut || {
            drain::<ToHost>(black_box(&to_host));
            drain::<ToEngine>(black_box(&to_engine));
        },
        &mut || {
            for value in values.iter().cycle().take(FRAMES) {
                drop(black_box(serde_json::to_string(value)));
            }
        },
        &mut || {
            for frame in frames.iter().cycle().take(FRAMES) {
                match frame {
                    Either::Host(frame) => drop(black_box(frame.to_line())),
                    Either::Engine(frame) => drop(black_box(frame.to_line())),
                }
            }
        },
    ]);
    let [tree, typed, streamed, tree_out, typed_out] = times[..] else {
        unreachable!("there are five candidates")
    };
    let bytes = lines.iter().map(|line| line.text.len() + 1).sum::<usize>();
    let row = |name: &str, time: Duration, against: Duration| {
        [
            name.to_owned(),
            format!("{:.1}", time.as_secs_f64() * 1e3),
            format!("{:.0}", bytes as f64 / 1e6 / time.as_secs_f64()),
            format!("{:.0}", FRAMES as f64 / time.as_secs_f64()),
            format!("{:.2}", ratio(time, against)),
        ]
    };
    let heading = ["", "ms", "MB/s", "frames/s", "ratio"].map(str::to_owned);
    println!("decode: {FRAMES} recorded frames, {:.1} MB", bytes as f64 / 1e6);
    print!(
        "{}",
        table::render(&[
            heading,
            row("decode Value", tree, tree),
            row("decode from_line", typed, tree),
            row("decode FrameDecoder", streamed, tree),
            row("encode Value", tree_out, tree_out),
            row("encode to_line", typed_out, tree_out),
        ])
    );
    let reached = ratio(typed, tree);
    if reached > LIMIT {
        return Ok(vec![format!(
            "decoding frames takes {reached:.2} times as long as a JSON tree; the promise is {LIMIT}"
        )]);
    }
    Ok(Vec::new())
}

enum Either {
    Host(ToHost),
    Engine(ToEngine),
}

fn decoded(lines: &[Line]) -> Result<Vec<Either>> {
    // A line that does not decode would distort the time.
    lines
        .iter()
        .map(|line| {
            Ok(match line.reader {
                Reader::Host => Either::Host(ToHost::from_line(&line.text)?),
                Reader::Engine => Either::Engine(ToEngine::from_line(&line.text)?),
            })
        })
        .collect()
}

fn stream(lines: &[Line], reader: Reader) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines.iter().filter(|line| line.reader == reader) {
        bytes.extend_from_slice(line.text.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

fn drain<F: Frame>(bytes: &[u8]) {
    let mut decoder = FrameDecoder::<F>::new();
    for piece in bytes.chunks(PIECE) {
        decoder.push(piece);
        while let Some(frame) = decoder.next_frame() {
            drop(black_box(frame));
        }
    }
}

fn ratio(time: Duration, against: Duration) -> f64 {
    time.as_secs_f64() / against.as_secs_f64()
}
