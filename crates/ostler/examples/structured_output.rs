//! An answer as a value: the type defines what the agent must return.

use schemars::JsonSchema;
use serde::Deserialize;

/// What is in a folder. The engine shows the schema of this type to the model and checks the answer against it.
#[derive(Debug, Deserialize, JsonSchema)]
struct Listing {
    /// The files, by name.
    files: Vec<String>,
    /// What is remarkable about them.
    remark: String,
}

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    let listing: Listing = ostler::prompt_as("list the files", ostler::Options::new()).await?;
    for file in &listing.files {
        println!("- {file}");
    }
    println!("{}", listing.remark);
    Ok(())
}
