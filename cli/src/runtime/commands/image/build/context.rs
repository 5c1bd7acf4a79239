//! The build context: a directory of this host, or a git repository, which is fetched.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::Store;
use jobc_image::build::FetchedContext;
use jobc_image::build::access::Access;
use jobc_image::dockerfile::{Remote, RemoteError};
use jobc_sys::error::{Error, Kind};

use crate::runtime::args::image::BuildArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::message::interrupted_by;

/// Fetches the context if it is a repository, and makes the arguments name the result: the context's directory, and
/// the Dockerfile in it. `None` if the context is a directory, and an
/// exit code if a signal ended the fetch.
pub(super) fn fetch(
    args: &BuildArgs,
    access: &Access<'_>,
    store: &Store,
) -> Result<std::result::Result<Option<(BuildArgs, FetchedContext)>, ExitCode>> {
    let text = args.context.to_string_lossy();
    let remote = match Remote::parse(&text) {
        None if text.contains("://") => Err(unsupported(&text)),
        None => return Ok(Ok(None)),
        Some(Ok(Remote::Repository(repository))) => Ok(repository),
        Some(Ok(Remote::File(_))) => Err(unsupported(&text)),
        Some(Err(RemoteError { message, help, is_unsupported })) => {
            let kind = if is_unsupported { Kind::Unsupported } else { Kind::Config };
            Err(Error::new(kind, message).help(help))
        }
    };
    let repository = remote.map_err(Failure::usage_error)?;
    let stopped = AtomicBool::new(false);
    let (fetched, signal) = super::embedded::run_interruptible(&stopped, || {
        FetchedContext::fetch(store, &repository, access, &stopped)
    })?;
    if let Some(signal) = signal {
        return Ok(Err(interrupted_by(signal, "no image was built")));
    }
    let fetched = fetched?;
    let mut args = args.clone();
    args.context = PathBuf::from(fetched.path());
    // Standard input and absolute paths are left as the user gave them.
    args.file = args.file.map(|file| match file.to_str() {
        Some("-") => PathBuf::from("-"),
        _ => fetched.path().join(file),
    });
    Ok(Ok(Some((args, fetched))))
}

fn unsupported(context: &str) -> Error {
    Error::new(Kind::Unsupported, format!("the build context `{context}` is not supported"))
        .help("name a directory, or a git repository: `https://HOST/PATH.git#REF:DIRECTORY`")
}
