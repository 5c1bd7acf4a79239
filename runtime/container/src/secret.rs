//! Values of secrets: only in this process's memory, and where a task gets them.
//!
//! A value has no `Display`, its `Debug` prints `***`, and its bytes are overwritten on drop. As a variable it goes
//! directly to the process that gets it ([`SecretEnvironment`]); as a file it is in memory, in a directory that no
//! other user can enter ([`place`]).

use std::ffi::{CStr, CString};
use std::fmt;
use std::io::Read;

use jobc_sys::error::{Error, Kind, Result};

/// Maximum size of a secret: that of a Secret in Kubernetes, because the same job may run there.
pub const MAX_SECRET_SIZE: u64 = 1 << 20;

/// The value of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Variables that only the process which gets them sees: they are in no config.json and in no listing.
#[derive(Clone, Default)]
pub struct SecretEnvironment(Vec<CString>);

impl Secret {
    /// A value.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self(value.into())
    }

    /// Reads a value; nothing where it is larger than [`MAX_SECRET_SIZE`].
    pub fn read(file: impl Read) -> std::io::Result<Option<Self>> {
        // In one piece, so that no smaller copy stays behind where a growing buffer was.
        let mut value = Self(Vec::with_capacity(usize::try_from(MAX_SECRET_SIZE).unwrap_or_default() + 1));
        file.take(MAX_SECRET_SIZE + 1).read_to_end(&mut value.0)?;
        Ok(Some(value).filter(|value| value.0.len() as u64 <= MAX_SECRET_SIZE))
    }

    /// The value as it is: the content of a file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The value as one line: without the newline that editors add at the end of a file.
    pub fn line(&self) -> &[u8] {
        let line = self.0.strip_suffix(b"\n").unwrap_or(&self.0);
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        overwrite(&mut self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl SecretEnvironment {
    /// Adds a variable.
    ///
    /// # Errors
    ///
    /// A value that no environment can hold; the value is not printed.
    pub fn push(&mut self, name: &str, secret: &Secret) -> Result<()> {
        let variable = CString::new([name.as_bytes(), b"=", secret.line()].concat()).map_err(|error| {
            overwrite(&mut error.into_vec());
            Error::new(Kind::Config, format!("the secret of the variable `{name}` has a NUL byte"))
                .help("pass it to the task as a file, under `files`")
        })?;
        self.0.push(variable);
        Ok(())
    }

    /// Adds a variable of this process's environment, which has no NUL byte, as it is.
    pub fn push_variable(&mut self, name: &str, value: &Secret) {
        self.0.extend(CString::new([name.as_bytes(), b"=", value.bytes()].concat()).ok());
    }

    /// The variables, `NAME=value`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CStr> {
        self.0.iter().map(CString::as_c_str)
    }
}

impl Drop for SecretEnvironment {
    fn drop(&mut self) {
        for variable in self.0.drain(..) {
            overwrite(&mut variable.into_bytes());
        }
    }
}

impl fmt::Debug for SecretEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|variable| {
            let name = variable.as_bytes().split(|&byte| byte == b'=').next().unwrap_or_default();
            format!("{}=***", String::from_utf8_lossy(name))
        });
        f.debug_list().entries(names).finish()
    }
}

/// Overwrites bytes that are let go of.
fn overwrite(bytes: &mut [u8]) {
    bytes.fill(0);
    // Otherwise the compiler may remove writes that are never read.
    std::hint::black_box(bytes);
}
