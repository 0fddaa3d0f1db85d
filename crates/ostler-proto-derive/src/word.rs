//! String enums: a known JSON string, or another one that is kept.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, Error, Fields, Ident};

use crate::attributes::{ItemRules, TypeRules};

pub(crate) fn expand(
    ident: &Ident,
    rules: &TypeRules,
    data: &DataEnum,
) -> syn::Result<TokenStream> {
    let mut names = Vec::new();
    let mut variants = Vec::new();
    let mut other = None;
    for variant in &data.variants {
        let item = ItemRules::parse(&variant.attrs)?;
        match (&variant.fields, item.other) {
            (Fields::Unnamed(_), true) => other = Some(&variant.ident),
            (Fields::Unit, false) => {
                names.push(rules.wire_name(&variant.ident, &item));
                variants.push(&variant.ident);
            }
            _ => {
                return Err(Error::new_spanned(
                    variant,
                    "a variant of a string enum has no fields; a tagged enum needs #[wire(tag = …)]",
                ));
            }
        }
    }
    let other = other
        .ok_or_else(|| Error::new_spanned(ident, "Wire needs a variant marked #[wire(other)]"))?;
    let enum_name = ident.to_string();

    Ok(quote! {
        impl #ident {
            /// The string on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    #(Self::#variants => #names,)*
                    Self::#other(word) => word,
                }
            }
        }
        impl From<&str> for #ident {
            fn from(word: &str) -> Self {
                match word {
                    #(#names => Self::#variants,)*
                    _ => {
                        crate::drift::note_word(#enum_name, word);
                        Self::#other(word.into())
                    }
                }
            }
        }
        impl ::std::fmt::Display for #ident {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
        crate::wire::serde_through_str!(#ident);
    })
}
