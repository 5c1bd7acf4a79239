//! An archive, whose format is detected by the first name in it that identifies one, and which is read in one pass.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::errors::{canceled, invalid_source, too_large, unreadable};
use super::imported::ImportedImage;
use super::open::open;
use super::{docker, layout, recompress, rootfs};
use crate::manifest::Descriptor;
use crate::manifest::media;
use crate::progress::{Progress, ProgressFn};
use crate::store::MAX_DOCUMENT_SIZE;
use crate::store::Store;
use crate::unpack::Limits;
use jobc_container::decompress::decompressing_reader;
use jobc_container::tar::{BLOCK, Content, Kind as Is, Reader};
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};

/// Bytes of documents that an archive may have together, as they are in memory: each image has one of some kilobytes.
const MAX_DOCUMENT_BYTES: u64 = 32 << 20;

/// Bytes of paths and links that an archive may have together: an image has some hundred.
const MAX_NAME_BYTES: usize = 16 << 20;

/// The approximate memory overhead of a name.
const NAME_COST: usize = 128;

/// Bytes of an archive that are read at a time.
const READ_SIZE: usize = 1 << 16;

/// The files of an image in an archive, by path.
#[derive(Debug, Default)]
pub(super) struct ArchiveContent {
    /// Documents: files of at most 4 MiB that are not layers.
    pub documents: HashMap<String, Vec<u8>>,
    /// Blobs that were put into the store, with their first bytes.
    pub blobs: HashMap<String, Descriptor>,
    /// Links, and their targets.
    pub links: HashMap<String, String>,
}

/// Brings in the images of an archive.
pub(super) fn import(
    store: &Store,
    source: &Path,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<ImportedImage>> {
    match detect_format(source, stopped)? {
        ArchiveFormat::Layout => {
            let content = read(store, source, on_progress, stopped)?;
            let index = content.documents.get("index.json");
            let index = index.ok_or_else(|| invalid_source(source, "it has no `index.json`"))?;
            let bring = |descriptor: &Descriptor| verify_blob(store, source, &content, descriptor);
            layout::images(store, source, index, &bring)
        }
        ArchiveFormat::Docker => {
            let content = read(store, source, on_progress, stopped)?;
            docker::images(store, source, &content, on_progress, stopped)
        }
        ArchiveFormat::RootFs => rootfs::archive(store, source, on_progress, stopped),
    }
}

enum ArchiveFormat {
    Layout,
    Docker,
    RootFs,
}

/// The format of an archive, from its names up to the first that identifies it.
fn detect_format(source: &Path, stopped: &AtomicBool) -> Result<ArchiveFormat> {
    let mut archive = Reader::new(BufReader::with_capacity(READ_SIZE, open(source)?));
    // Data shorter than one header is not part of an archive.
    let length = std::fs::metadata(source).map_or(0, |data| data.len());
    let is_short =
        |error: &std::io::Error| length < BLOCK as u64 && error.to_string().contains("of a header");
    let wrong = |error: std::io::Error| match error {
        error if is_short(&error) => {
            unreadable(source, &std::io::Error::other("it is shorter than a header"))
        }
        error => unreadable(source, &error),
    };
    while let Some(entry) = archive.next().map_err(wrong)? {
        if stopped.load(Ordering::Relaxed) {
            return Err(canceled());
        }
        let path = String::from_utf8_lossy(&entry.path);
        // A name may be absolute (`tar -P`): it is below the root too.
        let path = normalize_path(&path);
        let first = path.split('/').next().unwrap_or_default();
        let stem = first.strip_suffix(".json").or(first.strip_suffix(".tar")).unwrap_or(first);
        match first {
            "" => {}
            "oci-layout" | "blobs" | "index.json" => return Ok(ArchiveFormat::Layout),
            "manifest.json" | "repositories" => return Ok(ArchiveFormat::Docker),
            // The directories, configurations and layers of `docker save`.
            _ if stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                return Ok(ArchiveFormat::Docker);
            }
            _ => return Ok(ArchiveFormat::RootFs),
        }
    }
    Err(Error::new(Kind::Config, format!("the archive `{}` is empty", source.display()))
        .help("for an image without files import `scratch`"))
}

