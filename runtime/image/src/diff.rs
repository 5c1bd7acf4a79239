//! The differences between two images, file by file.
//!
//! Both are read from the archives of their layers: nothing is unpacked or mounted, so that any user can do it. Layers
//! that both begin with are read once. Times are not compared: each build sets them.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read as _};
use std::sync::atomic::AtomicBool;

use crate::store::{Image, Store};
use crate::unpack::Limits;
use jobc_container::decompress::{LimitedReader, decompressing_reader};
use jobc_container::tar::{Content, Entry, Kind as Is, Reader};
use jobc_schema::digest::{Digest, Hasher};
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Only the second image has it.
    Added,
    /// Both have it: content, kind, permissions, owner, target or extended attributes differ.
    Changed,
    /// Only the first image has it; what was below is not listed.
    Deleted,
}

/// A file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    kind: Is,
    mode: u32,
    owner: (u32, u32),
    link: Vec<u8>,
    device: (u32, u32),
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    content: Option<Digest>,
}

/// Files by their paths, without a slash at the beginning.
type Tree = BTreeMap<Vec<u8>, Node>;

/// The paths that differ between two images, sorted, without a slash at the beginning.
///
/// # Errors
///
/// A layer is missing, is corrupt or too large; `stopped` has become true.
pub fn diff(store: &Store, old: &Image, new: &Image, stopped: &AtomicBool) -> Result<Vec<(Change, Vec<u8>)>> {
    let ids = |image: &Image| image.config.rootfs.diff_ids.clone();
    let shared = ids(old).iter().zip(&ids(new)).take_while(|(a, b)| a == b).count();
    let mut base = Tree::new();
    read(store, old, 0..shared, &mut base, stopped)?;
    let (mut before, mut after) = (base.clone(), base);
    read(store, old, shared..old.manifest.layers.len(), &mut before, stopped)?;
    read(store, new, shared..new.manifest.layers.len(), &mut after, stopped)?;
    Ok(compare(&before, &after))
}

/// The image of the store that another one was built on: the one with the most layers of all that it starts with.
///
/// # Errors
///
/// The index of the store cannot be read.
pub fn base_of(store: &Store, image: &Image) -> Result<Option<Image>> {
    let own = &image.config.rootfs.diff_ids;
    let all = store.images()?.into_iter().flat_map(|named| store.images_in(&named.descriptor));
    let below = all.filter(|other| {
        let layers = &other.config.rootfs.diff_ids;
        !layers.is_empty() && layers.len() < own.len() && own.starts_with(layers)
    });
    Ok(below.max_by_key(|other| other.manifest.layers.len()))
}

fn compare(before: &Tree, after: &Tree) -> Vec<(Change, Vec<u8>)> {
    let mut changes = Vec::new();
    for (path, node) in after {
        match before.get(path) {
            None => changes.push((Change::Added, path.clone())),
            Some(old) if old != node => changes.push((Change::Changed, path.clone())),
            Some(_) => {}
        }
    }
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        let parent = path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at]);
        if parent.is_none_or(|parent| after.contains_key(parent) || !before.contains_key(parent)) {
            changes.push((Change::Deleted, path.clone()));
        }
    }
    changes.sort_by(|a, b| a.1.cmp(&b.1));
    changes
}

/// Lays layers over a tree.
fn read(
    store: &Store,
    image: &Image,
    layers: std::ops::Range<usize>,
    tree: &mut Tree,
    stopped: &AtomicBool,
) -> Result<()> {
    let limits = Limits::of_environment()?;
    for layer in &image.manifest.layers[layers] {
        let failed = |error: io::Error| {
            let message = format!("cannot read the layer {}: {}", layer.digest, describe_io(&error));
            Error::new(Kind::System, message)
        };
        let blob = BufReader::with_capacity(1 << 18, store.blob(&layer.digest)?);
        let content = decompressing_reader(blob).map_err(failed)?;
        let content = LimitedReader::new(content, limits.bytes, stopped);
        apply(tree, BufReader::with_capacity(1 << 18, content), limits.entries).map_err(failed)?;
    }
    Ok(())
}

/// Lays one layer over a tree. Whiteouts hide what lower layers have (image-spec, layer.md).
fn apply(tree: &mut Tree, layer: impl io::BufRead, max_entries: u64) -> io::Result<()> {
    let mut own = Tree::new();
    let mut reader = Reader::new(layer);
    let mut count = 0;
    while let Some(entry) = reader.next()? {
        count += 1;
        if count > max_entries {
            return Err(io::Error::other(format!("there are more than {max_entries} entries")));
        }
        let path = normal(&entry.path);
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b""[..], &path[..]),
        };
        if path.is_empty() {
            continue;
        }
        if name == b".wh..wh..opq" {
            remove_below(tree, parent);
            continue;
        }
        if let Some(hidden) = name.strip_prefix(b".wh.") {
            let hidden = if parent.is_empty() { hidden.to_vec() } else { [parent, b"/", hidden].concat() };
            remove_below(tree, &hidden);
            tree.remove(&hidden);
            continue;
        }
        let node = if entry.kind == Is::HardLink {
            let target = normal(&entry.link);
            own.get(&target).or_else(|| tree.get(&target)).cloned()
        } else {
            Some(describe(&mut reader, &entry)?)
        };
        let Some(node) = node else { continue };
        if node.kind != Is::Directory {
            remove_below(tree, &path);
            remove_below(&mut own, &path);
        }
        own.insert(path, node);
    }
    tree.extend(own);
    Ok(())
}

