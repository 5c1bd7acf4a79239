//! Directories on a host, made of files that it has by their digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use jobc_sys::error::{Error, Kind, Result, file_error};

use super::machine::Host;
use super::output::Output;
use super::send::{SendFile, Sent, check, transfer};
use super::store;

/// Timeout for the host to create a directory.
const MAKE_TIMEOUT: Duration = Duration::from_mins(10);

/// A directory to make on a host.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Its entries, by path.
    pub entries: BTreeMap<String, TreeEntry>,
}

/// A file, directory or link of a tree.
#[derive(Clone, Debug)]
pub struct TreeEntry {
    /// Its kind.
    pub kind: TreeKind,
    /// Its mode. A file that its owner can write is a copy; any other one is a hard link to the store's file, and its mode
    /// is 0444 or 0555.
    pub mode: u32,
}

/// The kinds of entries.
#[derive(Clone, Debug)]
pub enum TreeKind {
    /// A directory.
    Directory,
    /// A file.
    File(SendFile),
    /// A symbolic link with its target.
    Symlink(String),
}

/// An image that this host has and the remote host may lack.
#[derive(Clone, Debug)]
pub struct ImageLayout {
    /// The name that the plan has for it.
    pub reference: String,
    /// The digest of its manifest.
    pub digest: String,
    /// The layout: `oci-layout`, `index.json` and `blobs`.
    pub tree: Tree,
}

impl Tree {
    /// Adds a file. It is read-only there.
    pub fn file(&mut self, path: &str, file: SendFile) {
        let mode = if file.is_executable { 0o555 } else { 0o444 };
        self.entries.insert(path.to_owned(), TreeEntry { kind: TreeKind::File(file), mode });
    }

    /// Adds a directory of this host with everything in it, below a path of the tree; an empty path is the tree itself.
    ///
    /// # Errors
    ///
    /// A file in it cannot be read, is neither a regular file, a directory nor a link, or has a name that is not UTF-8.
    pub fn directory(&mut self, path: &str, source: &Path) -> Result<()> {
        let failed = |error: std::io::Error| file_error("read", source, &error);
        if !path.is_empty() {
            let mode = fs::metadata(source).map_err(failed)?.permissions().mode() & 0o777;
            self.entries.insert(path.to_owned(), TreeEntry { kind: TreeKind::Directory, mode });
        }
        for entry in fs::read_dir(source).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let at = entry.path();
            let failed = |error: std::io::Error| file_error("read", &at, &error);
            let no_text =
                || Error::new(Kind::Unsupported, format!("the name of `{}` is not UTF-8", at.display()));
            let name = entry.file_name().into_string().map_err(|_| no_text())?;
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            let status = entry.metadata().map_err(failed)?;
            let kind = status.file_type();
            if kind.is_dir() {
                self.directory(&below, &at)?;
                continue;
            }
            let kind = if kind.is_symlink() {
                let target = fs::read_link(&at).map_err(failed)?;
                TreeKind::Symlink(target.into_os_string().into_string().map_err(|_| no_text())?)
            } else if kind.is_file() {
                TreeKind::File(SendFile::read(&at)?)
            } else {
                let message = format!("`{}` is neither a file nor a directory nor a link", at.display());
                return Err(Error::new(Kind::Unsupported, message));
            };
            self.entries.insert(below, TreeEntry { kind, mode: status.permissions().mode() & 0o777 });
        }
        Ok(())
    }

    /// Its files.
    pub fn files(&self) -> Vec<SendFile> {
        let file = |entry: &TreeEntry| match &entry.kind {
            TreeKind::File(file) => Some(file.clone()),
            _ => None,
        };
        self.entries.values().filter_map(file).collect()
    }

    /// The lines of the script that makes it.
    fn script(&self) -> String {
        let mut directories = BTreeSet::new();
        let mut modes: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        let mut lines = String::new();
        for (path, entry) in &self.entries {
            let parent = path.rsplit_once('/').map(|(parent, _)| parent);
            directories.extend(parent);
            match &entry.kind {
                TreeKind::Directory => {
                    directories.insert(path.as_str());
                    modes.entry(entry.mode).or_default().push(path);
                }
                TreeKind::Symlink(target) => lines += &store::symlink(target, path),
                TreeKind::File(file) if entry.mode & 0o200 == 0 => lines += &store::link(&file.name(), path),
                TreeKind::File(file) => {
                    lines += &store::copy(&file.name(), path);
                    modes.entry(entry.mode).or_default().push(path);
                }
            }
        }
        let directories: Vec<&str> = directories.into_iter().collect();
        let mut script = store::directories(&directories) + &lines;
        for (mode, mut paths) in modes {
            // A directory comes after its contents: its mode may not allow entering it.
            paths.reverse();
            script.push_str(&store::modes(mode, &paths));
        }
        script
    }
}

