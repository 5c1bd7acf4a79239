//! Places behind dangling links of an image: what a link names is created below the root, as runc, crun and Docker do.
//!
//! Many images have such links, for example `/etc/resolv.conf` to a file that systemd-resolved makes. The way is walked
//! as text and resolved from the root at each step, so that `..` has the kernel's meaning (path_resolution(7)).

use std::ffi::CStr;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Child;
use super::path::{RESOLVE_IN_ROOT, TargetKind, make};
use jobc_sys::syscall::{Fd, Kernel};

/// Maximum number of links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;

/// `PATH_MAX`, with the NUL.
const MAX_PATH: usize = 4096;

/// A path on this process's stack, for nothing is allocated here. A NUL follows its bytes.
struct Text {
    bytes: [u8; MAX_PATH],
    length: usize,
}

/// Creates the missing parts of a path below the root, through the links that are in it.
pub(super) fn create<K: Kernel>(
    child: &Child<'_, K>,
    path: &CStr,
    last: TargetKind,
    further: ResolveFlags,
) -> Result<Fd, Errno> {
    let mut text = Text { bytes: [0; MAX_PATH], length: 0 };
    text.push(path.to_bytes())?;
    for _ in 0..MAX_LINKS {
        if let Some(fd) = walk(child, &mut text, last, further)? {
            return Ok(fd);
        }
    }
    Err(Errno::LOOP)
}

/// Creates the missing parts up to the first dangling link, if there is one: its target then takes its place in the path.
fn walk<K: Kernel>(
    child: &Child<'_, K>,
    text: &mut Text,
    last: TargetKind,
    further: ResolveFlags,
) -> Result<Option<Fd>, Errno> {
    let kernel = child.kernel;
    let mut parent = None;
    let mut end = 0;
    while let Some(begin) = text.component_after(end) {
        end = text.end_of(begin);
        let kind = if text.component_after(end).is_none() { last } else { TargetKind::Directory };
        let after = std::mem::replace(&mut text.bytes[end], 0);
        let (way, name) = (text.until(0, end)?, text.until(begin, end)?);
        let opened = kernel.open(child.root, way, OFlags::PATH, Mode::empty(), RESOLVE_IN_ROOT | further);
        let within = parent.unwrap_or(child.root);
        let next = match opened {
            Err(Errno::NOENT) => make(kernel, within, name, kind),
            other => other,
        };
        let link = next.map_err(|errno| Link::read(kernel, within, name).ok_or(errno));
        text.bytes[end] = after;
        if let Some(parent) = parent {
            kernel.close(parent);
        }
        match link {
            Ok(next) => parent = Some(next),
            Err(Ok(link)) => return link.replace(text, begin, end).map(|()| None),
            Err(Err(errno)) => return Err(errno),
        }
    }
    parent.ok_or(Errno::NOENT).map(Some)
}

/// The target of a link.
struct Link {
    bytes: [u8; MAX_PATH],
    length: usize,
}

impl Link {
    fn read<K: Kernel>(kernel: &K, directory: Fd, name: &CStr) -> Option<Self> {
        let mut bytes = [0; MAX_PATH];
        let length = kernel.read_link(directory, name, &mut bytes).ok()?;
        Some(Self { bytes, length })
    }

    /// Replaces a component of the path by the target; an absolute one begins at the root.
    fn replace(&self, text: &mut Text, begin: usize, end: usize) -> Result<(), Errno> {
        let target = &self.bytes[..self.length];
        let before = if target.starts_with(b"/") { 0 } else { begin };
        let rest = text.bytes;
        let rest = &rest[end..text.length];
        text.length = before;
        text.push(target)?;
        text.push(b"/")?;
        text.push(rest)
    }
}

impl Text {
    fn push(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        let end = self.length + bytes.len();
        self.bytes.get_mut(self.length..end).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(bytes);
        self.length = end;
        *self.bytes.get_mut(end).ok_or(Errno::NAMETOOLONG)? = 0;
        Ok(())
    }

    /// Where the next component begins.
    fn component_after(&self, at: usize) -> Option<usize> {
        (at..self.length).find(|&at| self.bytes[at] != b'/')
    }

    fn end_of(&self, begin: usize) -> usize {
        (begin..self.length).find(|&at| self.bytes[at] == b'/').unwrap_or(self.length)
    }

    /// A part before a NUL.
    fn until(&self, begin: usize, end: usize) -> Result<&CStr, Errno> {
        CStr::from_bytes_with_nul(&self.bytes[begin..=end]).map_err(|_| Errno::INVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path after the component that a part of it is was replaced by the target of a link.
    fn check(path: &str, component: &str, target: &str) -> String {
        let mut text = Text { bytes: [0; MAX_PATH], length: 0 };
        text.push(path.as_bytes()).unwrap();
        let begin = path.find(component).unwrap();
        let mut link = Link { bytes: [0; MAX_PATH], length: target.len() };
        link.bytes[..target.len()].copy_from_slice(target.as_bytes());
        link.replace(&mut text, begin, begin + component.len()).unwrap();
        text.until(0, text.length).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn the_target_of_a_link_takes_its_place() {
        assert_eq!(check("etc/resolv.conf", "resolv.conf", "../run/stub"), "etc/../run/stub/");
        assert_eq!(check("data/run/x", "run", "/srv"), "/srv//x");
        assert_eq!(check("a/b/c", "b", "d/e"), "a/d/e//c");
    }

    #[test]
    fn a_path_that_is_too_long_is_an_error() {
        let push = |bytes: &[u8]| Text { bytes: [0; MAX_PATH], length: 0 }.push(bytes);
        assert_eq!(push(&[b'x'; MAX_PATH - 1]), Ok(()));
        assert_eq!(push(&[b'x'; MAX_PATH]), Err(Errno::NAMETOOLONG));
    }
}
