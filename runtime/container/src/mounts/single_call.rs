//! New file systems by one call of mount(2), where that is as safe as by file descriptor.
//!
//! A mount that is made detached takes fsopen(2), an fsconfig(2) for each parameter and one more, fsmount(2), the
//! opening of its target and move_mount(2): eight to twelve calls. mount(2) is one, and goes by a name: it is used
//! where this process has just made the name itself, in its own tmpfs that no other process can change.

use std::ffi::{CStr, CString};

use linux_raw_sys::general::{
    MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOSUID,
};
use rustix::fs::Mode;
use rustix::io::Errno;

use super::{Mount, Source};
use crate::child::Child;
use jobc_sys::syscall::{Fd, Kernel, MountAttributes, NewMount};

/// The file systems whose parameters mean the same in one string as one by one, and their usual parameters.
const SINGLE_CALL_FILE_SYSTEMS: [(&CStr, &[&CStr]); 3] = [
    (c"tmpfs", &[c"mode", c"size"]),
    (c"devpts", &[c"newinstance", c"ptmxmode", c"mode", c"gid"]),
    (c"mqueue", &[]),
];

/// A parameter of a file system, with its value where it has one.
type Parameter = (CString, Option<CString>);

/// Room for parameters; longer ones are set one by one.
const MAX_DATA_LEN: usize = 128;

/// Mounts a file system upon a new directory of the container's own /dev, and returns whether that could be done.
pub(super) fn mount_in_own_dev<K: Kernel>(mount: &Mount, child: &mut Child<'_, K>) -> Result<bool, Errno> {
    let Source::New { kind, parameters, copy_up: false } = &mount.source else { return Ok(false) };
    let Some((_, known)) = SINGLE_CALL_FILE_SYSTEMS.iter().find(|(known, _)| *known == kind.as_c_str())
    else {
        return Ok(false);
    };
    let only_sets = MountAttributes { set: mount.attributes.set, ..MountAttributes::default() };
    let plain =
        mount.attributes == only_sets && mount.recursive_attributes.is_none() && mount.propagation.is_empty();
    let Some(flags) = mount_flags(mount.attributes.set).filter(|_| plain) else { return Ok(false) };
    let Some((dev, name)) = child.own_dev(&mount.target) else { return Ok(false) };
    let (source, parameters) = match parameters.split_first() {
        Some(((key, Some(source)), rest)) if key.as_c_str() == c"source" => (source.as_c_str(), rest),
        _ => (c"none", parameters.as_slice()),
    };
    if !parameters.iter().all(|(key, _)| known.contains(&key.as_c_str())) {
        return Ok(false);
    }
    let mut text = [0; MAX_DATA_LEN];
    let Some(data) = mount_data(parameters, &mut text) else { return Ok(false) };
    match child.kernel.mkdir(dev, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => {}
        // An existing name came with another mount; where it leads must be checked.
        Err(Errno::EXIST) => return Ok(false),
        Err(errno) => return Err(errno),
    }
    child.change_directory(dev)?;
    child.kernel.mount_here(&NewMount { source, name, kind, flags, data })?;
    Ok(true)
}

/// Mounts a cgroup v1 hierarchy upon a directory that was just made in a tmpfs, writable for now, and
/// returns whether that could be done.
pub(super) fn mount_hierarchy<K: Kernel>(
    child: &mut Child<'_, K>,
    tmpfs: Fd,
    name: &CStr,
    parameters: &[Parameter],
) -> Result<bool, Errno> {
    let mut text = [0; MAX_DATA_LEN];
    let Some(data) = mount_data(parameters, &mut text) else { return Ok(false) };
    child.change_directory(tmpfs)?;
    let flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    child.kernel.mount_here(&NewMount { source: c"cgroup", name, kind: c"cgroup", flags, data })?;
    Ok(true)
}

/// The `MS_*` flags for the attributes; `None` if an attribute has no such flag.
fn mount_flags(attributes: u64) -> Option<u32> {
    let bits = [(MOUNT_ATTR_NOSUID, MS_NOSUID), (MOUNT_ATTR_NODEV, MS_NODEV), (MOUNT_ATTR_NOEXEC, MS_NOEXEC)];
    let known = bits.iter().fold(0, |known, (attribute, _)| known | u64::from(*attribute));
    let flags = bits.iter().filter(|(attribute, _)| attributes & u64::from(*attribute) != 0);
    (attributes & !known == 0).then(|| flags.fold(0, |flags, (_, bit)| flags | bit))
}

/// Parameters with commas, in `text`; nothing where they do not fit, or one has a comma itself.
fn mount_data<'a>(parameters: &[Parameter], text: &'a mut [u8; MAX_DATA_LEN]) -> Option<&'a CStr> {
    let mut end = 0;
    let mut put = |bytes: &[u8]| {
        let room = text[..MAX_DATA_LEN - 1].get_mut(end..end + bytes.len())?;
        room.copy_from_slice(bytes);
        end += bytes.len();
        Some(())
    };
    for (index, (key, value)) in parameters.iter().enumerate() {
        if index > 0 {
            put(b",")?;
        }
        put(key.as_bytes())?;
        if let Some(value) = value {
            if value.as_bytes().contains(&b',') {
                return None;
            }
            put(b"=")?;
            put(value.as_bytes())?;
        }
    }
    CStr::from_bytes_until_nul(text).ok()
}

impl<K: Kernel> Child<'_, K> {
    /// The container's own /dev and the name of a place in it; nothing where the place is elsewhere.
    fn own_dev<'p>(&self, place: &'p crate::child::path::ContainerPath) -> Option<(Fd, &'p CStr)> {
        self.own_dev.zip(place.name_in(c"dev"))
    }
}

#[cfg(test)]
mod tests;
