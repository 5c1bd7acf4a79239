//! Puts files into an image's tree: the code behind `COPY`, `ADD`, `WORKDIR`, and the mounts of `RUN`.

use std::fs::File;
use std::io::{self, Seek as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::overlay::mount_layers;
use super::source_listing::{SourceListing, find};
use super::tree_writer::{FileAttributes, TreeWriter};
use jobc_dockerfile::ignore::Ignore;
use jobc_schema::digest::{Digest, Hasher};
use jobc_schema::permissions::Permissions;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Files to put into a tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct CopyRequest {
    /// The layers of the tree, lowest first.
    pub(super) lowers: Vec<PathBuf>,
    /// A directory with the empty directories `upper`, for what is put, and `work`, for the kernel.
    pub(super) step: PathBuf,
    /// Where files are taken from.
    pub(super) from: CopyOrigin,
    /// The sources.
    pub(super) sources: Vec<CopySource>,
    /// The target: an absolute path, with a trailing slash if it must be a directory.
    pub(super) target: String,
    /// The owner of all; their own where absent.
    pub(super) owner: Option<(u32, u32)>,
    /// Whether archives' files get that owner too.
    pub(super) owned: bool,
    /// The bits of all, or a change of their own.
    pub(super) mode: Option<Permissions>,
    /// Whether the directories of sources are made in the target too.
    pub(super) parents: bool,
    /// Whether archives are unpacked.
    pub(super) unpack: bool,
    /// Whether archives that were downloaded are.
    pub(super) unpack_downloads: bool,
    /// Patterns of files to leave out of each source.
    pub(super) exclude: Ignore,
    /// The expected listing of the sources, from which the step's key was derived.
    pub(super) listing: Option<Digest>,
}

/// Where files are taken from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) enum CopyOrigin {
    /// Nowhere.
    #[default]
    None,
    /// A directory of the host.
    Context {
        /// Which.
        directory: PathBuf,
        /// Files in it that are ignored.
        ignore: Ignore,
    },
    /// Another image, or another stage: its layers, lowest first.
    Layers(Vec<PathBuf>),
}

/// Something that is taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum CopySource {
    /// The files that a path or a pattern names.
    Path(String),
    /// A file of the Dockerfile.
    Text {
        /// Its name.
        name: String,
        /// Its content.
        content: String,
    },
    /// A file that was downloaded.
    Download {
        /// Where it is.
        path: PathBuf,
        /// Its name.
        name: String,
        /// When it was changed, in seconds since 1970.
        modified: i64,
    },
    /// The content of a directory of the host: a repository that was checked out.
    Directory(PathBuf),
}

/// Where files are taken from, open.
pub(super) struct OpenOrigin {
    tree: Option<OwnedFd>,
    ignore: Ignore,
}

impl CopyOrigin {
    /// Opens them.
    pub(super) fn open(&self) -> Result<OpenOrigin> {
        Ok(match self {
            Self::None => OpenOrigin { tree: None, ignore: Ignore::default() },
            Self::Context { directory, ignore } => OpenOrigin {
                tree: Some(mount_layers(std::slice::from_ref(directory), None)?),
                ignore: ignore.clone(),
            },
            // A stage on `scratch` that has put nothing there.
            Self::Layers(directories) if directories.is_empty() => {
                OpenOrigin { tree: None, ignore: Ignore::default() }
            }
            Self::Layers(directories) => {
                OpenOrigin { tree: Some(mount_layers(directories, None)?), ignore: Ignore::default() }
            }
        })
    }
}

impl OpenOrigin {
    /// All that the sources name, in order.
    ///
    /// # Errors
    ///
    /// A path that names nothing, or patterns that do so together.
    pub(super) fn find(
        &self,
        sources: &[CopySource],
        exclude: &Ignore,
        with_parents: bool,
    ) -> Result<Vec<SourceListing>> {
        let paths: Vec<&String> = sources
            .iter()
            .filter_map(|source| match source {
                CopySource::Path(path) => Some(path),
                _ => None,
            })
            .collect();
        let mut all = Vec::new();
        for source in &paths {
            let found = match &self.tree {
                Some(tree) => find(tree, source, &self.ignore, with_parents),
                None => Err(io::ErrorKind::NotFound.into()),
            };
            all.extend(found.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => no_such_source(format!("`{source}`: no such file or directory")),
                _ => Error::new(Kind::System, format!("cannot look for `{source}`: {}", describe_io(&error))),
            })?);
        }
        if all.is_empty() && !paths.is_empty() && paths.len() == sources.len() {
            return Err(no_such_source("no file matches".to_owned()));
        }
        all.retain_mut(|found| found.exclude(exclude));
        Ok(all)
    }

    /// The tree, if there is one.
    pub(super) fn tree(&self) -> Option<&OwnedFd> {
        self.tree.as_ref()
    }
}

