//! The libraries of NVIDIA's driver: which there are, where, and what of the driver they serve.
//!
//! A driver's libraries have its release after `.so.`, and only those of the loaded release work with it. They are
//! searched in the directories where the loader's cache has one of them, and in those that distributions use. The names
//! by capability are those of libnvidia-container (`src/nvc_info.c`); a library that the table does not have counts as
//! `compute`, so that a newer driver works.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use jobc_schema::gpu::DriverCapability;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::host::Host;
use super::ld_cache::{Cache, I386_FLAGS, NATIVE_FLAGS};
use super::paths;
use DriverCapability::{Compat32, Compute, Display, Graphics, Ngx, Utility, Video};
use jobc_sys::open_inside::open_inside;

/// A file of the driver that is bound into containers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Library {
    /// Where it is, from the driver's root on: containers have it there too.
    pub path: PathBuf,
    /// The feature of the driver that it serves.
    pub capability: DriverCapability,
    /// Whether it is for 32-bit programs.
    pub is_32_bit: bool,
}

/// A symbolic link to a library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Where it is.
    pub path: PathBuf,
    /// Its target.
    pub target: PathBuf,
    /// The library that it leads to, a number in the list of them.
    pub library: usize,
}

/// The libraries of a driver, and the links to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// The files, by path.
    pub files: Vec<Library>,
    /// The links, by path.
    pub links: Vec<Link>,
    /// Those of the main directories that the host's loader does not search by default.
    pub unsearched_directories: Vec<PathBuf>,
}

/// Libraries by the beginning of their names, up to `.so`.
const LIBRARY_CAPABILITIES: &[(&str, DriverCapability)] = &[
    ("libnvidia-ml", Utility),
    ("libnvidia-cfg", Utility),
    ("libnvidia-nscq", Utility),
    ("libnvidia-sandboxutils", Utility),
    ("libcuda", Compute),
    ("libcudadebugger", Compute),
    ("libnvidia-opencl", Compute),
    ("libnvidia-gpucomp", Compute),
    ("libnvidia-ptxjitcompiler", Compute),
    ("libnvidia-fatbinaryloader", Compute),
    ("libnvidia-allocator", Compute),
    ("libnvidia-compiler", Compute),
    ("libnvidia-pkcs11", Compute),
    ("libnvidia-pkcs11-openssl3", Compute),
    ("libnvidia-nvvm", Compute),
    ("libnvidia-tileiras", Compute),
    ("libvdpau_nvidia", Video),
    ("libnvidia-encode", Video),
    ("libnvidia-opticalflow", Video),
    ("libnvcuvid", Video),
    ("libnvidia-eglcore", Graphics),
    ("libnvidia-glcore", Graphics),
    ("libnvidia-tls", Graphics),
    ("libnvidia-glsi", Graphics),
    ("libnvidia-fbc", Graphics),
    ("libnvidia-ifr", Graphics),
    ("libnvidia-rtcore", Graphics),
    ("libnvoptix", Graphics),
    ("libGLX_nvidia", Graphics),
    ("libEGL_nvidia", Graphics),
    ("libGLESv2_nvidia", Graphics),
    ("libGLESv1_CM_nvidia", Graphics),
    ("libnvidia-glvkspirv", Graphics),
    ("libnvidia-cbl", Graphics),
    ("libnvidia-vulkan-producer", Graphics),
    ("libnvidia-egl-gbm", Graphics),
    ("libnvidia-egl-wayland", Graphics),
    ("libnvidia-egl-xcb", Graphics),
    ("libnvidia-egl-xlib", Graphics),
    ("libnvidia-wayland-client", Display),
    ("libnvidia-gtk2", Display),
    ("libnvidia-gtk3", Display),
    ("libglxserver_nvidia", Display),
    ("libnvidia-ngx", Ngx),
];

/// Libraries with their own version numbers.
const INDEPENDENT_VERSIONS: [&str; 4] =
    ["libnvidia-egl-gbm", "libnvidia-egl-wayland", "libnvidia-egl-xcb", "libnvidia-egl-xlib"];

/// The subdirectory in such a directory.
const SUBDIRECTORIES: [&str; 2] = ["vdpau", "gbm"];

