//! A hook's file: opened once, checked that no other user can change it, and executed through that file descriptor.
//!
//! A program is executed through its file descriptor, so that the checked file runs even if its path changes meanwhile.
//! A script cannot be: its interpreter opens it by name, and scripts use files next to them. So a script must be in a
//! directory where no other user can replace it.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat};

use jobc_sys::error::{Error, Kind, Result, describe};

/// A hook's file.
#[derive(Debug)]
pub struct Program {
    file: OwnedFd,
    /// Its path without symbolic links.
    path: PathBuf,
    script: bool,
}

impl Program {
    /// Finds the file at an absolute path and checks whether it may run: an executable file that belongs to root or to
    /// the user who runs jobc and that only its owner can change, or this program itself; a script must also be in
    /// directories for which the same holds.
    ///
    /// # Errors
    /// [`Kind::Hook`], or [`Kind::Config`] for a relative path, with the place `/path`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::find(path).map_err(|error| error.at("/path"))
    }

    fn find(path: &Path) -> Result<Self> {
        let shown = path.display();
        if !path.is_absolute() {
            return Err(Error::new(Kind::Config, format!("the path `{shown}` of a hook is not absolute"))
                .help("write the absolute path of the program"));
        }
        let refused = |why: String| Error::new(Kind::Hook, format!("the hook `{shown}` {why}"));
        let file = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| refused(format!("cannot be opened: {}", describe(errno))))?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| Error::system("look at a hook", errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused("is not a file".into()).help("name a program"));
        }
        if stat.st_mode & 0o111 == 0 {
            return Err(refused("is not executable".into()).help(format!("run `chmod +x {shown}`")));
        }
        if !is_this_program(&stat) {
            check_permissions(&stat).map_err(|why| {
                refused(why)
                    .help("a hook runs with your privileges, so only you or root may have write access")
            })?;
        }
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let resolved = std::fs::read_link(&link)
            .map_err(|error| refused(format!("cannot be found in /proc: {error}")).help("mount /proc"))?;
        let mut start = [0; 2];
        // A script must be readable to be run.
        let read = std::fs::File::open(&link).and_then(|mut file| file.read_exact(&mut start));
        let script = read.is_ok() && start == *b"#!";
        let program = Self { file, path: resolved, script };
        if script {
            program.check_directories()?;
        }
        Ok(program)
    }

    /// Checks that no other user can replace the file in its directories, as `find` does for scripts.
    pub fn check_directories(&self) -> Result<()> {
        let shown = self.path.display();
        for directory in self.path.ancestors().skip(1) {
            let why = match rustix::fs::lstat(directory) {
                Ok(stat) => match check_permissions(&stat) {
                    Err(_) if stat.st_mode & 0o1000 != 0 && is_own_or_root(&stat) => continue, // sticky, as /tmp
                    Err(why) => why,
                    Ok(()) => continue,
                },
                Err(errno) => format!("cannot be checked: {}", describe(errno)),
            };
            let message =
                format!("the hook `{shown}` can be replaced: its directory `{}` {why}", directory.display());
            return Err(
                Error::new(Kind::Hook, message).help("move it to a directory that only its owner can write")
            );
        }
        Ok(())
    }

    /// The program to execute, in a process that has inherited this one's file descriptors.
    pub(super) fn executable(&self) -> OsString {
        if self.script {
            self.path.clone().into()
        } else {
            format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
        }
    }
}

/// Whether only root and the user who runs jobc can change a file; if not, why.
fn check_permissions(stat: &Stat) -> std::result::Result<(), String> {
    match stat.st_mode & 0o022 {
        _ if !is_own_or_root(stat) => Err(format!("belongs to user {}, not to root or you", stat.st_uid)),
        0 => Ok(()),
        0o020 => Err(format!("is writable by group {}", stat.st_gid)),
        _ => Err("is writable by every user".into()),
    }
}

/// Whether a file is that of the program that runs this: a user who can change it has its rights already.
///
/// With `sudo ./jobc run` of a user's own build, root's GPU hooks are that user's program.
fn is_this_program(stat: &Stat) -> bool {
    rustix::fs::stat("/proc/self/exe").is_ok_and(|own| (own.st_dev, own.st_ino) == (stat.st_dev, stat.st_ino))
}

fn is_own_or_root(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw()
}
