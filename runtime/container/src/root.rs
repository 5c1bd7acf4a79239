//! The container's root: a directory, an archive, or the host's own files.
//!
//! `root.path` names a directory, as the OCI runtime specification requires. If that directory is absent, as in the
//! output of `jobc build`, an archive next to config.json is unpacked, or the annotation `dev.jobc.image` names its
//! image.

mod host;
pub mod layers;
pub mod top_directory;

use std::fs;
use std::path::{Path, PathBuf};

use crate::archive;
use crate::bundle::Bundle;
use jobc_sys::error::{Error, Kind, Result, describe_io};
use top_directory::TopDirectory;

/// The root file system of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// A directory, which the container may write.
    Directory(PathBuf),
    /// The host's own files, or directories that other containers begin with too, under a writable layer.
    Overlay {
        /// The lower layers, lowest first; at least one, and at most [`MAX_LOWER_LAYERS`].
        lowers: Vec<PathBuf>,
        /// The writable layer.
        upper: UpperLayer,
        /// An empty directory to mount upon, which no other process uses.
        on: PathBuf,
        /// The host's files that are shown read-only, outer ones first: mounts below its root, and everything outside
        /// the parts.
        binds: Vec<PathBuf>,
        /// The parts of the root, if an overlay over all of it is not possible.
        parts: Option<RootParts>,
    },
}

/// Maximum number of lower layers of a root (`OVL_MAX_STACK` of the kernel).
pub const MAX_LOWER_LAYERS: usize = 500;

/// The writable layer of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpperLayer {
    /// In memory: no other process sees it, and it is removed with the container.
    Memory {
        /// How many bytes it may take; nothing for the kernel's own bound of a tmpfs.
        size: Option<u64>,
    },
    /// The directory `upper` in a directory of the host, which outlives the container; the kernel uses `work` next to
    /// it. [`Root::with_state_dir`] creates both if they are missing.
    ///
    /// Changes are only on the disk after a syncfs(2) on the host: the container's own syncs are ignored (mount option
    /// `volatile`). Such an `upper` cannot be mounted as one again, but may become a lower layer.
    Directory(PathBuf),
}

/// A root put together from overlays over single directories, on a tmpfs that has the names in between.
///
/// In a user namespace the mounts of the host are locked together: the kernel makes no overlay over a directory that
/// has other mounts below it (mount_namespaces(7)), so there is none over `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootParts {
    /// Directories with a writable layer over each, and their permission bits.
    pub overlays: Vec<(PathBuf, u32)>,
    /// Directories that begin empty, or with other parts, and their permission bits; outer ones first.
    pub directories: Vec<(PathBuf, u32)>,
    /// Symbolic links and their targets.
    pub links: Vec<(PathBuf, PathBuf)>,
}

/// The names of archives next to config.json, in search order.
const ARCHIVE_NAMES: [&str; 3] = ["rootfs.tar", "rootfs.tar.gz", "rootfs.tgz"];

impl Root {
    /// The root of a bundle's container.
    ///
    /// `choice` overrides the bundle: `host`, a directory, or an archive. `state_dir` is the container's
    /// own directory; an archive is unpacked there, once.
    pub fn of(bundle: &Bundle, choice: Option<&str>, state_dir: &Path) -> Result<Self> {
        if let Some(choice) = choice {
            return match choice {
                "host" => host::overlay(bundle)?.with_state_dir(state_dir),
                path => match Self::at(Path::new(path), state_dir)? {
                    Self::Directory(path) => Ok(Self::Directory(without_top(path))),
                    root @ Self::Overlay { .. } => Ok(root),
                },
            };
        }
        // An empty path names nothing, but `.` the bundle itself.
        let written = bundle.config.spec.root().as_ref().map(oci_spec::runtime::Root::path);
        let written = written.filter(|path| !path.as_os_str().is_empty()).map(|path| bundle.dir.join(path));
        // Without a slash at its end, by which a link would be followed here.
        if let Some(path) = written.map(|path| path.components().collect::<PathBuf>())
            && let Ok(status) = fs::symlink_metadata(&path)
        {
            // A directory that is not a link, in a directory whose path has none: nothing to resolve.
            if status.is_dir() && path.file_name().is_some() && path.parent() == Some(&bundle.dir) {
                return Ok(Self::Directory(path));
            }
            return Self::at(&path, state_dir).map_err(|error| error.at("/root/path"));
        }
        if let Some(archive) =
            ARCHIVE_NAMES.iter().map(|name| bundle.dir.join(name)).find(|path| path.is_file())
        {
            return Self::at(&archive, state_dir);
        }
        match bundle.annotation("dev.jobc.image") {
            Some("host") => host::overlay(bundle)?.with_state_dir(state_dir),
            image => Err(absent(bundle, image)),
        }
    }

    /// The host's own files, for containers of bundles like this one; [`with_state_dir`](Self::with_state_dir) makes it the root of
    /// one.
    pub fn of_host(bundle: &Bundle) -> Result<Self> {
        host::overlay(bundle)
    }

    /// Directories, lowest first, that several containers share, each with its own writable layer in memory, of the
    /// bundle's size; see [`with_state_dir`](Self::with_state_dir).
    pub fn layered(lowers: Vec<PathBuf>, bundle: &Bundle) -> Result<Self> {
        Ok(Self::over(lowers, UpperLayer::Memory { size: host::upper_size(bundle)? }))
    }

