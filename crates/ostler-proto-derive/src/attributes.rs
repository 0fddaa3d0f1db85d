//! The `#[wire(…)]` attributes and the naming rules, parsed once for all three kinds of type.

use syn::{Attribute, LitStr, Type};

/// The `#[wire(…)]` attributes of a type.
pub(crate) struct TypeRules {
    pub(crate) tag: Option<String>,
    pub(crate) tag_optional: bool,
    pub(crate) tree: bool,
    /// The parameters of the constructor: names of fields.
    pub(crate) new: Option<Vec<syn::Ident>>,
    case: Case,
}

impl TypeRules {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut rules =
            Self { tag: None, tag_optional: false, tree: false, new: None, case: Case::Snake };
        for attribute in wire(attributes) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("tag") {
                    rules.tag = Some(meta.value()?.parse::<LitStr>()?.value());
                } else if meta.path.is_ident("tag_optional") {
                    rules.tag_optional = true;
                } else if meta.path.is_ident("tree") {
                    rules.tree = true;
                } else if meta.path.is_ident("rename_all") {
                    rules.case = Case::parse(&meta.value()?.parse::<LitStr>()?)?;
                } else if meta.path.is_ident("new") {
                    let fields = rules.new.insert(Vec::new());
                    meta.parse_nested_meta(|field| {
                        fields.push(field.path.require_ident()?.clone());
                        Ok(())
                    })?;
                } else {
                    return Err(
                        meta.error("expected `tag`, `tag_optional`, `tree`, `rename_all` or `new`")
                    );
                }
                Ok(())
            })?;
        }
        Ok(rules)
    }

    /// The wire name of a field or variant.
    pub(crate) fn wire_name(&self, ident: &syn::Ident, item: &ItemRules) -> String {
        match &item.name {
            Some(name) => name.clone(),
            None => self.case.apply(ident.to_string().trim_start_matches("r#")),
        }
    }
}

/// The `#[wire(…)]` attributes of a field or variant.
#[derive(Default)]
pub(crate) struct ItemRules {
    name: Option<String>,
    pub(crate) nullable: bool,
    pub(crate) other: bool,
}

impl ItemRules {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut rules = Self::default();
        for attribute in wire(attributes) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") {
                    rules.name = Some(meta.value()?.parse::<LitStr>()?.value());
                } else if meta.path.is_ident("nullable") {
                    rules.nullable = true;
                } else if meta.path.is_ident("other") {
                    rules.other = true;
                } else {
                    return Err(meta.error("expected `name`, `nullable` or `other`"));
                }
                Ok(())
            })?;
        }
        Ok(rules)
    }
}

/// Whether a field's type is written `Option<…>`; such a field may be absent.
pub(crate) fn is_option(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "Option")
}

/// Whether a field's type is written `String`.
pub(crate) fn is_string(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident("String"))
}

fn wire(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("wire"))
}

#[derive(Clone, Copy)]
enum Case {
    Snake,
    Camel,
    Pascal,
    Kebab,
}

impl Case {
    fn parse(name: &LitStr) -> syn::Result<Self> {
        match name.value().as_str() {
            "snake_case" => Ok(Self::Snake),
            "camelCase" => Ok(Self::Camel),
            "PascalCase" => Ok(Self::Pascal),
            "kebab-case" => Ok(Self::Kebab),
            _ => Err(syn::Error::new_spanned(name, "unknown naming rule")),
        }
    }

    /// Converts a `field_name` or a `VariantName`.
    fn apply(self, ident: &str) -> String {
        let words = words(ident);
        match self {
            Self::Snake => words.join("_"),
            Self::Kebab => words.join("-"),
            Self::Pascal => words.iter().map(|word| capitalised(word)).collect(),
            Self::Camel => {
                let rest = words.iter().skip(1).map(|word| capitalised(word));
                words.iter().take(1).cloned().chain(rest).collect()
            }
        }
    }
}

fn words(ident: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in ident.chars() {
        let last = words.last_mut().expect("starts with one word");
        match character {
            '_' => words.push(String::new()),
            _ if character.is_uppercase() && !last.is_empty() => {
                words.push(character.to_lowercase().collect())
            }
            _ => last.extend(character.to_lowercase()),
        }
    }
    words
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn names_follow_the_rule_from_fields_and_from_variants() {
        for (case, field, variant) in [
            (Case::Snake, "tool_use_id", "pre_tool_use"),
            (Case::Camel, "toolUseId", "preToolUse"),
            (Case::Pascal, "ToolUseId", "PreToolUse"),
            (Case::Kebab, "tool-use-id", "pre-tool-use"),
        ] {
            assert_eq!(case.apply("tool_use_id"), field);
            assert_eq!(case.apply("PreToolUse"), variant);
        }
    }
}
