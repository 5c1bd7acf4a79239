//! Creates a layer of what a step has changed: an archive in the store.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use flate2::write::GzEncoder;

use super::cache::Layer;
use crate::manifest::Descriptor;
use crate::manifest::media;
use crate::pack::{PackOptions, pack};
use crate::store::Store;
use jobc_schema::digest::Hasher;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// How layers are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// By gzip, which every registry and engine takes.
    #[default]
    Gzip,
    /// Not at all.
    None,
}

impl Compression {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::None => "none",
        }
    }
}

/// The gzip level: low, because a build waits for it, and images are often compressed again for a push.
const GZIP_LEVEL: u32 = 3;

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepResult {
    /// The layer; `None` if no file was changed.
    pub(super) layer: Option<Layer>,
    /// When, in seconds since 1970.
    pub(super) created: u64,
}

/// Creates a layer of the upper directory of a step, which was mounted over a layer `below` if there was one.
///
/// `epoch` is the latest time that files may have, and then the time that the layer was made.
pub(super) fn create_layer(
    store: &Store,
    upper: &Path,
    below: Option<&Path>,
    epoch: Option<i64>,
    compression: Compression,
    stopped: &AtomicBool,
) -> Result<StepResult> {
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs());
    let created = epoch.map_or(now, |epoch| u64::try_from(epoch).unwrap_or_default());
    let failed = |error: io::Error| {
        Error::new(Kind::System, format!("cannot read `{}`", upper.display())).because(error)
    };
    let root = root_changed(upper, below).map_err(failed)?;
    if !root && fs::read_dir(upper).map_err(failed)?.next().is_none() {
        return Ok(StepResult { layer: None, created });
    }
    let pack = PackOptions { latest: epoch, root, ..PackOptions::default() };
    let mut writer = store.begin()?;
    let mut hasher = Hasher::default();
    let full = |error: io::Error| store.write_error("write to", &error);
    let output = io::BufWriter::with_capacity(1 << 18, &mut writer);
    let media_type = match compression {
        Compression::Gzip => {
            let encoder = GzEncoder::new(output, flate2::Compression::new(GZIP_LEVEL));
            let encoder = archive(upper, &pack, encoder, &mut hasher, stopped)?;
            encoder.finish().and_then(|mut output| output.flush()).map_err(full)?;
            media::LAYER_GZIP
        }
        Compression::None => {
            archive(upper, &pack, output, &mut hasher, stopped)?.flush().map_err(full)?;
            media::LAYER
        }
    };
    let size = writer.written();
    let blob = Descriptor::new(media_type, writer.finish(None)?, size);
    Ok(StepResult { layer: Some(Layer { diff_id: hasher.finish(), blob }), created })
}

/// Whether a step has changed the image's root itself: its bits or its owner.
fn root_changed(upper: &Path, below: Option<&Path>) -> io::Result<bool> {
    let root = |path: &Path| {
        fs::symlink_metadata(path).map(|status| (status.mode() & 0o7777, status.uid(), status.gid()))
    };
    let after = root(upper)?;
    let before = match below {
        Some(below) => root(below)?,
        None => (0o755, after.1, after.2),
    };
    Ok(after != before)
}

/// Writes the archive to some output, and its digest to another, until `stopped` has become true.
fn archive<W: Write>(
    upper: &Path,
    order: &PackOptions,
    output: W,
    hasher: &mut Hasher,
    stopped: &AtomicBool,
) -> Result<W> {
    let mut both = io::BufWriter::with_capacity(1 << 16, HashingWriter { output, hasher, stopped });
    pack(upper, order, &mut both)?;
    both.into_inner().map(|hashed| hashed.output).map_err(|error| {
        Error::new(Kind::System, format!("cannot write a layer: {}", describe_io(error.error())))
    })
}

/// An output that hashes the bytes written to it, and fails once the build is canceled.
struct HashingWriter<'a, W> {
    output: W,
    hasher: &'a mut Hasher,
    stopped: &'a AtomicBool,
}

impl<W: Write> Write for HashingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("the build was canceled"));
        }
        let count = self.output.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
