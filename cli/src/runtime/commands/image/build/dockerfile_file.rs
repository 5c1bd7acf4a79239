//! The Dockerfile of a build: found, and read.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use jobc_sys::error::{Error, Kind};

use crate::input::reason;
use crate::runtime::args::image::BuildArgs;
use crate::runtime::commands::jobs::{Failure, Result};

/// A Dockerfile, and where it was found.
pub(super) struct Dockerfile {
    /// None if it was read from stdin.
    pub(super) path: Option<PathBuf>,
    pub(super) text: Vec<u8>,
}

impl Dockerfile {
    /// The one that is named, `-` for standard input, or the usual one in the context.
    pub(super) fn find(args: &BuildArgs) -> Result<Self> {
        if args.file.as_deref() == Some(Path::new("-")) {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map_err(|error| {
                Error::new(Kind::System, format!("cannot read standard input: {}", reason(&error)))
            })?;
            return Ok(Dockerfile { path: None, text });
        }
        let usual = || {
            let names = ["Dockerfile", "Containerfile"].map(|name| args.context.join(name));
            names.iter().find(|path| path.exists()).unwrap_or(&names[0]).clone()
        };
        let path = args.file.clone().unwrap_or_else(usual);
        let text = read(&path)?;
        Ok(Dockerfile { path: Some(path), text })
    }

    /// Its name in findings.
    pub(super) fn display_name(&self) -> Utf8PathBuf {
        self.path.as_ref().map_or_else(|| "<stdin>".into(), |path| path.to_string_lossy().into_owned().into())
    }
}

/// Reads a file that the user named.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let error = Error::new(Kind::Config, format!("cannot read `{}`: {}", path.display(), reason(&error)));
        Failure::usage_error(
            error.help("name the Dockerfile with `-f`, and the directory that it copies from"),
        )
    })
}