/// Libraries whose directory is looked up in the loader's cache.
const CACHED_LIBRARIES: [&str; 3] = ["libcuda.so.1", "libnvidia-ml.so.1", "libGLX_nvidia.so.0"];

/// Links that programs need and that packages do not always contain.
const REQUIRED_LINKS: [(&str, &str); 3] = [
    ("libcuda.so", "libcuda.so.1"),
    ("libnvidia-opticalflow.so", "libnvidia-opticalflow.so.1"),
    ("libGLX_indirect.so.0", "libGLX_nvidia.so.0"),
];

impl Libraries {
    /// Finds the libraries of a release, `550.54.15`.
    pub fn of(machine: &Host, release: &str) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(root) = openat(CWD, machine.root(), flags, Mode::empty()) else { return Self::default() };
        let cache = machine.path("/etc/ld.so.cache");
        let cache = std::fs::read(cache).ok().and_then(|bytes| Cache::read(&bytes).ok()).unwrap_or_default();
        let mut search =
            Search { root, release, seen: BTreeSet::new(), files: Vec::new(), links: Vec::new() };
        for name in CACHED_LIBRARIES {
            for path in cache.find(name, NATIVE_FLAGS).chain(cache.find(name, I386_FLAGS)) {
                search.search_directory(path.parent().unwrap_or(Path::new("/")));
            }
        }
        for directory in paths::LIBRARY_DIRECTORIES {
            search.search_directory(Path::new(directory));
        }
        // The directories in `LD_LIBRARY_PATH` of the user who starts jobs, as images of clusters set it.
        let search_path =
            std::env::var_os("LD_LIBRARY_PATH").filter(|_| machine.is_own()).unwrap_or_default();
        for directory in std::env::split_paths(&search_path).filter(|directory| directory.is_absolute()) {
            search.search_directory(&directory);
        }
        let searched: BTreeSet<PathBuf> =
            cache.directories().iter().filter_map(|directory| search.real_path(directory)).collect();
        let mut libraries = search.finish();
        let main = libraries.files.iter().filter(|library| !library.is_32_bit && is_main(&library.path));
        let directories: BTreeSet<&Path> = main.filter_map(|library| library.path.parent()).collect();
        let is_searched =
            |directory: &Path| paths::is_loader_directory(directory) || searched.contains(directory);
        libraries.unsearched_directories =
            directories.into_iter().filter(|directory| !is_searched(directory)).map(Path::to_owned).collect();
        libraries
    }

    /// Those that serve one of these capabilities.
    pub fn serving<'a>(
        &'a self,
        wanted: &'a [DriverCapability],
    ) -> impl Iterator<Item = (usize, &'a Library)> {
        self.files.iter().enumerate().filter(|(_, library)| serves(library, wanted))
    }
}

/// Whether programs load a library by its name.
fn is_main(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem =
        |known: &str| known.split_once(".so").is_some_and(|(stem, _)| name.split(".so").next() == Some(stem));
    CACHED_LIBRARIES.iter().any(|known| stem(known))
}

fn serves(library: &Library, wanted: &[DriverCapability]) -> bool {
    is_wanted(library.capability, wanted) && (!library.is_32_bit || is_wanted(Compat32, wanted))
}

/// Whether a capability is among those that are wanted, or comes with one of them: video needs CUDA, a display
/// graphics.
pub(super) fn is_wanted(capability: DriverCapability, wanted: &[DriverCapability]) -> bool {
    wanted.iter().any(|one| {
        *one == capability
            || matches!(
                (one, capability),
                (DriverCapability::All, _) | (Video, Compute) | (Display, Graphics)
            )
    })
}

/// A search in progress.
struct Search<'a> {
    root: OwnedFd,
    release: &'a str,
    /// Directories, by their real paths.
    seen: BTreeSet<PathBuf>,
    files: Vec<Library>,
    /// Links by their paths, and the file that each leads to.
    links: Vec<(PathBuf, PathBuf)>,
}

