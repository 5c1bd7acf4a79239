//! The attributes that the directories of a tree get at its end, kept in as few bytes as they have: an archive may have
//! very many directories.

use std::ffi::CString;
use std::io;

use super::attributes::FileAttributes;
use super::invalid::invalid;
use crate::tar::Time;

/// Maximum number of bytes kept.
const MAX_BYTES: usize = 32 << 20;

/// Directories in the order in which the archive names them, one record behind the other.
#[derive(Debug, Default)]
pub(super) struct DirectoryRecords {
    bytes: Vec<u8>,
    /// Where each record begins.
    places: Vec<u32>,
    /// Bytes that the tree keeps elsewhere, counted here.
    others: usize,
}

impl DirectoryRecords {
    /// Keeps a directory; the last record of a path counts. Without attributes the archive has no entry for it.
    ///
    /// # Errors
    ///
    /// Too many directories.
    pub(super) fn push(&mut self, path: &[u8], attributes: Option<&FileAttributes>) -> io::Result<()> {
        self.places.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        self.put(path);
        self.bytes.push(attributes.is_some().into());
        if let Some(FileAttributes { mode, uid, gid, mtime, extended }) = attributes {
            for number in [*mode, *uid, *gid, mtime.nanoseconds] {
                self.bytes.extend(number.to_le_bytes());
            }
            self.bytes.extend(mtime.seconds.to_le_bytes());
            // The header that has them is of one megabyte at most.
            self.bytes.extend(u32::try_from(extended.len()).unwrap_or(u32::MAX).to_le_bytes());
            for (name, value) in extended {
                self.put(name.as_bytes());
                self.put(value);
            }
        }
        self.check()
    }

    /// Counts bytes that the tree keeps elsewhere.
    ///
    /// # Errors
    ///
    /// The total exceeds the maximum.
    pub(super) fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.others += bytes;
        self.check()
    }

    fn check(&self) -> io::Result<()> {
        let kept = self.bytes.len() + self.places.len() * size_of::<u32>() + self.others;
        if kept > MAX_BYTES { Err(invalid("too many directories")) } else { Ok(()) }
    }

    fn put(&mut self, text: &[u8]) {
        self.bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend(text);
    }

    /// Each directory once, those inside others first.
    pub(super) fn inner_first(mut self) -> impl Iterator<Item = (Vec<u8>, Option<FileAttributes>)> {
        let mut places = std::mem::take(&mut self.places);
        let path = |place: u32| Record(&self.bytes[place as usize..]).text();
        // The last record of a path sorts first and is kept.
        places.sort_unstable_by(|a, b| path(*b).cmp(path(*a)).then(b.cmp(a)));
        places.dedup_by(|later, kept| path(*later) == path(*kept));
        places.into_iter().map(move |place| {
            let mut record = Record(&self.bytes[place as usize..]);
            let path = record.text().to_vec();
            (path, record.attributes())
        })
    }
}

/// The unread part of a record.
struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    fn take<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        let (taken, rest) = self.0.split_first_chunk().expect("records are as they were written");
        self.0 = rest;
        *taken
    }

    fn number(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn text(&mut self) -> &'a [u8] {
        let length = self.number() as usize;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        text
    }

    fn attributes(&mut self) -> Option<FileAttributes> {
        if self.take() == [0] {
            return None;
        }
        let [mode, uid, gid, nanoseconds] = std::array::from_fn(|_| self.number());
        let mtime = Time { seconds: i64::from_le_bytes(self.take()), nanoseconds };
        let count = self.number();
        let extended = (0..count)
            .map(|_| (CString::new(self.text()).expect("written from one"), self.text().to_vec()))
            .collect();
        Some(FileAttributes { mode, uid, gid, mtime, extended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(mode: u32) -> FileAttributes {
        let mtime = Time { seconds: -5, nanoseconds: 7 };
        let extended = vec![(c"user.a".to_owned(), b"b\0c".to_vec()), (c"user.empty".to_owned(), Vec::new())];
        FileAttributes { mode, uid: 1, gid: u32::MAX - 1, mtime, extended }
    }

    #[test]
    fn each_directory_comes_once_and_inner_ones_first() {
        let mut records = DirectoryRecords::default();
        for (path, mode) in [
            ("", None),
            ("a", Some(0o700)),
            ("a/b", None),
            ("b", Some(0o755)),
            ("a", Some(0o711)),
            ("b", None),
        ] {
            records.push(path.as_bytes(), mode.map(attributes).as_ref()).expect("few");
        }
        let all: Vec<_> = records.inner_first().collect();
        let expected = [("b", None), ("a/b", None), ("a", Some(0o711)), ("", None)];
        assert_eq!(all.len(), expected.len());
        for ((path, found), (name, mode)) in all.into_iter().zip(expected) {
            assert_eq!(path, name.as_bytes());
            assert_eq!(format!("{found:?}"), format!("{:?}", mode.map(attributes)));
        }
    }

    #[test]
    fn number_of_directories_is_limited() {
        let mut records = DirectoryRecords::default();
        let plain = FileAttributes { extended: Vec::new(), ..attributes(0o755) };
        for number in 0..400_000 {
            records.push(format!("many/directory-{number:06}").as_bytes(), Some(&plain)).expect("few enough");
        }
        let error = records.count(MAX_BYTES).expect_err("too many");
        assert_eq!(error.to_string(), "too many directories");
    }
}
