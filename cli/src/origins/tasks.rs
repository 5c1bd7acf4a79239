//! The files of tasks: those of one role are often the same.

/// A path whose tasks have no index: `oci/train-3/config.json` is `oci/train-#/config.json`.
pub(crate) fn without_index(path: &str) -> String {
    let segment = |segment: &str| match segment.rsplit_once('-') {
        Some((role, index)) if !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{role}-#")
        }
        _ => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}
