//! The container's /etc/passwd and /etc/group (passwd(5), group(5)).

use std::ffi::CStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::bundle::because;
use crate::error::{Error, Kind, Result, describe};
use crate::root::layers::Layers;

/// The most that is read of either file.
const LARGEST: u64 = 8 << 20;

/// The text of /etc/passwd.
pub(super) struct Passwd(String);

/// The text of /etc/group.
pub(super) struct Group(String);

/// A line of /etc/passwd.
pub(super) struct UserEntry<'a> {
    pub(super) name: &'a str,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) home: &'a str,
}

/// A line of /etc/group.
pub(super) struct GroupEntry<'a> {
    pub(super) name: &'a str,
    pub(super) gid: u32,
    pub(super) members: &'a str,
}

impl Passwd {
    pub(super) fn read(root: &Layers) -> Result<Self> {
        read(root, c"etc/passwd").map(Self)
    }

    /// Its lines, without those that are none.
    pub(super) fn entries(&self) -> impl Iterator<Item = UserEntry<'_>> {
        self.0.lines().filter_map(|line| {
            let fields: [&str; 7] = fields(line)?;
            let [name, _, uid, gid, _, home, _] = fields;
            Some(UserEntry { name, uid: super::number(uid)?, gid: super::number(gid)?, home })
        })
    }
}

impl Group {
    pub(super) fn read(root: &Layers) -> Result<Self> {
        read(root, c"etc/group").map(Self)
    }

    /// Its lines, without those that are none.
    pub(super) fn entries(&self) -> impl Iterator<Item = GroupEntry<'_>> {
        self.0.lines().filter_map(|line| {
            let [name, _, gid, members] = fields(line)?;
            Some(GroupEntry { name, gid: super::number(gid)?, members })
        })
    }
}

/// Exactly as many fields as the format has; the last may be left out together with its colon.
fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    let mut fields = [""; N];
    let mut count = 0;
    for field in line.split(':') {
        *fields.get_mut(count)? = field;
        count += 1;
    }
    (count + 1 >= N && !fields[0].is_empty()).then_some(fields)
}

/// Reads a file below the root, of which nothing is trusted: links stay inside, and only an ordinary file is opened at all,
/// for opening a fifo may block and opening a device may do anything.
fn read(root: &Layers, path: &CStr) -> Result<String> {
    let shown = path.to_string_lossy();
    let wrong = |because: String| {
        Error::new(Kind::Machine, format!("cannot read the container's /{shown}: {because}"))
    };
    let found = match root.find(path, OFlags::PATH) {
        Ok(found) => File::from(found),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(String::new()),
        Err(errno) => return Err(wrong(describe(errno))),
    };
    let kind = found.metadata().map_err(|error| wrong(because(&error)))?;
    if !kind.is_file() {
        return Err(wrong("it is not an ordinary file".to_owned()));
    }
    // The very file that was looked at, whatever its path names by now.
    let file =
        File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).map_err(|error| wrong(because(&error)))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| wrong(because(&error)))?;
    if bytes.len() as u64 > LARGEST {
        return Err(wrong("it is larger than 8 MiB".to_owned()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
