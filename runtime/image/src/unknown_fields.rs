//! What documents of images have beyond what is known here.

use serde_json::Value;

/// What is unknown here, kept as it was.
pub type UnknownFields = serde_json::Map<String, Value>;
