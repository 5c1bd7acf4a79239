//! Directories that browsers send: a manifest of digests, and the contents that are missing here.
//!
//! Contents are kept by their digests. A directory is made of them when a job first uses it, of copies, since a job may
//! write to it. What is not used is removed after some time ([`cleanup`]).

mod cleanup;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use axum::body::Body;
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use futures_util::StreamExt as _;
use hyper::StatusCode;
use jobc_sys::error::{Result, file_error};
use jobc_sys::write_atomic::{Durability, write_atomic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::options::create_private;
use crate::problem::Problem;
use crate::random;
use crate::random::hex;

/// Files of an upload.
const MAX_FILES: usize = 20_000;
/// Bytes of an upload.
const MAX_BYTES: u64 = 2 << 30;
/// The longest path.
const MAX_PATH: usize = 1000;
/// How long a content may send nothing.
const IDLE: std::time::Duration = std::time::Duration::from_secs(30);

/// A file of an upload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadFile {
    /// The path below the directory, with `/` between its parts.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) path: String,
    /// The number of bytes.
    pub(crate) size: u64,
    /// The SHA-256 digest, in hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub(crate) sha256: String,
    /// The permissions; only whether it is executable counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<u32>,
}

/// A directory that is sent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Its files.
    #[schemars(length(max = 20_000))]
    pub(crate) files: Vec<UploadFile>,
}

/// What the server has of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Upload {
    /// What job files are sent with, as `upload`.
    pub(crate) id: String,
    /// The digests of contents that are still to be sent.
    pub(crate) missing: Vec<String>,
}

/// The contents and directories of this server.
pub(crate) struct Uploads {
    directory: Utf8PathBuf,
    trees: Utf8PathBuf,
}

