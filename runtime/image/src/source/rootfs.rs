//! A root file system: an archive or a directory that becomes an image of one layer.

use std::fs::File;
use std::io::{self, BufReader, Read, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::assemble::add_image;
use super::errors::{canceled, unreadable};
use super::imported::{ImportedImage, SourceKind};
use super::recompress;
use super::strip::strip;
use crate::config::{Config, History};
use crate::manifest::Descriptor;
use crate::manifest::media;
use crate::pack::{PackOptions, pack};
use crate::progress::{Progress, ProgressFn};
use crate::store::Store;
use crate::store::Writer;
use jobc_container::decompress::decompressing_reader;
use jobc_container::root::top_directory::TopDirectory;
use jobc_schema::digest::{Digest, Hasher};
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Creates an image of an archive: the archive is its layer, byte for byte, unless it is compressed by xz or bzip2, or
/// its root is in a directory of it.
pub(super) fn archive(
    store: &Store,
    source: &Path,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<Vec<ImportedImage>> {
    let failed = |error: &io::Error| {
        Error::new(Kind::Config, format!("cannot read `{}`: {}", source.display(), describe_io(error)))
    };
    let top = TopDirectory::of_archive(source, stopped).map_err(|error| {
        if stopped.load(Ordering::Relaxed) { canceled() } else { unreadable(source, &error) }
    })?;
    if let Some(top) = &top {
        on_progress(Progress::Note(top.note(&display_name(store, source))));
        if top.is_root {
            let (layer, diff_id) = strip(store, source, &top.name, stopped)?;
            return one_layer(store, source, layer, diff_id);
        }
    }
    let mut file = File::open(source).map_err(|error| failed(&error))?;
    if recompress::is_needed(&mut file).map_err(|error| failed(&error))? {
        let (layer, diff_id) = recompress::recompress(store, source, file, on_progress, stopped)?;
        return one_layer(store, source, layer, diff_id);
    }
    let total = file.metadata().map_err(|error| failed(&error))?.len();
    let writer = store.begin()?;
    let mut kept = StoringReader {
        inner: file,
        writer,
        first_bytes: Vec::new(),
        write_error: None,
        progress: on_progress,
        total,
        stopped,
    };
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; 1 << 18];
    let read = decompressing_reader(BufReader::with_capacity(1 << 18, &mut kept)).and_then(|mut content| {
        loop {
            match content.read(&mut buffer)? {
                0 => break,
                some => hasher.update(&buffer[..some]),
            }
        }
        Ok(())
    });
    // Bytes after the compressed data still belong to the file.
    let read = read.and_then(|()| io::copy(&mut kept, &mut io::sink()).map(drop));
    if stopped.load(Ordering::Relaxed) {
        return Err(canceled());
    }
    if let Some(error) = kept.write_error {
        return Err(store.write_error("write to", &error));
    }
    read.map_err(|error| unreadable(source, &error))?;
    let (size, begins) = (kept.writer.written(), kept.first_bytes);
    let digest = kept.writer.finish(None)?;
    let layer = Descriptor::new(recompress::media_type(&begins), digest, size);
    one_layer(store, source, layer, hasher.finish())
}

/// Creates an image of a directory: its files with the owners that they have in containers of the calling user.
pub(super) fn directory(
    store: &Store,
    source: &Path,
    on_progress: ProgressFn<'_>,
) -> Result<Vec<ImportedImage>> {
    let mut writer = store.begin()?;
    let top = TopDirectory::of_directory(source);
    if let Some(top) = &top {
        on_progress(Progress::Note(top.note(&source.to_string_lossy())));
    }
    let root = top.filter(|top| top.is_root).map_or_else(|| source.to_owned(), |top| source.join(top.name));
    pack(&root, &PackOptions { root: true, ..PackOptions::default() }, &mut writer)?;
    let size = writer.written();
    let digest = writer.finish(None)?;
    one_layer(store, source, Descriptor::new(media::LAYER, digest.clone(), size), digest)
}

/// The name of a source for people: `-` for stdin, which is a temporary file of the store.
fn display_name(store: &Store, source: &Path) -> String {
    if source.starts_with(store.root().join("partial")) {
        return "-".to_owned();
    }
    source.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn one_layer(store: &Store, source: &Path, layer: Descriptor, diff_id: Digest) -> Result<Vec<ImportedImage>> {
    let name = display_name(store, source);
    let mut config = Config::default();
    config.config.env = vec!["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
    config.history =
        vec![History { created_by: Some(format!("jobc image import {name}")), ..History::default() }];
    let descriptor = add_image(store, config, vec![(layer, diff_id)])?;
    Ok(vec![ImportedImage { names: Vec::new(), descriptor, kind: SourceKind::RootFs }])
}

/// Keeps in the store what is read.
struct StoringReader<'a, 'b> {
    inner: File,
    writer: Writer<'a>,
    first_bytes: Vec<u8>,
    /// Why the store could not take more.
    write_error: Option<io::Error>,
    progress: ProgressFn<'b>,
    total: u64,
    stopped: &'b AtomicBool,
}

impl Read for StoringReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("canceled"));
        }
        let read = self.inner.read(buffer)?;
        if self.first_bytes.len() < 6 {
            self.first_bytes.extend_from_slice(&buffer[..read.min(6)]);
        }
        if let Err(error) = self.writer.write_all(&buffer[..read]) {
            self.write_error = Some(error);
            return Err(io::Error::other("the store accepts no more data"));
        }
        let done = self.writer.written();
        (self.progress)(Progress::Source { done, total: Some(self.total) });
        Ok(read)
    }
}
