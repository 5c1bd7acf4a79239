//! The code of a job, whose files are sent one by one: after an edit, only the file that changed.

use std::io::{BufReader, Read as _};

use jobc_container::decompress::decompressing_reader;
use jobc_container::tar::{Content, Kind as EntryKind, Reader};
use jobc_schema::plan::CODE_DIRECTORY;
use jobc_sys::error::{Error, Kind, Result};

use crate::host::{SendFile, Tree, TreeEntry, TreeKind};

/// Adds the files of the packed code to those of a run. The job may write to them: they are its own copies.
pub(super) fn unpack(packed: &[u8], tree: &mut Tree) -> Result<()> {
    let broken = |error: std::io::Error| Error::new(Kind::System, "cannot unpack the code").because(error);
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            let name = String::from_utf8_lossy(bytes);
            Error::new(Kind::Unsupported, format!("`code`: the name of `{name}` is not UTF-8"))
                .help("rename it, or name it in `.jobcignore`")
        })
    };
    let root = format!("files/{CODE_DIRECTORY}");
    tree.entries.insert(root.clone(), TreeEntry { kind: TreeKind::Directory, mode: 0o755 });
    let mut archive = Reader::new(BufReader::new(decompressing_reader(packed).map_err(broken)?));
    while let Some(entry) = archive.next().map_err(broken)? {
        let path = format!("{root}/{}", text(&entry.path)?.trim_end_matches('/'));
        let kind = match entry.kind {
            EntryKind::Directory => TreeKind::Directory,
            EntryKind::Symlink => TreeKind::Symlink(text(&entry.link)?),
            _ => {
                let mut bytes = Vec::new();
                Content::new(&mut archive, &entry).read_to_end(&mut bytes).map_err(broken)?;
                TreeKind::File(SendFile::bytes(bytes))
            }
        };
        tree.entries.insert(path, TreeEntry { kind, mode: entry.mode & 0o777 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn the_files_are_those_of_the_archive() {
        let scratch = tempfile::tempdir().unwrap();
        let source = scratch.path().join("source");
        fs::create_dir_all(source.join("lib")).unwrap();
        fs::write(source.join("lib/a.py"), "1").unwrap();
        std::os::unix::fs::symlink("lib", source.join("link")).unwrap();
        let packed = scratch.path().join("code.tar.gz");
        let tar = Command::new("tar")
            .arg("-czf")
            .arg(&packed)
            .arg("-C")
            .arg(&source)
            .args(["lib", "link"])
            .status();
        assert!(tar.unwrap().success());
        let mut tree = Tree::default();
        unpack(&fs::read(&packed).unwrap(), &mut tree).unwrap();
        let paths: Vec<&str> = tree.entries.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "files/.jobc-code",
                "files/.jobc-code/lib",
                "files/.jobc-code/lib/a.py",
                "files/.jobc-code/link"
            ]
        );
        assert_eq!(tree.entries["files/.jobc-code/lib/a.py"].mode & 0o200, 0o200);
        assert!(
            matches!(&tree.entries["files/.jobc-code/link"].kind, TreeKind::Symlink(target) if target == "lib")
        );
    }
}
