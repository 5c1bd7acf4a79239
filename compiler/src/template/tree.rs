//! The files of a Git template, packed into one text whose digest is in `jobc.lock`.
//!
//! `jobc lock` packs the fetched files, and a build unpacks them: both are here, without I/O. A packed tree is the line
//! `jobc template files 1`, and for each file, sorted by path, a line `LENGTH PATH` and its content with a newline.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

/// The first line.
const HEADER: &[u8] = b"jobc template files 1\n";

/// The maximum number of files of a template.
pub const MAX_FILES: usize = 256;
/// The maximum total size of a template's files in bytes.
pub const MAX_BYTES: usize = 4 << 20;

/// Files by path. A path is relative, with `/` between names.
pub type Tree = BTreeMap<String, Vec<u8>>;

/// Why files cannot be a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackError {
    /// There are too many.
    TooMany,
    /// They are too large.
    TooLarge,
    /// A path has `..` or a control character.
    InvalidPath(String),
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "it has more than {MAX_FILES} files"),
            Self::TooLarge => write!(f, "its files have more than {} MiB", MAX_BYTES >> 20),
            Self::InvalidPath(path) => write!(f, "the path `{}` is invalid", path.escape_debug()),
        }
    }
}

/// Packs files.
///
/// # Errors
/// Fails for a tree that is not allowed.
pub fn pack(tree: &Tree) -> Result<Vec<u8>, PackError> {
    if tree.len() > MAX_FILES {
        return Err(PackError::TooMany);
    }
    if tree.values().map(Vec::len).sum::<usize>() > MAX_BYTES {
        return Err(PackError::TooLarge);
    }
    let mut out = HEADER.to_vec();
    for (path, bytes) in tree {
        if !is_path(path) {
            return Err(PackError::InvalidPath(path.clone()));
        }
        out.extend(format!("{} {path}\n", bytes.len()).bytes());
        out.extend(bytes);
        out.push(b'\n');
    }
    Ok(out)
}

/// Unpacks files; `None` for bytes that [`pack`] cannot produce.
pub fn unpack(bytes: &[u8]) -> Option<Tree> {
    let mut rest = bytes.strip_prefix(HEADER)?;
    let mut tree = Tree::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let (length, path) = line.split_once(' ')?;
        let length: usize = length.parse().ok()?;
        let (content, after) = rest[end + 1..].split_at_checked(length)?;
        rest = after.strip_prefix(b"\n")?;
        tree.insert(path.to_owned(), content.to_vec());
    }
    // Each tree has only one encoding: the order, the numbers and the paths must be those of `pack`.
    (pack(&tree).ok()? == bytes).then_some(tree)
}

/// The digest of packed files: `sha256:…`.
pub fn digest(packed: &[u8]) -> String {
    Sha256::digest(packed).iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_path(path: &str) -> bool {
    !path.contains('\\')
        && !path.chars().any(char::is_control)
        && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &[u8])]) -> Tree {
        files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect()
    }

    #[test]
    fn packed_files_are_unpacked() {
        let files = tree(&[("a/b.yaml", b"x\n5 c\n"), ("a.yaml", b""), ("\u{4f8b}", &[0, 255, 10])]);
        let packed = pack(&files).unwrap();
        assert_eq!(unpack(&packed), Some(files));
        assert_eq!(unpack(&pack(&Tree::new()).unwrap()), Some(Tree::new()));
        assert!(digest(&packed).starts_with("sha256:") && digest(&packed).len() == 71);
    }

    #[test]
    fn other_bytes_are_not_unpacked() {
        let packed = pack(&tree(&[("a", b"xy"), ("b", b"z")])).unwrap();
        for end in 0..packed.len() {
            // With a file missing, it is another tree.
            if let Some(found) = unpack(&packed[..end]) {
                assert!(found.len() < 2, "{end}");
            }
        }
        for text in [
            "1 a\nx\n01 b\nx\n",
            "1 b\nx\n1 a\nx\n",
            "1 a\nx\n1 a\ny\n",
            "9 a\nx\n",
            "1 ../a\nx\n",
            "1 /a\nx\n",
            "1 a/\nx\n",
            "x",
        ] {
            assert_eq!(unpack(&[HEADER, text.as_bytes()].concat()), None, "{text}");
        }
    }

    #[test]
    fn large_and_invalid_trees_are_rejected() {
        let many: Tree = (0..=MAX_FILES).map(|n| (n.to_string(), vec![])).collect();
        assert!(pack(&many).is_err());
        assert!(pack(&tree(&[("a", &vec![0; MAX_BYTES + 1])])).is_err());
        for path in ["..", "a/../b", "/a", "a\nb", "a\\b", "", "a//b", "./a"] {
            assert!(pack(&tree(&[(path, b"")])).is_err(), "{path:?}");
        }
    }
}
