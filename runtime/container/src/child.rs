//! The file descriptors that the new process keeps between its steps.

mod links;
pub mod path;
pub mod report;

use std::ffi::CStr;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use jobc_sys::syscall::{CWD, Fd, Kernel, Prctl};
use path::{ContainerPath, RESOLVE_IN_ROOT};
use report::Report;

/// The places whose mounts are remembered, inner ones first.
const REMEMBERED_MOUNTS: [&CStr; 4] = [c"dev/pts", c"dev", c"proc", c"sys"];

/// The magic numbers of procfs, sysfs, both sorts of cgroups, devpts and mqueue (statfs(2)).
const KERNEL_FILE_SYSTEMS: [u64; 6] = [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270, 0x1cd1, 0x1980_0202];

/// The file descriptors that the new process keeps between steps.
#[allow(clippy::struct_excessive_bools)] // each is a fact that a step has found
pub struct Child<'a, K> {
    /// The kernel it speaks to.
    pub kernel: &'a K,
    /// The container's root.
    pub root: Fd,
    /// /proc of the host, opened when first needed.
    pub proc: Option<Fd>,
    /// The file systems that were mounted at [`REMEMBERED_MOUNTS`].
    remembered_mounts: [Option<Fd>; REMEMBERED_MOUNTS.len()],
    /// A tmpfs at /dev that this process has mounted empty: no other process changes it.
    pub own_dev: Option<Fd>,
    /// The first cover of a masked directory.
    pub empty_directory: Option<Fd>,
    /// The container's null device.
    pub null: NullDevice,
    /// The working directory, where it is a directory that a step went to.
    working_directory: Option<Fd>,
    /// Whether the working directory is the container's root, which was entered and not left since.
    pub at_root: bool,
    /// Whether the program's working directory could not be entered before the change of the user.
    pub directory_denied: bool,
    /// Whether open_tree_attr(2) turned out to be unavailable.
    pub lacks_open_tree_attr: bool,
    /// Whether the process is in its own user namespace, where it cannot create device nodes.
    pub in_user_namespace: bool,
    /// Opens gates and holds: what the parent and this process share.
    pub report: &'a Report,
}

/// The container's /dev/null, if known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullDevice {
    /// Nothing yet.
    Unknown,
    /// This process has made it, in [`Child::own_dev`].
    Created,
    /// It is open, and is the null device.
    Open(Fd),
}

impl<'a, K: Kernel> Child<'a, K> {
    /// A child that has done nothing yet.
    pub fn new(kernel: &'a K, report: &'a Report, in_user_namespace: bool) -> Self {
        Self {
            kernel,
            root: CWD,
            proc: None,
            remembered_mounts: [None; REMEMBERED_MOUNTS.len()],
            own_dev: None,
            empty_directory: None,
            null: NullDevice::Unknown,
            working_directory: None,
            at_root: false,
            directory_denied: false,
            lacks_open_tree_attr: false,
            in_user_namespace,
            report,
        }
    }

