//! Copies files into a task and out of it: a tar archive through a command in the task.
//!
//! The task's image must have `tar`. What comes out of a task is not trusted: [`unpack`] writes nothing outside of the
//! destination.

mod pack;
mod unpack;

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::place::{Copied, CopyRequest, ExecRequest, ExecStreams};

/// Maximum number of bytes shown of a command's errors.
const MAX_ERROR: u64 = 4096;
/// The exit code of a command whose program is not in the task.
const NOT_FOUND: u8 = 127;

/// A task, and how a command runs in it.
pub(crate) struct CopyTask<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Runs a command to its end.
    pub(crate) exec: &'a dyn Fn(&ExecRequest, ExecStreams<'_>) -> Result<u8>,
}

/// Copies files.
pub(crate) fn copy(task: &CopyTask<'_>, request: &CopyRequest) -> Result<Copied> {
    if request.into_task { copy_in(task, request) } else { copy_out(task, request) }
}

fn copy_in(task: &CopyTask<'_>, request: &CopyRequest) -> Result<Copied> {
    let source = request.local.as_path();
    let name = source.canonicalize().at_path("read", source)?;
    let name = name.file_name().and_then(|name| name.to_str()).unwrap_or("root").to_owned();
    // As cp: into an existing directory, or under the new name.
    let is_directory =
        request.remote.ends_with('/') || run(task, &["test", "-d", &request.remote])?.code == 0;
    let (parent, name) = if is_directory { (request.remote.clone(), name) } else { split(&request.remote)? };
    let (ours, theirs) = pipe()?;
    let source = request.local.clone();
    let packing = std::thread::spawn(move || pack::pack(&source, &name, File::from(theirs)));
    let command = ["tar", "-xof", "-", "-C", &parent];
    let done = run_with(task, &command, Some(ours), None)?;
    let copied = packing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // A task whose disk is full ends the archive early: its own message says more.
    done.check(task)?;
    copied
}

fn copy_out(task: &CopyTask<'_>, request: &CopyRequest) -> Result<Copied> {
    let (parent, name) = split(&request.remote)?;
    let destination: PathBuf =
        if request.local.is_dir() { request.local.join(&name) } else { request.local.clone() };
    let (ours, theirs) = pipe()?;
    let archived = name.clone();
    let unpacking = std::thread::spawn(move || unpack::unpack(File::from(ours), &archived, &destination));
    let done = run_with(task, &["tar", "-cf", "-", "-C", &parent, &format!("./{name}")], None, Some(theirs));
    let copied = unpacking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let done = done?;
    match copied {
        // A command that failed has no complete archive.
        Ok(copied) if copied.entries > 0 => done.check(task).map(|()| copied),
        Ok(_) => {
            done.check(task)?;
            Err(Error::new(Kind::System, format!("task `{}` sent no files", task.name)))
        }
        Err(error) => {
            done.check(task)?;
            Err(error)
        }
    }
}

/// The directory and the name of a path in a task.
fn split(path: &str) -> Result<(String, String)> {
    let trimmed = path.trim_end_matches('/');
    let wrong = || {
        Error::new(Kind::Config, format!("cannot copy `{}`: it has no name", path.escape_debug()))
            .help("name a file or a directory, such as `train-0:/output/model.pt`")
    };
    let name = Path::new(trimmed).file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
    let parent = trimmed[..trimmed.len() - name.len()].trim_end_matches('/');
    let parent = match parent {
        "" if trimmed.starts_with('/') => "/",
        "" => ".",
        parent => parent,
    };
    Ok((parent.to_owned(), name.to_owned()))
}

/// How a command in a task ended.
struct Done {
    code: u8,
    errors: String,
}

impl Done {
    fn check(&self, task: &CopyTask<'_>) -> Result<()> {
        if self.code == 0 {
            return Ok(());
        }
        let why =
            if self.errors.is_empty() { format!("exit code {}", self.code) } else { self.errors.clone() };
        Err(Error::new(Kind::System, format!("`tar` in task `{}` failed: {why}", task.name)))
    }
}

fn run(task: &CopyTask<'_>, command: &[&str]) -> Result<Done> {
    run_with(task, command, None, None)
}

fn run_with(
    task: &CopyTask<'_>,
    command: &[&str],
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
) -> Result<Done> {
    let request = ExecRequest {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        needs_end_of_input: stdin.is_some(),
        ..ExecRequest::default()
    };
    let (errors, stderr) = pipe()?;
    let reading = std::thread::spawn(move || {
        let (mut file, mut text) = (File::from(errors), Vec::new());
        let _ = (&mut file).take(MAX_ERROR).read_to_end(&mut text);
        let _ = std::io::copy(&mut file, &mut std::io::sink());
        String::from_utf8_lossy(&text).trim().replace('\n', "; ")
    });
    let stdout = match stdout {
        Some(stdout) => stdout,
        None => File::options().write(true).open("/dev/null").at_path("open", "/dev/null")?.into(),
    };
    let code = (task.exec)(&request, ExecStreams { stdin, stdout, stderr, signals: None, started: None });
    let errors = reading.join().unwrap_or_default();
    match code {
        Ok(NOT_FOUND) => Err(without_program(task, command[0])),
        Ok(code) => Ok(Done { code, errors }),
        Err(error) if error.kind == Kind::ProgramNotFound => Err(without_program(task, command[0])),
        Err(error) => Err(error),
    }
}

fn without_program(task: &CopyTask<'_>, program: &str) -> Error {
    let message = format!("the image of task `{}` has no `{program}`", task.name);
    let help = "read a file with `jobc exec TARGET/NAME TASK -- cat FILE`, or add `tar` to the image";
    Error::new(Kind::Unsupported, message).help(help)
}

/// The end to read from, and the end to write to.
fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::system("make a pipe", errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_directory_and_a_name() {
        for (path, parent, name) in [
            ("/output/model.pt", "/output", "model.pt"),
            ("/output/", "/", "output"),
            ("model.pt", ".", "model.pt"),
            ("a/b/", "a", "b"),
            ("//x", "/", "x"),
        ] {
            assert_eq!(split(path).unwrap(), (parent.to_owned(), name.to_owned()), "{path}");
        }
        for path in ["/", "", "..", "/a/.."] {
            assert!(split(path).is_err(), "{path}");
        }
    }
}
