//! Errors between a bundle and a running container, for the user who started it.

mod errno;
mod report;

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use jobc_schema::digest::DigestError;
use jobc_schema::reference::ReferenceError;

use report::Report;

/// An error of the runtime: what is wrong, where, why, and what to do.
///
/// Shown as `config.json: /mounts/3/options: …`, with each hint on a line of its own, which the command line prints.
/// Another process gets it as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Report", from = "Report")]
pub struct Error {
    /// The type of the error; determines the exit code.
    pub kind: Kind,
    /// What is wrong: lower case, no period, names in backticks.
    pub what: String,
    /// What is at fault, where it is part of a file.
    pub at: Option<Location>,
    /// What to do, each an advice of its own.
    pub hints: Vec<String>,
    /// Why, as the kernel or a library says it.
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Location {
    /// A field of config.json, by its JSON Pointer; all of it, if that is empty.
    Config(Box<str>),
    /// A field of what the user wrote, such as `data.train.source` of a job file.
    Field(Box<str>),
}

/// The sorts of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// The program was not found in the container.
    ProgramNotFound,
    /// The program was found and cannot be executed.
    NotExecutable,
}

/// The exit codes for an error; docs/reference/exit-codes.md lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCodes {
    /// Of a command that ends with the code of a program.
    pub of_program: u8,
    /// Of a command about jobs.
    pub of_job: u8,
}

impl Kind {
    /// The exit codes for errors of this kind.
    pub fn exit_codes(self) -> ExitCodes {
        let (of_program, of_job) = match self {
            // What the user named or wrote.
            Self::NotFound | Self::Config | Self::Unsupported => (125, 2),
            // A job in another state.
            Self::State => (125, 1),
            // The host.
            Self::Unenforceable | Self::System | Self::Hook => (125, 3),
            Self::ProgramNotFound => (127, 3),
            Self::NotExecutable => (126, 3),
        };
        ExitCodes { of_program, of_job }
    }
}

/// A result of the runtime.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of a type with its message.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), at: None, hints: Vec::new(), source: None }
    }

    /// The kernel refused to do `what` (words that follow "cannot").
    pub fn system(what: impl fmt::Display, errno: impl Into<Errno>) -> Self {
        Self::new(Kind::System, format!("cannot {what}")).because(errno.into())
    }

    /// The same with an error of the standard library.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::system(what, errno_of(error))
    }

    /// Says why, as the kernel or a library says it.
    #[must_use]
    pub fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Says which field of config.json is at fault, by its JSON Pointer.
    #[must_use]
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.at = Some(Location::Config(pointer.into().into()));
        self
    }

    /// Says which field of what the user wrote is at fault.
    #[must_use]
    pub fn at_field(mut self, field: impl Into<String>) -> Self {
        self.at = Some(Location::Field(field.into().into()));
        self
    }

    /// Says what to do instead, besides the hints that there are.
    #[must_use]
    pub fn help(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same error with other words before it: `cannot push it: …`.
    #[must_use]
    pub fn under(mut self, words: impl fmt::Display) -> Self {
        self.what = format!("{words}: {}", self.what);
        self
    }

    /// The message, with what the kernel or a library says, and without the location.
    pub fn message(&self) -> String {
        let Some(source) = &self.source else { return self.what.clone() };
        let source: &(dyn StdError + 'static) = source.as_ref();
        let why = match (source.downcast_ref::<Errno>(), source.downcast_ref::<std::io::Error>()) {
            (Some(errno), _) => describe(*errno),
            (_, Some(error)) => describe_io(error),
            _ => source.to_string(),
        };
        format!("{}: {why}", self.what)
    }

    /// The hints in one line, for places that have only one.
    pub fn advice(&self) -> Option<String> {
        (!self.hints.is_empty()).then(|| self.hints.join("; "))
    }

    /// The field of config.json that is at fault.
    pub fn pointer(&self) -> Option<&str> {
        match &self.at {
            Some(Location::Config(pointer)) => Some(pointer),
            _ => None,
        }
    }

    /// The kernel's error number, if that is why.
    pub fn errno(&self) -> Option<Errno> {
        let source: &(dyn StdError + 'static) = self.source.as_deref()?;
        source.downcast_ref().copied()
    }

    /// The exit code of a command that ends with the code of a program: 125, or 126 and 127 where the program itself
    /// cannot start.
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_codes().of_program
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

/// The kernel's number of an error of the standard library.
pub fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The error of a file that could not be worked with: `what` (words that follow "cannot"), its path, and why.
pub fn file_error(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("{what} `{}`", path.display()), error)
}

/// Results of work with files.
pub trait AtPath<T> {
    /// With the error of [`file_error`].
    ///
    /// # Errors
    ///
    /// The work failed.
    fn at_path(self, what: &str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<std::io::Error>> AtPath<T> for std::result::Result<T, E> {
    fn at_path(self, what: &str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|error| file_error(what, path.as_ref(), &error.into()))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(pointer) if pointer.is_empty() => f.write_str("config.json"),
            Self::Config(pointer) => write!(f, "config.json: {pointer}"),
            Self::Field(field) => write!(f, "`{field}`"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        f.write_str(&self.message())
    }
}

// The text includes what the source says, so `source` has nothing to add.
impl StdError for Error {}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        Report::from(self.clone()) == Report::from(other.clone())
    }
}

impl Eq for Error {}

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

    fn example() -> Error {
        Error::system("open `rootfs`", Errno::NOENT).at("/root/path").help("make it").help("or do not")
    }

    #[test]
    fn an_error_number_is_reported_in_words_and_by_name() {
        let error = example();
        assert_eq!(
            error.to_string(),
            "config.json: /root/path: cannot open `rootfs`: no such file or directory (ENOENT)"
        );
        assert_eq!(
            (error.errno(), error.pointer(), error.exit_code()),
            (Some(Errno::NOENT), Some("/root/path"), 125)
        );
        let field = error.under("the image").at_field("images.main");
        assert_eq!(
            field.to_string(),
            "`images.main`: the image: cannot open `rootfs`: no such file or directory (ENOENT)"
        );
        assert_eq!(Error::new(Kind::Config, "not JSON").at("").to_string(), "config.json: not JSON");
    }

    #[test]
    fn an_error_of_another_process_is_the_same_error() {
        let text = serde_json::to_string(&example()).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"system","message":"cannot open `rootfs`: no such file or directory (ENOENT)","at":{"config":"/root/path"},"hints":["make it","or do not"]}"#
        );
        let read: Error = serde_json::from_str(&text).unwrap();
        assert_eq!((read.errno(), &read), (None, &example()));
    }
}