/// Reads all of an archive: documents into memory, everything else into the store.
fn read(
    store: &Store,
    source: &Path,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<ArchiveContent> {
    let mut content = ArchiveContent::default();
    let limits = Limits::of_environment()?;
    let (mut documents, mut blobs, mut names) = (0u64, 0u64, 0);
    let mut archive = Reader::new(BufReader::with_capacity(READ_SIZE, open(source)?));
    while let Some(entry) = archive.next().map_err(|error| unreadable(source, &error))? {
        let path = normalize_path(&String::from_utf8_lossy(&entry.path));
        let link = || String::from_utf8_lossy(&entry.link).into_owned();
        let target = match entry.kind {
            Is::File => None,
            Is::Symlink => Some(resolve_link(&path, &link())),
            Is::HardLink => Some(normalize_path(&link())),
            _ => continue,
        };
        if let Some(target) = target {
            names += path.len() + target.len() + NAME_COST;
            check_names(source, names)?;
            content.links.insert(path, target);
            continue;
        }
        names += path.len() + NAME_COST;
        check_names(source, names)?;
        let size = entry.size;
        let mut data = Content::new(&mut archive, &entry);
        let extension = Path::new(&path).extension().and_then(|extension| extension.to_str());
        let is_document = extension == Some("json") || matches!(path.as_str(), "oci-layout" | "repositories");
        if is_document {
            if size > MAX_DOCUMENT_SIZE {
                return Err(invalid_source(source, format!("`{path}` has {size} bytes; the limit is 4 MiB")));
            }
            documents += size;
            if documents > MAX_DOCUMENT_BYTES {
                return Err(invalid_source(
                    source,
                    format!("it has more than {} MiB of documents", MAX_DOCUMENT_BYTES >> 20),
                ));
            }
            let mut bytes = Vec::new();
            data.read_to_end(&mut bytes).map_err(|error| unreadable(source, &error))?;
            content.documents.insert(path, bytes);
        } else {
            blobs = blobs.saturating_add(size);
            if blobs > limits.bytes {
                return Err(too_large(source, &limits));
            }
            let descriptor = store_entry(store, source, &mut data, size, on_progress, stopped)?;
            content.blobs.insert(path, descriptor);
        }
    }
    Ok(content)
}

fn check_names(source: &Path, names: usize) -> Result<()> {
    if names > MAX_NAME_BYTES {
        let message = format!("its names take more than {} MiB", MAX_NAME_BYTES >> 20);
        return Err(invalid_source(source, message));
    }
    Ok(())
}

/// Puts an entry into the store.
fn store_entry(
    store: &Store,
    source: &Path,
    entry: &mut impl Read,
    size: u64,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Descriptor> {
    let mut writer = store.begin()?;
    let mut buffer = vec![0; 1 << 18];
    let mut begins = Vec::new();
    loop {
        if stopped.load(Ordering::Relaxed) {
            return Err(canceled());
        }
        match entry.read(&mut buffer).map_err(|error| unreadable(source, &error))? {
            0 => break,
            some => {
                if begins.len() < 6 {
                    begins.extend_from_slice(&buffer[..some.min(6)]);
                }
                writer.write_all(&buffer[..some]).map_err(|error| store.write_error("write to", &error))?;
            }
        }
    }
    let written = writer.written();
    if written != size {
        return Err(invalid_source(source, "it ends in the middle of a file"));
    }
    let digest = writer.finish(None)?;
    on_progress(Progress::Blob { digest: digest.clone(), done: written, total: Some(size), known: false });
    Ok(Descriptor::new(recompress::media_type(&begins), digest, written))
}

/// Checks that a blob of an archived layout was read, and matches its digest.
fn verify_blob(
    store: &Store,
    source: &Path,
    content: &ArchiveContent,
    descriptor: &Descriptor,
) -> Result<bool> {
    let digest = &descriptor.digest;
    let path = format!("blobs/{}/{}", digest.algorithm().name(), digest.hex());
    let came = content.blobs.get(content.links.get(&path).unwrap_or(&path));
    let Some(came) = came else { return Ok(store.has(digest)) };
    if came.size != descriptor.size {
        return Err(invalid_source(
            source,
            format!("{digest} has {} bytes, not {}", came.size, descriptor.size),
        ));
    }
    if came.digest == *digest {
        return Ok(true);
    }
    // It came in under its SHA-256; another algorithm's name is given once it is known to be right.
    if digest.algorithm() != came.digest.algorithm()
        && let Some(mut writer) = store.resume(descriptor)?
    {
        writer.restart()?;
        std::io::copy(&mut store.blob(&came.digest)?, &mut writer)
            .map_err(|error| store.write_error("write to", &error))?;
        writer.finish(Some(descriptor)).map_err(|error| invalid_source(source, error.message()))?;
        return Ok(true);
    }
    Err(invalid_source(source, format!("the blob {digest} has the digest {}", came.digest)))
}

/// A path of an archive without `.` and with no slash at its ends.
pub(super) fn normalize_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

/// The target of a link in an archive, resolved only by names.
fn resolve_link(path: &str, to: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A placeholder digest for callers that do not need it.
pub(super) fn diff_id(store: &Store, source: &Path, layer: &Descriptor) -> Result<Digest> {
    if layer.media_type == media::LAYER {
        return Ok(layer.digest.clone());
    }
    let mut reader = decompressing_reader(BufReader::with_capacity(1 << 18, store.blob(&layer.digest)?))
        .map_err(|error| unreadable(source, &error))?;
    let mut hasher = jobc_schema::digest::Hasher::default();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match reader.read(&mut buffer).map_err(|error| unreadable(source, &error))? {
            0 => return Ok(hasher.finish()),
            some => hasher.update(&buffer[..some]),
        }
    }
}
