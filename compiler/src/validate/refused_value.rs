//! A value that the schema rejects, and the part of the schema that rejects it.

use jobc_schema::Pointer;
use serde_json::Value as Json;

use crate::document::Node;

use super::schema::Schema;

/// A value that the schema rejects, and the part of the schema that rejects it.
pub(super) struct RefusedValue<'a> {
    /// The place of the value.
    pub(super) at: Pointer,
    /// The steps of `at`.
    pub(super) segments: Vec<String>,
    /// The value.
    pub(super) node: &'a Node,
    /// What is allowed there.
    pub(super) part: &'a Json,
    /// The whole schema.
    pub(super) schema: &'a Schema,
}

impl RefusedValue<'_> {
    /// The key, or the index, of the value.
    pub(super) fn last(&self) -> &str {
        self.segments.last().map_or("", String::as_str)
    }
}
