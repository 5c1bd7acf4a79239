//! The files of a job that its tasks read and write, below `files` in the directory of a run.
//!
//! On this host that is a link to the directory of the job file. Over ssh, `data` with a relative path is sent by its
//! digest, only what is missing, and `outputs` with one are directories that stay when the run is removed.

use std::fmt::Write as _;
use std::path::Path;

use jobc_schema::digest::Digest;
use jobc_schema::plan::{VolumeKind, VolumePlan, VolumeSource};
use jobc_sys::error::{Error, Kind, Result, file_error};

use super::access::Access;
use super::upload::Archive;
use crate::host::{Host, SendFile, Tree, TreeKind};
use crate::place::Submission;

/// The directory of runs where the target names none.
const DEFAULT: &str = "~/.local/state/jobc/slurm";

/// Adds what leads to the files of a job.
pub(crate) fn add(archive: &mut Archive, access: &Access, submission: &Submission<'_>) -> Result<()> {
    let name = &submission.built.plan.name;
    let files = format!("{name}/files");
    if matches!(access.host, Host::Local) {
        archive.link(&files, &submission.directory.to_string_lossy());
        return Ok(());
    }
    let volumes = &submission.built.plan.volumes;
    let own = volumes.iter().filter(|(name, _)| !access.settings.storage.contains_key(*name));
    let own: Vec<(String, &VolumePlan)> =
        own.filter_map(|(_, volume)| Some((relative(&volume.source)?, volume))).collect();
    let mut outputs = String::new();
    for (path, volume) in &own {
        if path.split('/').any(|part| part == "..") || path.is_empty() && own.len() > 1 {
            let message = format!("`{path}` is outside of the directory of the job file");
            return Err(Error::new(Kind::Unsupported, message)
                .help("move it there, or name a directory of the cluster in `slurm.storage` of the target"));
        }
        let kept = if volume.kind == VolumeKind::Output {
            let _ = writeln!(outputs, "{path}");
            format!("outputs/{}/{path}", submission.identity.job)
        } else {
            send(access, &submission.directory.join(path))?
        };
        // `runs/NAME/files/a/b` is below the directory by its own depth and three.
        let depth = path.split('/').filter(|part| !part.is_empty()).count();
        let up = "../".repeat(depth + 2);
        let at = if path.is_empty() { files.clone() } else { format!("{files}/{path}") };
        archive.link(&at, &format!("{up}{kept}"));
    }
    if !outputs.is_empty() {
        archive.file(&format!("{name}/outputs"), 0o644, outputs.as_bytes());
    }
    Ok(())
}

/// The path of a volume if it is relative to the job file, without `.`.
fn relative(source: &VolumeSource) -> Option<String> {
    let VolumeSource::Path { path } = source else { return None };
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    (!path.starts_with('/')).then(|| parts.collect::<Vec<_>>().join("/"))
}

/// Sends a file or a directory; returns where it is below the directory of runs.
fn send(access: &Access, source: &Path) -> Result<String> {
    let directory = access.directory.as_deref().unwrap_or(DEFAULT);
    let store = format!("{directory}/store");
    let status = std::fs::metadata(source).map_err(|error| file_error("read", source, &error))?;
    if !status.is_dir() {
        let file = SendFile::read(source)?;
        let name = file.name();
        access.host.send(&store, &[file])?;
        return Ok(format!("store/sha256/{name}"));
    }
    let mut tree = Tree::default();
    tree.directory("", source)?;
    let digest = digest(&tree);
    access.host.send_tree(&store, &format!("{store}/trees/{digest}"), &tree)?;
    Ok(format!("store/trees/{digest}"))
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
    fn relative_paths_have_no_points() {
        let source = |path: &str| VolumeSource::Path { path: path.to_owned() };
        for (path, expected) in
            [("./a/b/", Some("a/b")), ("/a", None), (".", Some("")), ("../a", Some("../a"))]
        {
            assert_eq!(relative(&source(path)).as_deref(), expected, "{path}");
        }
    }
}
