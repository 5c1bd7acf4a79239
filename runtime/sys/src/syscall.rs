//! Every syscall of the new process behind one trait.
//!
//! [`linux::Linux`] makes them; [`record::RecordingKernel`] writes them down for tests and answers with simulated file
//! descriptors. File descriptors are plain numbers here: the new process never closes its private ones, `close_range`
//! and `execve` do.

use std::ffi::CStr;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub mod available;
pub mod ended;
pub mod hook;
pub mod linux;
pub mod namespace;
pub mod outside;
pub mod parent;
pub mod raw;
pub mod record;
pub mod signals;
pub mod stack;

use hook::HookProgram;

/// A file descriptor of the new process.
pub type Fd = i32;

/// The working directory, where a call takes a directory (openat(2)).
pub const CWD: Fd = linux_raw_sys::general::AT_FDCWD;

/// A file descriptor as a syscall's argument: sign-extended, as the kernel's int arguments are read.
pub fn of_fd(fd: Fd) -> usize {
    (fd as isize).cast_unsigned()
}

/// The fields of fstat(2) that the runtime needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// The file's type and permission bits.
    pub mode: u32,
    /// The device number of a device node.
    pub device: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// The device number of the file system that it is in.
    pub file_system: u64,
}

impl FileStatus {
    /// The bits of `mode` that are the file's type (inode(7)).
    pub const TYPE: u32 = 0o170_000;

    /// Whether this is a directory.
    pub fn is_directory(self) -> bool {
        self.mode & Self::TYPE == 0o040_000
    }

    /// Whether this is a pipe.
    pub fn is_pipe(self) -> bool {
        self.mode & Self::TYPE == 0o010_000
    }

    /// Whether this is a regular file.
    pub fn is_regular(self) -> bool {
        self.mode & Self::TYPE == 0o100_000
    }

    /// Whether this is a character device of that number.
    pub fn is_character_device(self, major: u32, minor: u32) -> bool {
        self.mode & Self::TYPE == 0o020_000 && self.device == rustix::fs::makedev(major, minor)
    }
}

/// The changes for mount_setattr(2): `MOUNT_ATTR_*` bits to set and to clear, and the propagation (`MS_*`), 0 for as
/// is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountAttributes {
    /// Bits to set.
    pub set: u64,
    /// Bits to clear.
    pub clear: u64,
    /// `MS_PRIVATE`, `MS_SLAVE`, `MS_SHARED`, `MS_UNBINDABLE`, or 0.
    pub propagation: u64,
}

/// The arguments of mount(2) for a new file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMount<'a> {
    /// Its source in mountinfo.
    pub source: &'a CStr,
    /// A name in the working directory.
    pub name: &'a CStr,
    /// Its type, such as `tmpfs`.
    pub kind: &'a CStr,
    /// `MS_*` bits.
    pub flags: u32,
    /// Its parameters, with commas.
    pub data: &'a CStr,
}

/// The three capability sets of capset(2), as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilityBits {
    /// Effective.
    pub effective: u64,
    /// Permitted.
    pub permitted: u64,
    /// Inheritable.
    pub inheritable: u64,
}

/// A prctl(2) of the new process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prctl {
    /// `PR_SET_NO_NEW_PRIVS`.
    NoNewPrivileges,
    /// `PR_SET_KEEPCAPS`.
    KeepCapabilities(bool),
    /// `PR_CAPBSET_DROP`.
    DropBounding(u32),
    /// `PR_CAP_AMBIENT_CLEAR_ALL`.
    ClearAmbient,
    /// `PR_CAP_AMBIENT_RAISE`.
    RaiseAmbient(u32),
    /// `PR_SET_DUMPABLE` 0.
    NotDumpable,
    /// `PR_SET_DUMPABLE` to 1: this process's files below /proc are its own again.
    Dumpable,
    /// `PR_SET_PDEATHSIG` with `SIGKILL`, or with none.
    EndWithParent(bool),
}

