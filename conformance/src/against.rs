//! Compares the runs on our program with runs on another, message by message, using `DIFFERENCES.md`.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::Args;
use crate::differ::differences;
use crate::known;
use crate::play::Log;
use crate::scenario::Scenario;
use crate::sdk::Sdk;

/// A scenario, the SDK that played it, and what happened.
pub(crate) type Played<'a> = (&'a Scenario, Sdk, Log);

/// An unlisted difference: where it occurs, and an example.
#[derive(Default)]
struct Unlisted {
    places: Vec<String>,
    example: String,
}

/// Returns whether every difference is listed. Prints unlisted ones, and rows that are no longer needed.
pub(crate) fn compare(args: &Args, ours: &[Played<'_>], theirs: &[Played<'_>]) -> Result<bool> {
    let known = known::read(&args.kit.join("DIFFERENCES.md"))?;
    let mut unlisted = BTreeMap::<String, Unlisted>::new();
    let mut listed = 0;
    for ((scenario, sdk, ours), (.., theirs)) in ours.iter().zip(theirs) {
        for difference in differences(ours, theirs) {
            // All rows are checked, so that unused ones are known.
            let explaining =
                known.iter().filter(|row| row.explains(*sdk, &scenario.name, &difference.what));
            if explaining.count() > 0 {
                listed += 1;
                continue;
            }
            let entry = unlisted.entry(difference.what).or_default();
            entry.places.push(format!("{}/{sdk}", scenario.name));
            entry.example = difference.example;
        }
    }
    println!("{listed} differences are listed in DIFFERENCES.md, {} are not", unlisted.len());
    for (what, Unlisted { places, example }) in &unlisted {
        println!("\n{what}\n  in {}\n  {example}", places.join(" "));
    }
    let everything = args.only.is_empty() && args.sdk.is_empty();
    for row in known.iter().filter(|row| everything && !row.occurs()) {
        println!("\nlisted, but does not occur: {}", row.what);
    }
    Ok(unlisted.is_empty())
}
