//! `#[derive(Wire)]`: the one place that defines how a Rust type and a JSON object are converted into each other.
//!
//! Serde's own derive loses three things this protocol needs: whether an optional field was absent or `null`,
//! which field of which struct did not decode, and, for tagged enums, speed (it buffers every value first).
//! The generated code keeps all three. What it calls at run time lives in `ostler_proto::wire`.
//!
//! Structs have named fields, one of them `extra: Extra` for whatever the peer sent beyond the known fields.
//! Enums are either strings (unit variants) or objects distinguished by a tag (one-field variants); both end in a
//! variant marked `#[wire(other)]` that keeps unknown values.
//!
//! | attribute | on | meaning |
//! |---|---|---|
//! | `rename_all = "camelCase"` | type | how Rust names become wire names; also `snake_case`, `PascalCase`, `kebab-case` |
//! | `tag = "type"` | enum | an object enum; the field that names the variant |
//! | `tag_optional` | enum | an object without the tag is kept too, instead of being an error |
//! | `tree` | type | read by way of a JSON tree: slower, but the code that reads the type exists once and not once per source |
//! | `new(field, …)` | struct | a constructor with these fields; the others are empty |
//! | `name = "…"` | field, variant | the wire name, where the rule does not give it |
//! | `nullable` | `Option` field | `None` is written as `null` instead of being left out |
//! | `other` | variant | keeps an unknown string or object |

mod attributes;
mod object;
mod tagged;
mod word;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, Error, Fields};

/// Derives `WireObject`, `Serialize` and `Deserialize` for a struct or an enum; see the crate documentation.
#[proc_macro_derive(Wire, attributes(wire))]
pub fn derive_wire(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let rules = attributes::TypeRules::parse(&input.attrs)?;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => object::expand(&input.ident, &rules, fields),
            _ => Err(Error::new_spanned(&input.ident, "Wire needs named fields")),
        },
        Data::Enum(data) => match rules.tag {
            Some(_) => tagged::expand(&input.ident, &rules, data),
            None => word::expand(&input.ident, &rules, data),
        },
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "Wire cannot describe a union")),
    }
}
