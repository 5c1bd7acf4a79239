//! Unknown fields in documents of images.

use serde_json::Value;

/// Unknown fields, preserved as they were.
pub type UnknownFields = serde_json::Map<String, Value>;
