//! `jobc gpu ls`: the GPUs of this host.

mod rows;

use std::process::ExitCode;

use jobc_gpu::{Host, Inventory, Source};
use jobc_job::admission::ledger::Ledger;
use jobc_job::admission::overview::{Lease, Overview};
use serde::Serialize;

use crate::args::FormatArg;
use crate::runtime::args::gpu::LsArgs;
use crate::runtime::commands::jobs::{Jobs, Result, json_text};
use crate::table::escape_control;
use crate::terminal;

/// The GPUs, and the jobs that have them.
#[derive(Serialize)]
struct GpuList<'a> {
    #[serde(flatten)]
    inventory: &'a Inventory,
    leases: &'a [Lease],
}

pub(crate) fn run(args: &LsArgs) -> Result<ExitCode> {
    let inventory = Inventory::discover(&Host::here());
    let ledger = Ledger::standard(Jobs::open()?.directories())?;
    let leases = Overview::of(&ledger, &inventory)?.leases;
    let text = match args.output_args.format {
        FormatArg::Json => json_text(&GpuList { inventory: &inventory, leases: &leases }),
        _ => text(&inventory, &leases, args.wide),
    };
    terminal::print(&text);
    for note in inventory.notes.iter().filter(|_| args.output_args.format != FormatArg::Json) {
        terminal::eprint(&format!("jobc: {}\n", escape_control(note)));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(inventory: &Inventory, leases: &[Lease], wide: bool) -> String {
    if inventory.gpus.is_empty() {
        return "no GPUs on this host; jobs without GPUs can run\n".to_owned();
    }
    let columns = terminal::columns_of_stdout();
    let driver = inventory.driver.as_ref().map(|driver| {
        let cuda = driver.cuda.as_ref().map(|cuda| format!(", CUDA {cuda} and older")).unwrap_or_default();
        let source = if inventory.source == Source::Proc { " (from /proc)" } else { "" };
        format!("\nNVIDIA driver {}{cuda}{source}\n", driver.version)
    });
    rows::table(inventory, leases, wide).render(columns) + &driver.unwrap_or_default()
}
