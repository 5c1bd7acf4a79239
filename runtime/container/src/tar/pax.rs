//! Extended headers of pax (POSIX 2001): records of `LENGTH KEY=VALUE` and a line's end.

use std::io;

use super::block::invalid;
use super::entry::{Entry, Time};

/// The extended records before an entry.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    uid: Option<u32>,
    gid: Option<u32>,
    mtime: Option<Time>,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// Those of GNU tar's sparse files.
    pub(super) sparse: Sparse,
}

/// The pax records of a sparse file, in the three versions of GNU tar.
#[derive(Debug, Default)]
pub(super) struct Sparse {
    /// Of 1.0: the map precedes the data.
    pub(super) major: Option<u64>,
    pub(super) minor: Option<u64>,
    pub(super) name: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// Of 0.0 and 0.1: offsets and lengths in turn.
    pub(super) map: Vec<u64>,
}

impl Records {
    /// Adds the records of one extended header; of several with the same key, the last one counts.
    pub(super) fn read(&mut self, mut text: &[u8]) -> io::Result<()> {
        while !text.is_empty() {
            let (key, value, rest) = record(text).ok_or_else(|| invalid("a damaged extended header"))?;
            self.take(key, value)?;
            text = rest;
        }
        Ok(())
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let id = |value: &[u8]| {
            let id = decimal(value)?;
            u32::try_from(id).map(Some).map_err(|_| invalid("an owner that is not a valid id"))
        };
        // Without a value a key counts as not written.
        let given = !value.is_empty();
        match key {
            b"path" => self.path = given.then(|| value.to_vec()),
            b"linkpath" => self.link = given.then(|| value.to_vec()),
            b"size" => self.size = if given { Some(decimal(value)?) } else { None },
            b"uid" => self.uid = if given { id(value)? } else { None },
            b"gid" => self.gid = if given { id(value)? } else { None },
            b"mtime" => self.mtime = if given { Some(time(value)?) } else { None },
            b"GNU.sparse.major" => self.sparse.major = Some(decimal(value)?),
            b"GNU.sparse.minor" => self.sparse.minor = Some(decimal(value)?),
            b"GNU.sparse.name" => self.sparse.name = Some(value.to_vec()),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.sparse.size = Some(decimal(value)?),
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => self.sparse.map.push(decimal(value)?),
            b"GNU.sparse.map" => {
                let numbers = value.split(|&byte| byte == b',').map(decimal);
                self.sparse.map = numbers.collect::<io::Result<_>>()?;
            }
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    self.attributes.retain(|(there, _)| there != name);
                    self.attributes.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }

    /// Applies the records to an entry; the reader decides about names and sizes.
    pub(super) fn apply(&mut self, entry: &mut Entry) {
        entry.uid = self.uid.unwrap_or(entry.uid);
        entry.gid = self.gid.unwrap_or(entry.gid);
        entry.mtime = self.mtime.unwrap_or(entry.mtime);
        entry.attributes = std::mem::take(&mut self.attributes);
    }
}

/// The first record: its key, its value, and what follows it.
///
/// Its length counts, not its line's end: values are bytes.
fn record(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = text.iter().take(20).position(|&byte| byte == b' ')?;
    let length = usize::try_from(decimal(&text[..space]).ok()?).ok()?;
    let (record, rest) = text.split_at_checked(length)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|&byte| byte == b'=')?;
    let (key, value) = (&record[..equals], &record[equals + 1..]);
    (!key.is_empty() && !key.contains(&0)).then_some((key, value, rest))
}

pub(super) fn decimal(digits: &[u8]) -> io::Result<u64> {
    let wrong = || invalid("an invalid number in an extended header");
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(wrong());
    }
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(wrong)
}

/// A time with a fraction, rounded down to nanoseconds; a negative one counts back from 1970.
fn time(value: &[u8]) -> io::Result<Time> {
    let (negative, value) = value.strip_prefix(b"-").map_or((false, value), |value| (true, value));
    let mut parts = value.splitn(2, |&byte| byte == b'.');
    let seconds = decimal(parts.next().unwrap_or_default())?;
    let seconds = i64::try_from(seconds).map_err(|_| invalid("an invalid time"))?;
    let mut nanoseconds = 0;
    let fraction = parts.next().unwrap_or_default();
    for index in 0..9 {
        let digit = fraction.get(index).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return Err(invalid("an invalid time"));
        }
        nanoseconds = nanoseconds * 10 + u32::from(digit - b'0');
    }
    Ok(match (negative, nanoseconds) {
        (false, nanoseconds) => Time { seconds, nanoseconds },
        (true, 0) => Time { seconds: -seconds, nanoseconds: 0 },
        (true, nanoseconds) => Time { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds },
    })
}