impl Search<'_> {
    /// Searches a directory, and its usual subdirectories.
    fn search_directory(&mut self, directory: &Path) {
        let Some(directory) = self.real_path(directory) else { return };
        self.search_names(&directory);
        for name in SUBDIRECTORIES {
            if let Some(below) = self.real_path(&directory.join(name)) {
                self.search_names(&below);
            }
        }
    }

    fn search_names(&mut self, directory: &Path) {
        if !self.seen.insert(directory.to_owned()) {
            return;
        }
        let Some(opened) = self.open(directory, OFlags::DIRECTORY | OFlags::RDONLY) else { return };
        let Ok(entries) = rustix::fs::Dir::read_from(&opened) else { return };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().to_str() else { continue };
            let Some((stem, version)) = name.split_once(".so") else { continue };
            let path = directory.join(name);
            if entry.file_type() == rustix::fs::FileType::Symlink {
                let is_ours =
                    LIBRARY_CAPABILITIES.iter().any(|(known, _)| *known == stem) || stem.contains("nvidia");
                if is_ours && let Some(real) = self.real_path(&path) {
                    self.links.push((path, real));
                }
                continue;
            }
            let version = version.strip_prefix('.').unwrap_or_default();
            if version == self.release || INDEPENDENT_VERSIONS.contains(&stem) {
                self.add_library(path, stem);
            }
        }
    }

    fn add_library(&mut self, path: PathBuf, stem: &str) {
        let known = LIBRARY_CAPABILITIES.iter().find(|(known, _)| *known == stem);
        let serves = known.map_or(Compute, |(_, serves)| *serves);
        let Some(file) = self.open(&path, OFlags::RDONLY) else { return };
        let mut start = [0; 5];
        // The class of an ELF file: 1 is of 32 bits (elf(5), EI_CLASS).
        let read = File::from(file).read_exact(&mut start);
        let is_32_bit = read.is_ok() && start.starts_with(b"\x7fELF\x01");
        self.files.push(Library { path, capability: serves, is_32_bit });
    }

    fn open(&self, path: &Path, flags: OFlags) -> Option<OwnedFd> {
        let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
        open_inside(self.root.as_fd(), &path, flags).ok()
    }

    /// Where a path really is, from the root on.
    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        let link = |fd: &OwnedFd| std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok();
        let (root, real) = (link(&self.root)?, link(&self.open(path, OFlags::PATH)?)?);
        Some(Path::new("/").join(real.strip_prefix(root).ok()?))
    }

    fn finish(mut self) -> Libraries {
        self.files.sort();
        self.files.dedup();
        let files = self.files;
        let number = |real: &Path| files.iter().position(|library| library.path == real);
        let links = self.links.into_iter().filter_map(|(path, real)| {
            let library = number(&real)?;
            let target = if real.parent() == path.parent() { real.file_name()?.into() } else { real };
            Some(Link { path, target, library })
        });
        let mut links: Vec<Link> = links.collect();
        for (name, target) in REQUIRED_LINKS {
            let beside: Vec<Link> = links
                .iter()
                .filter(|link| link.path.file_name().is_some_and(|name| name == target))
                .cloned()
                .collect();
            for Link { path, library, .. } in beside {
                let path = path.with_file_name(name);
                if !links.iter().any(|link| link.path == path) {
                    links.push(Link { path, target: target.into(), library });
                }
            }
        }
        links.sort();
        links.dedup();
        Libraries { files, links, unsearched_directories: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::LIBRARY_CAPABILITIES;

    /// `stdlib/gpu/nvidia.yaml` lists for users and the compiler what the driver provides; it must not list more than
    /// is injected.
    #[test]
    fn the_table_of_drivers_files_is_served() {
        let table = include_str!("../../../stdlib/gpu/nvidia.yaml");
        let mut seen = 0;
        for line in table.lines() {
            let Some((capability, rest)) = line.trim().split_once(": {libs: [") else { continue };
            let libraries = rest.split(']').next().unwrap_or_default();
            for library in libraries.split(", ").filter(|name| !name.is_empty()) {
                let serves =
                    LIBRARY_CAPABILITIES.iter().find(|(name, _)| *name == library).map(|(_, serves)| serves);
                let named = serves.and_then(|serves| serde_json::to_value(serves).ok());
                assert_eq!(named, Some(capability.into()), "{library}");
                seen += 1;
            }
        }
        assert!(seen > 30, "the table has {seen} libraries");
    }
}
