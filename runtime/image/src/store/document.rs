//! Documents of a store: manifests, configurations and indexes, which are JSON.

use std::fs;
use std::path::Path;

use crate::manifest::Index;
use jobc_sys::error::{Error, Kind, Result};

/// The largest document that is read as a whole: manifests, configurations and indexes; registries take no larger ones.
pub const MAX_DOCUMENT_SIZE: u64 = 4 << 20;

/// Maximum values of a document. A value may take 100 bytes of memory for three bytes of the document (`{},` in
/// `history`), so the size alone is no bound. An index of 10,000 manifests has fewer.
const MAX_VALUES: usize = 200_000;

/// Maximum layers of an image; overlayfs takes 500, Docker makes 127. A manifest could name one layer 30,000 times,
/// each of which would be unpacked.
pub const MAX_LAYERS: usize = 1000;

/// How deep an index may lie in indexes.
pub(crate) const MAX_INDEX_DEPTH: usize = 4;

/// Reads a document that an image's author wrote.
///
/// # Errors
///
/// It is not JSON of that kind, or has more than 200,000 values.
pub fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    if has_many_values(bytes) {
        let what = format!("it has more than {MAX_VALUES} values");
        return Err(serde::de::Error::custom(what));
    }
    serde_json::from_slice(bytes)
}

/// Whether there are too many values: what follows a bracket, a comma or a colon, outside of strings.
fn has_many_values(bytes: &[u8]) -> bool {
    let (mut in_string, mut escaped, mut count) = (false, false, 0_usize);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' if !in_string => count += 1,
            _ => {}
        }
    }
    count > MAX_VALUES
}

/// Reads the index.json of an image layout.
///
/// # Errors
///
/// It is absent, not readable, not an index, or larger than 64 MiB.
pub(super) fn read_index(root: &Path) -> Result<Index> {
    let path = root.join("index.json");
    let text = fs::read(&path).map_err(|error| {
        Error::new(Kind::System, format!("cannot read `{}`", path.display())).because(error)
    })?;
    serde_json::from_slice(&text).ok().filter(|_| text.len() as u64 <= 16 * MAX_DOCUMENT_SIZE).ok_or_else(
        || {
            Error::new(Kind::Config, format!("`{}` is not the index of an image layout", path.display()))
                .help("name another directory with `--image-root`, or restore the file")
        },
    )
}

/// JSON with sorted keys and nothing between.
pub fn sorted_json(value: &impl serde::Serialize) -> Vec<u8> {
    let mut value = serde_json::to_value(value).expect("a document of an image has string keys only");
    value.sort_all_objects();
    serde_json::to_vec(&value).expect("a value is written to memory")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::config::Config;

    #[test]
    fn values_are_counted_and_texts_are_not() {
        let list = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        assert!(parse::<Value>(list(MAX_VALUES).as_bytes()).is_ok());
        let refused = parse::<Value>(list(MAX_VALUES + 1).as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "it has more than 200000 values");
        let text = format!(r#"["{}", "\"[", "\\"]"#, ",".repeat(MAX_VALUES + 1));
        assert_eq!(parse::<Vec<String>>(text.as_bytes()).unwrap()[1..], ["\"[", "\\"]);
    }

    #[test]
    fn a_history_of_a_million_empty_steps_is_refused() {
        let steps = vec!["{}"; 1_000_000].join(",");
        let text = format!(r#"{{"rootfs": {{"type": "layers", "diff_ids": []}}, "history": [{steps}]}}"#);
        assert!((text.len() as u64) < MAX_DOCUMENT_SIZE);
        assert!(
            parse::<Config>(text.as_bytes()).unwrap_err().to_string().contains("more than 200000 values")
        );
    }
}
