//! The secrets of a job: read when it starts, from the sources in its plan.
//!
//! A [`Secret`]'s value is kept in this process's memory, and nowhere else but where a task is given it.

use std::fs::File;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use indexmap::IndexMap;
use jobc_schema::plan::{EnvPlan, FileContent, JobPlan, SecretPlan};

use jobc_container::secret::{Secret, SecretEnvironment};
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// The values of the secrets that a job uses, by name.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    values: IndexMap<String, Secret>,
}

impl Secrets {
    /// Reads the secrets that a job's tasks and volumes use; an unused one need not exist.
    ///
    /// `directory` is the job file's, the base of relative paths.
    ///
    /// # Errors
    ///
    /// The first secret that does not exist, with the place its value should come from.
    pub fn read(plan: &JobPlan, directory: &Path) -> Result<Self> {
        let mut values = IndexMap::new();
        for name in used(plan) {
            if values.contains_key(name) {
                continue;
            }
            values.insert(name.to_owned(), read(name, source_of(plan, name)?, directory)?);
        }
        Ok(Self { values })
    }

    /// The secrets whose values are in files of a directory, by name; those that are missing there are left out.
    pub fn in_directory(plan: &JobPlan, directory: &Path) -> Self {
        let value = |name: &str| {
            let source = SecretPlan::File(name.to_owned());
            Some((name.to_owned(), read(name, &source, directory).ok()?))
        };
        Self { values: used(plan).filter_map(value).collect() }
    }

    /// The variables of a role that are secrets, read again, for a command in one of its running tasks.
    ///
    /// # Errors
    ///
    /// As [`Self::read`]; secrets that only files, volumes and other roles use need not be there.
    pub fn variables(plan: &JobPlan, role: &str, directory: &Path) -> Result<SecretEnvironment> {
        let mut variables = SecretEnvironment::default();
        for (variable, value) in plan.role(role).into_iter().flat_map(|role| &role.env) {
            let EnvPlan::Secret { secret } = value else { continue };
            variables.push(variable, &read(secret, source_of(plan, secret)?, directory)?)?;
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

/// The names of the secrets that variables, files, volumes and notices need.
pub fn used(plan: &JobPlan) -> impl Iterator<Item = &str> {
    let of_notices = plan.notify.iter().filter_map(|notice| notice.webhook.as_deref());
    let of_roles = plan.roles.iter().flat_map(|role| {
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
    });
    of_roles.chain(of_notices)
}

fn source_of<'a>(plan: &'a JobPlan, name: &str) -> Result<&'a SecretPlan> {
    plan.secrets.get(name).ok_or_else(|| {
        Error::new(Kind::Config, format!("the plan has no source for the secret `{name}`"))
            .help("build the plan again from its job file")
    })
}

/// Reads one secret; `directory` is the base of a relative path, and `~/` the caller's home directory.
///
/// # Errors
///
/// It does not exist, or comes from a secret store, which only a cluster has.
pub fn read(name: &str, source: &SecretPlan, directory: &Path) -> Result<Secret> {
    match source {
        SecretPlan::Env(variable) => {
            let value = std::env::var_os(variable).ok_or_else(|| {
                Error::new(
                    Kind::Config,
                    format!(
                        "the secret `{name}` needs the environment variable `{variable}`, which is not set"
                    ),
                )
                .help(format!("set it where the job is started: `export {variable}=…`"))
            })?;
            Ok(Secret::new(value.into_vec()))
        }
        SecretPlan::File(path) => {
            let path = match path.strip_prefix("~/") {
                Some(rest) => std::env::home_dir().unwrap_or_else(|| directory.to_owned()).join(rest),
                None => directory.join(path),
            };
            let wrong = |why: String| {
                Error::new(
                    Kind::Config,
                    format!("cannot read the secret `{name}` from `{}`: {why}", path.display()),
                )
            };
            let failed = |error: std::io::Error| wrong(describe_io(&error));
            let file = File::open(&path).map_err(failed)?;
            if !file.metadata().map_err(failed)?.is_file() {
                return Err(wrong("not a regular file".to_owned()));
            }
            Secret::read(file).map_err(failed)?.ok_or_else(|| wrong("it is larger than 1 MiB".to_owned()))
        }
        SecretPlan::Store { name: object, key } => Err(Error::new(
            Kind::Unsupported,
            format!(
                "the secret `{name}` comes from `{object}/{key}` of a secret store, which this host does not have"
            ),
        )
        .help(format!("for runs on this host write `{name}: {{env: NAME}}` or `{name}: {{file: PATH}}`"))),
    }
}

#[cfg(test)]
mod tests;
