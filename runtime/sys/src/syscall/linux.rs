//! The kernel itself.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};

use linux_raw_sys::{general, ioctl, net, prctl};
use rustix::fs::{AtFlags, Dev, FileType, Gid, Mode, OFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};

use super::hook::{HookProgram, run_hook};
use super::raw::syscall;
use super::{CWD, CapabilityBits, Fd, FileStatus, Kernel, MountAttributes, NewMount, Prctl, of_fd};

/// The kernel this program runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

/// File descriptors below this number stay open until [`jobc_container::operation::Operation::CloseFrom`] closes all of
/// them in one call, and the program's start closes the rest, which saves 60 calls per start. Above it each is closed
/// after use, so that a bundle of a thousand mounts stays far below the usual limit of open files.
const FIRST_CLOSED_FD: Fd = 256;

/// A file descriptor of the new process, borrowed for a call.
fn borrow_fd(fd: Fd) -> BorrowedFd<'static> {
    // SAFETY: -1 is the only forbidden number, and no operation keeps one: file descriptors come from calls that
    // succeeded.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Keeps a file descriptor open beyond its owner: the new process ends in `execve`, which closes it.
fn leak_fd(fd: OwnedFd) -> Fd {
    fd.into_raw_fd()
}

/// Makes a syscall that rustix lacks, whose arguments are numbers or point to what outlives the call.
fn call(number: u32, arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: each caller below passes numbers, or pointers to values that live until the call returns.
    unsafe { syscall(number, arguments) }
}

/// The address of what the kernel reads.
fn address<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>() as usize
}

/// The address of what the kernel writes. By a shared reference the compiler would take the value for unchanged, and
/// does at some levels of optimisation.
fn address_mut<T: ?Sized>(value: &mut T) -> usize {
    std::ptr::from_mut(value).cast::<u8>() as usize
}

fn raw_attributes(attributes: MountAttributes) -> general::mount_attr {
    general::mount_attr {
        attr_set: attributes.set,
        attr_clr: attributes.clear,
        propagation: attributes.propagation,
        userns_fd: 0,
    }
}

impl Linux {
    /// mount_setattr(2) with `MOUNT_ATTR_IDMAP`: a detached mount maps its owners with the map of a user namespace.
    ///
    /// A call of the parent, so no step makes it.
    pub fn map_ids(&self, mount: BorrowedFd<'_>, recursive: bool, users: Fd) -> Result<(), Errno> {
        let attributes = general::mount_attr {
            attr_set: general::MOUNT_ATTR_IDMAP.into(),
            attr_clr: 0,
            propagation: 0,
            userns_fd: u64::try_from(users).map_err(|_| Errno::BADF)?,
        };
        let flags = general::AT_EMPTY_PATH | if recursive { general::AT_RECURSIVE } else { 0 };
        let size = size_of::<general::mount_attr>();
        let arguments =
            [of_fd(mount.as_raw_fd()), address(c""), flags as usize, address(&attributes), size, 0];
        call(general::__NR_mount_setattr, arguments).map(drop)
    }
}

impl Kernel for Linux {
    fn open(
        &self,
        directory: Fd,
        path: &CStr,
        flags: OFlags,
        mode: Mode,
        resolve: ResolveFlags,
    ) -> Result<Fd, Errno> {
        // A rename elsewhere on the host makes a resolution that must not escape give up with EAGAIN (openat2(2)).
        for _ in 0..128 {
            match rustix::fs::openat2(borrow_fd(directory), path, flags | OFlags::CLOEXEC, mode, resolve) {
                Err(Errno::AGAIN) => {}
                other => return other.map(leak_fd),
            }
        }
        Err(Errno::AGAIN)
    }

    fn close(&self, fd: Fd) {
        if fd < FIRST_CLOSED_FD {
            return;
        }
        // A close that fails still closes (close(2)).
        let _ = call(general::__NR_close, [of_fd(fd), 0, 0, 0, 0, 0]);
    }

    fn read(&self, fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
        rustix::io::retry_on_intr(|| rustix::io::read(borrow_fd(fd), &mut *buffer))
    }

