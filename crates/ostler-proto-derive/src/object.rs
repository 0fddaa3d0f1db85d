//! Structs: a JSON object with known fields and an `extra` for the rest.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::{Error, FieldsNamed, Ident, Type};

use crate::attributes::{ItemRules, TypeRules, is_option, is_string};

pub(crate) fn expand(
    ident: &Ident,
    rules: &TypeRules,
    fields: &FieldsNamed,
) -> syn::Result<TokenStream> {
    let fields = fields
        .named
        .iter()
        .map(|field| {
            let item = ItemRules::parse(&field.attrs)?;
            let ident = field.ident.clone().expect("named fields have names");
            let optional = is_option(&field.ty);
            if item.nullable && !optional {
                return Err(Error::new_spanned(field, "only an Option can be nullable"));
            }
            let name = rules.wire_name(&ident, &item);
            let slot = format_ident!("slot_{}", ident.to_string().trim_start_matches("r#"));
            let ty = field.ty.clone();
            Ok(Field { slot, ident, ty, name, optional, nullable: item.nullable })
        })
        .collect::<syn::Result<Vec<_>>>()?;
    let (extra, known): (Vec<_>, Vec<_>) =
        fields.into_iter().partition(|field| field.ident == "extra");
    if extra.is_empty() {
        return Err(Error::new_spanned(
            ident,
            "Wire needs a field `extra: Extra` for unknown fields",
        ));
    }

    let object_name = ident.to_string();
    let constructor = constructor(ident, rules, &known)?;
    let read = match rules.tree {
        true => read_tree(ident, &known),
        false => read_stream(&known),
    };
    let writes = known.iter().map(Field::write);

    Ok(quote! {
        impl crate::wire::WireObject for #ident {
            const NAME: &'static str = #object_name;

            #read

            fn write<M: ::serde::ser::SerializeMap>(&self, map: &mut M) -> ::std::result::Result<(), M::Error> {
                #(#writes)*
                self.extra.write(map)
            }
        }
        crate::wire::serde_through_object!(#ident);
        #constructor
    })
}

/// Reads the entries in the order in which they come: fast, but compiled once for every source of entries.
fn read_stream(known: &[Field]) -> TokenStream {
    let slots = known.iter().map(Field::declare);
    let arms = known.iter().map(Field::read_arm);
    let finishes = known.iter().map(Field::finish);
    quote! {
        fn read<'de, A: ::serde::de::MapAccess<'de>>(mut map: A) -> ::std::result::Result<Self, A::Error> {
            #(#slots)*
            let mut extra = crate::wire::Extra::default();
            while let Some(key) = crate::wire::next_key(&mut map)? {
                match &*key {
                    #(#arms)*
                    _ => extra.keep(Self::NAME, key, &mut map)?,
                }
            }
            Ok(Self { #(#finishes)* extra })
        }
    }
}

/// Takes one field after the other out of a tree: small code, compiled once.
fn read_tree(ident: &Ident, known: &[Field]) -> TokenStream {
    let takes = known.iter().map(Field::take);
    let finishes = known.iter().map(Field::finish_tree);
    quote! {
        fn read<'de, A: ::serde::de::MapAccess<'de>>(map: A) -> ::std::result::Result<Self, A::Error> {
            fn from_tree(tree: &mut crate::wire::Tree) -> ::std::result::Result<#ident, ::serde_json::Error> {
                #(#takes)*
                let extra = tree.rest(<#ident as crate::wire::WireObject>::NAME);
                Ok(#ident { #(#finishes)* extra })
            }
            let mut tree = crate::wire::Tree::read(map)?;
            from_tree(&mut tree).map_err(::serde::de::Error::custom)
        }
    }
}

/// `new`, for structs that have it: a field without an empty value cannot be left out.
fn constructor(
    ident: &Ident,
    rules: &TypeRules,
    known: &[Field],
) -> syn::Result<Option<TokenStream>> {
    let Some(wanted) = &rules.new else { return Ok(None) };
    let is_wanted = |field: &Field| wanted.iter().any(|name| field.is_called(name));
    if let Some(name) = wanted.iter().find(|name| !known.iter().any(|field| field.is_called(name)))
    {
        return Err(Error::new_spanned(name, "there is no such field"));
    }
    let given = wanted.iter().flat_map(|name| known.iter().find(|field| field.is_called(name)));
    let parameters = given.clone().map(|Field { ident, ty, .. }| match is_string(ty) {
        true => quote! { #ident: impl ::std::convert::Into<String> },
        false => quote! { #ident: #ty },
    });
    let values = given.map(|Field { ident, ty, .. }| match is_string(ty) {
        true => quote! { #ident: #ident.into() },
        false => quote! { #ident },
    });
    let left_out = known.iter().filter(|field| !is_wanted(field)).map(|field| &field.ident);
    Ok(Some(quote! {
        impl #ident {
            /// With these fields. The others are empty; set them afterwards.
            pub fn new(#(#parameters),*) -> Self {
                Self {
                    #(#values,)*
                    #(#left_out: ::std::default::Default::default(),)*
                    extra: crate::wire::Extra::default(),
                }
            }
        }
    }))
}

struct Field {
    ident: Ident,
    ty: Type,
    slot: Ident,
    name: String,
    optional: bool,
    nullable: bool,
}

impl Field {
    /// Whether `name`, which may be a keyword, is the field's name.
    fn is_called(&self, name: &Ident) -> bool {
        self.ident.unraw() == *name
    }

    fn declare(&self) -> TokenStream {
        let slot = &self.slot;
        quote! { let mut #slot = None; }
    }

    fn read_arm(&self) -> TokenStream {
        let Self { slot, name, .. } = self;
        if self.optional && !self.nullable {
            // An optional field is normally absent, so only `null` is recorded.
            quote! { #name => {
                #slot = crate::wire::field(&mut map, #name)?;
                extra.written_otherwise(#name, #slot.is_none());
            } }
        } else {
            quote! { #name => #slot = Some(crate::wire::field(&mut map, #name)?), }
        }
    }

    fn finish(&self) -> TokenStream {
        let Self { ident, slot, name, .. } = self;
        if self.nullable {
            // A nullable field is normally present, so only its absence is recorded.
            quote! { #ident: #slot.unwrap_or_else(|| { extra.written_otherwise(#name, true); None }), }
        } else if self.optional {
            quote! { #ident: #slot, }
        } else {
            quote! { #ident: #slot.ok_or_else(|| <A::Error as ::serde::de::Error>::missing_field(#name))?, }
        }
    }

    fn take(&self) -> TokenStream {
        let Self { slot, name, .. } = self;
        match (self.optional, self.nullable) {
            (true, true) => quote! { let #slot = tree.nullable(#name)?; },
            (true, false) => quote! { let #slot = tree.optional(#name)?; },
            (false, _) => quote! { let #slot = tree.required(#name)?; },
        }
    }

    /// A field of another type is reported before one that is missing, as when entries are read as they come.
    fn finish_tree(&self) -> TokenStream {
        let Self { ident, slot, name, .. } = self;
        match self.optional {
            true => quote! { #ident: #slot, },
            false => quote! { #ident: crate::wire::present(#slot, #name)?, },
        }
    }

    fn write(&self) -> TokenStream {
        let Self { ident, name, .. } = self;
        if self.optional {
            let null_by_default = self.nullable;
            quote! {
                if self.#ident.is_some() || self.extra.writes_null(#name, #null_by_default) {
                    map.serialize_entry(#name, &self.#ident)?;
                }
            }
        } else {
            quote! { map.serialize_entry(#name, &self.#ident)?; }
        }
    }
}
