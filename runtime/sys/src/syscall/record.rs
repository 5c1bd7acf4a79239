//! A double of the kernel that writes every call down, and can let one fail.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fmt::Debug;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::hook::HookProgram;
use super::{CapabilityBits, Fd, FileStatus, Kernel, MountAttributes, NewMount, Prctl};

/// A kernel for tests: calls are lines of text, file descriptors are numbers from 100 on.
///
/// Every path exists and is a directory, except those that [`RecordingKernel::missing`] and [`RecordingKernel::file`]
/// name.
#[derive(Debug, Default)]
pub struct RecordingKernel {
    lines: RefCell<Vec<String>>,
    opened: RefCell<Vec<String>>,
    missing: Vec<&'static str>,
    files: Vec<&'static str>,
    failing: Option<(usize, Errno)>,
    calls: Cell<usize>,
}

impl RecordingKernel {
    /// The first file descriptor that a call answers with.
    pub const FIRST_FD: Fd = 100;

    /// A path that no open finds, until it is made.
    #[must_use]
    pub fn missing(mut self, path: &'static str) -> Self {
        self.missing.push(path);
        self
    }

    /// A path that is a regular file.
    #[must_use]
    pub fn file(mut self, path: &'static str) -> Self {
        self.files.push(path);
        self
    }

    /// Lets the call of that number, from 0 on, fail.
    #[must_use]
    pub fn failing(mut self, call: usize, errno: Errno) -> Self {
        self.failing = Some((call, errno));
        self
    }

    /// The calls, one a line.
    pub fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    fn call(&self, name: &str, arguments: &[&dyn Debug]) -> Result<(), Errno> {
        let arguments: Vec<String> = arguments.iter().map(|argument| format!("{argument:?}")).collect();
        self.lines.borrow_mut().push(format!("{name}({})", arguments.join(", ")));
        let call = self.calls.replace(self.calls.get() + 1);
        match self.failing {
            Some((failing, errno)) if failing == call => Err(errno),
            _ => Ok(()),
        }
    }

    fn answer(&self, what: &str) -> Fd {
        let mut opened = self.opened.borrow_mut();
        opened.push(what.to_owned());
        Self::FIRST_FD + Fd::try_from(opened.len() - 1).unwrap_or_default()
    }

    fn path_of(&self, fd: Fd) -> String {
        let index = usize::try_from(fd - Self::FIRST_FD).unwrap_or(usize::MAX);
        self.opened.borrow().get(index).cloned().unwrap_or_default()
    }
}

/// Calls that answer nothing, or one value that does not depend on them.
macro_rules! plain {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty { $value:expr })*) => {
        $(fn $name(&self, $($argument: $type),*) -> Result<$answer, Errno> {
            self.call(stringify!($name), &[$(&$argument),*])?;
            Ok($value)
        })*
    };
}

impl Kernel for RecordingKernel {
    fn open(
        &self,
        directory: Fd,
        path: &CStr,
        flags: OFlags,
        mode: Mode,
        resolve: ResolveFlags,
    ) -> Result<Fd, Errno> {
        self.call("open", &[&directory, &path, &flags, &resolve])?;
        let text = path.to_string_lossy();
        let made = |line: &String| line.starts_with("mkdir") && line.contains(&format!("{path:?}"));
        if self.missing.contains(&&*text) && mode.is_empty() && !self.lines.borrow().iter().any(made) {
            return Err(Errno::NOENT);
        }
        if flags.contains(OFlags::DIRECTORY) && self.files.contains(&&*text) {
            return Err(Errno::NOTDIR);
        }
        Ok(self.answer(&text))
    }

    fn close(&self, fd: Fd) {
        self.lines.borrow_mut().push(format!("close({fd})"));
    }

    fn read(&self, fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.call("read", &[&fd, &buffer.len()])?;
        Ok(buffer.len())
    }

    fn read_names(&self, directory: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.call("read_names", &[&directory, &buffer.len()])?;
        Ok(0)
    }

    fn read_link(&self, directory: Fd, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.call("read_link", &[&directory, &name, &buffer.len()])?;
        Ok(0)
    }

    fn stat(&self, fd: Fd) -> Result<FileStatus, Errno> {
        self.call("stat", &[&fd])?;
        let path = self.path_of(fd);
        let (mode, device) = match path.rsplit('/').next() {
            Some("null") => (0o020_666, rustix::fs::makedev(1, 3)),
            Some("pipe") => (0o010_600, 0),
            Some("ptmx") => (0o020_666, rustix::fs::makedev(5, 2)),
            _ if self.files.contains(&&*path) => (0o100_644, 0),
            _ => (0o040_755, 0),
        };
        Ok(FileStatus { mode, device, uid: 0, gid: 0, size: 0, file_system: 0 })
    }

