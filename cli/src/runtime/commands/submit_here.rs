//! `jobc submit --target local`: this host is a target like the others, and the job is that of `jobc run --detach`.

use clap::{Args as _, FromArgMatches as _};
use jobc_compiler::built_in_targets::DEFAULT_TARGET;
use jobc_sys::error::{Error, Kind};

use super::jobs::{Failure, Result};
use crate::runtime::args::run::RunArgs;
use crate::runtime::args::submit::SubmitArgs;

/// Whether a submission names this host.
pub(crate) fn is_meant(args: &SubmitArgs) -> bool {
    args.target.as_deref() == Some(DEFAULT_TARGET)
}

/// The arguments of `jobc run` that mean the same; with `--follow` the job stays in the foreground.
pub(crate) fn run_args(args: &SubmitArgs) -> Result<RunArgs> {
    let absent = [
        (args.replace, "--replace", "stop the earlier run with `jobc stop`"),
        (args.no_build, "--no-build", "images that are there already are not built again"),
        (args.output.is_some(), "--output", "`jobc build --output DIR` writes the files"),
    ];
    if let Some((_, option, help)) = absent.iter().find(|(is_given, ..)| *is_given) {
        let error = Error::new(Kind::Unsupported, format!("`{option}` does not apply to this host"));
        return Err(Failure::usage_error(error.help(*help)));
    }
    let mut words = vec!["run".to_owned()];
    let flags = [
        (!args.follow && !args.dry_run, "--detach"),
        (args.dry_run, "--dry-run"),
        (args.resume, "--resume"),
        (args.allow_lossy, "--allow-lossy"),
        (args.locked, "--locked"),
    ];
    words.extend(flags.iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| (*flag).to_owned()));
    words.extend(args.set.iter().map(|(name, value)| format!("--set={name}={value}")));
    words.extend(args.params.iter().map(|path| format!("--params={path}")));
    words.extend(args.targets.iter().map(|path| format!("--targets={path}")));
    words.extend(args.image_root.iter().map(|path| format!("--image-root={}", path.display())));
    words.extend(args.job.iter().map(ToString::to_string));
    let command = RunArgs::augment_args(clap::Command::new("run"));
    let matches = command.try_get_matches_from(words);
    let found = matches.and_then(|matches| RunArgs::from_arg_matches(&matches));
    found.map_err(|error| Failure::usage_error(Error::new(Kind::Config, error.to_string())))
}
