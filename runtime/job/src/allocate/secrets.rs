//! The secrets of a single bundle: the files of a directory that only its user may read, one for each secret.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use oci_spec::runtime::Mount;

use jobc_container::bundle::Bundle;
use jobc_container::secret::{Secret, SecretEnvironment};
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// The secrets of a bundle.
#[derive(Debug, Default)]
pub(super) struct BundleSecrets {
    /// Variables that are in no file of the container.
    pub(super) environment: SecretEnvironment,
    /// Files, mounted read-only from where they are.
    pub(super) mounts: Vec<Mount>,
}

impl BundleSecrets {
    /// Reads the variables and finds the files; `user` is the one of the program.
    ///
    /// # Errors
    ///
    /// A secret without a file, one that other users may read, and one that the program's user may not.
    pub(super) fn of(bundle: &Bundle, directory: &Path, user: u32) -> Result<Self> {
        let mut secrets = Self::default();
        let mut annotations: Vec<(&String, &String)> =
            bundle.config.spec.annotations().iter().flatten().collect();
        annotations.sort();
        for (key, name) in annotations {
            if let Some(variable) = key.strip_prefix("dev.jobc.secret.env.") {
                secrets.environment.push(variable, &read(name, directory)?)?;
            } else if let Some(path) = key.strip_prefix("dev.jobc.secret.file.") {
                let (file, _) = open(name, directory)?;
                refuse_unreadable(path, user)?;
                secrets.mounts.push(bind(file, Path::new(path)));
            }
        }
        Ok(secrets)
    }
}

fn read(name: &str, directory: &Path) -> Result<Secret> {
    let (path, file) = open(name, directory)?;
    let read = Secret::read(file).map_err(|error| unreadable(name, &path, &describe_io(&error)))?;
    read.ok_or_else(|| unreadable(name, &path, "it is larger than 1 MiB"))
}

/// The file of a secret, open.
fn open(name: &str, directory: &Path) -> Result<(PathBuf, File)> {
    let path = directory.join(name);
    let file = File::open(&path).map_err(|error| unreadable(name, &path, &describe_io(&error)))?;
    let status = file.metadata().map_err(|error| unreadable(name, &path, &describe_io(&error)))?;
    if !status.is_file() {
        return Err(unreadable(name, &path, "not a regular file"));
    }
    if status.mode() & 0o077 != 0 {
        let error = unreadable(name, &path, "other users may read it");
        return Err(error.help(format!("chmod 600 {}", path.display())));
    }
    Ok((path, file))
}

fn unreadable(name: &str, path: &Path, why: &str) -> Error {
    Error::new(Kind::Config, format!("cannot read the secret `{name}` from `{}`: {why}", path.display()))
}

/// Refuses a file that the program's user could not read: it belongs to the container's root.
fn refuse_unreadable(path: &str, user: u32) -> Result<()> {
    if user == 0 {
        return Ok(());
    }
    let message =
        format!("user {user} of the container cannot read the secret `{path}`, which belongs to its root");
    Err(Error::new(Kind::Unsupported, message).help("pass it as a variable, or leave `user` out"))
}

fn bind(source: PathBuf, destination: &Path) -> Mount {
    let mut mount = Mount::default();
    mount
        .set_destination(destination.to_owned())
        .set_typ(Some("bind".to_owned()))
        .set_source(Some(source))
        .set_options(Some(["rbind", "nosuid", "nodev", "noexec", "ro"].map(str::to_owned).to_vec()));
    mount
}
