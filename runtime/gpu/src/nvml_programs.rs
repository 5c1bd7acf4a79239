//! The programs that can query NVML: `jobc-nvml`, if it was installed with this one, and this program itself.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The word after the program's name that makes it ask NVML; the files to try for the library follow.
pub const COMMAND: &str = "gpu-nvml";

/// The program that is linked as most are, and so can load this host's libraries.
const PROGRAM: &str = "jobc-nvml";

/// Its search path, relative to the directory of this program.
const SEARCH_DIRECTORIES: [&str; 2] = [".", "../libexec/jobc"];

/// A command that queries NVML; the library's files are added to its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmlProgram {
    program: PathBuf,
    args: Vec<OsString>,
}

impl NvmlProgram {
    /// A program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: vec![] }
    }

    /// The same with a word behind it.
    #[must_use]
    pub fn arg(mut self, word: impl Into<OsString>) -> Self {
        self.args.push(word.into());
        self
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether it is a separate program, and not this one again.
    pub fn is_separate(&self) -> bool {
        self.args.first().is_none_or(|word| word != COMMAND)
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        command
    }
}

/// Those available to this program, in the order in which they are tried.
pub(crate) fn available_programs() -> Vec<NvmlProgram> {
    let own = NvmlProgram::new("/proc/self/exe").arg(COMMAND);
    let beside = std::fs::read_link("/proc/self/exe").ok().and_then(|program| installed_beside(&program));
    beside.into_iter().map(NvmlProgram::new).chain([own]).collect()
}

/// `jobc-nvml`, if it was installed with a program.
///
/// The program may be in a world-writable directory: a file that another user has put there is not executed.
fn installed_beside(program: &Path) -> Option<PathBuf> {
    let owner = program.metadata().ok()?.uid();
    let directory = program.parent()?;
    SEARCH_DIRECTORIES.iter().map(|name| directory.join(name).join(PROGRAM)).find_map(|path| {
        let path = path.canonicalize().ok()?;
        let file = path.metadata().ok()?;
        let is_trusted = [0, owner].contains(&file.uid()) && file.mode() & 0o022 == 0;
        (is_trusted && file.is_file() && file.mode() & 0o111 != 0).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir_all, set_permissions, write};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_found_where_it_was_installed_unless_somebody_else_could_have_put_it_there() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        let (program, near, far) =
            (root.join("bin/jobc"), root.join("bin/jobc-nvml"), root.join("libexec/jobc/jobc-nvml"));
        let place = |path: &Path, mode| {
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, "").unwrap();
            set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        place(&program, 0o755);
        assert_eq!(installed_beside(&program), None);
        place(&far, 0o755);
        assert_eq!(installed_beside(&program), Some(far.clone()));
        place(&near, 0o755);
        assert_eq!(installed_beside(&program), Some(near.clone()));
        for mode in [0o777, 0o775, 0o644] {
            place(&near, mode);
            assert_eq!(installed_beside(&program), Some(far.clone()), "{mode:o}");
        }
        if rustix::process::geteuid().is_root() {
            place(&near, 0o755);
            std::os::unix::fs::chown(&near, Some(12345), None).unwrap();
            assert_eq!(installed_beside(&program), Some(far));
        }
    }
}
