//! One layer: its blob decompressed by one thread, placed by another, and its digest seen to be the right one.

use std::fs;
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use super::incoming::{IncomingBlob, wait_for_blob};
use super::limits::Limits;
use super::merge_layer;
use super::partial::PartialDirectory;
use super::unpacker::Unpacker;
use crate::manifest::Descriptor;
use crate::progress::Progress;
use jobc_container::archive::extract;
use jobc_container::archive::tree::{LayerSummary, Owners, Tree};
use jobc_container::decompress::{LimitedReader, decompressing_reader, read_ahead};
use jobc_schema::digest::Digest;
use jobc_schema::digest::Hasher;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Bytes of the blob that are read at a time.
const READ_SIZE: usize = 1 << 18;

/// How often progress is reported, in bytes of the blob.
const PROGRESS_INTERVAL: u64 = 4 << 20;

/// Unpacks a layer, unless another process does.
pub(super) fn unpack(of: &Unpacker<'_>, layer: &Descriptor, diff_id: &Digest, owners: Owners) -> Result<()> {
    let place = of.layer_path(diff_id);
    let failed = |error: &io::Error| layer_error(of, layer, error);
    let tell = |done, known| {
        (of.progress)(Progress::Layer { digest: layer.digest.clone(), done, total: layer.size, known });
    };
    let Some(part) = PartialDirectory::create(&place, of.stopped).map_err(|error| failed(&error))? else {
        tell(layer.size, true);
        return Ok(());
    };
    let files = part.path().join("files");
    let fill = || {
        let tree = fs::create_dir(&files).and_then(|()| Tree::layer(&files, owners));
        tree.map_err(|error| failed(&error)).and_then(|tree| fill_tree(of, layer, diff_id, tree))
    };
    let left = match fill() {
        // Unverified bytes prove nothing: the verified blob decides.
        Err(_) if of.is_incoming && !of.stopped.load(Ordering::Relaxed) => {
            wait_for_blob(of.store, layer, of.stopped).map_err(|error| failed(&error))?;
            part.clear().map_err(|error| failed(&error))?;
            fill()?
        }
        other => other?,
    };
    // Below the lowest layer there is nothing to link to.
    if let Some((name, target)) = left.external_links.first()
        && of.layers.first().is_some_and(|(_, lowest)| *lowest == diff_id)
    {
        return Err(merge_layer::no_such_target(name, target));
    }
    for device in &left.skipped_devices {
        let shown = String::from_utf8_lossy(device);
        (of.progress)(Progress::Note(format!(
            "the device `/{shown}` of the image was left out: only root can create it"
        )));
    }
    merge_layer::write_dependencies(part.path(), &left)
        .and_then(|()| part.finish())
        .map_err(|error| failed(&error))?;
    tell(layer.size, false);
    Ok(())
}

/// Fills a tree with the content of a layer.
fn fill_tree(
    of: &Unpacker<'_>,
    layer: &Descriptor,
    diff_id: &Digest,
    mut tree: Tree,
) -> Result<LayerSummary> {
    let failed = |error: io::Error| layer_error(of, layer, &error);
    let read = AtomicU64::new(0);
    let inner: Box<dyn Read + Send + '_> = if of.is_incoming {
        Box::new(IncomingBlob::new(of.store, layer, of.stopped))
    } else {
        Box::new(of.store.blob(&layer.digest)?)
    };
    let blob = CountingReader { inner, count: &read };
    let mut hasher = Hasher::new(diff_id.algorithm());
    let content = decompressing_reader(BufReader::with_capacity(READ_SIZE, blob)).map_err(failed)?;
    let content = LimitedReader::new(content, of.limits.bytes, of.stopped);
    let mut reported = 0;
    let seen = |piece: &[u8]| {
        hasher.update(piece);
        let done = read.load(Ordering::Relaxed).min(layer.size);
        if done >= reported + PROGRESS_INTERVAL {
            reported = done;
            (of.progress)(Progress::Layer {
                digest: layer.digest.clone(),
                done,
                total: layer.size,
                known: false,
            });
        }
    };
    let left = read_ahead::with_read_ahead(content, seen, |content| {
        // An archive without an end mark is whole where its digest is right.
        extract(&mut tree, content, of.limits.entries, of.stopped)?;
        tree.finish_layer()
    })
    .map_err(failed)?;
    let found = hasher.finish();
    if found != *diff_id {
        let message =
            format!("the layer {} has the diff ID {found}, but the image lists {diff_id}", layer.digest);
        return Err(
            Error::new(Kind::System, message).help("pull or import the image again, or contact its author")
        );
    }
    Ok(left)
}

/// The failure, as text with the layer.
fn layer_error(of: &Unpacker<'_>, layer: &Descriptor, error: &io::Error) -> Error {
    let layer = &layer.digest;
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => of.store.write_error("write to", error),
        io::ErrorKind::UnexpectedEof => {
            Error::new(Kind::System, format!("the layer {layer} is truncated: {error}"))
                .help("pull or import the image again")
        }
        io::ErrorKind::FileTooLarge => {
            let bytes = of.limits.bytes;
            let message = format!("the layer {layer} becomes larger than {} MiB", bytes >> 20);
            Error::new(Kind::Unenforceable, message)
                .help(format!("allow more bytes with `{}=`, if you trust the image", Limits::VARIABLE))
        }
        _ => Error::new(Kind::System, format!("cannot unpack the layer {layer}: {}", describe_io(error))),
    }
}

/// A file whose bytes are counted as they are read.
struct CountingReader<'a> {
    inner: Box<dyn Read + Send + 'a>,
    count: &'a AtomicU64,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
