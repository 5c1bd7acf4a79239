//! Documents of a store: manifests, configurations and indexes, which are JSON.

/// The largest document that is read as a whole: manifests, configurations and indexes; registries take no larger ones.
pub const MAX_DOCUMENT_SIZE: u64 = 4 << 20;

/// JSON with sorted keys and nothing between.
pub fn sorted_json(value: &impl serde::Serialize) -> Vec<u8> {
    let mut value = serde_json::to_value(value).expect("a document of an image has string keys only");
    value.sort_all_objects();
    serde_json::to_vec(&value).expect("a value is written to memory")
}
