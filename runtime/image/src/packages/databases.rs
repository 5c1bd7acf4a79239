//! Finds the databases of package managers in the layers of an image.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read as _};
use std::sync::atomic::AtomicBool;

use jobc_container::decompress::{LimitedReader, decompressing_reader};
use jobc_container::tar::{Content, Entry, Kind as Is, Reader};
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result, describe_io};

use crate::diff::{normal, remove_below};
use crate::store::{Image, Store};
use crate::unpack::Limits;

/// Maximum number of bytes read of a file. The database of a large Debian image has 5 MB.
const MAX_FILE_SIZE: u64 = 64 << 20;
/// Of all files together no more bytes are kept.
const MAX_TOTAL_SIZE: u64 = 256 << 20;

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Database {
    Debian,
    Alpine,
    Python,
    Conda,
    OsRelease,
    Rpm,
}

impl Database {
    /// The kind of a file by its path, without a slash at the beginning.
    pub(super) fn of(path: &str) -> Option<Self> {
        let (directory, name) = path.rsplit_once('/')?;
        let parent = directory.rsplit('/').next().unwrap_or_default();
        let is_python = parent.ends_with(".dist-info") && name == "METADATA"
            || parent.ends_with(".egg-info") && name == "PKG-INFO"
            || name.ends_with(".egg-info") && !parent.ends_with(".egg-info");
        match path {
            "var/lib/dpkg/status" => Some(Self::Debian),
            "lib/apk/db/installed" | "usr/lib/apk/db/installed" => Some(Self::Alpine),
            "etc/os-release" | "usr/lib/os-release" => Some(Self::OsRelease),
            // This is Conda's download cache; installed packages are elsewhere.
            _ if directory.split('/').any(|name| name == "pkgs") => None,
            // Images without a package manager.
            _ if directory == "var/lib/dpkg/status.d" => {
                (!name.ends_with(".md5sums")).then_some(Self::Debian)
            }
            _ if is_python => Some(Self::Python),
            _ if parent == "conda-meta" && name.strip_suffix(".json").is_some() => Some(Self::Conda),
            _ if matches!(directory, "var/lib/rpm" | "usr/lib/sysimage/rpm") => {
                matches!(name, "rpmdb.sqlite" | "Packages.db" | "Packages").then_some(Self::Rpm)
            }
            _ => None,
        }
    }
}

/// A file of an image.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) content: Vec<u8>,
    /// Whether it goes on.
    pub(super) is_cut: bool,
    /// The layer that has it.
    pub(super) layer: Digest,
}

/// Files by their paths, without a slash at the beginning.
pub(super) type Files = BTreeMap<Vec<u8>, File>;

/// The databases of an image.
pub(super) fn read(store: &Store, image: &Image, stopped: &AtomicBool) -> Result<Files> {
    let limits = Limits::of_environment()?;
    let mut files = Files::new();
    for layer in &image.manifest.layers {
        let failed = |error: io::Error| {
            let message = format!("cannot read the layer {}: {}", layer.digest, describe_io(&error));
            Error::new(Kind::System, message)
        };
        let blob = BufReader::with_capacity(1 << 18, store.blob(&layer.digest)?);
        let content = decompressing_reader(blob).map_err(failed)?;
        let content = LimitedReader::new(content, limits.bytes, stopped);
        let content = BufReader::with_capacity(1 << 18, content);
        apply(&mut files, content, &layer.digest, limits.entries).map_err(failed)?;
    }
    Ok(files)
}

/// Lays one layer over the files. Whiteouts hide what lower layers have (image-spec, layer.md).
pub(super) fn apply(
    files: &mut Files,
    layer: impl io::BufRead,
    digest: &Digest,
    max_entries: u64,
) -> io::Result<()> {
    let mut own = Files::new();
    let mut total: u64 = files.values().map(|file| file.content.len() as u64).sum();
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
        if name == b".wh..wh..opq" {
            remove_below(files, parent);
            continue;
        }
        if let Some(hidden) = name.strip_prefix(b".wh.") {
            let hidden = if parent.is_empty() { hidden.to_vec() } else { [parent, b"/", hidden].concat() };
            remove_below(files, &hidden);
            files.remove(&hidden);
            continue;
        }
        if entry.kind == Is::Directory || path.is_empty() {
            continue;
        }
        remove_below(files, &path);
        files.remove(&path);
        let is_wanted = is_kept(&path);
        let file = match entry.kind {
            Is::HardLink => {
                let target = normal(&entry.link);
                own.get(&target).or_else(|| files.get(&target)).cloned().filter(|_| is_wanted)
            }
            Is::File if is_wanted => Some(content(&mut reader, &entry, digest)?),
            _ => None,
        };
        if let Some(file) = file {
            total += file.content.len() as u64;
            if total > MAX_TOTAL_SIZE {
                return Err(io::Error::other("the databases of packages have more than 256 MiB"));
            }
            own.insert(path, file);
        }
    }
    files.extend(own);
    Ok(())
}

/// Whether a file is of use: itself, or since a database may be a hard link to it.
fn is_kept(path: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(path) else { return false };
    let tail = path.rsplit_once("/pkgs/").map_or(path, |(_, tail)| tail);
    Database::of(path).or_else(|| Database::of(tail)).is_some()
}

fn content<R: io::BufRead>(reader: &mut Reader<R>, entry: &Entry, layer: &Digest) -> io::Result<File> {
    let path = normal(&entry.path);
    let is_named_only =
        std::str::from_utf8(&path).is_ok_and(|path| Database::of(path) == Some(Database::Rpm));
    let limit = if is_named_only { 0 } else { MAX_FILE_SIZE };
    let mut content = Vec::new();
    Content::new(reader, entry).take(limit).read_to_end(&mut content)?;
    Ok(File { is_cut: !is_named_only && entry.size > limit, content, layer: layer.clone() })
}
