//! Paths of a file in another directory, as seen from that of the first file.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::document::{Entry, Node, Value};

/// A path that is relative to a directory, with `..` taken away where it can be.
pub(super) fn joined(directory: &Utf8Path, path: &str) -> Utf8PathBuf {
    let mut joined = Utf8PathBuf::new();
    for part in directory.join(path).components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir if joined.file_name().is_some_and(|name| name != "..") => {
                joined.pop();
            }
            part => joined.push(part),
        }
    }
    joined
}

/// Makes the paths of a service, or of a secret or configuration, relative to the directory of the first file.
pub(super) fn rebase(entries: &mut [Entry], directory: &Utf8Path) {
    if directory.as_str().is_empty() {
        return;
    }
    for entry in entries {
        let value = &mut entry.value;
        match entry.key.as_str() {
            "env_file" => each(value, |item| match &mut item.value {
                Value::Mapping(fields) => field(fields, "path", |path| prefix(path, directory)),
                _ => text(item, |path| prefix(path, directory)),
            }),
            "build" => match &mut value.value {
                Value::Mapping(fields) => field(fields, "context", |path| prefix(path, directory)),
                _ => text(value, |path| prefix(path, directory)),
            },
            "volumes" => each(value, |item| match &mut item.value {
                Value::Mapping(fields) => field(fields, "source", |path| relative(path, directory)),
                _ => text(item, |volume| {
                    if let Some((source, rest)) = volume.clone().split_once(':') {
                        let mut source = source.to_owned();
                        relative(&mut source, directory);
                        *volume = format!("{source}:{rest}");
                    }
                }),
            }),
            "file" => text(value, |path| prefix(path, directory)),
            _ => {}
        }
    }
}

fn each(node: &mut Node, mut change: impl FnMut(&mut Node)) {
    match &mut node.value {
        Value::Sequence(items) => items.iter_mut().for_each(change),
        _ => change(node),
    }
}

fn field(fields: &mut [Entry], key: &str, change: impl FnOnce(&mut String)) {
    if let Some(entry) = fields.iter_mut().find(|entry| entry.key == key) {
        text(&mut entry.value, change);
    }
}

fn text(node: &mut Node, change: impl FnOnce(&mut String)) {
    if let Value::String(text) = &mut node.value {
        change(text);
    }
}

fn prefix(path: &mut String, directory: &Utf8Path) {
    if !path.starts_with(['/', '~', '$']) && !path.contains("://") {
        *path = format!("./{}", joined(directory, path));
    }
}

/// A path that begins with `.`; other sources are names of volumes.
fn relative(path: &mut String, directory: &Utf8Path) {
    if path.starts_with('.') {
        prefix(path, directory);
    }
}
