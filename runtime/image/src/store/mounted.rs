//! Records of mounted images: files of `mounted/`, which keep the images from being collected.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::directory::Store;
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind, Result};

/// A mounted image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRecord {
    /// The image's manifest.
    pub digest: Digest,
    /// Where it is mounted, without links.
    pub directory: PathBuf,
    /// Whether the directory is one of the store's own.
    pub own: bool,
    /// The boot it was mounted in (random(4)).
    boot: String,
    /// The mount namespace it was mounted in, by its inode.
    namespace: u64,
}

impl MountRecord {
    /// A mount in this process's mount namespace.
    pub fn new(digest: Digest, directory: PathBuf, own: bool) -> Self {
        Self { digest, directory, own, boot: boot(), namespace: namespace() }
    }

    /// Whether it may still be mounted: only for its own mount namespace that can be seen.
    fn may_be_mounted(&self) -> bool {
        if self.boot != boot() {
            return false;
        }
        self.namespace != namespace() || is_mount_point(&self.directory)
    }
}

impl Store {
    /// All mounts that may still be there, by directory; records of others are removed.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn mounts(&self) -> Result<Vec<MountRecord>> {
        let mut mounts: Vec<MountRecord> = Vec::new();
        for (path, record) in self.mount_records()? {
            if record.may_be_mounted() {
                mounts.push(record);
            } else {
                let _ = fs::remove_file(path);
                if record.own {
                    let _ = fs::remove_dir(&record.directory);
                }
            }
        }
        mounts.sort_by(|a, b| a.directory.cmp(&b.directory));
        Ok(mounts)
    }

    /// Adds a record before the mount is created; returns its file.
    pub(crate) fn add_mount(&self, record: &MountRecord) -> Result<PathBuf> {
        let directory = self.root.join("mounted");
        fs::create_dir_all(&directory).map_err(|error| self.write_error("write to", &error))?;
        let text = serde_json::to_vec(record).map_err(|error| Error::new(Kind::State, error.to_string()))?;
        for number in 0_u32.. {
            let path = directory.join(format!("{}-{number}.json", std::process::id()));
            match fs::File::create_new(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.failed("write", &path, &error)),
                Ok(mut file) => {
                    std::io::Write::write_all(&mut file, &text)
                        .map_err(|error| self.failed("write", &path, &error))?;
                    return Ok(path);
                }
            }
        }
        unreachable!("a process has no 2^32 mounts")
    }

    /// Removes a record.
    pub(crate) fn remove_mount(&self, record: &MountRecord) -> Result<()> {
        for (path, other) in self.mount_records()? {
            if other == *record {
                fs::remove_file(&path).map_err(|error| self.failed("remove", &path, &error))?;
            }
        }
        Ok(())
    }

    fn mount_records(&self) -> Result<Vec<(PathBuf, MountRecord)>> {
        let directory = self.root.join("mounted");
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| self.failed("read", &directory, &error))?,
        };
        let read = |path: PathBuf| {
            let record = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            Some((path, record))
        };
        Ok(entries.flatten().filter_map(|entry| read(entry.path())).collect())
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/mnt").map_or(0, |data| data.ino())
}

/// Whether something is mounted on a directory, by proc_pid_mountinfo(5).
fn is_mount_point(directory: &Path) -> bool {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let wanted = escaped(&directory.to_string_lossy());
    text.lines().any(|line| line.split(' ').nth(4) == Some(&wanted))
}

/// A path as mountinfo has it.
fn escaped(path: &str) -> String {
    path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011").replace('\n', "\\012")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_what_is_not_mounted_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let digest = Digest::of(b"x");
        let record = |path: &str| MountRecord::new(digest.clone(), path.into(), false);
        store.add_mount(&record("/proc")).unwrap();
        store.add_mount(&record("/nowhere")).unwrap();
        let earlier = MountRecord { boot: "another".to_owned(), ..record("/sys") };
        store.add_mount(&earlier).unwrap();
        let elsewhere = MountRecord { namespace: 1, ..record("/elsewhere") };
        store.add_mount(&elsewhere).unwrap();
        let directories: Vec<PathBuf> =
            store.mounts().unwrap().into_iter().map(|record| record.directory).collect();
        assert_eq!(directories, [PathBuf::from("/elsewhere"), "/proc".into()]);
        store.remove_mount(&elsewhere).unwrap();
        assert_eq!(fs::read_dir(directory.path().join("mounted")).unwrap().count(), 1);
    }

    #[test]
    fn paths_are_escaped_as_the_kernel_does() {
        assert_eq!(escaped("/a b\\c"), "/a\\040b\\134c");
    }
}
