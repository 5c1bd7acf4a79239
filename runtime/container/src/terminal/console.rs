//! The container's side of the terminal.

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::child::Child;
use crate::child::path::{ContainerPath, TargetKind};
use jobc_sys::syscall::{Fd, Kernel};

/// A pseudo-terminal of the container's own devpts, opened there and handed out by file descriptor.
///
/// No path is looked up twice, and /dev/console is bound from the open terminal itself (CVE-2025-52565).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// A connected Unix socket that gets the master (`SCM_RIGHTS`).
    pub socket: Fd,
    /// Rows and columns at the start.
    pub size: Option<(u16, u16)>,
    /// The owner of the terminal in the container.
    pub uid: u32,
    /// Whether it becomes the terminal of the process's session here, rather than by the trampoline.
    pub controlling: bool,
    /// Where it is bound too; nothing for an additional process of a running container.
    pub console: Option<ContainerPath>,
}

/// /dev/ptmx's number (admin-guide/devices.txt).
const PTMX: (u32, u32) = (5, 2);

impl Console {
    /// Opens the terminal, makes it file descriptors 0 to 2 and the session's own, and sends its other side.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let (base, path) = child.base(c"dev/pts/ptmx");
        let master = kernel.open(base, path, flags, Mode::empty(), resolve)?;
        if !kernel.stat(master)?.is_character_device(PTMX.0, PTMX.1) {
            return Err(Errno::NXIO);
        }
        let peer = kernel.pty_peer(master)?;
        if let Some((rows, columns)) = self.size {
            kernel.window_size(peer, rows, columns)?;
        }
        if self.uid != 0 {
            kernel.fchown(peer, self.uid, kernel.stat(peer)?.gid)?;
        }
        if let Some(console) = &self.console {
            let tree = kernel.clone_tree(peer, c"", false)?;
            let target = console.create(child, TargetKind::File)?;
            kernel.attach(tree, target)?;
            kernel.close(target);
            kernel.close(tree);
        }
        kernel.send_descriptor(self.socket, b"/dev/ptmx", master)?;
        kernel.close(master);
        kernel.close(self.socket);
        if self.controlling {
            kernel.controlling_terminal(peer)?;
        }
        for standard in 0..3 {
            kernel.dup_to(peer, standard)?;
        }
        kernel.close(peer);
        Ok(())
    }
}
