//! `jobc run`: a job file, a built plan or one bundle, on this machine.
//!
//! What is to be run is told from what is there, so that one command takes all three. A bundle is looked for first: its
//! start is counted in milliseconds and touches nothing of the compiler.

mod bundle;
mod job;

use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use jobc_sys::error::{Error, Kind, Result};

use crate::args::FormatArg;
use crate::args::run::RunArgs;
use crate::report::container_error;
use crate::terminal;

/// Runs what the arguments name; returns the exit code: of a bundle its program's, of a job how it ended.
pub(crate) fn run(args: &RunArgs, format: FormatArg) -> u8 {
    let code = What::of(args.what.as_deref()).and_then(|what| match what {
        What::Bundle(folder) => {
            refuse(args, &OF_JOBS, "a bundle")?;
            if args.oci_runtime.is_some() {
                refuse(args, &OF_OURS, "a bundle that another runtime runs")?;
            }
            refuse_format(format)?;
            bundle::run(args, &folder)
        }
        What::Plan(folder) => {
            refuse(args, &OF_BUNDLES, "a job")?;
            refuse(args, &OF_JOB_FILES, "the folder of a built plan")?;
            job::run_plan(args, &folder, format)
        }
        What::Job(path) => {
            refuse(args, &OF_BUNDLES, "a job")?;
            job::run_file(args, path, format)
        }
    });
    code.unwrap_or_else(|error| {
        terminal::eprint(&container_error(&error));
        error.exit_code()
    })
}

/// What there is to run.
#[derive(Debug, PartialEq, Eq)]
enum What {
    /// A folder with a config.json, or one of which the bundle's reader says why it is none.
    Bundle(PathBuf),
    /// A folder with a plan.json.
    Plan(Utf8PathBuf),
    /// A job file, the folder of one, or standard input; that of this folder where absent.
    Job(Option<Utf8PathBuf>),
}

impl What {
    fn of(given: Option<&Path>) -> Result<Self> {
        let Some(given) = given else { return Ok(Self::Job(None)) };
        let text = || {
            Utf8PathBuf::from_path_buf(given.to_owned()).map_err(|path| {
                let message = format!("the path `{}` is not UTF-8", path.display());
                Error::new(Kind::Config, message).help("job files become plans, which are text; rename it")
            })
        };
        if given == "-" {
            return text().map(Some).map(Self::Job);
        }
        if let Err(error) = given.metadata() {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            return Err(Error::machine(format!("open `{}`", given.display()), errno)
                .help("name a job file, the folder of a built plan, or a bundle"));
        }
        if given.is_dir() {
            let has = |name: &str| given.join(name).is_file();
            if !has("config.json") && has("plan.json") {
                return text().map(Self::Plan);
            }
            if !has("config.json") && crate::input::JOB_NAMES.into_iter().any(has) {
                return text().map(Some).map(Self::Job);
            }
        } else if given.is_file() {
            return match given.file_name().and_then(|name| name.to_str()) {
                Some("plan.json") => Ok(Self::Plan(text()?.with_file_name(""))),
                Some("config.json") => Ok(Self::Bundle(given.to_owned())),
                _ => text().map(Some).map(Self::Job),
            };
        }
        Ok(Self::Bundle(given.to_owned()))
    }
}

/// An option and whether it is given.
type Given = (&'static str, fn(&RunArgs) -> bool);

/// Options of jobs alone, of bundles alone, of our own runtime, and of what is still to be compiled.
#[rustfmt::skip]
const OF_JOBS: [Given; 19] = [
    ("--set", |args| !args.set.is_empty()), ("--params", |args| !args.params.is_empty()),
    ("--target", |args| args.target.is_some()), ("--targets", |args| args.targets.is_some()),
    ("--allow-lossy", |args| args.allow_lossy), ("--locked", |args| args.locked),
    ("--scale", |args| !args.scale.is_empty()), ("--no-gpu", |args| args.no_gpu), ("--queue", |args| args.queue),
    ("--parallel", |args| args.parallel.is_some()), ("--publish", |args| !args.publish.is_empty()),
    ("--detach", |args| args.detach), ("--interactive", |args| args.interactive),
    ("--terminal", |args| args.terminal.is_some()), ("--no-logs", |args| args.no_logs),
    ("--quiet", |args| args.quiet), ("--gpu-share", |args| args.gpu_share.is_some()),
    ("--pull", |args| args.pull.is_some()), ("--image-root", RunArgs::gives_image_root),
];
#[rustfmt::skip]
const OF_BUNDLES: [Given; 2] =
    [("--oci-runtime", |args| args.oci_runtime.is_some()), ("--id", |args| args.id.is_some())];
/// Options of our own runtime.
const OF_OURS: [Given; 2] =
    [("--allow-unenforced", |args| args.allow_unenforced), ("--keep", |args| args.keep)];
#[rustfmt::skip]
const OF_JOB_FILES: [Given; 8] = [
    ("--set", |args| !args.set.is_empty()), ("--params", |args| !args.params.is_empty()),
    ("--target", |args| args.target.is_some()), ("--targets", |args| args.targets.is_some()),
    ("--allow-lossy", |args| args.allow_lossy), ("--scale", |args| !args.scale.is_empty()),
    ("--no-gpu", |args| args.no_gpu), ("--locked", |args| args.locked),
];

/// Refuses options that mean nothing for what is run: one that is passed over in silence would be taken for kept.
fn refuse(args: &RunArgs, options: &[Given], what: &str) -> Result<()> {
    match options.iter().find(|(_, given)| given(args)) {
        None => Ok(()),
        Some((option, _)) => Err(Error::new(Kind::Config, format!("`{option}` means nothing for {what}"))
            .help("`jobc run --help` says which options are for what")),
    }
}

/// Refuses a form of findings: a bundle is not compiled, so it has none, and standard output is its program's own.
fn refuse_format(format: FormatArg) -> Result<()> {
    if format == FormatArg::Text {
        return Ok(());
    }
    Err(Error::new(Kind::Config, "`--format` means nothing for a bundle")
        .help("leave it out; errors of `jobc oci --log FILE --log-format json run` are JSON"))
}

#[cfg(test)]
mod tests;
