//! A bundle: a directory with config.json, made by `jobc build` or by any other OCI tool.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use crate::config::Config;
use jobc_sys::error::{Error, Kind, Result, describe_io};

/// Maximum size of config.json: far more than a profile of every syscall, far less than a host's memory.
const MAX_CONFIG_SIZE: u64 = 16 << 20;

/// A directory with a config.json that was read.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The directory, absolute and without symbolic links: relative paths of its config.json begin here.
    pub dir: PathBuf,
    /// The content of its config.json.
    pub config: Config,
    /// Its config.json as it was read.
    pub text: Vec<u8>,
    /// The destinations of bind mounts whose sources are only mounted if their paths have no symbolic links.
    pub linkless: BTreeSet<PathBuf>,
}

impl Bundle {
    /// Opens a directory and reads its config.json; the values in it are not checked yet, see [`Config::check`].
    pub fn open(dir: &Path) -> Result<Self> {
        Self::open_with(dir, Path::new("config.json"))
    }

    /// As [`Self::open`], with another configuration file: a path relative to the directory, or an absolute one.
    pub fn open_with(dir: &Path, config: &Path) -> Result<Self> {
        let shown = dir.display();
        let dir = std::fs::canonicalize(dir)
            .map_err(|error| Error::new(Kind::Config, format!("cannot open `{shown}`")).because(error))?;
        let file = match File::open(dir.join(config)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let error = Error::new(Kind::Config, format!("`{shown}` is not a bundle: it is a file"));
                return Err(error.help(match dir.file_name().and_then(|name| name.to_str()) {
                    Some("config.json") => "give the directory that contains config.json",
                    _ => "a bundle is a directory with a config.json; `jobc build` makes one for each task of a job file",
                }));
            }
            Err(error) => return Err(refused(&dir, config, &error)),
        };
        let unreadable =
            |error: std::io::Error| Error::new(Kind::Config, "cannot read config.json").because(error);
        // Its current size, so that one call reads it; it may grow meanwhile.
        let status = file.metadata().map_err(unreadable)?;
        let size = usize::try_from(status.len().min(MAX_CONFIG_SIZE)).unwrap_or_default();
        let mut text = vec![0; size + 64];
        let read = (&file).read(&mut text).map_err(unreadable)?;
        text.truncate(read);
        // A read that returns less than requested is the end of a regular file (read(2)). Other files may have more
        // data.
        if !status.is_file() || read != size {
            file.take((MAX_CONFIG_SIZE + 1).saturating_sub(read as u64))
                .read_to_end(&mut text)
                .map_err(unreadable)?;
        }
        if text.len() as u64 > MAX_CONFIG_SIZE {
            return Err(Error::new(Kind::Config, "config.json is larger than 16 MiB")
                .help("no bundle needs that much; check that the file is a container's configuration"));
        }
        Ok(Self { config: Config::read(&text)?, dir, text, linkless: BTreeSet::new() })
    }

    /// A bundle whose config.json is not written yet: the caller writes [`text`](Self::text) to `dir`.
    pub fn of(dir: impl AsRef<Path>, config: Config) -> Result<Self> {
        let dir = std::path::absolute(dir.as_ref()).map_err(|error| {
            let shown = dir.as_ref().display();
            Error::new(Kind::Config, format!("cannot open `{shown}`: {}", describe_io(&error)))
        })?;
        let text = serde_json::to_vec(&config.spec).map_err(|error| {
            Error::new(Kind::Config, format!("config.json cannot be written as JSON: {error}"))
        })?;
        Ok(Self { dir, config, text, linkless: BTreeSet::new() })
    }

    /// The value of an annotation, such as `dev.jobc.image`.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.config.spec.annotations().as_ref()?.get(key).map(String::as_str)
    }
}

/// Why a directory has no config.json that can be opened, by what else is in it.
fn refused(dir: &Path, config: &Path, error: &std::io::Error) -> Error {
    let shown = dir.display();
    if error.kind() != std::io::ErrorKind::NotFound || config != Path::new("config.json") {
        let path = dir.join(config);
        return Error::new(Kind::Config, format!("cannot open `{}`: {}", path.display(), describe_io(error)));
    }
    let error = Error::new(Kind::Config, format!("`{shown}` is not a bundle: it has no config.json"));
    if dir.join("plan.json").is_file() {
        let bundles = dir.join("oci");
        return error.help(if bundles.is_dir() {
            format!("it is a plan directory; its bundles are the directories in `{}`", bundles.display())
        } else {
            "it is a plan directory without bundles; build it with `--backend oci`".to_owned()
        });
    }
    if ["job.yaml", "job.yml"].iter().any(|name| dir.join(name).is_file()) {
        return error.help("it contains a job file; `jobc build` makes bundles from it");
    }
    error.help("a bundle is a directory with a config.json and a root file system")
}

#[cfg(test)]
mod tests;
