//! The results of a build besides the image in the store: files with its digests, archives, directories, and a cache in
//! a registry.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jobc_image::manifest::media;
use jobc_image::pack::{PackOptions, pack};
use jobc_image::unpack::Ownership;
use jobc_image::{Descriptor, Index, Manifest, Platform, Reference, Store, progress, save, unpack};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::write_atomic::{Durability, write_atomic};
use serde_json::json;

use super::more::{MoreOptions, Output, OutputKind};
use crate::input::reason;
use crate::runtime::args::image_build::BuildMoreArgs;
use crate::runtime::commands::image::sbom;

/// One image of several: a list of them, each for its platform.
pub(super) fn index(store: &Store, images: &[(Platform, Descriptor)]) -> Result<Descriptor> {
    let mut index = Index::default();
    for (platform, descriptor) in images {
        let mut entry = descriptor.bare();
        entry.platform = Some(platform.clone());
        index.manifests.push(entry);
    }
    store.put_json(&index, media::INDEX)
}

/// Writes everything that is requested.
pub(super) fn write(
    store: &Store,
    args: &BuildMoreArgs,
    more: &MoreOptions,
    descriptor: &Descriptor,
    tags: &[Reference],
    platforms: &[Platform],
    stopped: &AtomicBool,
) -> Result<()> {
    for output in &more.outputs {
        write_output(store, output, descriptor, tags, platforms, stopped)?;
    }
    if let Some(path) = &args.iidfile {
        write_file(path, descriptor.digest.to_string().as_bytes())?;
    }
    if let Some(path) = &args.metadata_file {
        let mut text = serde_json::to_vec_pretty(&metadata(store, descriptor, tags)?)
            .map_err(|error| Error::new(Kind::State, error.to_string()))?;
        text.push(b'\n');
        write_file(path, &text)?;
    }
    if let Some(path) = &args.sbom {
        let [platform] = platforms else {
            let error = "a bill of materials is for one platform";
            return Err(Error::new(Kind::Config, error).help("write it with `jobc image sbom --platform`"));
        };
        let name = tags.first().map_or_else(|| descriptor.digest.to_string(), ToString::to_string);
        write_file(path, sbom::document(store, &name, platform)?.as_bytes())?;
    }
    Ok(())
}

