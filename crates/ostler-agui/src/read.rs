//! A JSON reader whose errors name the invalid field.
//!
//! Unknown fields are skipped. An optional field may be `null`, as clients before 1.0 write it.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::Metadata;

/// A field of the input is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` must be {expected}")]
pub struct InputError {
    /// Its path, such as `messages[2].content`.
    pub field: String,
    /// What it must be.
    pub expected: String,
}

/// One object of the input, and its path.
pub(crate) struct Reader<'a> {
    object: &'a Map<String, Value>,
    path: String,
    warnings: Rc<RefCell<Vec<String>>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn over(value: &'a Value, path: &str) -> Result<Self, InputError> {
        Self::within(value, path.to_owned(), Rc::default())
    }

    fn within(
        value: &'a Value,
        path: String,
        warnings: Rc<RefCell<Vec<String>>>,
    ) -> Result<Self, InputError> {
        match value {
            Value::Object(object) => Ok(Self { object, path, warnings }),
            _ => {
                let field = if path.is_empty() { "the body".to_owned() } else { path };
                Err(InputError { field, expected: "a JSON object".to_owned() })
            }
        }
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(crate) fn wrong(&self, name: &str, expected: &str) -> InputError {
        InputError { field: self.at(name), expected: expected.to_owned() }
    }

    /// Records a warning that does not prevent the run.
    pub(crate) fn warn(&self, name: &str, what: &str) {
        self.warnings.borrow_mut().push(format!("`{}`: {what}", self.at(name)));
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }

    /// The field, unless it is missing or `null`.
    pub(crate) fn maybe(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// The field, if present; `null` is a value.
    pub(crate) fn maybe_any(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name)
    }

    pub(crate) fn required(&self, name: &str) -> Result<&'a Value, InputError> {
        self.object.get(name).ok_or_else(|| self.wrong(name, "present"))
    }

    pub(crate) fn string(&self, name: &str) -> Result<String, InputError> {
        let value = self.required(name)?;
        value.as_str().map(str::to_owned).ok_or_else(|| self.wrong(name, "a string"))
    }

    pub(crate) fn maybe_string(&self, name: &str) -> Result<Option<String>, InputError> {
        self.maybe(name).map(|_| self.string(name)).transpose()
    }

    pub(crate) fn object(&self, name: &str) -> Result<Metadata, InputError> {
        let value = self.required(name)?;
        value.as_object().cloned().ok_or_else(|| self.wrong(name, "an object"))
    }

    pub(crate) fn maybe_object(&self, name: &str) -> Result<Option<Metadata>, InputError> {
        self.maybe(name).map(|_| self.object(name)).transpose()
    }

    pub(crate) fn child(&self, name: &str) -> Result<Self, InputError> {
        Self::within(self.required(name)?, self.at(name), Rc::clone(&self.warnings))
    }

    pub(crate) fn list<T>(
        &self,
        name: &str,
        read: impl Fn(&Self) -> Result<T, InputError>,
    ) -> Result<Vec<T>, InputError> {
        let Value::Array(items) = self.required(name)? else {
            return Err(self.wrong(name, "a list"));
        };
        let read_item = |(index, item)| {
            let path = format!("{}[{index}]", self.at(name));
            read(&Self::within(item, path, Rc::clone(&self.warnings))?)
        };
        items.iter().enumerate().map(read_item).collect()
    }

    pub(crate) fn maybe_list<T>(
        &self,
        name: &str,
        read: impl Fn(&Self) -> Result<T, InputError>,
    ) -> Result<Option<Vec<T>>, InputError> {
        self.maybe(name).map(|_| self.list(name, read)).transpose()
    }
}