    /// The host's /proc, which must be a procfs and nothing mounted over it.
    pub fn proc(&mut self) -> Result<Fd, Errno> {
        const PROC_SUPER_MAGIC: u64 = 0x9fa0;
        if let Some(proc) = self.proc {
            return Ok(proc);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let proc = self.kernel.open(CWD, c"/proc", flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        if self.kernel.file_system(proc)? != PROC_SUPER_MAGIC {
            return Err(Errno::NODEV);
        }
        self.proc = Some(proc);
        Ok(proc)
    }

    /// The start for resolving a path below the root: the innermost file system that this process has mounted along it,
    /// by the mount's file descriptor, or the root; and the rest of the path.
    ///
    /// A process that renames directories of the image meanwhile then cannot redirect a step away from the mount.
    pub fn base<'p>(&self, path: &'p CStr) -> (Fd, &'p CStr) {
        for (at, fd) in REMEMBERED_MOUNTS.iter().zip(self.remembered_mounts) {
            if let Some(fd) = fd
                && let Some(rest) = path.to_bytes_with_nul().strip_prefix(at.to_bytes())
                && let Some(rest) = rest.strip_prefix(b"/")
                && let Ok(rest) = CStr::from_bytes_with_nul(rest)
            {
                return (fd, rest);
            }
        }
        let mounted = REMEMBERED_MOUNTS
            .iter()
            .position(|at| *at == path)
            .and_then(|index| self.remembered_mounts[index]);
        mounted.map_or((self.root, path), |fd| (fd, c"."))
    }

    /// Makes a directory the working directory; no step relies on the one it has, and the last one chooses the
    /// program's.
    pub fn change_directory(&mut self, directory: Fd) -> Result<(), Errno> {
        if self.working_directory != Some(directory) {
            self.at_root = false;
            self.kernel.fchdir(directory)?;
            self.working_directory = Some(directory);
        }
        Ok(())
    }

    /// Refuses a place in a file system that shows the kernel, or in the container's /dev.
    pub fn check_ordinary(&self, place: Fd) -> Result<(), Errno> {
        let kernel = self.kernel;
        if KERNEL_FILE_SYSTEMS.contains(&kernel.file_system(place)?) {
            return Err(Errno::XDEV);
        }
        let resolve = RESOLVE_IN_ROOT | ResolveFlags::NO_SYMLINKS;
        let dev = match kernel.open(self.root, c"dev", OFlags::PATH, Mode::empty(), resolve) {
            Err(Errno::NOENT | Errno::LOOP) => return Ok(()),
            dev => dev?,
        };
        let [place, dev_itself, root] = [place, dev, self.root].map(|fd| kernel.stat(fd));
        kernel.close(dev);
        let (there, dev) = (place?.file_system, dev_itself?.file_system);
        if there == dev && dev != root?.file_system { Err(Errno::XDEV) } else { Ok(()) }
    }

    /// Keeps the file descriptor of a file system that was mounted, if its place is one of [`REMEMBERED_MOUNTS`]; returns whether it
    /// is.
    pub fn remember_mount(&mut self, place: &CStr, mount: Fd) -> bool {
        let index = REMEMBERED_MOUNTS.iter().position(|kept| *kept == place);
        index.map(|index| self.remembered_mounts[index] = Some(mount)).is_some()
    }

    /// The parent directory of a place, made where it is missing, and the place's last name.
    pub fn parent<'p>(&self, place: &'p ContainerPath) -> Result<(Fd, &'p CStr), Errno> {
        if let ([_, Some(dev), ..], Some(name)) =
            (self.remembered_mounts, place.name_in(REMEMBERED_MOUNTS[1]))
        {
            return Ok((dev, name));
        }
        place.create_parent(self)
    }

    /// The container's /dev/null, which must be the null device (CVE-2025-31133).
    pub fn null_device(&mut self) -> Result<Fd, Errno> {
        if let NullDevice::Open(null) = self.null {
            return Ok(null);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let (base, path) = self.base(c"dev/null");
        let null = self.kernel.open(base, path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty(), resolve)?;
        if self.null != NullDevice::Created && !self.kernel.stat(null)?.is_character_device(1, 3) {
            return Err(Errno::NXIO);
        }
        self.null = NullDevice::Open(null);
        Ok(null)
    }

    /// Writes one of this process's own files below /proc, before
    /// [`Operation::NotDumpable`](crate::operation::Operation::NotDumpable).
    ///
    /// A sibling process that shares the memory at this moment, and is further ahead, has made it not dumpable for both
    /// (prctl(2)), so that these files belong to root. It is made dumpable again while this takes; the sibling is alone
    /// in its pid namespace until it has its own memory, so no other process can inspect it.
    pub fn write_own(&mut self, path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
        const MAX_TRIES: usize = 1000;
        for _ in 0..MAX_TRIES {
            match self.write_proc(path, bytes) {
                Err(Errno::ACCESS) => self.kernel.prctl(Prctl::Dumpable)?,
                other => return other,
            }
        }
        Err(Errno::ACCESS)
    }

    /// Writes a file below the host's /proc, which must be a procfs file.
    pub fn write_proc(&mut self, path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
        let proc = self.proc()?;
        // `self` is a symbolic link of procfs itself; nothing else on the way may be one, or another file system.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let file = self.kernel.open(proc, path, OFlags::WRONLY, Mode::empty(), resolve)?;
        let written = self.kernel.write(file, bytes);
        self.kernel.close(file);
        written
    }
}
