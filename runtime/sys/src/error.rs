//! Errors between a bundle and a running container, as text for the user who started it.

mod errno;

use std::fmt;
use std::path::Path;

use rustix::io::Errno;

use jobc_schema::digest::DigestError;
use jobc_schema::reference::ReferenceError;

/// An error of the runtime: what is wrong, where, and what to do.
///
/// Shown as `config.json: /mounts/3/options: …`, with the advice on a line of its own, which the command line prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The type of the error; determines the exit code.
    pub kind: Kind,
    /// The message: lower case, no period, names in backticks.
    pub message: String,
    /// A JSON Pointer into config.json, where a field is at fault.
    pub pointer: Option<String>,
    /// The advice.
    pub help: Option<String>,
}

/// The sorts of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// config.json is not what the OCI runtime specification allows.
    Config,
    /// A known field requests something that this runtime does not support.
    Unsupported,
    /// A limit or isolation is not possible on this host, or for this user.
    Unenforceable,
    /// The kernel, or something on the host, refused a step.
    System,
    /// A container of that name exists, does not exist, or is in another state.
    State,
    /// A hook failed, or took too long.
    Hook,
    /// Something that the user named does not exist.
    NotFound,
    /// The program was not found in the container: exit code 127.
    ProgramNotFound,
    /// The program was found and cannot be executed: exit code 126.
    NotExecutable,
}

/// A result of the runtime.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of a type with its message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), pointer: None, help: None }
    }

    /// The kernel refused to do `what` (words that follow "cannot").
    pub fn system(what: impl fmt::Display, errno: impl Into<Errno>) -> Self {
        Self::new(Kind::System, format!("cannot {what}: {}", describe(errno.into())))
    }

    /// Says which field of config.json is at fault, by its JSON Pointer.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Says what to do instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The exit code for this error: 125, or 126 and 127 where the program itself cannot start.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::ProgramNotFound => 127,
            Kind::NotExecutable => 126,
            _ => 125,
        }
    }
}

/// The text and the name of an error number, such as `no such file or directory (ENOENT)`.
pub fn describe(errno: Errno) -> String {
    let text = std::io::Error::from_raw_os_error(errno.raw_os_error()).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_ascii_lowercase());
    let name = errno::name(errno).map_or_else(|| errno.raw_os_error().to_string(), str::to_owned);
    first.into_iter().chain(characters).collect::<String>() + &format!(" ({name})")
}

/// An error of the file system in words and by name.
pub fn describe_io(error: &std::io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(errno) => describe(errno),
        None => error.to_string(),
    }
}

/// The error of a file that could not be worked with: `what` (words that follow "cannot"), its path, and why.
pub fn file_error(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    Error::system(format!("{what} `{}`", path.display()), errno)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.pointer {
            write!(f, "config.json: {place}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<ReferenceError> for Error {
    fn from(error: ReferenceError) -> Self {
        Self::new(Kind::Config, error.to_string()).help(error.help())
    }
}

impl From<DigestError> for Error {
    fn from(error: DigestError) -> Self {
        Self::new(Kind::Config, error.to_string()).help(error.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_is_reported_in_words_and_by_name() {
        let error = Error::system("open `rootfs`", Errno::NOENT).at("/root/path");
        assert_eq!(
            error.to_string(),
            "config.json: /root/path: cannot open `rootfs`: no such file or directory (ENOENT)"
        );
        assert_eq!(error.exit_code(), 125);
    }
}