    fn write(&self, fd: Fd, bytes: &[u8]) -> Result<(), Errno> {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(borrow_fd(fd), bytes))?;
        if written == bytes.len() { Ok(()) } else { Err(Errno::IO) }
    }

    fn stat(&self, fd: Fd) -> Result<FileStatus, Errno> {
        let stat = rustix::fs::fstat(borrow_fd(fd))?;
        Ok(FileStatus {
            mode: stat.st_mode,
            device: stat.st_rdev,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            file_system: stat.st_dev,
        })
    }

    fn file_system(&self, fd: Fd) -> Result<u64, Errno> {
        Ok(u64::try_from(rustix::fs::fstatfs(borrow_fd(fd))?.f_type).unwrap_or_default())
    }

    fn mkdir(&self, directory: Fd, name: &CStr, mode: Mode) -> Result<(), Errno> {
        rustix::fs::mkdirat(borrow_fd(directory), name, mode)
    }

    fn mknod(&self, directory: Fd, name: &CStr, mode: u32, device: u64) -> Result<(), Errno> {
        let kind = FileType::from_raw_mode(mode);
        rustix::fs::mknodat(borrow_fd(directory), name, kind, Mode::from_raw_mode(mode), Dev::from(device))
    }

    fn symlink(&self, target: &CStr, directory: Fd, name: &CStr) -> Result<(), Errno> {
        rustix::fs::symlinkat(target, borrow_fd(directory), name)
    }

    fn chown(&self, directory: Fd, name: &CStr, uid: u32, gid: u32) -> Result<(), Errno> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        rustix::fs::chownat(borrow_fd(directory), name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn chmod(&self, directory: Fd, name: &CStr, mode: Mode) -> Result<(), Errno> {
        rustix::fs::chmodat(borrow_fd(directory), name, mode, AtFlags::empty())
    }

    fn read_names(&self, directory: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
        let size = buffer.len();
        call(general::__NR_getdents64, [of_fd(directory), address_mut(buffer), size, 0, 0, 0])
    }

    fn read_link(&self, directory: Fd, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let path = name.as_ptr() as usize;
        let size = buffer.len();
        call(general::__NR_readlinkat, [of_fd(directory), path, address_mut(buffer), size, 0, 0])
    }

    fn copy_file(&self, from: Fd, to: Fd) -> Result<(), Errno> {
        const MAX_CHUNK: usize = 1 << 30;
        while call(general::__NR_sendfile, [of_fd(to), of_fd(from), 0, MAX_CHUNK, 0, 0])? > 0 {}
        Ok(())
    }

    fn fsopen(&self, file_system: &CStr) -> Result<Fd, Errno> {
        rustix::mount::fsopen(file_system, FsOpenFlags::FSOPEN_CLOEXEC).map(leak_fd)
    }

    fn fsconfig(&self, fs: Fd, key: &CStr, value: Option<&CStr>) -> Result<(), Errno> {
        match value {
            Some(value) => rustix::mount::fsconfig_set_string(borrow_fd(fs), key, value),
            None => rustix::mount::fsconfig_set_flag(borrow_fd(fs), key),
        }
    }

    fn fsmount(&self, fs: Fd, attributes: u64) -> Result<Fd, Errno> {
        rustix::mount::fsconfig_create(borrow_fd(fs))?;
        let attributes = MountAttrFlags::from_bits_retain(u32::try_from(attributes).unwrap_or_default());
        rustix::mount::fsmount(borrow_fd(fs), FsMountFlags::FSMOUNT_CLOEXEC, attributes).map(leak_fd)
    }

    fn clone_tree(&self, directory: Fd, path: &CStr, recursive: bool) -> Result<Fd, Errno> {
        let mut flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        if recursive {
            flags |= OpenTreeFlags::AT_RECURSIVE;
        }
        rustix::mount::open_tree(borrow_fd(directory), path, flags).map(leak_fd)
    }

    fn clone_tree_changed(&self, directory: Fd, attributes: MountAttributes) -> Result<Fd, Errno> {
        let flags = general::OPEN_TREE_CLONE
            | general::OPEN_TREE_CLOEXEC
            | general::AT_EMPTY_PATH
            | general::AT_RECURSIVE;
        let attributes = raw_attributes(attributes);
        let size = size_of::<general::mount_attr>();
        let arguments = [of_fd(directory), address(c""), flags as usize, address(&attributes), size, 0];
        Fd::try_from(call(general::__NR_open_tree_attr, arguments)?).map_err(|_| Errno::BADF)
    }

    fn mount_here(&self, new: &NewMount<'_>) -> Result<(), Errno> {
        let (source, name, kind) = (address(new.source), address(new.name), address(new.kind));
        call(general::__NR_mount, [source, name, kind, new.flags as usize, address(new.data), 0]).map(drop)
    }

    fn attach(&self, mount: Fd, target: Fd) -> Result<(), Errno> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(borrow_fd(mount), c"", borrow_fd(target), c"", flags)
    }

    fn attach_in(&self, mount: Fd, directory: Fd, name: &CStr) -> Result<(), Errno> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(borrow_fd(mount), c"", borrow_fd(directory), name, flags)
    }

    fn mount_setattr(&self, mount: Fd, recursive: bool, attributes: MountAttributes) -> Result<(), Errno> {
        let attributes = raw_attributes(attributes);
        let flags = general::AT_EMPTY_PATH | if recursive { general::AT_RECURSIVE } else { 0 };
        let size = size_of::<general::mount_attr>();
        let arguments = [of_fd(mount), address(c""), flags as usize, address(&attributes), size, 0];
        call(general::__NR_mount_setattr, arguments).map(drop)
    }

    fn set_propagation(&self, propagation: u64) -> Result<(), Errno> {
        let attributes = raw_attributes(MountAttributes { propagation, ..MountAttributes::default() });
        let flags = general::AT_RECURSIVE as usize;
        let size = size_of::<general::mount_attr>();
        let arguments = [of_fd(CWD), address(c"/"), flags, address(&attributes), size, 0];
        call(general::__NR_mount_setattr, arguments).map(drop)
    }

    fn pivot_root(&self) -> Result<(), Errno> {
        rustix::process::pivot_root(c".", c".")
    }

    fn detach_here(&self) -> Result<(), Errno> {
        rustix::mount::unmount(c".", UnmountFlags::DETACH)
    }

    fn fchdir(&self, fd: Fd) -> Result<(), Errno> {
        rustix::process::fchdir(borrow_fd(fd))
    }

    fn chdir(&self, path: &CStr) -> Result<(), Errno> {
        rustix::process::chdir(path)
    }

    fn working_directory_is_inside(&self) -> Result<bool, Errno> {
        // The kernel writes `(unreachable)` before a directory that the root does not contain (getcwd(2)).
        let mut buffer = [0_u8; 4096];
        match call(general::__NR_getcwd, [address_mut(&mut buffer), size_of_val(&buffer), 0, 0, 0, 0]) {
            Ok(_) => Ok(buffer[0] == b'/'),
            Err(Errno::RANGE) => Ok(true),
            Err(errno) => Err(errno),
        }
    }

    fn unshare(&self, flags: u32) -> Result<(), Errno> {
        call(general::__NR_unshare, [flags as usize, 0, 0, 0, 0, 0]).map(drop)
    }

    fn setns(&self, fd: Fd, kind: u32) -> Result<(), Errno> {
        call(general::__NR_setns, [of_fd(fd), kind as usize, 0, 0, 0, 0]).map(drop)
    }

    fn sethostname(&self, name: &[u8]) -> Result<(), Errno> {
        rustix::system::sethostname(name)
    }

    fn setdomainname(&self, name: &[u8]) -> Result<(), Errno> {
        rustix::system::setdomainname(name)
    }

    fn loopback_up(&self) -> Result<(), Errno> {
        let kind = net::SOCK_DGRAM | general::O_CLOEXEC;
        let socket = call(general::__NR_socket, [net::AF_INET as usize, kind as usize, 0, 0, 0, 0])?;
        let fd = Fd::try_from(socket).map_err(|_| Errno::BADF)?;
        // struct ifreq: 16 bytes of name, then a union that begins with the flags (netdevice(7)).
        let mut request = [0_u8; 40];
        request[..2].copy_from_slice(b"lo");
        // IFF_UP is 1.
        request[16..18].copy_from_slice(&1_u16.to_ne_bytes());
        let result =
            call(general::__NR_ioctl, [socket, ioctl::SIOCSIFFLAGS as usize, address(&request), 0, 0, 0]);
        self.close(fd);
        result.map(drop)
    }

    fn setsid(&self) -> Result<(), Errno> {
        rustix::process::setsid().map(drop)
    }

    fn new_keyring(&self) -> Result<(), Errno> {
        const KEYCTL_JOIN_SESSION_KEYRING: usize = 1;
        call(general::__NR_keyctl, [KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0, 0]).map(drop)
    }

    fn prctl(&self, request: Prctl) -> Result<(), Errno> {
        let (option, a, b): (u32, usize, usize) = match request {
            Prctl::NoNewPrivileges => (prctl::PR_SET_NO_NEW_PRIVS, 1, 0),
            Prctl::KeepCapabilities(keep) => (prctl::PR_SET_KEEPCAPS, usize::from(keep), 0),
            Prctl::DropBounding(capability) => (prctl::PR_CAPBSET_DROP, capability as usize, 0),
            Prctl::ClearAmbient => (prctl::PR_CAP_AMBIENT, prctl::PR_CAP_AMBIENT_CLEAR_ALL as usize, 0),
            Prctl::RaiseAmbient(capability) => {
                (prctl::PR_CAP_AMBIENT, prctl::PR_CAP_AMBIENT_RAISE as usize, capability as usize)
            }
            Prctl::NotDumpable => (prctl::PR_SET_DUMPABLE, 0, 0),
            Prctl::Dumpable => (prctl::PR_SET_DUMPABLE, 1, 0),
            Prctl::EndWithParent(end) => {
                (prctl::PR_SET_PDEATHSIG, if end { general::SIGKILL as usize } else { 0 }, 0)
            }
        };
        call(general::__NR_prctl, [option as usize, a, b, 0, 0, 0]).map(drop)
    }

    fn setgroups(&self, groups: &[u32]) -> Result<(), Errno> {
        call(general::__NR_setgroups, [groups.len(), address(groups), 0, 0, 0, 0]).map(drop)
    }

    fn setgid(&self, gid: u32) -> Result<(), Errno> {
        let gid = gid as usize;
        call(general::__NR_setresgid, [gid, gid, gid, 0, 0, 0]).map(drop)
    }

    fn setuid(&self, uid: u32) -> Result<(), Errno> {
        let uid = uid as usize;
        call(general::__NR_setresuid, [uid, uid, uid, 0, 0, 0]).map(drop)
    }

    fn capset(&self, bits: CapabilityBits) -> Result<(), Errno> {
        let header = [general::_LINUX_CAPABILITY_VERSION_3, 0];
        // struct __user_cap_data_struct, the low halves first.
        let low = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
        let sets =
            [0, 32].map(|by| [bits.effective, bits.permitted, bits.inheritable].map(|set| low(set >> by)));
        call(general::__NR_capset, [address(&header), address(&sets), 0, 0, 0, 0]).map(drop)
    }

    fn umask(&self, mask: u32) {
        rustix::process::umask(Mode::from_raw_mode(mask));
    }

    fn setrlimit(&self, resource: u32, soft: u64, hard: u64) -> Result<(), Errno> {
        let limit = general::rlimit64 { rlim_cur: soft, rlim_max: hard };
        call(general::__NR_prlimit64, [0, resource as usize, address(&limit), 0, 0, 0]).map(drop)
    }

    fn set_mempolicy(&self, mode: u32, nodes: &[u64]) -> Result<(), Errno> {
        let (mask, bits) = if nodes.is_empty() { (0, 0) } else { (address(nodes), nodes.len() * 64 + 1) };
        call(general::__NR_set_mempolicy, [mode as usize, mask, bits, 0, 0, 0]).map(drop)
    }

    fn personality(&self, persona: u32) -> Result<(), Errno> {
        call(general::__NR_personality, [persona as usize, 0, 0, 0, 0, 0]).map(drop)
    }

    fn sched_setattr(&self, attributes: &[u8]) -> Result<(), Errno> {
        call(general::__NR_sched_setattr, [0, address(attributes), 0, 0, 0, 0]).map(drop)
    }

    fn sched_setaffinity(&self, cpus: &[u64]) -> Result<(), Errno> {
        call(general::__NR_sched_setaffinity, [0, size_of_val(cpus), address(cpus), 0, 0, 0]).map(drop)
    }

    fn ioprio_set(&self, value: u32) -> Result<(), Errno> {
        const IOPRIO_WHO_PROCESS: usize = 1;
        call(general::__NR_ioprio_set, [IOPRIO_WHO_PROCESS, 0, value as usize, 0, 0, 0]).map(drop)
    }

    fn pty_peer(&self, ptmx: Fd) -> Result<Fd, Errno> {
        let unlocked = 0_i32;
        call(general::__NR_ioctl, [of_fd(ptmx), ioctl::TIOCSPTLCK as usize, address(&unlocked), 0, 0, 0])?;
        let flags = general::O_RDWR | general::O_NOCTTY | general::O_CLOEXEC;
        let peer =
            call(general::__NR_ioctl, [of_fd(ptmx), ioctl::TIOCGPTPEER as usize, flags as usize, 0, 0, 0])?;
        Fd::try_from(peer).map_err(|_| Errno::BADF)
    }

    fn window_size(&self, terminal: Fd, rows: u16, columns: u16) -> Result<(), Errno> {
        let size = [rows, columns, 0, 0];
        call(general::__NR_ioctl, [of_fd(terminal), ioctl::TIOCSWINSZ as usize, address(&size), 0, 0, 0])
            .map(drop)
    }

    fn controlling_terminal(&self, terminal: Fd) -> Result<(), Errno> {
        call(general::__NR_ioctl, [of_fd(terminal), ioctl::TIOCSCTTY as usize, 0, 0, 0, 0]).map(drop)
    }

    fn fchown(&self, fd: Fd, uid: u32, gid: u32) -> Result<(), Errno> {
        rustix::fs::fchown(borrow_fd(fd), Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
    }

    fn replace(&self, fd: Fd, to: Fd) -> Result<(), Errno> {
        call(general::__NR_dup3, [of_fd(fd), of_fd(to), general::O_CLOEXEC as usize, 0, 0, 0]).map(drop)
    }

    fn dup_to(&self, fd: Fd, to: Fd) -> Result<(), Errno> {
        if fd == to {
            return Ok(());
        }
        call(general::__NR_dup3, [of_fd(fd), of_fd(to), 0, 0, 0, 0]).map(drop)
    }

    fn send_descriptor(&self, socket: Fd, bytes: &[u8], fd: Fd) -> Result<(), Errno> {
        // struct cmsghdr with one int, padded to the word (cmsg(3)); struct iovec; struct msghdr.
        #[repr(C)]
        struct Control(usize, i32, i32, i32, i32);
        #[repr(C)]
        struct Vector(*const u8, usize);
        #[repr(C)]
        struct Message(usize, u32, *const Vector, usize, *const Control, usize, i32);
        const SOL_SOCKET: i32 = 1;
        const SCM_RIGHTS: i32 = 1;
        const MSG_NOSIGNAL: usize = 0x4000;
        let control = Control(size_of::<usize>() + 12, SOL_SOCKET, SCM_RIGHTS, fd, 0);
        let vector = Vector(bytes.as_ptr(), bytes.len());
        let message = Message(0, 0, &raw const vector, 1, &raw const control, size_of::<Control>(), 0);
        call(general::__NR_sendmsg, [of_fd(socket), address(&message), MSG_NOSIGNAL, 0, 0, 0]).map(drop)
    }

    fn close_range(&self, first: Fd, last: Fd) -> Result<(), Errno> {
        call(general::__NR_close_range, [of_fd(first), of_fd(last), 0, 0, 0, 0]).map(drop)
    }

    fn keep_on_exec(&self, fd: Fd) -> Result<(), Errno> {
        rustix::io::fcntl_setfd(borrow_fd(fd), rustix::io::FdFlags::empty())
    }

    fn may_execute(&self, path: &CStr) -> Result<(), Errno> {
        rustix::fs::accessat(rustix::fs::CWD, path, rustix::fs::Access::EXEC_OK, AtFlags::EACCESS)
    }

    fn getpid(&self) -> u32 {
        rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
    }

    fn write_at(&self, fd: Fd, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let written = rustix::io::pwrite(borrow_fd(fd), bytes, offset)?;
        if written == bytes.len() { Ok(()) } else { Err(Errno::IO) }
    }

    fn run_hook(&self, hook: &HookProgram) -> Result<u32, Errno> {
        run_hook(hook)
    }

    fn default_signals(&self, ignored: u64) -> Result<(), Errno> {
        // CLONE_CLEAR_SIGHAND has reset handlers, and kept ignored signals (clone(2)).
        const SET_SIZE: usize = 8;
        let default = [0_u64; 4];
        for signal in (1..=64).filter(|signal| ignored & 1 << (signal - 1) != 0) {
            call(general::__NR_rt_sigaction, [signal, address(&default), 0, SET_SIZE, 0, 0])?;
        }
        let none = 0_u64;
        let mask = [general::SIG_SETMASK as usize, address(&none), 0, SET_SIZE, 0, 0];
        call(general::__NR_rt_sigprocmask, mask).map(drop)
    }
}
