//! The cgroup v1 hierarchies, side by side below one tmpfs.

use std::ffi::CString;
use std::fmt;

use linux_raw_sys::general::{MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{Source, new_file_system, single_call};
use crate::child::Child;
use crate::child::path::{ContainerPath, TargetKind};
use jobc_sys::syscall::{CWD, Kernel, MountAttributes};

/// A tmpfs with a directory for each hierarchy, and the hierarchy mounted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountCgroups {
    /// Where, as a rule /sys/fs/cgroup.
    pub target: ContainerPath,
    /// The directories' names, and what is mounted on each: the hierarchy as the new control-group namespace shows it,
    /// or the container's own group bound where there is no such namespace.
    pub hierarchies: Vec<(CString, Source)>,
    /// Links to directories: hierarchies of several controllers under the name of each (`cpu` for `cpu,cpuacct`).
    pub links: Vec<(CString, CString)>,
    /// Whether the container may not write to them.
    pub read_only: bool,
    /// The label of the tmpfs.
    pub label: Option<CString>,
}

impl MountCgroups {
    /// Mounts them.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> Result<(), Errno> {
        let kernel = child.kernel;
        let plain = u64::from(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        let attributes = plain | if self.read_only { u64::from(MOUNT_ATTR_RDONLY) } else { 0 };
        let fs = kernel.fsopen(c"tmpfs")?;
        kernel.fsconfig(fs, c"mode", Some(c"0755"))?;
        if let Some(label) = &self.label {
            kernel.fsconfig(fs, c"context", Some(label))?;
        }
        let directory = kernel.fsmount(fs, plain)?;
        kernel.close(fs);
        let target = self.target.create_target(child, TargetKind::Directory)?;
        kernel.attach(directory, target)?;
        kernel.close(target);
        for (name, source) in &self.hierarchies {
            kernel.mkdir(directory, name, Mode::from_raw_mode(0o755))?;
            let mount = match source {
                Source::New { parameters, .. }
                    if single_call::mount_hierarchy(child, directory, name, parameters)? =>
                {
                    continue;
                }
                Source::New { kind, parameters, .. } => {
                    new_file_system(kernel, kind, parameters, attributes)?
                }
                Source::Bind { path, recursive, .. } => {
                    let group =
                        kernel.open(CWD, path, OFlags::PATH, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
                    let tree = kernel.clone_tree(group, c"", *recursive)?;
                    kernel.close(group);
                    tree
                }
            };
            kernel.attach_in(mount, directory, name)?;
            kernel.close(mount);
        }
        for (name, target) in &self.links {
            kernel.symlink(target, directory, name)?;
        }
        // For the tmpfs and all hierarchies in one call: no other process has seen them yet.
        let set = MountAttributes { set: attributes, ..MountAttributes::default() };
        kernel.mount_setattr(directory, true, set)?;
        kernel.close(directory);
        Ok(())
    }
}

impl fmt::Display for MountCgroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mount cgroups at `/{}` (", self.target.path.to_string_lossy())?;
        for (index, (name, _)) in self.hierarchies.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { " " }, name.to_string_lossy())?;
        }
        f.write_str(if self.read_only { "; read-only)" } else { ")" })
    }
}