fn describe<R: io::BufRead>(reader: &mut Reader<R>, entry: &Entry) -> io::Result<Node> {
    let mut content = None;
    if entry.kind == Is::File {
        let (mut hasher, mut file) = (Hasher::default(), Content::new(reader, entry));
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
        }
        content = Some(hasher.finish());
    }
    // The bits of a link mean nothing.
    let mode = if entry.kind == Is::Symlink { 0o777 } else { entry.mode };
    let mut attributes = entry.attributes.clone();
    attributes.sort();
    Ok(Node {
        kind: entry.kind,
        mode,
        owner: (entry.uid, entry.gid),
        link: if entry.kind == Is::Symlink { entry.link.clone() } else { Vec::new() },
        device: entry.device,
        attributes,
        content,
    })
}

/// Removes all that is below a directory; of everything for the root.
pub(crate) fn remove_below<T>(tree: &mut BTreeMap<Vec<u8>, T>, directory: &[u8]) {
    if directory.is_empty() {
        tree.clear();
        return;
    }
    let (first, end) = ([directory, b"/"].concat(), [directory, b"0"].concat());
    let below: Vec<Vec<u8>> = tree.range(first..end).map(|(path, _)| path.clone()).collect();
    for path in below {
        tree.remove(&path);
    }
}

/// A path without `.`, `..` and slashes too many.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"." | b".."));
    names.collect::<Vec<_>>().join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_container::tar::Writer;

    /// A layer: `d/` is a directory, `name -> target` a link, `name = target` a hard link, others files of their names.
    fn layer(entries: &[&str]) -> Vec<u8> {
        let mut archive = Writer::new(Vec::new());
        for text in entries {
            let entry = if let Some((name, target)) = text.split_once(" -> ") {
                Entry { link: target.into(), ..Entry::new(Is::Symlink, name) }
            } else if let Some((name, target)) = text.split_once(" = ") {
                Entry { link: target.into(), ..Entry::new(Is::HardLink, name) }
            } else if let Some(name) = text.strip_suffix('/') {
                Entry { mode: 0o755, ..Entry::new(Is::Directory, name) }
            } else {
                let (name, content) = text.split_once(':').unwrap_or((text, text));
                let size = content.len() as u64;
                let entry = Entry { mode: 0o644, size, ..Entry::new(Is::File, name) };
                archive.file(&entry, &mut content.as_bytes()).unwrap();
                continue;
            };
            archive.entry(&entry).unwrap();
        }
        archive.finish().unwrap()
    }

    fn tree(layers: &[&[&str]]) -> Tree {
        let mut tree = Tree::new();
        for entries in layers {
            apply(&mut tree, &layer(entries)[..], 100).unwrap();
        }
        tree
    }

    fn check(before: &[&[&str]], after: &[&[&str]], expected: &[&str]) {
        let changes = compare(&tree(before), &tree(after));
        let shown: Vec<String> = changes
            .iter()
            .map(|(change, path)| format!("{:?} {}", change, String::from_utf8_lossy(path)))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn files_are_compared_by_what_they_are() {
        let base: &[&str] = &["d/", "d/a", "d/b", "l -> d", "e/", "e/x"];
        check(&[base], &[base], &[]);
        check(&[base], &[base, &["d/a:other", "d/new", "./d/b:d/b"]], &["Changed d/a", "Added d/new"]);
        check(&[base], &[base, &["l -> e"]], &["Changed l"]);
        check(&[base], &[base, &["d/.wh.a", ".wh.e"]], &["Deleted d/a", "Deleted e"]);
        check(&[base], &[base, &["d/", "d/.wh..wh..opq", "d/b"]], &["Deleted d/a"]);
        check(&[base], &[base, &["e"]], &["Changed e", "Deleted e/x"]);
        check(&[base], &[base, &["h = d/a"]], &["Added h"]);
        check(&[&["f", "g = f"]], &[&["f"], &["g:f"]], &[]);
    }

    #[test]
    fn too_many_entries_are_refused() {
        let error = apply(&mut Tree::new(), &layer(&["a", "b", "c"])[..], 2).unwrap_err();
        assert!(error.to_string().contains("more than 2 entries"));
    }
}
