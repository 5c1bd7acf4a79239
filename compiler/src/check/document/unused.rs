//! J0335 to J0340: unused declarations.

use std::collections::BTreeSet;

use camino::Utf8Path;
use jobc_schema::Pointer;
use jobc_schema::reference::split_registry;

use super::usage::{NameSet, collect};
use super::{Path, strings};
use crate::diagnostic::{Code, Diagnostic, Sink, codes};
use crate::document::{Document, Node, Value};
use crate::files::Files;

/// Warns of each name that nothing in the file uses. `files` are those beside it.
pub(crate) fn check(document: &Document, files: &dyn Files, sink: &mut Sink) {
    let mut used = NameSet::new();
    let mut secrets = BTreeSet::new();
    let mut picked = BTreeSet::new();
    // A Dockerfile of the user may mount any secret, by its name; one that cannot be read here mounts all.
    let mut dockerfiles = Vec::new();
    for entry in document.root.entries().iter().filter(|entry| !entry.key.starts_with("x-")) {
        strings(&entry.value, &mut vec![entry.key.as_str().into()], &mut |path, text| {
            collect(text, &mut used);
            let mut path = path.iter().rev().map(AsRef::as_ref);
            match (path.next(), path.next()) {
                (Some("secret" | "webhook"), _) | (_, Some("secrets")) => _ = secrets.insert(text.to_owned()),
                (Some("use"), _) => _ = picked.insert(text.to_owned()),
                (Some("dockerfile"), _) => dockerfiles.push(read(files, text)),
                _ => {}
            }
        });
    }
    let is_mounted =
        |name: &str| dockerfiles.iter().any(|text| text.as_ref().is_none_or(|text| text.contains(name)));
    let is_used = |scope: &str, name: &str| {
        used.contains(&(scope.to_owned(), name.to_owned()))
            || used.contains(&(scope.to_owned(), "*".to_owned()))
    };
    each(
        document,
        "params",
        |name, _| {
            (!is_used("params", name)).then(|| {
                let message = format!("unused parameter `{name}`");
                (
                    codes::UNUSED_PARAM,
                    message,
                    format!("use it as `${{{{ params.{name} }}}}`, or leave it out"),
                )
            })
        },
        sink,
    );
    each(
        document,
        "secrets",
        |name, _| {
            (!is_used("secrets", name) && !secrets.contains(name) && !is_mounted(name)).then(|| {
                let message = format!("unused secret `{name}`");
                (
                    codes::UNUSED_SECRET,
                    message,
                    format!("use it as `${{{{ secrets.{name} }}}}` in `env`, or leave it out"),
                )
            })
        },
        sink,
    );
    each(
        document,
        "images",
        |name, _| {
            (!picked.contains(name)).then(|| {
                let message = format!("unused image `{name}`");
                (
                    codes::UNUSED_IMAGE,
                    message,
                    format!("write `image: {{use: {name}}}` on a role, or leave it out"),
                )
            })
        },
        sink,
    );
    volumes(document, "data", &is_used, sink);
    volumes(document, "outputs", &is_used, sink);
    registries(document, sink);
    arguments(document, sink);
}

