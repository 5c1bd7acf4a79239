//! Images as directories of the host that can only be read.
//!
//! The layers are unpacked and mounted over each other. A record of each mount in the store keeps its image from being
//! collected until it is unmounted, or the host is started again.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::progress::ProgressFn;
use crate::store::{Image, MountRecord, Store};
use crate::unpack;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Mounts an image on a directory, or on a new directory of the store; returns where.
///
/// # Errors
///
/// The user may not mount, the directory does not exist, or the image has no files or cannot be unpacked.
pub fn mount(
    store: &Store,
    image: &Image,
    directory: Option<&Path>,
    on_progress: ProgressFn<'_>,
    stopped: &AtomicBool,
) -> Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return Err(denied());
    }
    let digest = &image.descriptor.digest;
    let directory = directory.map(existing).transpose()?;
    let layers = unpack::own_layers(store, image, on_progress, stopped)?;
    if layers.is_empty() {
        return Err(Error::new(Kind::Config, format!("the image {digest} has no files to mount")));
    }
    let (directory, own) = match directory {
        Some(directory) => (directory, false),
        None => (new_directory(store, digest)?, true),
    };
    let record = MountRecord::new(digest.clone(), directory.clone(), own);
    let file = store.add_mount(&record)?;
    if let Err(error) = mount_layers(&layers, &directory) {
        let _ = fs::remove_file(file);
        if own {
            let _ = fs::remove_dir(&directory);
        }
        return Err(error);
    }
    Ok(directory)
}

/// Unmounts one of the store's mounts.
///
/// # Errors
///
/// A process uses it, or the user may not unmount.
pub fn unmount(store: &Store, record: &MountRecord) -> Result<()> {
    let directory = &record.directory;
    match rustix::mount::unmount(directory, UnmountFlags::NOFOLLOW) {
        // It was unmounted by another program.
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
        Err(Errno::BUSY) => {
            let message = format!("cannot unmount `{}`: it is in use", directory.display());
            return Err(Error::new(Kind::State, message).help("`fuser -m` shows the processes"));
        }
        Err(Errno::PERM) => return Err(denied()),
        Err(errno) => return Err(Error::system(format!("unmount `{}`", directory.display()), errno)),
    }
    if record.own {
        let _ = fs::remove_dir(directory);
    }
    store.remove_mount(record)
}

fn denied() -> Error {
    Error::new(Kind::Unenforceable, "mounting an image needs root").help(
        "run it as root, or in the namespaces of `unshare --user --map-root-user --mount`; `jobc image build --output` and `jobc image save` write files without mounting",
    )
}

fn existing(directory: &Path) -> Result<PathBuf> {
    let failed = |why: &str| {
        Error::new(Kind::Config, format!("cannot mount on `{}`: {why}", directory.display()))
            .help("name a directory, or omit it")
    };
    let path = fs::canonicalize(directory).map_err(|error| failed(&describe_io(&error)))?;
    if path.is_dir() { Ok(path) } else { Err(failed("it is not a directory")) }
}

fn new_directory(store: &Store, digest: &Digest) -> Result<PathBuf> {
    let all = store.root().join("mounts");
    for number in 0_u32.. {
        let path = all.join(format!("{}-{number}", digest.short().trim_start_matches("sha256:")));
        match fs::create_dir_all(&all).and_then(|()| fs::create_dir(&path)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => return other.map(|()| path).map_err(|error| store.write_error("write to", &error)),
        }
    }
    unreachable!("a store has no 2^32 mounts")
}

/// Mounts directories over each other, the lowest first, or the only one itself.
fn mount_layers(layers: &[PathBuf], directory: &Path) -> Result<()> {
    let failed = |errno: Errno| match errno {
        Errno::PERM => denied(),
        errno => Error::system(format!("mount the image on `{}`", directory.display()), errno).help(
            "the image directory must be on a file system that supports overlays, such as ext4, xfs or btrfs",
        ),
    };
    let flags = MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID;
    if let [only] = layers {
        rustix::mount::mount_bind(only, directory).map_err(failed)?;
        return rustix::mount::mount_remount(directory, MountFlags::BIND | flags, "").map_err(|errno| {
            let _ = rustix::mount::unmount(directory, UnmountFlags::DETACH);
            failed(errno)
        });
    }
    // Layers are passed by file descriptor: the options of mount(2) are limited to a page.
    let open = |path: &PathBuf| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
    };
    let open: Vec<OwnedFd> =
        layers.iter().rev().map(open).collect::<std::result::Result<_, _>>().map_err(failed)?;
    let lowers: Vec<String> = open.iter().map(|fd| format!("/proc/self/fd/{}", fd.as_raw_fd())).collect();
    let extra = if jobc_sys::host::in_user_namespace() { ",userxattr" } else { "" };
    let options = std::ffi::CString::new(format!("lowerdir={}{extra}", lowers.join(":")))
        .map_err(|_| failed(Errno::INVAL))?;
    rustix::mount::mount("jobc", directory, "overlay", flags, options.as_c_str()).map_err(failed)
}