impl Host {
    /// Sends a directory: missing files as by [`Self::send`], then the directory itself, made of hard links to the
    /// store's files, or copies where there cannot be links. It gets its name when it is complete; if that exists
    /// already, nothing happens.
    ///
    /// # Errors
    ///
    /// As for [`Self::send`].
    pub fn send_tree(&self, store: &str, directory: &str, tree: &Tree) -> Result<Sent> {
        let (sent, made) = self.send_tree_and_run(store, directory, tree, "", MAKE_TIMEOUT)?;
        check(self, "make a directory", &made)?;
        Ok(sent)
    }

    /// As above, then runs a script over the same connection, whether or not the directory existed. The script has no
    /// standard input; it may contain secrets, because it is not on a command line. Exit code 98 is reserved.
    ///
    /// # Errors
    ///
    /// As for [`Self::send`]; a directory that cannot be created makes the script fail.
    pub fn send_tree_and_run(
        &self,
        store: &str,
        directory: &str,
        tree: &Tree,
        script: &str,
        timeout: Duration,
    ) -> Result<(Sent, Output)> {
        let files = tree.files();
        let names: BTreeSet<String> = files.iter().map(SendFile::name).collect();
        let names: Vec<String> = names.into_iter().collect();
        let script = store::make(&names, &tree.script(), script);
        // A shell that reads its script from a pipe would share it with the programs that it runs.
        let command =
            ["sh", "-c", r#"script=$(cat); exec </dev/null; eval "$script""#, "sh", store, directory];
        let run = || self.run(&command, Some(script.as_bytes()), timeout);
        let first = run()?;
        if first.status != store::MISSING {
            return Ok((Sent::default(), first));
        }
        let sent = transfer(self, store, files.iter(), &first)?;
        Ok((sent, run()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_directory_arrives_unchanged() {
        let scratch = tempfile::tempdir().unwrap();
        let source = scratch.path().join("source");
        fs::create_dir_all(source.join("it's/-n b")).unwrap();
        fs::write(source.join("it's/-n b/a\nb"), "odd").unwrap();
        fs::write(source.join("-rf"), "").unwrap();
        fs::write(source.join("run"), "#!").unwrap();
        fs::set_permissions(source.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("it's", source.join("link")).unwrap();
        let mut tree = Tree::default();
        tree.directory("", &source).unwrap();
        tree.file("below/one", SendFile::bytes(b"one".to_vec()));
        let store = scratch.path().join("store");
        let made = scratch.path().join("jobs/made 1");
        let (store, to) = (store.to_str().unwrap(), made.to_str().unwrap());
        let sent = Host::local().send_tree(store, to, &tree).unwrap();
        assert_eq!((sent.files, sent.bytes), (4, 8));
        assert_eq!(fs::read_to_string(made.join("link/-n b/a\nb")).unwrap(), "odd");
        assert_eq!(fs::metadata(made.join("-rf")).unwrap().len(), 0);
        let mode_of = |path: &str| fs::metadata(made.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode_of("run"), mode_of("below/one")), (0o755, 0o444));
        assert_eq!(fs::metadata(made.join("below/one")).unwrap().nlink(), 2);
        assert_eq!(fs::metadata(made.join("run")).unwrap().nlink(), 1);
        // A second time nothing changes.
        fs::write(made.join("mine"), "").unwrap();
        assert_eq!(Host::local().send_tree(store, to, &tree).unwrap(), Sent::default());
        assert!(made.join("mine").exists());
        assert_eq!(fs::read_dir(made.parent().unwrap()).unwrap().count(), 1);
    }
}