    fn fsopen(&self, file_system: &CStr) -> Result<Fd, Errno> {
        self.call("fsopen", &[&file_system])?;
        Ok(self.answer("fs"))
    }

    fn fsmount(&self, fs: Fd, attributes: u64) -> Result<Fd, Errno> {
        self.call("fsmount", &[&fs, &attributes])?;
        Ok(self.answer("mount"))
    }

    fn clone_tree(&self, directory: Fd, path: &CStr, recursive: bool) -> Result<Fd, Errno> {
        self.call("clone_tree", &[&directory, &path, &recursive])?;
        Ok(self.answer("tree"))
    }

    fn clone_tree_changed(&self, directory: Fd, attributes: MountAttributes) -> Result<Fd, Errno> {
        self.call("clone_tree_changed", &[&directory, &attributes])?;
        Ok(self.answer("tree"))
    }

    fn pty_peer(&self, ptmx: Fd) -> Result<Fd, Errno> {
        self.call("pty_peer", &[&ptmx])?;
        Ok(self.answer("peer"))
    }

    fn run_hook(&self, hook: &HookProgram) -> Result<u32, Errno> {
        self.call("run_hook", &[&hook.path])?;
        Ok(0)
    }

    fn umask(&self, mask: u32) {
        self.lines.borrow_mut().push(format!("umask({mask:o})"));
    }

    fn getpid(&self) -> u32 {
        1
    }

    plain! {
        fn write(fd: Fd, bytes: &[u8]) -> () { () }
        fn write_at(fd: Fd, bytes: &[u8], offset: u64) -> () { () }
        fn file_system(fd: Fd) -> u64 { 0x9fa0 }
        fn mkdir(directory: Fd, name: &CStr, mode: Mode) -> () { () }
        fn mknod(directory: Fd, name: &CStr, mode: u32, device: u64) -> () { () }
        fn symlink(target: &CStr, directory: Fd, name: &CStr) -> () { () }
        fn chown(directory: Fd, name: &CStr, uid: u32, gid: u32) -> () { () }
        fn chmod(directory: Fd, name: &CStr, mode: Mode) -> () { () }
        fn copy_file(from: Fd, to: Fd) -> () { () }
        fn fsconfig(fs: Fd, key: &CStr, value: Option<&CStr>) -> () { () }
        fn attach(mount: Fd, target: Fd) -> () { () }
        fn mount_here(new: &NewMount<'_>) -> () { () }
        fn set_propagation(propagation: u64) -> () { () }
        fn attach_in(mount: Fd, directory: Fd, name: &CStr) -> () { () }
        fn mount_setattr(mount: Fd, recursive: bool, attributes: MountAttributes) -> () { () }
        fn pivot_root() -> () { () }
        fn detach_here() -> () { () }
        fn fchdir(fd: Fd) -> () { () }
        fn chdir(path: &CStr) -> () { () }
        fn working_directory_is_inside() -> bool { true }
        fn unshare(flags: u32) -> () { () }
        fn setns(fd: Fd, kind: u32) -> () { () }
        fn sethostname(name: &[u8]) -> () { () }
        fn setdomainname(name: &[u8]) -> () { () }
        fn loopback_up() -> () { () }
        fn setsid() -> () { () }
        fn new_keyring() -> () { () }
        fn prctl(call: Prctl) -> () { () }
        fn setgroups(groups: &[u32]) -> () { () }
        fn setgid(gid: u32) -> () { () }
        fn setuid(uid: u32) -> () { () }
        fn capset(bits: CapabilityBits) -> () { () }
        fn setrlimit(resource: u32, soft: u64, hard: u64) -> () { () }
        fn set_mempolicy(mode: u32, nodes: &[u64]) -> () { () }
        fn personality(persona: u32) -> () { () }
        fn sched_setattr(attributes: &[u8]) -> () { () }
        fn sched_setaffinity(cpus: &[u64]) -> () { () }
        fn ioprio_set(value: u32) -> () { () }
        fn window_size(terminal: Fd, rows: u16, columns: u16) -> () { () }
        fn controlling_terminal(terminal: Fd) -> () { () }
        fn fchown(fd: Fd, uid: u32, gid: u32) -> () { () }
        fn replace(fd: Fd, to: Fd) -> () { () }
        fn dup_to(fd: Fd, to: Fd) -> () { () }
        fn send_descriptor(socket: Fd, bytes: &[u8], fd: Fd) -> () { () }
        fn close_range(first: Fd, last: Fd) -> () { () }
        fn may_execute(path: &CStr) -> () { () }
        fn keep_on_exec(fd: Fd) -> () { () }
        fn default_signals(ignored: u64) -> () { () }
    }
}
