//! Values of secrets: read when a job starts, kept in this process's memory, and nowhere else but where a task is given them.
//!
//! A value has no `Display`, its `Debug` says `***`, and its bytes are overwritten when it is let go of. In the environment it
//! goes from here straight to the process that gets it ([`Variables`]); as a file it lies in memory, in a folder that nobody
//! else can enter ([`place`]).

pub mod place;

use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use indexmap::IndexMap;
use jobc_schema::plan::{EnvPlan, FileContent, JobPlan, SecretPlan};

use crate::bundle::because;
use crate::error::{Error, Kind, Result};

/// The most that a secret may be: that of an object in Kubernetes, which the same job may be for as well.
pub const LARGEST: u64 = 1 << 20;

/// The value of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// The values of the secrets that a job uses, by name.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    values: IndexMap<String, Secret>,
}

/// Variables that only the process which gets them sees: they are in no config.json and in no listing.
#[derive(Clone, Default)]
pub struct Variables(Vec<CString>);

impl Secret {
    /// A value.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self(value.into())
    }

    /// The value as it is: the content of a file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The value as one line: without the end of line that editors put behind what is kept in a file.
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

impl Variables {
    /// Adds a variable.
    ///
    /// # Errors
    ///
    /// A value that no environment can hold; the value is not told.
    pub fn push(&mut self, name: &str, secret: &Secret) -> Result<()> {
        let variable = CString::new([name.as_bytes(), b"=", secret.line()].concat()).map_err(|error| {
            overwrite(&mut error.into_vec());
            Error::new(Kind::Config, format!("the secret of the variable `{name}` has a NUL byte"))
                .help("give it to the task as a file, under `files`")
        })?;
        self.0.push(variable);
        Ok(())
    }

    /// The variables, `NAME=value`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CStr> {
        self.0.iter().map(CString::as_c_str)
    }
}

impl Drop for Variables {
    fn drop(&mut self) {
        for variable in self.0.drain(..) {
            overwrite(&mut variable.into_bytes());
        }
    }
}

impl fmt::Debug for Variables {
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
    // Otherwise the compiler may leave out writes that nobody reads.
    std::hint::black_box(bytes);
}

impl Secrets {
    /// Reads the secrets that a job's tasks and volumes use; one that nothing uses need not be there.
    ///
    /// `folder` is the job file's, where relative paths begin.
    ///
    /// # Errors
    ///
    /// The first secret that is not there, with the place its value should come from.
    pub fn read(plan: &JobPlan, folder: &Path) -> Result<Self> {
        let mut values = IndexMap::new();
        for name in used(plan) {
            if values.contains_key(name) {
                continue;
            }
            values.insert(name.to_owned(), read(name, source_of(plan, name)?, folder)?);
        }
        Ok(Self { values })
    }

    /// The variables of a role that are secrets, read anew, for a further program in one of its tasks.
    ///
    /// # Errors
    ///
    /// As [`Self::read`]; secrets that only files, volumes and other roles use need not be there.
    pub fn variables(plan: &JobPlan, role: &str, folder: &Path) -> Result<Variables> {
        let mut variables = Variables::default();
        for (variable, value) in plan.role(role).into_iter().flat_map(|role| &role.env) {
            let EnvPlan::Secret { secret } = value else { continue };
            variables.push(variable, &read(secret, source_of(plan, secret)?, folder)?)?;
        }
        Ok(variables)
    }

    /// The value of a secret.
    pub fn get(&self, name: &str) -> Result<&Secret> {
        self.values
            .get(name)
            .ok_or_else(|| Error::new(Kind::Config, format!("the secret `{name}` was not read at the start")))
    }

    /// The values that must not be seen in logs, as one line each. What is empty is left out: it is in every line.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.values.values().map(Secret::line).filter(|value| !value.is_empty())
    }

    /// Whether the job uses none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The names of the secrets that variables, files and volumes need.
fn used(plan: &JobPlan) -> impl Iterator<Item = &str> {
    plan.roles.iter().flat_map(|role| {
        let variables = role.env.values().filter_map(|value| match value {
            EnvPlan::Secret { secret } => Some(secret.as_str()),
            EnvPlan::Text(_) => None,
        });
        let files = role.files.iter().filter_map(|file| match &file.content {
            FileContent::Secret { secret } => Some(secret.as_str()),
            FileContent::Text(_) => None,
        });
        let mounts =
            role.mounts.iter().filter_map(|mount| plan.volumes.get(&mount.volume)?.secret.as_deref());
        variables.chain(files).chain(mounts)
    })
}

fn source_of<'a>(plan: &'a JobPlan, name: &str) -> Result<&'a SecretPlan> {
    plan.secrets.get(name).ok_or_else(|| {
        Error::new(Kind::Config, format!("the plan does not say where the secret `{name}` comes from"))
            .help("build the plan again from its job file")
    })
}

fn read(name: &str, source: &SecretPlan, folder: &Path) -> Result<Secret> {
    match source {
        SecretPlan::Env(variable) => {
            let value = std::env::var_os(variable).ok_or_else(|| {
                Error::new(
                    Kind::Config,
                    format!(
                        "the secret `{name}` is to come from the variable `{variable}`, which is not set"
                    ),
                )
                .help(format!("set it where the job is started: `export {variable}=…`"))
            })?;
            Ok(Secret(value.into_vec()))
        }
        SecretPlan::File(path) => {
            let path = folder.join(path);
            let wrong = |why: String| {
                Error::new(
                    Kind::Config,
                    format!("the secret `{name}` is to come from `{}`: {why}", path.display()),
                )
            };
            let failed = |error: std::io::Error| wrong(because(&error));
            let file = File::open(&path).map_err(failed)?;
            if !file.metadata().map_err(failed)?.is_file() {
                return Err(wrong("that is no file".to_owned()));
            }
            // In one piece, so that no smaller copy stays behind where a growing buffer was.
            let mut value = Secret(Vec::with_capacity(usize::try_from(LARGEST).unwrap_or_default() + 1));
            file.take(LARGEST + 1).read_to_end(&mut value.0).map_err(failed)?;
            if value.0.len() as u64 > LARGEST {
                return Err(wrong("it is larger than 1 MiB".to_owned()));
            }
            Ok(value)
        }
        SecretPlan::Store { name: object, key } => Err(Error::new(
            Kind::Unsupported,
            format!(
                "the secret `{name}` is to come from `{object}/{key}` of a store, and this machine has none"
            ),
        )
        .help(format!("for runs on this machine write `{name}: {{env: NAME}}` or `{name}: {{file: PATH}}`"))),
    }
}

#[cfg(test)]
mod tests;
