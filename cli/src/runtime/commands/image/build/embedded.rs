//! The built-in builder.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use jobc_image::build::access::Access;
use jobc_image::build::{self, BuildError, Request, dockerignore};
use jobc_image::dockerfile::ignore::Ignore;
use jobc_image::dockerfile::{Build, Inspection, Refusals, Span};
use jobc_image::{Descriptor, Platform, Store};
use jobc_sys::error::Error;
use jobc_sys::signals::{Signal, Signals};

use super::dockerfile_file::{Dockerfile, read};
use super::host::BuildHost;
use super::more::MoreOptions;
use super::options::BuildOptions;
use super::{findings, generated, shared_cache};
use crate::outcome::Outcome;
use crate::runtime::args::image::BuildArgs;
use crate::runtime::commands::image::dockerfile_errors;
use crate::runtime::commands::jobs::Result;
use crate::runtime::interruptible;
use crate::runtime::message::{container_error, interrupted_by};
use crate::table::escape_control;
use crate::terminal;

/// A build for one platform.
pub(super) struct EmbeddedBuild<'a> {
    pub(super) build: &'a Build,
    pub(super) inspection: &'a Inspection,
    pub(super) args: &'a BuildArgs,
    pub(super) file: &'a Dockerfile,
    pub(super) given: &'a BuildOptions,
    pub(super) platform: &'a Platform,
    pub(super) access: &'a Access<'a>,
    pub(super) host: &'a BuildHost,
}

impl EmbeddedBuild<'_> {
    /// Builds; an exit code if there is no image, which is reported.
    pub(super) fn run(
        &self,
        more: &mut MoreOptions,
        store: &Store,
    ) -> Result<std::result::Result<Descriptor, ExitCode>> {
        let Self { build, inspection, args, file, given, platform, access, host } = *self;
        let errors = || Ok(Err(ExitCode::from(Outcome::Errors as u8)));
        let Some(ignore) = read_ignore(args, file)? else { return errors() };
        if findings::ignored(inspection, &ignore, args, file) {
            return errors();
        }
        // An index of several images has the names.
        let tags = if given.platforms.len() > 1 { Vec::new() } else { given.tags.clone() };
        let mut request = Request {
            ignore,
            labels: given.labels.clone(),
            tags,
            secrets: given.secrets.clone(),
            no_cache: args.no_cache,
            pull: args.pull,
            epoch: args.timestamp.or(build.epoch),
            access: access.clone(),
            extras: std::mem::take(&mut more.extras),
            ..host.request(build, &args.context, platform.clone())
        };
        let meter = args.meter();
        let stopped = AtomicBool::new(false);
        let (result, signal) = run_interruptible(&stopped, || {
            let on_progress = |progress| meter.report(&progress);
            if !args.no_cache {
                shared_cache::import(store, &more.cache_from, host.fetch(), &on_progress);
            }
            build::build(store, &request, &on_progress, &stopped)
        })?;
        drop(meter);
        more.extras = std::mem::take(&mut request.extras);
        match result {
            Ok(_) if findings::undefined(inspection, platform, store, args, file) => errors(),
            Ok(descriptor) => Ok(Ok(descriptor)),
            Err(error) => match signal {
                Some(signal) => Ok(Err(interrupted_by(signal, "no image was built"))),
                None => Ok(Err(report(args, file, error))),
            },
        }
    }
}

/// Reports why there is no image.
fn report(args: &BuildArgs, file: &Dockerfile, error: BuildError) -> ExitCode {
    match error {
        BuildError::Refused(refusals) => {
            let outcome =
                dockerfile_errors::show(&file.display_name(), &file.text, &refusals, &[], args.format);
            ExitCode::from(outcome as u8)
        }
        BuildError::Failed(failure) => {
            let build::Failure { span, error, output } = *failure;
            // Without progress, these lines were not shown either.
            if args.quiet {
                for line in &output {
                    terminal::eprint(&format!("{}\n", escape_control(&String::from_utf8_lossy(line))));
                }
            }
            let line = span.map(|span| line_number(&span, file));
            if line.is_some_and(|line| generated::show_failure(file, line, &error, &output, args.format)) {
                return ExitCode::from(Outcome::Errors as u8);
            }
            // The configuration of a command's container was generated, so a place in it means nothing to the user.
            let error = Error { at: None, ..error };
            let error = match line {
                Some(line) => error.under(format_args!("{}:{line}", file.display_name())),
                None => error,
            };
            terminal::eprint(&container_error(&error));
            ExitCode::from(Outcome::Errors as u8)
        }
    }
}

/// The line of the Dockerfile that an instruction begins on.
fn line_number(span: &Span, file: &Dockerfile) -> usize {
    let before = &file.text[..span.start.min(file.text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The patterns of the context's `.dockerignore`; none if it cannot be read, which is reported.
pub(super) fn read_ignore(args: &BuildArgs, file: &Dockerfile) -> Result<Option<Ignore>> {
    let Some(path) = dockerignore::file(file.path.as_deref(), &args.context) else {
        return Ok(Some(Ignore::default()));
    };
    let bytes = read(&path)?;
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

/// Runs the work in a thread. A signal that ends a program stops it, and is returned.
pub(super) fn run_interruptible<T: Send>(
    stopped: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> Result<(T, Option<Signal>)> {
    let signals = Signals::block_forwarded()?;
    Ok(interruptible::run_stoppable(&signals, stopped, work)?)
}
