//! Enums of objects: the tag field determines the struct.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, Error, Fields, Ident, Type, Variant};

use crate::attributes::{ItemRules, TypeRules};

pub(crate) fn expand(
    ident: &Ident,
    rules: &TypeRules,
    data: &DataEnum,
) -> syn::Result<TokenStream> {
    let tag = rules.tag.as_deref().expect("only tagged enums come here");
    let mut names = Vec::new();
    let mut variants = Vec::new();
    let mut payloads = Vec::new();
    let mut other = None;
    for variant in &data.variants {
        let item = ItemRules::parse(&variant.attrs)?;
        let payload = single_payload(variant)?;
        if item.other {
            other = Some(&variant.ident);
        } else {
            names.push(rules.wire_name(&variant.ident, &item));
            variants.push(&variant.ident);
            payloads.push(payload);
        }
    }
    let other = other
        .ok_or_else(|| Error::new_spanned(ident, "Wire needs a variant marked #[wire(other)]"))?;
    let enum_name = ident.to_string();
    let entries = match rules.tree {
        true => quote! {
            crate::wire::Tree::read(rest)
                .and_then(|entries| Self::read_entries(tag, entries).map_err(::serde::de::Error::custom))
        },
        false => quote! { Self::read_entries(tag, rest) },
    };
    let require_tag = (!rules.tag_optional).then(|| quote! { tag.require(#tag)?; });

    Ok(quote! {
        impl #ident {
            /// The tag's value on the wire; `None` only for an unknown object that has no tag.
            pub fn tag(&self) -> Option<&str> {
                match self {
                    #(Self::#variants(_) => Some(#names),)*
                    Self::#other(unknown) => unknown.get(#tag).and_then(|value| value.as_str()),
                }
            }

            fn read_entries<'de, A: ::serde::de::MapAccess<'de>>(
                tag: crate::wire::Tag<'de>,
                rest: A,
            ) -> ::std::result::Result<Self, A::Error> {
                match tag.as_str() {
                    #(Some(#names) => <#payloads as crate::wire::WireObject>::read(rest)
                        .map(Self::#variants)
                        .map_err(|error| crate::wire::in_variant(#names, error)),)*
                    _ => {
                        let name = <Self as crate::wire::WireObject>::NAME;
                        crate::wire::UnknownObject::read(name, #tag, tag, rest).map(Self::#other)
                    }
                }
            }
        }
        impl crate::wire::WireObject for #ident {
            const NAME: &'static str = #enum_name;

            fn read<'de, A: ::serde::de::MapAccess<'de>>(map: A) -> ::std::result::Result<Self, A::Error> {
                let (tag, rest) = crate::wire::split_tag(map, #tag)?;
                #require_tag
                #entries
            }

            fn write<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> ::std::result::Result<(), M::Error> {
                match self {
                    #(Self::#variants(payload) => {
                        map.serialize_entry(#tag, #names)?;
                        crate::wire::WireObject::write(payload, map)
                    })*
                    Self::#other(unknown) => unknown.write(map),
                }
            }
        }
        crate::wire::serde_through_object!(#ident);
    })
}

fn single_payload(variant: &Variant) -> syn::Result<&Type> {
    match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => Ok(&fields.unnamed[0].ty),
        _ => Err(Error::new_spanned(variant, "a tagged variant holds exactly one struct")),
    }
}
