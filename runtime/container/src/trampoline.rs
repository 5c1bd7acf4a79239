//! The last step before the user's program: a sealed executable that contains nothing of this one.
//!
//! A container's first process that executed the user's program directly would have this runtime's own file as
//! `/proc/self/exe` until then, and an image whose program is `/proc/self/exe`, or a script with `#!/proc/self/exe`,
//! would run that file inside the container and could hold it open to overwrite it later (CVE-2019-5736). So the
//! process executes a trampoline first: a static program of about 1,500 bytes, made for this container in memory,
//! sealed against writing, which loads the seccomp filter and executes the user's program. A process that executes the
//! container's files never has a file of the host as its executable.
//!
//! A security module's label for the next program is set here too: it holds for one `execve`, which must be the
//! program's, and the kernel refuses writes by a process that has executed another program since opening the file.
//!
//! It also loads the filter at the last possible point, so that a profile only has to allow `execve` for it, and
//! searches `PATH` with the container's own rights.
//!
//! The image is one read-only segment at a fixed address:
//!
//! ```text
//! ELF header, program headers | code | Header | candidates | filter | strings
//! ```
//!
//! Its arguments and environment are those of the user's program: they are on its stack, and it passes them on. The
//! second `execve` adds about 40 microseconds to a start (`time_to_pass` in the tests), and building the image 10 to
//! 25.

pub mod birth;
mod code;
pub mod failure;
mod image;
pub mod init;
pub mod report;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString};
use std::os::fd::{OwnedFd, RawFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use crate::seccomp::Program;
use birth::ProgramProcess;
use jobc_sys::error::{Error, Result};

pub use failure::{Failure, LISTENER_TAKEN};

/// The name of the file in memory; `/proc/self/exe` shows `/memfd:jobc-exec` for the moment it runs.
const MEMFD_NAME: &CStr = c"jobc-exec";

/// The label of a security module for the program: a string for one of the process's attributes (proc_pid_attr(5)).
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    /// The directory of the process's own attributes, by its file descriptor's number in the process that executes the
    /// trampoline. There it must not be close-on-exec; the trampoline closes it.
    pub attributes: RawFd,
    /// The attribute's file in it.
    pub file: &'a CStr,
    /// The string to write.
    pub text: &'a [u8],
}

/// Creates a trampoline: a sealed executable in memory, to be run by `execveat(fd, "", argv, envp, AT_EMPTY_PATH)` with
/// the arguments and the environment of the user's program.
///
/// It writes the label, loads the filter, which needs no-new-privileges or CAP_SYS_ADMIN, and executes the first
/// candidate that can be executed, going on after "not found" and "permission denied" as execvp(3) does. On success
/// `report` closes. On failure the trampoline writes a [`Failure`] to it and exits: 127 if no candidate was found, 126
/// if one was, 125 if the label or the filter was refused.
///
/// `report` is a file descriptor's number in the process that executes the trampoline. There it must not be
/// close-on-exec, because it must survive one `execve`; the trampoline sets the flag for the second.
///
/// A filter with a listener ([`Program::notifies`]) needs `reply`, another such file descriptor: the trampoline writes
/// [`Failure::LISTENER`] with the listener's number to `report`, and continues when it reads [`LISTENER_TAKEN`] from `reply`. At
/// its end, at another byte and after 30 seconds it exits with 125.
///
/// `process` is the process that becomes the program: the trampoline's own, a second one after which the trampoline ends
/// ([`birth`]), or a second one below the trampoline, which stays as its init ([`init`]).
///
/// The trampoline must not execute itself forever if a candidate is `/proc/self/exe`, or a script whose interpreter is.
/// The second time `report` is closed, and that is how it knows: it prints a message on standard error and exits with
/// 126.
///
/// # Errors
/// [`Kind::Machine`] if the kernel allows no executable memory file, as with the sysctl `vm.memfd_noexec` at 2.
pub fn build(
    candidates: &[CString],
    filter: Option<&Program>,
    label: Option<Label<'_>>,
    report: RawFd,
    reply: Option<RawFd>,
    process: ProgramProcess,
) -> Result<OwnedFd> {
    let image = image::build_image(code::bytes(), candidates, filter, label, report, reply, process);
    let file = executable_memory().map_err(refused)?;
    fill(&file, &image).map_err(|errno| Error::system("write the program that starts the user's", errno))?;
    Ok(file)
}

/// An empty file in memory that may be executed. Kernels before 6.3 know no `MFD_EXEC`, and need none.
fn executable_memory() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(MEMFD_NAME, flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(MEMFD_NAME, flags),
        result => result,
    }
}

fn refused(errno: Errno) -> Error {
    let error = Error::system("make an executable file in memory", errno);
    match errno {
        Errno::ACCESS => error.help("the sysctl `vm.memfd_noexec` is 2 here; set it to 0 or 1"),
        _ => error,
    }
}

fn fill(file: &OwnedFd, image: &[u8]) -> rustix::io::Result<()> {
    let mut rest = image;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(file, rest)?..];
    }
    rustix::fs::fcntl_add_seals(
        file,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )
}
