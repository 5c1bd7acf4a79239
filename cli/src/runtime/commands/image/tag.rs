//! `jobc image tag`: gives an image of the store another name.

use std::process::ExitCode;

use jobc_image::{Reference, Store};
use jobc_sys::error::{Error, Kind};

use super::name::find;
use crate::runtime::args::image_tools::TagArgs;
use crate::runtime::commands::jobs::{Failure, Result};

pub(super) fn run(args: &TagArgs, store: &Store) -> Result<ExitCode> {
    let target: Reference = args
        .target
        .parse()
        .map_err(|error: jobc_schema::reference::ReferenceError| Failure::usage_error(error.into()))?;
    if target.digest.is_some() {
        let error = Error::new(Kind::Config, format!("invalid tag `{target}`: a tag cannot have a digest"));
        return Err(Failure::usage_error(error.help("use the form NAME[:TAG]")));
    }
    let found = find(store, &args.source)?;
    store.tag(&target, &found.descriptor)?;
    Ok(ExitCode::SUCCESS)
}
