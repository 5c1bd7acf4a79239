//! `jobc image tag`: gives an image of the store another name.

use std::process::ExitCode;

use jobc_image::Store;

use super::name::{find, new_name};
use crate::runtime::args::image_tools::TagArgs;
use crate::runtime::commands::jobs::Result;

pub(super) fn run(args: &TagArgs, store: &Store) -> Result<ExitCode> {
    let target = new_name(&args.target)?;
    store.tag(&target, &find(store, &args.source)?.descriptor)?;
    Ok(ExitCode::SUCCESS)
}
