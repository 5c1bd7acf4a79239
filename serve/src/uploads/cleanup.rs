//! Removing uploads that are not used.
//!
//! An upload stays while a job of this host was made of it, and for some time after its last use; less if all of them are
//! large. What jobs have written beside its files is not ours, and stays.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};

use super::{UploadFile, Uploads, is_digest};
use crate::random::hex;

/// How long an upload stays after its last use.
const MAX_AGE: Duration = Duration::from_hours(30 * 24);
/// How long it stays at least: its job may be built just now.
const MIN_AGE: Duration = Duration::from_hours(24);
/// Bytes of all uploads above which the ones that were used longest ago go early.
const MAX_BYTES: u64 = 20 << 30;

/// An upload that is known.
struct Known {
    id: String,
    age: Duration,
    files: Vec<UploadFile>,
}

impl Known {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

impl Uploads {
    /// Removes what is not needed. `used` are the base directories of the jobs of this host.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub(crate) fn clean(&self, used: &BTreeSet<Utf8PathBuf>) -> io::Result<()> {
        self.clean_to(used, MAX_BYTES)
    }

    fn clean_to(&self, used: &BTreeSet<Utf8PathBuf>, max_bytes: u64) -> io::Result<()> {
        let manifests = self.directory.join("manifests");
        let mut known = vec![];
        for (id, age) in entries(&manifests)? {
            let text = std::fs::read(manifests.join(&id)).unwrap_or_default();
            known.push(Known { id, age, files: serde_json::from_slice(&text).unwrap_or_default() });
        }
        // Those that were used last come first.
        known.sort_by_key(|upload| upload.age);
        let mut digests = BTreeSet::new();
        let mut bytes = 0;
        for upload in &known {
            bytes += upload.bytes();
            let tree = self.trees.join(&upload.id);
            let is_old = upload.age > MAX_AGE || bytes > max_bytes && upload.age > MIN_AGE;
            if is_old && !used.iter().any(|directory| directory.starts_with(&tree)) {
                bytes -= upload.bytes();
                remove_files(&tree, &upload.files);
                std::fs::remove_file(manifests.join(&upload.id))?;
            } else {
                digests.extend(upload.files.iter().map(|file| file.sha256.as_str()));
            }
        }
        // Contents of no upload, and what was left by a server that was killed.
        let blobs = self.directory.join("blobs");
        for (name, age) in entries(&blobs)? {
            if age > MIN_AGE && !digests.contains(name.as_str()) {
                std::fs::remove_file(blobs.join(name))?;
            }
        }
        for (name, age) in entries(&self.trees)? {
            if age > MIN_AGE && !is_digest(&name) {
                std::fs::remove_dir_all(self.trees.join(name))?;
            }
        }
        Ok(())
    }
}

/// The entries of a directory, and how long ago they changed.
fn entries(directory: &Utf8Path) -> io::Result<Vec<(String, Duration)>> {
    let now = SystemTime::now();
    let mut found = vec![];
    for entry in directory.read_dir_utf8()? {
        let entry = entry?;
        // Another request may have replaced it.
        let Ok(changed) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
        found.push((entry.file_name().to_owned(), now.duration_since(changed).unwrap_or_default()));
    }
    Ok(found)
}

/// Removes the files that were sent, if they are still what was sent, and the directories that are then empty.
fn remove_files(tree: &Utf8Path, files: &[UploadFile]) {
    let mut directories = BTreeSet::from([tree.to_owned()]);
    for file in files {
        let path = tree.join(&file.path);
        directories
            .extend(path.ancestors().skip(1).filter(|above| above.starts_with(tree)).map(Utf8Path::to_owned));
        let is_link = path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file());
        if !is_link && digest(&path).is_ok_and(|digest| digest == file.sha256) {
            let _ = std::fs::remove_file(&path);
        }
    }
    for directory in directories.iter().rev() {
        let _ = std::fs::remove_dir(directory);
    }
}

fn digest(path: &Utf8Path) -> io::Result<String> {
    let (mut file, mut sum, mut buffer) = (std::fs::File::open(path)?, Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&sum.finalize())),
            read => sum.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uploads::Manifest;

    /// An upload of a file, which was used some days ago.
    fn add(uploads: &Uploads, text: &str, days: u64) -> (String, Utf8PathBuf) {
        let sha256 = hex(&Sha256::digest(text));
        let long_ago = SystemTime::now() - Duration::from_hours(days * 24);
        let blob = uploads.blob(&sha256);
        std::fs::write(&blob, text).unwrap();
        let file = UploadFile { path: "code/a".to_owned(), size: text.len() as u64, sha256, mode: None };
        let id = uploads.add(&Manifest { files: vec![file] }).unwrap().id;
        let tree = uploads.tree(&id).unwrap();
        for path in [&blob, &uploads.directory.join("manifests").join(&id)] {
            std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        (id, tree)
    }

    #[test]
    fn uploads_that_are_old_go_without_what_jobs_wrote() {
        let scratch = tempfile::tempdir().unwrap();
        let uploads = Uploads::open(Utf8Path::from_path(scratch.path()).unwrap()).unwrap();
        let (_, old) = add(&uploads, "old", 40);
        let (written, results) = add(&uploads, "with results", 40);
        let (_, used) = add(&uploads, "used", 40);
        let (_, new) = add(&uploads, "new", 2);
        std::fs::write(results.join("result"), "mine").unwrap();
        uploads.clean(&BTreeSet::from([used.clone()])).unwrap();
        assert!(!old.exists() && new.join("code/a").exists() && used.join("code/a").exists());
        assert_eq!(std::fs::read_to_string(results.join("result")).unwrap(), "mine");
        assert!(!results.join("code").exists());
        assert_eq!(entries(&uploads.directory.join("blobs")).unwrap().len(), 2);
        assert_eq!(uploads.tree(&written).unwrap_err().status, 404, "it is sent again");
        // What is sent again comes beside what the job wrote.
        let (_, again) = add(&uploads, "with results", 0);
        assert!(again == results && again.join("code/a").exists() && again.join("result").exists());
    }

    #[test]
    fn the_ones_used_longest_ago_go_first_when_all_are_large() {
        let scratch = tempfile::tempdir().unwrap();
        let uploads = Uploads::open(Utf8Path::from_path(scratch.path()).unwrap()).unwrap();
        let trees: Vec<_> = [0, 2, 3].map(|days| add(&uploads, &format!("of {days} days"), days).1).into();
        uploads.clean_to(&BTreeSet::new(), 20).unwrap();
        assert_eq!(trees.iter().map(|tree| tree.exists()).collect::<Vec<_>>(), [true, true, false]);
        uploads.clean_to(&BTreeSet::new(), 0).unwrap();
        assert_eq!(trees.iter().map(|tree| tree.exists()).collect::<Vec<_>>(), [true, false, false]);
    }
}
