//! The commands about jobs on clusters, in a build without the feature `remote`.

use std::process::ExitCode;

use jobc_sys::error::{Error, Kind};

use super::jobs::{Failure, Result};
use crate::args::FormatArg;
use crate::runtime::args::submit::SubmitArgs;
use crate::runtime::args::targets::TargetsArgs;

pub(super) fn absent(what: &str) -> Failure {
    let error = Error::new(Kind::Unsupported, format!("this build of jobc cannot {what}"));
    Failure::usage_error(error.help("build it with the feature `remote`, or use `jobc build` and kubectl"))
}

pub(crate) fn submit(_args: &SubmitArgs, _format: FormatArg) -> Result<ExitCode> {
    Err(absent("submit jobs"))
}

pub(crate) fn targets(_args: &TargetsArgs) -> Result<ExitCode> {
    Err(absent("talk to clusters"))
}
