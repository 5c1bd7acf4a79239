//! The root of a bundle from an image store: one process of the host brings an image in, and all containers share it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jobc_container::bundle::Bundle;
use jobc_image::progress::Progress;
use jobc_image::store::ContentPin;
use jobc_image::{Platform, ProgressFn, Store, source, unpack};
use jobc_job::allocate::StoredRoot;
use jobc_job::allocate::image::Image;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::signals::Signals;

use super::node_store;
use crate::args::FormatArg;
use crate::runtime::args::run::{PullPolicy, RunArgs};
use crate::runtime::commands::doctor::try_overlay;
use crate::runtime::commands::image;
use crate::runtime::commands::run::pull::find_or_pull;
use crate::runtime::interruptible::{self, exit_by_signal};
use crate::runtime::progress::Meter;

/// A root, and the pin that keeps its files in the store.
pub(super) struct ProvidedRoot {
    pub(super) root: StoredRoot,
    pub(super) pin: Option<ContentPin>,
}

/// The initial files of the container, if `--image-root` names a store for them, or this is a step of Slurm, whose node has
/// one.
///
/// They are those of `choice`, a directory or an archive, or else of the image that the bundle names.
///
/// # Errors
///
/// A bundle that needs no files from a store, and errors of [`source::import_once`] and of pulling.
pub(super) fn provide(
    args: &RunArgs,
    bundle: &Bundle,
    choice: Option<&str>,
    signals: &Signals,
) -> Result<Option<ProvidedRoot>> {
    let image = bundle.annotation("dev.jobc.image");
    let needs_files = match choice {
        Some(choice) => choice != "host",
        None => image.is_some_and(|image| image != "host") && !has_own_root(bundle),
    };
    let given = args.image_root.clone().filter(|_| args.sets_image_root());
    let own =
        if given.is_none() && needs_files && args.inherits_cgroup() { node_store::of_step()? } else { None };
    let Some(root) = given.or(own) else {
        return match args.pull {
            None => Ok(None),
            Some(_) => Err(unused("--pull", "a bundle without `--image-root`")),
        };
    };
    let root = root.as_path();
    let origin = match (choice, image) {
        (Some("host"), _) | (None, Some("host")) => {
            return Err(unused("--image-root", "a bundle on the files of the host"));
        }
        (None, None) => return Err(unused("--image-root", "a bundle without an image")),
        (None, Some(_)) if has_own_root(bundle) => {
            return Err(unused("--image-root", "a bundle with a root of its own"));
        }
        (Some(path), _) => Origin::File(Path::new(path)),
        (None, Some(image)) => Origin::Image(image),
    };
    if let Origin::File(path) = origin
        && path.is_dir()
        && !path.join("oci-layout").is_file()
    {
        let path = std::fs::canonicalize(path).map_err(|error| {
            Error::new(Kind::Config, format!("cannot open the root `{}`", path.display())).because(error)
        })?;
        let copied = !overlay_note(root).exists() && !can_mount_overlay(&image::open(Some(root))?);
        let root = StoredRoot::shared_directory(path, copied)?;
        return Ok(Some(ProvidedRoot { root, pin: None }));
    }
    let store = image::open(Some(root))?;
    let copied = !overlay_note(store.root()).exists() && !can_mount_overlay(&store);
    let meter = Meter::new(FormatArg::Text, false);
    let stopped = AtomicBool::new(false);
    let mut ended_by = None;
    let report = |progress: Progress| {
        // Otherwise each of a thousand ranks would report an existing image.
        if !matches!(progress, Progress::Layer { known: true, .. }) {
            meter.report(&progress);
        }
    };
    let work = || origin.bring_in(&store, args.pull_policy(), &report, &stopped);
    let image = interruptible::run(signals, work, |signal| {
        if ended_by.replace(signal).is_some() {
            exit_by_signal(signal);
        }
        stopped.store(true, Ordering::Relaxed);
    });
    meter.clear();
    if let Some(signal) = ended_by {
        exit_by_signal(signal);
    }
    let (image, layers) = image??;
    let pin = store.pin(std::slice::from_ref(&image.descriptor.digest))?;
    let root = StoredRoot { layers, image: Some(Image::of(&image.config.config)), copied };
    Ok(Some(ProvidedRoot { root, pin: Some(pin) }))
}

/// An option that would have no effect.
fn unused(option: &str, what: &str) -> Error {
    Error::new(Kind::Config, format!("`{option}` does not apply to {what}"))
        .help("`jobc run --help` lists the options of jobs and bundles")
}

/// The marker file in a store: this kernel and user can mount overlays over its directories.
fn overlay_note(store: &Path) -> PathBuf {
    let kernel = rustix::system::uname();
    let uid = rustix::process::geteuid().as_raw();
    store.join(format!("cache/overlay-{}-{uid}", kernel.release().to_string_lossy()))
}

/// Tests whether overlays can be mounted over directories of a store, and records success.
fn can_mount_overlay(store: &Store) -> bool {
    let can = try_overlay(&store.root().join("unpacked")).is_ok();
    if can {
        // Without the file, the test is repeated next time.
        let _ = std::fs::write(overlay_note(store.root()), "");
    }
    can
}

/// Whether the bundle has its files next to config.json.
fn has_own_root(bundle: &Bundle) -> bool {
    ["rootfs", "rootfs.tar", "rootfs.tar.gz", "rootfs.tgz"].iter().any(|name| bundle.dir.join(name).exists())
}

/// Where an image comes from.
#[derive(Clone, Copy)]
enum Origin<'a> {
    /// An archive, or a directory in the OCI image layout.
    File(&'a Path),
    /// A registry.
    Image(&'a str),
}

impl Origin<'_> {
    /// The image in the store, with its layers unpacked. If several processes need it at the same time, one fetches it.
    fn bring_in(
        self,
        store: &Store,
        pull: PullPolicy,
        progress: ProgressFn<'_>,
        stopped: &AtomicBool,
    ) -> Result<(jobc_image::store::Image, Vec<std::path::PathBuf>)> {
        let descriptor = match self {
            Self::File(path) => source::import_once(store, path, progress, stopped)?,
            Self::Image(name) => find_or_pull(store, name, pull, progress, stopped)?,
        };
        let image = store.image(&descriptor, &Platform::here())?;
        let layers = unpack::layers(store, &image, progress, stopped)?;
        Ok((image, layers))
    }
}
