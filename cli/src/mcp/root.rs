//! The directory whose files the tools may name.

use camino::{Utf8Path, Utf8PathBuf};

use crate::input::reason;
use crate::platform::files::canonicalize;

/// The root directory: real and absolute.
#[derive(Clone, Debug)]
pub(super) struct Root(Utf8PathBuf);

impl Root {
    /// The directory of the option `--root`.
    ///
    /// # Errors
    /// It cannot be used, as a message.
    pub(super) fn open(directory: &Utf8Path) -> Result<Self, String> {
        let real = canonicalize(directory)
            .map_err(|error| format!("cannot use `{directory}`: {}", reason(&error)))?;
        if real.is_dir() { Ok(Self(real)) } else { Err(format!("`{directory}` is not a directory")) }
    }

    pub(super) fn path(&self) -> &Utf8Path {
        &self.0
    }

    /// The path of a file or directory that a client names, as a word of a command that runs in the root directory.
    ///
    /// # Errors
    /// It does not exist, or it is outside: by `..`, as an absolute path, or behind a symbolic link.
    pub(super) fn existing(&self, given: &str) -> Result<String, String> {
        let path = self.0.join(given);
        let outside =
            || format!("`{given}` is outside of the root directory `{}`: name a path below it", self.0);
        let real = match canonicalize(&path) {
            Ok(real) => real,
            // Whether a file outside exists is not revealed.
            Err(_)
                if path
                    .ancestors()
                    .skip(1)
                    .find_map(|above| canonicalize(above).ok())
                    .is_none_or(|above| !above.starts_with(&self.0)) =>
            {
                return Err(outside());
            }
            Err(error) => return Err(format!("cannot read `{given}`: {}", reason(&error))),
        };
        if !real.starts_with(&self.0) {
            return Err(outside());
        }
        // Not an option, and not the `-` that means stdin.
        Ok(if given.starts_with('-') { format!("./{given}") } else { given.to_owned() })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_root_are_accepted() {
        let scratch = tempfile::tempdir().unwrap();
        let top = Utf8Path::from_path(scratch.path()).unwrap();
        std::fs::create_dir_all(top.join("root/a")).unwrap();
        for file in ["secret", "root/job.yaml", "root/-", "root/a/job.yaml"] {
            std::fs::write(top.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("../secret", top.join("root/link")).unwrap();
        std::os::unix::fs::symlink("a", top.join("root/inner")).unwrap();
        let root = Root::open(&top.join("root")).unwrap();
        let absolute = root.path().join("job.yaml").into_string();
        for (given, word) in [
            ("job.yaml", "job.yaml"),
            (".", "."),
            ("-", "./-"),
            ("inner/job.yaml", "inner/job.yaml"),
            ("a/../job.yaml", "a/../job.yaml"),
            (&absolute, &absolute),
        ] {
            assert_eq!(root.existing(given).as_deref(), Ok(word));
        }
        for given in ["../secret", "link", "/etc/passwd", "/etc/missing", "..", "../missing"] {
            let why = root.existing(given).unwrap_err();
            assert!(why.contains("is outside of the root directory"), "{why}");
        }
        assert_eq!(root.existing("missing").unwrap_err(), "cannot read `missing`: no such file or directory");
        assert!(Root::open(&top.join("secret")).is_err());
        assert!(Root::open(&top.join("missing")).is_err());
    }
}
