//! Layers whose compression no media type names: they are compressed again by gzip, so that every tool takes them.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::write::GzEncoder;

use super::errors::{canceled, unreadable};
use crate::manifest::{Descriptor, media};
use crate::progress::{Progress, ProgressFn};
use crate::store::Store;
use jobc_container::decompress::{Format, decompressing_reader};
use jobc_schema::digest::{Digest, Hasher};
use jobc_sys::error::{Error, Kind, Result};

/// The level of gzip: low, because an import waits for it.
pub(super) const GZIP_LEVEL: u32 = 3;

/// Bytes that tell how something is compressed.
const BEGINNING: u64 = 6;

/// The media type of a layer with these first bytes.
pub(super) fn media_type(beginning: &[u8]) -> &'static str {
    match Format::of(beginning) {
        Some(Format::Gzip) => media::LAYER_GZIP,
        Some(Format::Zstd) => media::LAYER_ZSTD,
        _ => media::LAYER,
    }
}

/// Whether a file is compressed by what no media type names.
pub(super) fn is_needed(file: &mut File) -> std::io::Result<bool> {
    let mut beginning = Vec::new();
    file.take(BEGINNING).read_to_end(&mut beginning)?;
    file.rewind()?;
    Ok(matches!(Format::of(&beginning), Some(Format::Xz | Format::Bzip2)))
}

/// Puts the content of a compressed file into the store as a layer compressed by gzip, and returns it with its diff id.
///
/// # Errors
///
/// The file is damaged; no space left; `stopped` has become true.
pub(super) fn recompress(
    store: &Store,
    source: &Path,
    file: File,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<(Descriptor, Digest)> {
    let full = |error: std::io::Error| store.write_error("write to", &error);
    let total = file.metadata().map_err(|error| unreadable(source, &error))?.len();
    let position = file.try_clone().map_err(|error| {
        Error::new(Kind::System, format!("cannot read `{}`", source.display())).because(error)
    })?;
    let mut content = decompressing_reader(BufReader::with_capacity(1 << 18, file))
        .map_err(|error| unreadable(source, &error))?;
    let mut writer = store.begin()?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 1 << 18];
    let mut encoder = GzEncoder::new(&mut writer, flate2::Compression::new(GZIP_LEVEL));
    loop {
        if stopped.load(Ordering::Relaxed) {
            return Err(canceled());
        }
        match content.read(&mut buffer).map_err(|error| unreadable(source, &error))? {
            0 => break,
            some => {
                hasher.update(&buffer[..some]);
                encoder.write_all(&buffer[..some]).map_err(full)?;
                // The same open file, so the place that the decompressor has read to.
                let done = (&position).stream_position().unwrap_or(total);
                on_progress(Progress::Source { done, total: Some(total) });
            }
        }
    }
    encoder.finish().map_err(full)?;
    let size = writer.written();
    let digest = writer.finish(None)?;
    Ok((Descriptor::new(media::LAYER_GZIP, digest, size), hasher.finish()))
}