impl Uploads {
    /// Opens their directory.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn open(directory: &Utf8Path) -> Result<Self> {
        for below in ["blobs", "manifests", "trees"] {
            create_private(&directory.join(below))?;
        }
        let wrong = |error: &std::io::Error| file_error("use", directory.as_std_path(), error);
        let directory = directory.canonicalize_utf8().map_err(|error| wrong(&error))?;
        Ok(Self { trees: directory.join("trees"), directory })
    }

    /// Where the directories of uploads are.
    pub(crate) fn trees(&self) -> &Utf8Path {
        &self.trees
    }

    /// Notes a manifest.
    ///
    /// # Errors
    /// A path leads out, two files have one path, or there is too much of it.
    pub(crate) fn add(&self, manifest: &Manifest) -> std::result::Result<Upload, Problem> {
        check(&manifest.files)?;
        let mut files = manifest.files.clone();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let text = serde_json::to_vec(&files).map_err(|error| Problem::bad_request(error.to_string()))?;
        let id = hex(&Sha256::digest(&text));
        let path = self.directory.join("manifests").join(&id);
        write_atomic(path.as_std_path(), &text, 0o600, Durability::Rename)?;
        Ok(Upload { id, missing: self.missing(&files) })
    }

    fn missing(&self, files: &[UploadFile]) -> Vec<String> {
        let digests: BTreeSet<&String> = files.iter().map(|file| &file.sha256).collect();
        digests.into_iter().filter(|digest| !self.blob(digest).is_file()).cloned().collect()
    }

    fn blob(&self, digest: &str) -> Utf8PathBuf {
        self.directory.join("blobs").join(digest)
    }

    /// Receives a content.
    ///
    /// # Errors
    /// It has another digest, is too large or too slow, or the disk is full.
    pub(crate) async fn receive(&self, digest: &str, body: Body) -> std::result::Result<(), Problem> {
        if !is_digest(digest) {
            return Err(Problem::bad_request("write the SHA-256 digest as 64 hexadecimal digits"));
        }
        let path = self.blob(digest);
        if path.is_file() {
            return Ok(());
        }
        let temporary = self.directory.join("blobs").join(format!(".{}", random::token()?));
        let result = receive(&temporary, digest, body).await;
        match result {
            Ok(()) => Ok(std::fs::rename(&temporary, &path)?),
            Err(problem) => {
                let _ = std::fs::remove_file(&temporary);
                Err(problem)
            }
        }
    }

    /// The directory of an upload, which is made if it is not there.
    ///
    /// # Errors
    /// The upload is not known, or contents are missing.
    pub(crate) fn tree(&self, id: &str) -> std::result::Result<Utf8PathBuf, Problem> {
        let unknown = || Problem::not_found("unknown upload; send it again");
        if !is_digest(id) {
            return Err(unknown());
        }
        let tree = self.trees.join(id);
        let manifest = self.directory.join("manifests").join(id);
        let text = std::fs::read(&manifest).map_err(|_| unknown())?;
        let mut files: Vec<UploadFile> = serde_json::from_slice(&text).map_err(|_| unknown())?;
        // It is used, and so it stays.
        std::fs::File::open(&manifest)?.set_modified(std::time::SystemTime::now())?;
        let is_made = tree.is_dir();
        if is_made {
            // Of a directory that was removed, what a job has written is left.
            files.retain(|file| tree.join(&file.path).symlink_metadata().is_err());
        }
        if is_made && files.is_empty() {
            return Ok(tree);
        }
        let missing = self.missing(&files);
        if !missing.is_empty() {
            let detail = format!("{} files of the upload are still to be sent", missing.len());
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        let temporary = self.trees.join(format!(".{}", random::token()?));
        if is_made {
            let made = self.make(&temporary, &files).and_then(|()| merge(&temporary, &tree, &files));
            let _ = std::fs::remove_dir_all(&temporary);
            let refused =
                |error: std::io::Error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
            return made.map(|()| tree).map_err(refused);
        }
        let made = self.make(&temporary, &files);
        // Another request may have made it meanwhile.
        if let Err(error) = made.and_then(|()| std::fs::rename(&temporary, &tree)) {
            let _ = std::fs::remove_dir_all(&temporary);
            if !tree.is_dir() {
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()));
            }
        }
        Ok(tree)
    }

    fn make(&self, directory: &Utf8Path, files: &[UploadFile]) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::create_dir(directory)?;
        for file in files {
            let path = directory.join(&file.path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let size = std::fs::copy(self.blob(&file.sha256), &path)?;
            if size != file.size {
                let why = format!("`{}` has {size} bytes, and the upload says {}", file.path, file.size);
                return Err(std::io::Error::other(why));
            }
            let is_executable = file.mode.is_some_and(|mode| mode & 0o111 != 0);
            let mode = if is_executable { 0o755 } else { 0o644 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }
}

/// Moves files from one directory into another.
fn merge(from: &Utf8Path, to: &Utf8Path, files: &[UploadFile]) -> std::io::Result<()> {
    for file in files {
        let path = to.join(&file.path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::rename(from.join(&file.path), path)?;
    }
    Ok(())
}

async fn receive(path: &Utf8Path, digest: &str, body: Body) -> std::result::Result<(), Problem> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
    let (mut sum, mut size) = (Sha256::new(), 0);
    let mut stream = body.into_data_stream();
    loop {
        let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the content took too long to arrive");
        let Some(bytes) = tokio::time::timeout(IDLE, stream.next()).await.map_err(late)? else { break };
        let bytes = bytes.map_err(|_| Problem::bad_request("the content ended early"))?;
        size += bytes.len() as u64;
        if size > MAX_BYTES {
            return Err(too_large());
        }
        sum.update(&bytes);
        file.write_all(&bytes)?;
    }
    if hex(&sum.finalize()) != digest {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the content has another SHA-256 digest"));
    }
    Ok(())
}

fn too_large() -> Problem {
    let detail = format!("an upload may have {MAX_FILES} files and {} GiB", MAX_BYTES >> 30);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Refuses paths that lead out of the directory, and two files at one place.
fn check(files: &[UploadFile]) -> std::result::Result<(), Problem> {
    let size = files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.size));
    if files.len() > MAX_FILES || size.is_none_or(|size| size > MAX_BYTES) {
        return Err(too_large());
    }
    let mut known: BTreeMap<&Utf8Path, bool> = BTreeMap::new();
    for file in files {
        let wrong = |why: &str| Err(Problem::bad_request(format!("`{}`: {why}", shown(&file.path))));
        let path = Utf8Path::new(&file.path);
        let is_plain = !file.path.is_empty()
            && file.path.len() <= MAX_PATH
            && !file.path.contains('\0')
            && !file.path.ends_with('/')
            && path.components().all(|part| matches!(part, Utf8Component::Normal(name) if name.len() <= 255))
            && path.components().map(|part| part.as_str()).collect::<Vec<_>>().join("/") == file.path;
        if !is_plain {
            return wrong("write a path below the directory, without `..`");
        }
        if !is_digest(&file.sha256) {
            return wrong("write the SHA-256 digest as 64 hexadecimal digits");
        }
        let is_directory = |path: &&Utf8Path| known.get(path) == Some(&true);
        if known.contains_key(path) || path.ancestors().skip(1).any(|above| is_directory(&above)) {
            return wrong("two files have this path");
        }
        // A directory is known by the files in it.
        known.extend(path.ancestors().skip(1).map(|above| (above, false)));
        known.insert(path, true);
    }
    Ok(())
}

fn shown(path: &str) -> String {
    path.escape_debug().take(100).collect()
}

pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> UploadFile {
        UploadFile { path: path.to_owned(), size: 1, sha256: hex(&Sha256::digest(b"x")), mode: None }
    }

    #[test]
    fn paths_stay_below_the_directory() {
        for path in ["a", "a/b.py", "a b/ü.txt", "..a", ".git/config"] {
            assert!(check(&[file(path)]).is_ok(), "{path}");
        }
        for path in ["", "/a", "../a", "a/../b", "a//b", "./a", "a/.", "a/", "a\0b", ".."] {
            assert!(check(&[file(path)]).is_err(), "{path:?}");
        }
        for two in [["a", "a"], ["a", "a/b"], ["a/b", "a"]] {
            assert!(check(&two.map(file)).is_err(), "{two:?}");
        }
        assert!(check(&[UploadFile { size: u64::MAX, ..file("a") }, file("b")]).is_err());
        assert!(check(&[UploadFile { sha256: "../x".to_owned(), ..file("a") }]).is_err());
    }
}
