//! Tells the container's loader where the driver's libraries are.
//!
//! The names are written into the image's /etc/ld.so.cache, and the directories into /etc/ld.so.conf.d, so that they
//! are still known when the program runs ldconfig. An image that brings a newer libcuda than the driver's, NVIDIA's
//! package for forward compatibility, has that one found first (cuda-compatibility, "Forward Compatibility").

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::links::{list_names, open_directory, replace_file};
use super::{HookRequest, MAX_FILE_SIZE};
use crate::ld_cache::{Cache, I386_FLAGS, NATIVE_FLAGS, Unreadable};
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::open_inside::open_inside;

/// Where NVIDIA's package puts the libraries of a newer driver.
const COMPAT_DIRECTORY: &str = "/usr/local/cuda/compat";

/// Adds the order's libraries to the cache, and their directories to what ldconfig reads.
pub(super) fn update_cache(root: &OwnedFd, order: &HookRequest) -> Result<()> {
    let machine = |what: &'static str| move |errno| Error::system(format!("{what} in the container"), errno);
    let mut cache = match read(root).map(|bytes| Cache::read(&bytes)) {
        Some(Ok(cache)) => cache,
        Some(Err(Unreadable::TooLarge)) => {
            let message = "the image's `/etc/ld.so.cache` has far more names than its size allows";
            return Err(Error::new(Kind::System, message).help("run ldconfig in the image"));
        }
        None | Some(Err(Unreadable::NoCache)) => Cache::default(),
    };
    let mut directories: BTreeSet<&Path> = BTreeSet::new();
    let all = order.libraries.iter().map(|path| (path, NATIVE_FLAGS));
    for (path, flags) in all.chain(order.libraries_32.iter().map(|path| (path, I386_FLAGS))) {
        cache.add(path, flags);
        directories.extend(path.parent());
    }
    let newer = newer_libraries(root, order.release.as_deref());
    for path in &newer {
        cache.add(path, NATIVE_FLAGS);
    }
    let etc = open_directory(root, Path::new("/etc")).map_err(machine("create `/etc`"))?;
    replace_file(&etc, "ld.so.cache", &cache.write()).map_err(machine("write `/etc/ld.so.cache`"))?;
    let first = newer.first().and_then(|path| path.parent());
    let lines = first
        .into_iter()
        .chain(directories)
        .map(|directory| format!("{}\n", directory.display()))
        .collect::<String>();
    let list = open_directory(root, Path::new("/etc/ld.so.conf.d"))
        .map_err(machine("create `/etc/ld.so.conf.d`"))?;
    replace_file(&list, "00-jobc-gpu.conf", lines.as_bytes())
        .map_err(machine("write `/etc/ld.so.conf.d/00-jobc-gpu.conf`"))
}

fn read(root: &OwnedFd) -> Option<Vec<u8>> {
    let file = open_inside(root, c"etc/ld.so.cache", OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let file = std::fs::File::from(file);
    let mut bytes = Vec::new();
    file.metadata().ok()?.is_file().then_some(())?;
    file.take(MAX_FILE_SIZE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The libraries of a newer driver that the image brings; none if the host's is as new.
fn newer_libraries(root: &OwnedFd, release: Option<&str>) -> Vec<PathBuf> {
    let major = |release: &str| release.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let names = list_names(root, Path::new(COMPAT_DIRECTORY));
    let theirs = names.iter().filter_map(|name| major(name.strip_prefix("libcuda.so.")?));
    let newest = theirs.max().filter(|newest| *newest > 1);
    let Some(ours) = release.and_then(major).filter(|ours| newest.is_some_and(|newest| newest > *ours))
    else {
        return Vec::new();
    };
    debug_assert!(ours > 0);
    let mut names: Vec<String> = names.into_iter().filter(|name| name.contains(".so")).collect();
    names.sort();
    names.iter().map(|name| Path::new(COMPAT_DIRECTORY).join(name)).collect()
}
