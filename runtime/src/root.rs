//! The container's root: a folder, an archive, or the machine's own files.
//!
//! `root.path` names a folder, as the OCI runtime specification wants. Where that folder is absent, as in what `jobc build`
//! makes, an archive beside config.json is unpacked, or the annotation `dev.jobc.image` says what belongs there.

pub mod archive;
mod host;
pub mod remove;

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::bundle::{Bundle, because};
use crate::error::{Error, Kind, Result};

/// What a container has for its root file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// A folder, which the container may write.
    Folder(PathBuf),
    /// The machine's own files, or a folder that other containers begin with too, under a writable layer that goes with the
    /// container.
    Overlay {
        /// The lower layer.
        lower: PathBuf,
        /// How many bytes the writable layer may take; nothing for the kernel's own bound of a tmpfs.
        upper_size: Option<u64>,
        /// An empty folder to mount upon, which nobody else uses.
        on: PathBuf,
        /// What of the machine is shown read-only, outer ones first: mounts below its root, and what stands in no part.
        binds: Vec<PathBuf>,
        /// What the root is put together from, where an overlay over all of it is not to be had.
        parts: Option<Parts>,
    },
}

/// A root put together from overlays over single folders, on a tmpfs that has the names in between.
///
/// In a user namespace the mounts of the machine are locked together: the kernel makes no overlay over a folder that has
/// other mounts below it (mount_namespaces(7)), so there is none over `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Folders with a writable layer over each, and their permission bits.
    pub overlays: Vec<(PathBuf, u32)>,
    /// Folders that begin empty, or with other parts, and their permission bits; outer ones first.
    pub folders: Vec<(PathBuf, u32)>,
    /// Symbolic links, and what they say.
    pub links: Vec<(PathBuf, PathBuf)>,
}

/// The archives that are looked for beside config.json, in this order.
const ARCHIVES: [&str; 3] = ["rootfs.tar", "rootfs.tar.gz", "rootfs.tgz"];

impl Root {
    /// The root of a bundle's container.
    ///
    /// `choice` comes before what the bundle says: `host`, a folder, or an archive. `state_dir` is the container's own folder;
    /// an archive is unpacked there, once.
    pub fn of(bundle: &Bundle, choice: Option<&str>, state_dir: &Path) -> Result<Self> {
        if let Some(choice) = choice {
            return match choice {
                "host" => host::overlay(bundle)?.placed(state_dir),
                path => Self::at(Path::new(path), state_dir),
            };
        }
        let written = bundle.config.spec.root().as_ref().map(|root| bundle.dir.join(root.path()));
        // Without a slash at its end, by which a link would be followed here.
        let written = written.map(|path| path.components().collect::<PathBuf>());
        if let Some(path) = written.filter(|path| *path != bundle.dir)
            && let Ok(status) = fs::symlink_metadata(&path)
        {
            // A folder that is no link, in a folder whose path has none: there is nothing to resolve.
            if status.is_dir() && path.file_name().is_some() && path.parent() == Some(&bundle.dir) {
                return Ok(Self::Folder(path));
            }
            return Self::at(&path, state_dir).map_err(|error| error.at("/root/path"));
        }
        if let Some(archive) = ARCHIVES.iter().map(|name| bundle.dir.join(name)).find(|path| path.is_file()) {
            return Self::at(&archive, state_dir);
        }
        match bundle.annotation("dev.jobc.image") {
            Some("host") => host::overlay(bundle)?.placed(state_dir),
            image => Err(absent(bundle, image)),
        }
    }

    /// The machine's own files, for containers of bundles like this one; [`placed`](Self::placed) makes it the root of one.
    pub(crate) fn of_machine(bundle: &Bundle) -> Result<Self> {
        host::overlay(bundle)
    }

    /// A folder that several containers begin with, each with a writable layer of its own; see [`placed`](Self::placed).
    pub(crate) fn layered(lower: PathBuf, bundle: &Bundle) -> Result<Self> {
        Ok(Self::Overlay {
            lower,
            upper_size: host::upper_size(bundle)?,
            on: PathBuf::new(),
            binds: Vec::new(),
            parts: None,
        })
    }

    /// The same root for the container in a folder: a writable layer is put together in there.
    pub(crate) fn placed(mut self, state_dir: &Path) -> Result<Self> {
        if let Self::Overlay { on, .. } = &mut self {
            *on = state_dir.join("root");
            match fs::create_dir(&*on) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    let message = format!("cannot make `{}`: {}", on.display(), because(&error));
                    return Err(Error::new(Kind::Machine, message));
                }
                _ => {}
            }
        }
        Ok(self)
    }

    /// Where the root stands in the container's mount namespace until it is entered: what hooks are told.
    pub fn place(&self) -> PathBuf {
        match self {
            Self::Folder(path) => path.clone(),
            Self::Overlay { on, .. } => on.join("root"),
        }
    }

    /// The folder of the machine whose files the container begins with.
    pub fn files(&self) -> &Path {
        match self {
            Self::Folder(path) | Self::Overlay { lower: path, .. } => path,
        }
    }

    /// Whether [`of`](Self::of) unpacks an archive, which takes its time.
    pub fn takes_time(bundle: &Bundle, choice: Option<&str>) -> bool {
        match choice {
            Some("host") => false,
            Some(path) => Path::new(path).is_file(),
            None => {
                let written = bundle.config.spec.root().as_ref().map(|root| bundle.dir.join(root.path()));
                !written.is_some_and(|path| path.is_dir())
                    && ARCHIVES.iter().any(|name| bundle.dir.join(name).is_file())
            }
        }
    }

    /// A folder, or an archive unpacked.
    fn at(path: &Path, state_dir: &Path) -> Result<Self> {
        let shown = path.display();
        let found = fs::canonicalize(path).map_err(|error| {
            Error::new(Kind::Config, format!("cannot open the root `{shown}`: {}", because(&error)))
                .help("give a folder, an archive (`.tar`, `.tar.gz`) or `host`")
        })?;
        if found == Path::new("/") {
            return Err(Error::new(
                Kind::Unsupported,
                "the machine's own root would be writable in the container",
            )
            .help("use `host`, which lays a writable layer over it"));
        }
        if found.is_dir() {
            return Ok(Self::Folder(found));
        }
        let root = state_dir.join("rootfs");
        if !root.exists() {
            archive::unpack(&found, &root)?;
        }
        Ok(Self::Folder(root))
    }
}

/// Opens a path below a root as a process with that root would find it: no link and no `..` leads out.
pub(crate) fn open_inside(root: impl AsFd, path: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    // Where something is renamed on the machine while a `..` is resolved, the kernel cannot tell and says so (openat2(2)).
    for _ in 0..64 {
        match openat2(&root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// No root: what would be one, by what the bundle tells.
fn absent(bundle: &Bundle, image: Option<&str>) -> Error {
    let path = bundle
        .config
        .spec
        .root()
        .as_ref()
        .map_or_else(|| PathBuf::from("rootfs"), |root| root.path().clone());
    let folder = bundle.dir.join(&path);
    let error = match image {
        Some(image) => Error::new(
            Kind::Config,
            format!("the root `{}` is absent, and the image `{image}` is not fetched yet", path.display()),
        ),
        None => Error::new(Kind::Config, format!("the root `{}` is absent", path.display())),
    };
    error.at("/root/path").help(format!(
        "unpack the image to `{}`, put it beside config.json as `rootfs.tar`, or give a root: a folder, an archive or `host`",
        folder.display()
    ))
}

#[cfg(test)]
mod tests;