/// The keys that BuildKit writes.
fn metadata(store: &Store, descriptor: &Descriptor, tags: &[Reference]) -> Result<serde_json::Value> {
    let mut object = json!({
        "containerimage.descriptor": {
            "mediaType": descriptor.media_type, "digest": descriptor.digest, "size": descriptor.size,
        },
        "containerimage.digest": descriptor.digest,
    });
    if media::is_manifest(&descriptor.media_type) {
        let manifest: Manifest = store.document(descriptor)?;
        object["containerimage.config.digest"] = json!(manifest.config.digest);
    }
    if !tags.is_empty() {
        object["image.name"] = json!(tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    Ok(object)
}

fn write_output(
    store: &Store,
    output: &Output,
    descriptor: &Descriptor,
    tags: &[Reference],
    platforms: &[Platform],
    stopped: &AtomicBool,
) -> Result<()> {
    let failed = |error: &io::Error| {
        let name = output.dest.as_ref().map_or("standard output".into(), |path| path.display().to_string());
        Error::new(Kind::System, format!("cannot write `{name}`: {}", reason(error)))
    };
    match output.kind {
        OutputKind::Oci => {
            let names: Vec<(Descriptor, Option<Reference>)> = if tags.is_empty() {
                vec![(descriptor.clone(), None)]
            } else {
                tags.iter().map(|tag| (descriptor.clone(), Some(tag.clone()))).collect()
            };
            to_file(output, &failed, stopped, &mut |out| {
                save::save(store, &names, &platforms[0], &progress::ignore_progress, stopped, out)
            })
        }
        OutputKind::Local => {
            let dest = output.dest.as_deref().unwrap_or(Path::new("."));
            match platforms {
                [platform] => files(store, descriptor, platform, dest, stopped),
                several => {
                    fs::create_dir_all(dest).map_err(|error| failed(&error))?;
                    several.iter().try_for_each(|platform| {
                        let dest = dest.join(platform.to_string().replace('/', "_"));
                        files(store, descriptor, platform, &dest, stopped)
                    })
                }
            }
        }
        OutputKind::Tar => {
            let [platform] = platforms else {
                let error = "an archive of files is for one platform";
                return Err(Error::new(Kind::Config, error).help("use `type=oci` or `type=local`"));
            };
            let work = TemporaryFiles::create(store)?;
            files(store, descriptor, platform, &work.files(), stopped)?;
            to_file(output, &failed, stopped, &mut |out| pack(&work.files(), &PackOptions::default(), out))
        }
    }
}

/// Writes a file, which gets its name when it is whole, or stdout.
fn to_file(
    output: &Output,
    failed: &dyn Fn(&io::Error) -> Error,
    stopped: &AtomicBool,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let Some(path) = &output.dest else {
        let mut out = BufWriter::with_capacity(1 << 18, Stoppable { output: io::stdout().lock(), stopped });
        write(&mut out)?;
        return out.flush().map_err(|error| failed(&error));
    };
    let mut part = path.clone().into_os_string();
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    let file = File::create(&part).map_err(|error| failed(&error))?;
    let mut out = BufWriter::with_capacity(1 << 18, Stoppable { output: file, stopped });
    let written = write(&mut out)
        .and_then(|()| out.flush().map_err(|error| failed(&error)))
        .and_then(|()| fs::rename(&part, path).map_err(|error| failed(&error)));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// An output that fails once the command was interrupted.
struct Stoppable<'a, W> {
    output: W,
    stopped: &'a AtomicBool,
}

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Writes the files of an image to a directory that is empty or not there.
fn files(
    store: &Store,
    descriptor: &Descriptor,
    platform: &Platform,
    dest: &Path,
    stopped: &AtomicBool,
) -> Result<()> {
    let failed = |why: &str| {
        Error::new(Kind::Config, format!("cannot write to `{}`: {why}", dest.display()))
            .help("name a directory that is empty or does not exist")
    };
    match fs::remove_dir(dest) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            return Err(failed("the directory is not empty"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&reason(&error))),
        _ => {}
    }
    if let Some(parent) = dest.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|error| failed(&reason(&error)))?;
    }
    let image = store.image(descriptor, platform)?;
    let layers = unpack::layers(store, &image, &progress::ignore_progress, stopped)?;
    if layers.is_empty() {
        return fs::create_dir(dest).map_err(|error| failed(&reason(&error)));
    }
    unpack::copy(&layers, dest)
}

/// A directory in the store for files that are packed. Dropping it removes it; locked, it is not taken for that of a
/// killed build.
struct TemporaryFiles {
    path: PathBuf,
    _lock: File,
}

impl TemporaryFiles {
    fn create(store: &Store) -> Result<Self> {
        let path = store.root().join("cache/work").join(format!("output-{}", std::process::id()));
        let lock = fs::create_dir_all(&path).and_then(|()| File::open(&path)).and_then(|lock| {
            lock.lock()?;
            Ok(lock)
        });
        let lock = lock.map_err(|error| store.write_error("write to", &error))?;
        Ok(Self { path, _lock: lock })
    }

    fn files(&self) -> PathBuf {
        self.path.join("files")
    }
}

impl Drop for TemporaryFiles {
    fn drop(&mut self) {
        // The next build removes what is left.
        let _ = match Ownership::of_current_user() {
            Ok(Ownership::Mapped(maps)) => unpack::remove(&self.path, &maps),
            _ => jobc_container::remove::remove(&self.path),
        };
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic(path, bytes, 0o666, Durability::Rename).map_err(|error| {
        Error::new(Kind::System, format!("cannot write `{}`: {}", path.display(), reason(&error)))
    })
}
