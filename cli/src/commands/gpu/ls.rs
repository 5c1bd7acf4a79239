//! `jobc gpu ls`: the GPUs of this machine.

use std::process::ExitCode;

use jobc_runtime::gpu::{Inventory, Machine};

use crate::args::FormatArg;
use crate::args::gpu::LsArgs;
use crate::commands::jobs::{Result, json_text};
use crate::terminal;

pub(crate) fn run(args: &LsArgs) -> Result<ExitCode> {
    let inventory = Inventory::take(&Machine::here());
    if args.shown.format == FormatArg::Json {
        terminal::print(&json_text(&inventory));
    }
    Ok(ExitCode::SUCCESS)
}