/// The kernel, as the new process meets it: one method a syscall, none of which allocates or takes a lock.
///
/// Errors are the kernel's error numbers. Paths are relative to the directory file descriptor that precedes them.
pub trait Kernel {
    /// openat2(2).
    fn open(
        &self,
        directory: Fd,
        path: &CStr,
        flags: OFlags,
        mode: Mode,
        resolve: ResolveFlags,
    ) -> Result<Fd, Errno>;
    /// close(2).
    fn close(&self, fd: Fd);
    /// read(2); 0 bytes is the end.
    fn read(&self, fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// write(2), all of the bytes in one call.
    fn write(&self, fd: Fd, bytes: &[u8]) -> Result<(), Errno>;
    /// fstat(2).
    fn stat(&self, fd: Fd) -> Result<FileStatus, Errno>;
    /// fstatfs(2): the file system's magic number.
    fn file_system(&self, fd: Fd) -> Result<u64, Errno>;
    /// mkdirat(2).
    fn mkdir(&self, directory: Fd, name: &CStr, mode: Mode) -> Result<(), Errno>;
    /// mknodat(2); `mode` has the file type's bits.
    fn mknod(&self, directory: Fd, name: &CStr, mode: u32, device: u64) -> Result<(), Errno>;
    /// symlinkat(2).
    fn symlink(&self, target: &CStr, directory: Fd, name: &CStr) -> Result<(), Errno>;
    /// fchownat(2) of a name, links not followed.
    fn chown(&self, directory: Fd, name: &CStr, uid: u32, gid: u32) -> Result<(), Errno>;
    /// fchmodat(2) of a name that is not a link.
    fn chmod(&self, directory: Fd, name: &CStr, mode: Mode) -> Result<(), Errno>;
    /// getdents64(2): names of a directory, as the kernel packs them; 0 bytes is the end.
    fn read_names(&self, directory: Fd, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// readlinkat(2).
    fn read_link(&self, directory: Fd, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno>;
    /// sendfile(2) until the end of the source.
    fn copy_file(&self, from: Fd, to: Fd) -> Result<(), Errno>;
    /// fsopen(2).
    fn fsopen(&self, file_system: &CStr) -> Result<Fd, Errno>;
    /// fsconfig(2) with `FSCONFIG_SET_STRING`, or `FSCONFIG_SET_FLAG` without a value.
    fn fsconfig(&self, fs: Fd, key: &CStr, value: Option<&CStr>) -> Result<(), Errno>;
    /// fsconfig(2) with `FSCONFIG_CMD_CREATE`, then fsmount(2) with `MOUNT_ATTR_*` bits.
    fn fsmount(&self, fs: Fd, attributes: u64) -> Result<Fd, Errno>;
    /// open_tree(2) with `OPEN_TREE_CLONE`: a detached copy of the mount at a path, or of `directory` for an empty one.
    fn clone_tree(&self, directory: Fd, path: &CStr, recursive: bool) -> Result<Fd, Errno>;
    /// open_tree_attr(2): a detached copy of the mount at a file descriptor with all below it, its attributes changed.
    /// `ENOSYS` before Linux 6.15.
    fn clone_tree_changed(&self, directory: Fd, attributes: MountAttributes) -> Result<Fd, Errno>;
    /// mount(2) of a new file system upon a name in the working directory, which must be no link.
    fn mount_here(&self, new: &NewMount<'_>) -> Result<(), Errno>;
    /// move_mount(2) of a detached mount onto the file of a file descriptor.
    fn attach(&self, mount: Fd, target: Fd) -> Result<(), Errno>;
    /// move_mount(2) of a detached mount onto a name in a directory; a link there is not followed.
    fn attach_in(&self, mount: Fd, directory: Fd, name: &CStr) -> Result<(), Errno>;
    /// mount_setattr(2) of the propagation (`MS_*`) of `/` and all below it.
    fn set_propagation(&self, propagation: u64) -> Result<(), Errno>;
    /// mount_setattr(2) of a mount by its file descriptor.
    fn mount_setattr(&self, mount: Fd, recursive: bool, attributes: MountAttributes) -> Result<(), Errno>;
    /// pivot_root(2) with both arguments `.`.
    fn pivot_root(&self) -> Result<(), Errno>;
    /// umount2(2) of `.` with `MNT_DETACH`.
    fn detach_here(&self) -> Result<(), Errno>;
    /// fchdir(2).
    fn fchdir(&self, fd: Fd) -> Result<(), Errno>;
    /// chdir(2).
    fn chdir(&self, path: &CStr) -> Result<(), Errno>;
    /// getcwd(2): whether the working directory lies inside the root.
    fn working_directory_is_inside(&self) -> Result<bool, Errno>;
    /// unshare(2) with `CLONE_NEW*` bits.
    fn unshare(&self, flags: u32) -> Result<(), Errno>;
    /// setns(2) with a `CLONE_NEW*` bit.
    fn setns(&self, fd: Fd, kind: u32) -> Result<(), Errno>;
    /// sethostname(2).
    fn sethostname(&self, name: &[u8]) -> Result<(), Errno>;
    /// setdomainname(2).
    fn setdomainname(&self, name: &[u8]) -> Result<(), Errno>;
    /// Brings the interface `lo` up (netdevice(7)).
    fn loopback_up(&self) -> Result<(), Errno>;
    /// setsid(2).
    fn setsid(&self) -> Result<(), Errno>;
    /// keyctl(2) with `KEYCTL_JOIN_SESSION_KEYRING`.
    fn new_keyring(&self) -> Result<(), Errno>;
    /// prctl(2).
    fn prctl(&self, call: Prctl) -> Result<(), Errno>;
    /// setgroups(2).
    fn setgroups(&self, groups: &[u32]) -> Result<(), Errno>;
    /// setresgid(2), all three the same.
    fn setgid(&self, gid: u32) -> Result<(), Errno>;
    /// setresuid(2), all three the same.
    fn setuid(&self, uid: u32) -> Result<(), Errno>;
    /// capset(2).
    fn capset(&self, bits: CapabilityBits) -> Result<(), Errno>;
    /// umask(2).
    fn umask(&self, mask: u32);
    /// prlimit64(2) of this process.
    fn setrlimit(&self, resource: u32, soft: u64, hard: u64) -> Result<(), Errno>;
    /// set_mempolicy(2): mode with its flags, and a bit for each memory node.
    fn set_mempolicy(&self, mode: u32, nodes: &[u64]) -> Result<(), Errno>;
    /// personality(2).
    fn personality(&self, persona: u32) -> Result<(), Errno>;
    /// sched_setattr(2) with a prepared `sched_attr`.
    fn sched_setattr(&self, attributes: &[u8]) -> Result<(), Errno>;
    /// sched_setaffinity(2) of this process: a bit for each CPU.
    fn sched_setaffinity(&self, cpus: &[u64]) -> Result<(), Errno>;
    /// ioprio_set(2) of this process.
    fn ioprio_set(&self, value: u32) -> Result<(), Errno>;
    /// ioctl(2) `TIOCSPTLCK` with 0 and `TIOCGPTPEER`: unlocks a pseudo-terminal and opens its other side.
    fn pty_peer(&self, ptmx: Fd) -> Result<Fd, Errno>;
    /// ioctl(2) `TIOCSWINSZ`.
    fn window_size(&self, terminal: Fd, rows: u16, columns: u16) -> Result<(), Errno>;
    /// ioctl(2) `TIOCSCTTY`.
    fn controlling_terminal(&self, terminal: Fd) -> Result<(), Errno>;
    /// fchown(2).
    fn fchown(&self, fd: Fd, uid: u32, gid: u32) -> Result<(), Errno>;
    /// dup3(2) with `O_CLOEXEC`.
    fn replace(&self, fd: Fd, to: Fd) -> Result<(), Errno>;
    /// dup3(2).
    fn dup_to(&self, fd: Fd, to: Fd) -> Result<(), Errno>;
    /// sendmsg(2) of bytes and one file descriptor over a Unix socket (unix(7), `SCM_RIGHTS`).
    fn send_descriptor(&self, socket: Fd, bytes: &[u8], fd: Fd) -> Result<(), Errno>;
    /// close_range(2), both ends included.
    fn close_range(&self, first: Fd, last: Fd) -> Result<(), Errno>;
    /// fcntl(2) `F_SETFD` with no flags: the file descriptor lives through one `execve`.
    fn keep_on_exec(&self, fd: Fd) -> Result<(), Errno>;
    /// faccessat2(2) with `X_OK` and `AT_EACCESS`.
    fn may_execute(&self, path: &CStr) -> Result<(), Errno>;
    /// getpid(2).
    fn getpid(&self) -> u32;
    /// pwrite(2), all of the bytes in one call.
    fn write_at(&self, fd: Fd, bytes: &[u8], offset: u64) -> Result<(), Errno>;
    /// Makes a process that executes a hook with its state on file descriptor 0, and waits for its end: its exit code,
    /// or 128 and the signal's number. `ETIMEDOUT` where it was killed for taking too long.
    fn run_hook(&self, hook: &HookProgram) -> Result<u32, Errno>;
    /// rt_sigaction(2) to the default for ignored signals, and rt_sigprocmask(2) with the empty set.
    fn default_signals(&self, ignored: u64) -> Result<(), Errno>;
}
