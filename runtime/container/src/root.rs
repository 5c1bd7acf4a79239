//! The container's root: a folder, an archive, or the machine's own files.
//!
//! `root.path` names a folder, as the OCI runtime specification wants. Where that folder is absent, as in what `jobc build`
//! makes, an archive beside config.json is unpacked, or the annotation `dev.jobc.image` says what belongs there.

mod host;
pub mod layers;

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive;
use crate::bundle::Bundle;
use jobc_sys::error::{Error, Kind, Result, because};

/// What a container has for its root file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// A folder, which the container may write.
    Folder(PathBuf),
    /// The machine's own files, or folders that other containers begin with too, under a writable layer.
    Overlay {
        /// The lower layers, lowest first; at least one, and at most [`MOST_LOWERS`].
        lowers: Vec<PathBuf>,
        /// The writable layer.
        upper: Upper,
        /// An empty folder to mount upon, which nobody else uses.
        on: PathBuf,
        /// What of the machine is shown read-only, outer ones first: mounts below its root, and what stands in no part.
        binds: Vec<PathBuf>,
        /// What the root is put together from, where an overlay over all of it is not to be had.
        parts: Option<Parts>,
    },
}

/// The most lower layers of a root (`OVL_MAX_STACK` of the kernel).
pub const MOST_LOWERS: usize = 500;

/// The writable layer of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upper {
    /// In memory: nobody else sees it, and it goes with the container.
    Memory {
        /// How many bytes it may take; nothing for the kernel's own bound of a tmpfs.
        size: Option<u64>,
    },
    /// The folder `upper` in a folder of the machine, which stays when the container goes; beside it the kernel has its `work`.
    /// [`Root::placed`] makes both where they are missing.
    ///
    /// What was changed there is on the disk only after a syncfs(2) of the machine: the container's own syncs are left out
    /// (mount option `volatile`). An `upper` that was used so is not mounted as one again, but may become a lower layer.
    Folder(PathBuf),
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
    pub fn of_machine(bundle: &Bundle) -> Result<Self> {
        host::overlay(bundle)
    }

    /// Folders, lowest first, that several containers begin with, each with a writable layer of its own in memory, as large as
    /// the bundle says; see [`placed`](Self::placed).
    pub fn layered(lowers: Vec<PathBuf>, bundle: &Bundle) -> Result<Self> {
        Ok(Self::over(lowers, Upper::Memory { size: host::upper_size(bundle)? }))
    }

    /// Folders, lowest first, under a writable layer; see [`placed`](Self::placed).
    pub fn over(lowers: Vec<PathBuf>, upper: Upper) -> Self {
        Self::Overlay { lowers, upper, on: PathBuf::new(), binds: Vec::new(), parts: None }
    }

    /// The same root for the container in a folder: a writable layer is put together in there.
    pub fn placed(mut self, state_dir: &Path) -> Result<Self> {
        if let Self::Overlay { on, upper, .. } = &mut self {
            *on = state_dir.join("root");
            make_folder(on)?;
            if let Upper::Folder(folder) = upper {
                make_folder(&folder.join("upper"))?;
                make_folder(&folder.join("work"))?;
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

    /// The folders of the machine whose files the container begins with, lowest first.
    pub fn folders(&self) -> &[PathBuf] {
        match self {
            Self::Folder(path) => std::slice::from_ref(path),
            Self::Overlay { lowers, .. } => lowers,
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
                .help(format!(
                    "a root is a folder, an archive (`.tar`, `.tar.gz`) or `host`; if an image is meant, {OF_AN_IMAGE}"
                ))
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

/// How a container gets an image's files.
const OF_AN_IMAGE: &str = "run a job file with `image:`, which takes it from the store or pulls it, or give what `podman export` writes of it";

/// Makes a folder, unless it is there.
fn make_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            let message = format!("cannot make `{}`: {}", path.display(), because(&error));
            Err(Error::new(Kind::Machine, message))
        }
        _ => Ok(()),
    }
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
            format!(
                "the root `{}` is absent, and a single bundle gets none from its image `{image}`",
                path.display()
            ),
        ),
        None => Error::new(Kind::Config, format!("the root `{}` is absent", path.display())),
    };
    error.at("/root/path").help(format!(
        "unpack the image to `{}`, put what `podman export` writes of it beside config.json as `rootfs.tar`, or give a root: a folder, an archive or `host`{}",
        folder.display(),
        image.map(|_| "; `jobc run` of the job file takes images from the store and pulls those that are missing").unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests;
