//! The files of a job that go with it: its data with paths relative to the job file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jobc_schema::digest::Digest;
use jobc_schema::plan::{JobPlan, VolumeKind, VolumeSource};
use jobc_sys::error::{Error, Kind, Result, file_error};

use crate::host::{SendFile, Tree, TreeEntry, TreeKind};

/// The files that a job reads and writes below the directory of the job file.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    /// Its data, by path.
    pub(super) tree: Tree,
    /// Its outputs.
    pub(super) outputs: Vec<String>,
}

impl Sources {
    /// Reads the files of a job. `directory` is that of the job file.
    pub(super) fn read(plan: &JobPlan, directory: &Path) -> Result<Self> {
        let mut sources = Self::default();
        let (mut data, mut written) = (BTreeSet::new(), BTreeSet::new());
        for (name, volume) in &plan.volumes {
            let VolumeSource::Path { path } = &volume.source else { continue };
            let Some(path) = below(name, path)? else { continue };
            let is_output = volume.kind == VolumeKind::Output;
            let is_written = |role: &jobc_schema::plan::RolePlan| {
                role.mounts.iter().any(|mount| mount.volume == *name && mount.writable)
            };
            if is_output || plan.roles.iter().any(is_written) {
                written.insert(path.clone());
            }
            if is_output {
                sources.outputs.push(path);
            } else {
                data.insert((path, name));
            }
        }
        for (path, name) in data {
            let source = directory.join(&path);
            let status = std::fs::metadata(&source).map_err(|error| {
                let error = file_error("read", &source, &error);
                error.at_field(format!("data.{name}.source"))
            })?;
            let mut tree = Tree::default();
            if status.is_dir() {
                tree.directory(&path, &source)?;
                if path.is_empty() {
                    tree.entries.retain(|path, _| !path.starts_with("out/"));
                }
            } else {
                tree.file(&path, SendFile::read(&source)?);
            }
            let is_written = written.iter().any(|other| is_within(&path, other) || is_within(other, &path));
            for (path, mut entry) in tree.entries {
                set_mode(&mut entry, is_written);
                sources.tree.entries.insert(path, entry);
            }
        }
        Ok(sources)
    }

    /// The digest of all of it: another content is another job.
    pub(super) fn digest(&self) -> Option<Digest> {
        if self.tree.entries.is_empty() {
            return None;
        }
        let lines: BTreeMap<&str, String> = self
            .tree
            .entries
            .iter()
            .map(|(path, entry)| {
                let content = match &entry.kind {
                    TreeKind::Directory => "directory".to_owned(),
                    TreeKind::File(file) => file.name(),
                    TreeKind::Symlink(target) => format!("-> {target}"),
                };
                (path.as_str(), content)
            })
            .collect();
        Some(Digest::of(&serde_json::to_vec(&lines).unwrap_or_default()))
    }
}

/// A file that the job only reads is a link to the store's file, which must not change; others are copies.
fn set_mode(entry: &mut TreeEntry, is_written: bool) {
    match &entry.kind {
        TreeKind::File(_) if is_written => entry.mode |= 0o200,
        TreeKind::File(file) => entry.mode = if file.is_executable { 0o555 } else { 0o444 },
        TreeKind::Directory => entry.mode |= 0o700,
        TreeKind::Symlink(_) => {}
    }
}

/// Whether a path is another one or below it.
fn is_within(path: &str, other: &str) -> bool {
    other.is_empty() || path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path below the directory of the job file, without `.` and `..`; none for a path of the host.
fn below(name: &str, path: &str) -> Result<Option<String>> {
    if path.starts_with(['/', '~']) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            ".." if parts.pop().is_none() => {
                let message = format!("`{name}`: `{path}` is outside of the directory of the job file");
                return Err(Error::new(Kind::Unsupported, message)
                    .help("move it there, or name a directory of the machine by an absolute path"));
            }
            "" | "." | ".." => {}
            part => parts.push(part),
        }
    }
    Ok(Some(parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(volumes: &serde_json::Value, writable: bool) -> JobPlan {
        let mounts: Vec<_> = volumes
            .as_object()
            .unwrap()
            .keys()
            .map(|name| json!({"volume": name, "path": format!("/{name}"), "writable": writable}))
            .collect();
        crate::machine::submit::tests::plan(volumes, &json!(mounts))
    }

    fn volume(kind: &str, path: &str) -> serde_json::Value {
        json!({"kind": kind, "source": {"kind": "path", "path": path}})
    }

    #[test]
    fn relative_data_goes_with_the_job_and_its_content_is_the_job() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("code/a")).unwrap();
        std::fs::write(directory.path().join("code/a/x.py"), "1").unwrap();
        let volumes = json!({
            "code": volume("data", "./code"), "there": volume("data", "/data"), "out": volume("output", "./result"),
        });
        let read = |writable| Sources::read(&plan(&volumes, writable), directory.path()).unwrap();
        let sources = read(false);
        assert_eq!(sources.tree.entries.keys().collect::<Vec<_>>(), ["code", "code/a", "code/a/x.py"]);
        assert_eq!(
            (sources.tree.entries["code/a/x.py"].mode, &sources.outputs[..]),
            (0o444, &["result".to_owned()][..])
        );
        assert_ne!(read(true).tree.entries["code/a/x.py"].mode & 0o200, 0);
        let before = sources.digest();
        assert_eq!(read(false).digest(), before);
        std::fs::write(directory.path().join("code/a/x.py"), "2").unwrap();
        assert_ne!(read(false).digest(), before);
    }

    #[test]
    fn a_path_stays_below_the_directory() {
        for (path, expected) in
            [("./a/../b//c", Some("b/c")), (".", Some("")), ("/a", None), ("~/a", None), ("a/..", Some(""))]
        {
            assert_eq!(below("x", path).unwrap().as_deref(), expected, "{path}");
        }
        assert!(below("x", "../a").unwrap_err().message().starts_with("`x`: `../a` is outside"));
        assert!(is_within("a/b", "a") && !is_within("ab", "a") && is_within("a", ""));
    }
}
