//! The built-in builder.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use indexmap::IndexMap;
use jobc_image::build::access::Access;
use jobc_image::build::{self, BuildError, Compression, Request, dockerignore};
use jobc_image::dockerfile::ignore::Ignore;
use jobc_image::dockerfile::{Build, Refusals, Span};
use jobc_image::{Fetch, Store};
use jobc_sys::error::Error;
use jobc_sys::signals::Signals;

use super::options::BuildOptions;
use super::{Dockerfile, dockerfile_errors, print_result};
use crate::args::image::BuildArgs;
use crate::commands::jobs::{Failure, Result};
use crate::interruptible;
use crate::outcome::{INTERRUPTED, Outcome};
use crate::progress::Meter;
use crate::report::container_error;
use crate::table::escape_control;
use crate::{registries, terminal};

/// Builds, and prints the result or the error.
pub(super) fn build(
    build: &Build,
    args: &BuildArgs,
    file: &Dockerfile,
    given: BuildOptions,
    access: &Access<'_>,
    store: &Store,
) -> Result<ExitCode> {
    let Some(ignore) = read_ignore(args, file)? else { return Ok(ExitCode::from(Outcome::Errors as u8)) };
    let fetch = fetcher(args.plain_http)?;
    let BuildOptions { secrets, labels, tags, platform, .. } = given;
    let request = Request {
        build,
        context: Some(args.context.clone()),
        ignore,
        labels,
        tags,
        secrets,
        no_cache: args.no_cache,
        pull: args.pull,
        epoch: args.timestamp,
        platform,
        locked: IndexMap::new(),
        compression: Compression::default(),
        fetch: fetch.as_deref(),
        access: access.clone(),
    };
    let meter = Meter::new(args.format, args.quiet);
    let stopped = AtomicBool::new(false);
    let result = run_interruptible(&stopped, || {
        build::build(store, &request, &|progress| meter.report(&progress), &stopped)
    })?;
    drop(meter);
    match result {
        Ok(descriptor) => {
            print_result(args, &request.tags, &descriptor);
            Ok(ExitCode::SUCCESS)
        }
        Err(_) if stopped.load(Ordering::Relaxed) => Ok(ExitCode::from(INTERRUPTED)),
        Err(BuildError::Refused(refusals)) => {
            let outcome =
                dockerfile_errors::show(&file.display_name(), &file.text, &refusals, &[], args.format);
            Ok(ExitCode::from(outcome as u8))
        }
        Err(BuildError::Failed(failure)) => {
            let build::Failure { span, error, output } = *failure;
            // Without progress, these lines were not shown either.
            if args.quiet {
                for line in output {
                    terminal::eprint(&format!("{}\n", escape_control(&String::from_utf8_lossy(&line))));
                }
            }
            let message = message_with_line(&error, span, file);
            // The configuration of a command's container was generated, so a place in it means nothing to the user.
            terminal::eprint(&container_error(&Error { message, pointer: None, ..error }));
            Ok(ExitCode::from(Outcome::Errors as u8))
        }
    }
}

/// The message of an error, after the line of the Dockerfile.
fn message_with_line(error: &Error, span: Option<Span>, file: &Dockerfile) -> String {
    let Some(span) = span else { return error.message.clone() };
    let before = &file.text[..span.start.min(file.text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("{}:{line}: {}", file.display_name(), error.message)
}

/// The patterns of the context's `.dockerignore`; none if it cannot be read, which is reported.
fn read_ignore(args: &BuildArgs, file: &Dockerfile) -> Result<Option<Ignore>> {
    let Some(path) = dockerignore::file(file.path.as_deref(), &args.context) else {
        return Ok(Some(Ignore::default()));
    };
    let bytes = super::read(&path)?;
    // The places are those of this text: bytes that are not UTF-8 are longer in it.
    let text = String::from_utf8_lossy(&bytes);
    match Ignore::read(&text) {
        Ok(ignore) => Ok(Some(ignore)),
        Err(Refusals(refusals)) => {
            let shown = path.to_string_lossy();
            dockerfile_errors::show(shown.as_ref().into(), text.as_bytes(), &refusals, &[], args.format);
            Ok(None)
        }
    }
}

/// The source of base images; none if this program was built without registries.
fn fetcher(plain_http: bool) -> Result<Option<Box<dyn Fetch>>> {
    if cfg!(feature = "registry") {
        return Ok(Some(registries::fetcher(plain_http).map_err(Failure::usage_error)?));
    }
    Ok(None)
}

/// Runs the work in a thread. A signal that ends a program is passed to it, so that it can clean up.
pub(super) fn run_interruptible<T: Send>(stopped: &AtomicBool, work: impl FnOnce() -> T + Send) -> Result<T> {
    let signals = Signals::block_forwarded()?;
    Ok(interruptible::run(&signals, work, |_| stopped.store(true, Ordering::Relaxed))?)
}