fn no_such_source(message: String) -> Error {
    Error::new(Kind::Config, message).help(
        "source paths start at the root of the context, stage or image; `.dockerignore` may exclude files",
    )
}

/// The digest of a listing: any change to a file changes it.
pub(super) fn listing_digest(found: &[SourceListing]) -> Digest {
    let mut hasher = Hasher::default();
    for found in found {
        found.add_to_digest(&mut hasher);
    }
    hasher.finish()
}

/// Copies the files; returns whether an owner could not be set.
pub(super) fn copy_files(copy: &CopyRequest, stopped: &AtomicBool) -> Result<bool> {
    let onto = mount_layers(&copy.lowers, Some(&copy.step))?;
    let from = copy.from.open()?;
    let found = from.find(&copy.sources, &copy.exclude, copy.parents)?;
    if copy.listing.as_ref().is_some_and(|expected| listing_digest(&found) != *expected) {
        return Err(
            Error::new(Kind::State, "the build context changed while it was read").help("build again")
        );
    }
    let several =
        found.len() + copy.sources.iter().filter(|source| !matches!(source, CopySource::Path(_))).count() > 1;
    let has_file = found.iter().any(|found| !found.is_directory())
        || copy.sources.iter().any(|source| matches!(source, CopySource::Download { .. }));
    if several && !copy.target.ends_with('/') && has_file {
        return Err(Error::new(
            Kind::Config,
            format!("cannot copy several files to `{}`: not a directory", copy.target),
        )
        .help(format!("write `{}/`", copy.target)));
    }
    let dress = FileAttributes {
        owner: copy.owner,
        mode: copy.mode.as_ref(),
        directory_xattrs: matches!(copy.from, CopyOrigin::Layers(_)),
    };
    let mut place = TreeWriter::new(&onto, dress, stopped);
    let put = |place: &mut TreeWriter<'_>| {
        if copy.sources.is_empty() {
            place.create_directory_with_mode(Path::new(&copy.target), copy.mode.as_ref())?;
        }
        for found in &found {
            let Some(tree) = from.tree() else { break };
            put(place, copy, tree, found, stopped)?;
        }
        for source in &copy.sources {
            match source {
                CopySource::Path(_) => {}
                CopySource::Text { name, content } => place.write(name, content.as_bytes(), &copy.target)?,
                CopySource::Download { path, name, modified } => {
                    let mut file = File::open(path)?;
                    if !(copy.unpack_downloads
                        && unpack(place, copy, file.try_clone()?, Path::new(name), stopped)?)
                    {
                        file.rewind()?;
                        place.write_download(&file, name, *modified, &copy.target)?;
                    }
                }
                CopySource::Directory(directory) => {
                    place.copy_directory(directory, &copy.exclude, &copy.target)?;
                }
            }
        }
        place.finish()
    };
    put(&mut place).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::new(Kind::System, "no space left in the image store").help(
                "remove unused images with `jobc image gc`, or choose a larger directory with `--image-root`",
            )
        }
        _ => Error::new(Kind::System, format!("cannot copy: {}", describe_io(&error))),
    })?;
    Ok(place.owners_lost)
}

fn put(
    place: &mut TreeWriter<'_>,
    copy: &CopyRequest,
    tree: &OwnedFd,
    found: &SourceListing,
    stopped: &AtomicBool,
) -> io::Result<()> {
    if copy.unpack && !found.is_directory() {
        let file = File::from(found.open(tree, &found.entries[0])?);
        if unpack(place, copy, file, &found.path, stopped)? {
            return Ok(());
        }
    }
    if !copy.parents {
        return place.copy_source(tree, found, &copy.target);
    }
    let target = place.create_directories(Path::new(&copy.target))?;
    for parent in &found.parents {
        place.copy_parent(tree, found, parent, &target.join(&parent.path))?;
    }
    let below = found.parents.last().map_or(Path::new(""), |parent| &parent.path);
    place.copy_source(tree, found, &format!("{}/", target.join(below).display()))
}

/// Unpacks a file into the target; returns whether it is an archive.
fn unpack(
    place: &mut TreeWriter<'_>,
    copy: &CopyRequest,
    file: File,
    name: &Path,
    stopped: &AtomicBool,
) -> io::Result<bool> {
    let directory = copy.step.join("unpacked");
    std::fs::create_dir(&directory)?;
    let is_archive = super::archive::unpack(file, &directory, stopped)
        .map_err(|error| super::source_listing::with_path(error, name))?;
    if is_archive {
        place.copy_archive(&directory, copy.owner.filter(|_| copy.owned), &copy.target)?;
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(is_archive)
}
