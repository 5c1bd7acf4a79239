//! Objects before they are written to files.

use jobc_schema::Pointer;
use serde_json::Value;

use crate::backend::{Content, File, FilePart, Origin};

use super::order::ordered;

/// One object of the cluster.
#[derive(Debug)]
pub(super) struct Object {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The object itself.
    pub value: Value,
    /// Where its parts come from.
    pub origins: Vec<Origin>,
}

/// One file per object, numbered in the order to apply.
pub(super) fn files(objects: Vec<Object>, patched: bool) -> Vec<File> {
    let digits = objects.len().to_string().len().max(2);
    objects
        .into_iter()
        .enumerate()
        .map(|(i, object)| {
            let (number, kind, name) = (i + 1, object.kind.to_lowercase(), &object.name);
            let value = ordered(object.value);
            let mut origins = object.origins;
            if patched {
                // A patch may have removed a part.
                origins.retain(|origin| match &origin.part {
                    FilePart::Pointer(part) => has(&value, part),
                    FilePart::Line(_) => true,
                });
            }
            let path = format!("{number:0digits$}-{kind}-{name}.yaml");
            File { origins, ..File::new(path, Content::Yaml(value)) }
        })
        .collect()
}

fn has(value: &Value, part: &Pointer) -> bool {
    value.pointer(part.as_str()).is_some()
}
