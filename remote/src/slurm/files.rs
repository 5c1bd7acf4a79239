//! The files of a job that its tasks read and write, below `files` in the directory of a run.
//!
//! On this host that is a link to the directory of the job file. Over ssh, `data` with a relative path is sent by its
//! digest, only what is missing, and `outputs` with one are directories that stay when the run is removed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use jobc_schema::digest::Digest;
use jobc_schema::plan::{JobPlan, VolumeKind, VolumeSource};
use jobc_schema::target::SlurmTarget;
use jobc_sys::error::{Error, Kind, Result, file_error};

use super::login::NewRun;
use crate::host::{Host, SendFile, Tree, TreeKind};
use crate::place::Submission;

/// The files sent with a job to a host over ssh.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// By path below the directory of the job file.
    parts: BTreeMap<String, Content>,
}

/// The file at a path.
#[derive(Clone, Debug)]
enum Content {
    /// A directory that the job writes.
    Output,
    File(SendFile),
    Directory(Tree),
}

impl Contents {
    /// Reads the files of a job. `directory` is that of the job file.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or is outside of the directory.
    pub(crate) fn read(settings: &SlurmTarget, plan: &JobPlan, directory: &Path) -> Result<Self> {
        let mut parts = BTreeMap::new();
        let own = plan.volumes.iter().filter(|(name, _)| !settings.storage.contains_key(*name));
        for (name, volume) in own {
            let Some(path) = relative(&volume.source) else { continue };
            if path.split('/').any(|part| part == "..") {
                return Err(outside(&path));
            }
            let content = if volume.kind == VolumeKind::Output {
                Content::Output
            } else {
                Content::read(name, &directory.join(&path))?
            };
            parts.insert(path, content);
        }
        // The directory itself cannot be a link and have links in it.
        if parts.len() > 1 && parts.contains_key("") {
            return Err(outside(""));
        }
        Ok(Self { parts })
    }

    /// The digest of the files that are sent: other content is another job.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let mut text = String::new();
        for (path, content) in &self.parts {
            let digest = match content {
                Content::Output => continue,
                Content::File(file) => file.name(),
                Content::Directory(tree) => digest(tree),
            };
            let _ = writeln!(text, "{path:?} {digest}");
        }
        (!text.is_empty()).then(|| Digest::of(text.as_bytes()))
    }

    /// Sends the files that the host lacks, and adds links to them. `directory` is that of all runs there.
    pub(crate) fn add(
        &self,
        run: &mut NewRun,
        host: &Host,
        directory: &str,
        submission: &Submission<'_>,
    ) -> Result<()> {
        let store = format!("{directory}/store");
        for (path, content) in &self.parts {
            let kept = if matches!(content, Content::Output) {
                let output = format!("outputs/{}/{path}", submission.identity.job);
                run.outputs.push(output.clone());
                output
            } else {
                send(host, &store, content)?
            };
            // `runs/NAME/files/a/b` is below the directory by its own depth and three.
            let depth = path.split('/').filter(|part| !part.is_empty()).count();
            let up = "../".repeat(depth + 2);
            let at = if path.is_empty() { "files".to_owned() } else { format!("files/{path}") };
            run.link(&at, &format!("{up}{kept}"));
        }
        Ok(())
    }
}

impl Content {
    fn read(name: &str, source: &Path) -> Result<Self> {
        let status = std::fs::metadata(source).map_err(|error| {
            let error = file_error("read", source, &error);
            error.at_field(format!("data.{name}.source"))
        })?;
        if !status.is_dir() {
            return SendFile::read(source).map(Self::File);
        }
        let mut tree = Tree::default();
        tree.directory("", source)?;
        Ok(Self::Directory(tree))
    }
}

fn outside(path: &str) -> Error {
    let message = format!("`{path}` is outside of the directory of the job file");
    Error::new(Kind::Unsupported, message)
        .help("move it there, or name a directory of the cluster in `slurm.storage` of the target")
}

/// The path of a volume if it is relative to the job file, without `.`.
fn relative(source: &VolumeSource) -> Option<String> {
    let VolumeSource::Path { path } = source else { return None };
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    (!path.starts_with('/')).then(|| parts.collect::<Vec<_>>().join("/"))
}

/// Sends a file that the host may have; returns where it is below the directory of runs.
pub(crate) fn send_file(host: &Host, directory: &str, file: &SendFile) -> Result<String> {
    let store = format!("{directory}/store");
    send(host, &store, &Content::File(file.clone()))
}

/// Sends a file or a directory; returns where it is below the directory of runs.
fn send(host: &Host, store: &str, content: &Content) -> Result<String> {
    match content {
        Content::Output => Ok(String::new()),
        Content::File(file) => {
            host.send(store, std::slice::from_ref(file))?;
            Ok(format!("store/sha256/{}", file.name()))
        }
        Content::Directory(tree) => {
            let digest = digest(tree);
            host.send_tree(store, &format!("{store}/trees/{digest}"), tree)?;
            Ok(format!("store/trees/{digest}"))
        }
    }
}

/// The digest of a directory: of its names, modes and contents.
fn digest(tree: &Tree) -> String {
    let mut text = String::new();
    for (path, entry) in &tree.entries {
        let kind = match &entry.kind {
            TreeKind::Directory => "directory".to_owned(),
            TreeKind::File(file) => file.name(),
            TreeKind::Symlink(target) => format!("link {target:?}"),
        };
        let _ = writeln!(text, "{path:?} {:o} {kind}", entry.mode);
    }
    Digest::of(text.as_bytes()).hex().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_the_digest_of_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let tree = || {
            let mut tree = Tree::default();
            tree.directory("", directory.path()).unwrap();
            digest(&tree)
        };
        std::fs::write(directory.path().join("a"), "1").unwrap();
        let first = tree();
        assert_eq!(first, tree());
        std::fs::write(directory.path().join("a"), "2").unwrap();
        assert_ne!(first, tree());
    }

    #[test]
    fn another_content_is_another_job() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "1").unwrap();
        let contents = |output: bool| {
            let content =
                if output { Ok(Content::Output) } else { Content::read("a", &directory.path().join("a")) };
            Contents { parts: BTreeMap::from([("a".to_owned(), content.unwrap())]) }
        };
        let first = contents(false).digest();
        assert_eq!((contents(true).digest(), contents(false).digest()), (None, first.clone()));
        std::fs::write(directory.path().join("a"), "2").unwrap();
        assert!(first.is_some() && contents(false).digest() != first);
        let error = Content::read("code", &directory.path().join("b")).unwrap_err();
        assert!(error.to_string().starts_with("`data.code.source`: "), "{error}");
    }

    #[test]
    fn relative_paths_have_no_points() {
        let source = |path: &str| VolumeSource::Path { path: path.to_owned() };
        for (path, expected) in
            [("./a/b/", Some("a/b")), ("/a", None), (".", Some("")), ("../a", Some("../a"))]
        {
            assert_eq!(relative(&source(path)).as_deref(), expected, "{path}");
        }
    }
}
