//! An archive without its top directory, whose content becomes the root.

use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::write::GzEncoder;

use super::errors::{canceled, too_large, unreadable};
use super::open::open;
use super::recompress::GZIP_LEVEL;
use crate::manifest::{Descriptor, media};
use crate::store::Store;
use crate::unpack::Limits;
use jobc_container::tar::{Content, Kind as Is, Reader, Writer};
use jobc_schema::digest::{Digest, Hasher};
use jobc_sys::error::Result;

/// Puts the files below the directory `top` of an archive into the store as a layer compressed by gzip, and returns it
/// with its diff id. Owners, times, attributes and links stay; the names of hard links lose the directory too.
///
/// # Errors
///
/// The archive is damaged; no space left; `stopped` has become true.
pub(super) fn strip(
    store: &Store,
    source: &Path,
    top: &str,
    stopped: &AtomicBool,
) -> Result<(Descriptor, Digest)> {
    let full = |error: io::Error| store.write_error("write to", &error);
    let (limits, mut bytes) = (Limits::of_environment()?, 0_u64);
    let mut archive = Reader::new(BufReader::with_capacity(1 << 18, open(source)?));
    let mut writer = store.begin()?;
    let encoder = GzEncoder::new(&mut writer, flate2::Compression::new(GZIP_LEVEL));
    let mut layer = Writer::new(HashingWriter { inner: encoder, hasher: Hasher::default() });
    while let Some(mut entry) = archive.next().map_err(|error| unreadable(source, &error))? {
        if stopped.load(Ordering::Relaxed) {
            return Err(canceled());
        }
        let Some(path) = below(&entry.path, top) else { continue };
        entry.path = match entry.kind {
            Is::Directory if path.is_empty() => b"./".to_vec(),
            Is::Directory => [b"./", &path[..], b"/"].concat(),
            _ => path,
        };
        if entry.kind == Is::HardLink {
            entry.link = below(&entry.link, top).unwrap_or(entry.link);
        }
        bytes = bytes.saturating_add(entry.size);
        if bytes > limits.bytes {
            return Err(too_large(source, &limits));
        }
        let mut data = Content::new(&mut archive, &entry);
        layer.file(&entry, &mut data).map_err(full)?;
    }
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| unreadable(source, &error))?;
    let HashingWriter { inner, hasher } = layer.finish().map_err(full)?;
    inner.finish().map_err(full)?;
    let size = writer.written();
    let digest = writer.finish(None)?;
    Ok((Descriptor::new(media::LAYER_GZIP, digest, size), hasher.finish()))
}

/// A path below the directory; none for one that is not in it.
fn below(path: &[u8], top: &str) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    let (first, rest) = parts.split_first()?;
    (*first == top.as_bytes()).then(|| rest.join(&b'/'))
}

/// Hashes what is written.
struct HashingWriter<W> {
    inner: W,
    hasher: Hasher,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