    /// Directories, lowest first, under a writable layer; see [`with_state_dir`](Self::with_state_dir).
    pub fn over(lowers: Vec<PathBuf>, upper: UpperLayer) -> Self {
        Self::Overlay { lowers, upper, on: PathBuf::new(), binds: Vec::new(), parts: None }
    }

    /// The same root for one container: its writable layer is created in this directory.
    pub fn with_state_dir(mut self, state_dir: &Path) -> Result<Self> {
        if let Self::Overlay { on, upper, .. } = &mut self {
            *on = state_dir.join("root");
            make_directory(on)?;
            if let UpperLayer::Directory(directory) = upper {
                make_directory(&directory.join("upper"))?;
                make_directory(&directory.join("work"))?;
            }
        }
        Ok(self)
    }

    /// The root's path in the container's mount namespace until it is entered: hooks get it.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Directory(path) => path.clone(),
            Self::Overlay { on, .. } => on.join("root"),
        }
    }

    /// The directories of the host whose files the container begins with, lowest first.
    pub fn directories(&self) -> &[PathBuf] {
        match self {
            Self::Directory(path) => std::slice::from_ref(path),
            Self::Overlay { lowers, .. } => lowers,
        }
    }

    /// The writable layers in memory: their names in the directory that they share, and the directories of the container
    /// whose new and changed files they hold; none of a root whose files outlive the container.
    pub fn written(&self) -> Vec<(String, PathBuf)> {
        match self {
            Self::Overlay { upper: UpperLayer::Memory { .. }, parts, .. } => match parts {
                None => vec![("upper".to_owned(), PathBuf::from("/"))],
                // What is in no overlay is in the tmpfs itself.
                Some(parts) => std::iter::once(("root".to_owned(), PathBuf::from("/")))
                    .chain(
                        parts
                            .overlays
                            .iter()
                            .enumerate()
                            .map(|(index, (directory, _))| (format!("upper{index}"), directory.clone())),
                    )
                    .collect(),
            },
            Self::Overlay { .. } | Self::Directory(_) => vec![],
        }
    }

    /// The archive that [`of`](Self::of) unpacks, which takes its time.
    pub fn archive_of(bundle: &Bundle, choice: Option<&str>) -> Option<PathBuf> {
        match choice {
            Some("host") => None,
            Some(path) => Some(PathBuf::from(path)).filter(|path| path.is_file()),
            None => {
                let written = bundle.config.spec.root().as_ref().map(oci_spec::runtime::Root::path);
                if written.is_some_and(|path| !path.as_os_str().is_empty() && bundle.dir.join(path).is_dir())
                {
                    return None;
                }
                ARCHIVE_NAMES.iter().map(|name| bundle.dir.join(name)).find(|path| path.is_file())
            }
        }
    }

    /// A directory, or an archive unpacked.
    fn at(path: &Path, state_dir: &Path) -> Result<Self> {
        let shown = path.display();
        let found = fs::canonicalize(path).map_err(|error| {
            Error::new(Kind::Config, format!("cannot open the root `{shown}`: {}", describe_io(&error)))
                .help(format!(
                    "a root is a directory, an archive (`.tar`, `.tar.gz`) or `host`; if an image is meant, {IMAGE_HELP}"
                ))
        })?;
        if found == Path::new("/") {
            return Err(Error::new(
                Kind::Unsupported,
                "the host's own root would be writable in the container",
            )
            .help("use `host`, which puts a writable layer over it"));
        }
        if found.is_dir() {
            return Ok(Self::Directory(found));
        }
        let root = state_dir.join("rootfs");
        if !root.exists() {
            archive::unpack(&found, &root)?;
        }
        Ok(Self::Directory(without_top(root)))
    }
}

/// The directory, or the only one in it, if that holds the root file system.
pub fn without_top(directory: PathBuf) -> PathBuf {
    match TopDirectory::of_directory(&directory) {
        Some(top) if top.is_root => directory.join(top.name),
        _ => directory,
    }
}

/// How a container gets an image's files.
const IMAGE_HELP: &str = "run a job file with `image:`, which uses the image store or pulls it, or pass the output of `podman export`";

/// Creates a directory unless it exists.
fn make_directory(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            let message = format!("cannot make `{}`: {}", path.display(), describe_io(&error));
            Err(Error::new(Kind::System, message))
        }
        _ => Ok(()),
    }
}

/// No root: what would be one, from the data of the bundle.
fn absent(bundle: &Bundle, image: Option<&str>) -> Error {
    let path = bundle
        .config
        .spec
        .root()
        .as_ref()
        .map_or_else(|| PathBuf::from("rootfs"), |root| root.path().clone());
    let directory = bundle.dir.join(&path);
    let error = match image {
        Some(image) => Error::new(
            Kind::Config,
            format!(
                "the root `{}` does not exist, and a single bundle is not unpacked from its image `{image}`",
                path.display()
            ),
        ),
        None => Error::new(Kind::Config, format!("the root `{}` does not exist", path.display())),
    };
    error.at("/root/path").help(format!(
        "unpack the image to `{}`, put the output of `podman export` next to config.json as `rootfs.tar`, or set a root: a directory, an archive or `host`{}",
        directory.display(),
        image.map(|_| "; `jobc run` of the job file uses the image store and pulls missing images").unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests;