/// The text of a file; none if its name has expressions, or it cannot be read.
fn read(files: &dyn Files, path: &str) -> Option<String> {
    let is_name = !path.contains("${{");
    let bytes = is_name.then(|| files.read(Utf8Path::new(path)).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Checks each name of a map at the top level.
fn each(
    document: &Document,
    key: &str,
    ask: impl Fn(&str, &Node) -> Option<(Code, String, String)>,
    sink: &mut Sink,
) {
    let Some(map) = document.root.get(key) else { return };
    let at = Pointer::ROOT.key(key);
    for entry in map.entries() {
        if let Some((code, message, note)) = ask(&entry.key, &entry.value) {
            sink.push(Diagnostic::warning(code, message).at_key(&at.key(&entry.key), "").note(note));
        }
    }
}

/// Data and outputs that every role leaves out of its own list.
fn volumes(document: &Document, key: &str, is_used: &dyn Fn(&str, &str) -> bool, sink: &mut Sink) {
    let mut mounted = BTreeSet::new();
    for role in document.root.get("roles").map(Node::entries).unwrap_or_default() {
        match role.value.get(key).map(|list| &list.value) {
            Some(Value::Sequence(names)) => mounted.extend(names.iter().filter_map(Node::as_str)),
            Some(Value::Mapping(names)) => mounted.extend(names.iter().map(|entry| entry.key.as_str())),
            // A role without its own list mounts all.
            _ => return,
        }
    }
    each(
        document,
        key,
        |name, _| {
            (!mounted.contains(name) && !is_used(key, name)).then(|| {
                let message = format!("no role mounts `{name}` of `{key}`");
                (codes::UNUSED_DATA, message, format!("add `{name}` to `{key}` of a role, or leave it out"))
            })
        },
        sink,
    );
}

/// Credentials for hosts that no image comes from.
///
/// Silent where an image is built: its base may be in a Dockerfile, and it is pushed to the target's registry.
fn registries(document: &Document, sink: &mut Sink) {
    if document.root.get("registries").is_none() {
        return;
    }
    let mut references = Vec::new();
    for (image, _) in images(document) {
        match &image.value {
            Value::String(reference) => references.push(reference.as_str()),
            Value::Mapping(entries) => match &entries[..] {
                [only] if only.key == "use" => {}
                [only] if only.key == "from" => references.extend(only.value.as_str()),
                _ => return,
            },
            _ => {}
        }
    }
    // An expression may stand for any host.
    let is_open = |reference: &&str| reference.split_once('/').is_some_and(|(host, _)| host.contains("${{"));
    if references.iter().any(is_open) {
        return;
    }
    let hosts: BTreeSet<&str> = references.into_iter().map(|reference| split_registry(reference).0).collect();
    each(
        document,
        "registries",
        |name, _| {
            (!hosts.contains(name)).then(|| {
                let message = format!("unused registry `{name}`");
                (
                    codes::UNUSED_REGISTRY,
                    message,
                    format!("write its images as `{name}/NAME:TAG`, or leave it out"),
                )
            })
        },
        sink,
    );
}

/// Every image the file declares, with its place.
fn images(document: &Document) -> Vec<(&Node, Pointer)> {
    let root = Pointer::ROOT;
    let mut found: Vec<(&Node, Pointer)> =
        document.root.get("image").map(|n| (n, root.key("image"))).into_iter().collect();
    for entry in document.root.get("images").map(Node::entries).unwrap_or_default() {
        found.push((&entry.value, root.keys(["images", &entry.key])));
    }
    for entry in document.root.get("roles").map(Node::entries).unwrap_or_default() {
        found.extend(entry.value.get("image").map(|n| (n, root.keys(["roles", &entry.key, "image"]))));
    }
    found
}

/// Build arguments that their own block does not use; those of a Dockerfile are not checked.
fn arguments(document: &Document, sink: &mut Sink) {
    for (image, at) in images(document) {
        let Some(args) = image.get("args").filter(|_| image.get("from").is_some()) else { continue };
        let mut used = NameSet::new();
        let mut shell = String::new();
        strings(image, &mut Path::new(), &mut |_, text| {
            collect(text, &mut used);
            shell.push_str(text);
            shell.push('\n');
        });
        for entry in args.entries() {
            let name = &entry.key;
            let in_shell = shell.contains(&format!("${name}")) || shell.contains(&format!("${{{name}"));
            let has = |name: &str| used.contains(&("args".to_owned(), name.to_owned()));
            if in_shell || has(name) || has("*") {
                continue;
            }
            let message = format!("unused build argument `{name}`");
            sink.push(
                Diagnostic::warning(codes::UNUSED_ARG, message)
                    .at_key(&at.keys(["args", name]), "")
                    .note(format!("use it as `${{{{ args.{name} }}}}`, or leave it out")),
            );
        }
    }
}
