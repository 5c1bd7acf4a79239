//! `jobc gpu leases`: lists the GPUs of each job, and the jobs that wait for GPUs.

use std::process::ExitCode;

use jobc_gpu::device_names::short_name;
use jobc_gpu::{Host, Inventory};
use jobc_job::admission::ledger::Ledger;
use jobc_job::admission::overview::{Lease, Overview, QueuedJob};
use jobc_schema::Bytes;

use crate::args::FormatArg;
use crate::runtime::args::gpu::LeasesArgs;
use crate::runtime::commands::jobs::{Jobs, Result, json_text};
use crate::table::Table;
use crate::terminal;

pub(crate) fn run(args: &LeasesArgs) -> Result<ExitCode> {
    let ledger = Ledger::standard(Jobs::open()?.directories())?;
    let inventory = Inventory::discover(&Host::here());
    let overview = Overview::of(&ledger, &inventory)?;
    terminal::print(&match args.output_args.format {
        FormatArg::Json => json_text(&overview),
        _ => text(&overview, terminal::columns_of_stdout()),
    });
    if let Some(note) = ledger.note.iter().find(|_| args.output_args.format != FormatArg::Json) {
        terminal::eprint(&format!("jobc: {note}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(overview: &Overview, columns: Option<usize>) -> String {
    let mut out = if overview.leases.is_empty() {
        "no job has a GPU\n".to_owned()
    } else {
        leases(&overview.leases).render(columns)
    };
    if !overview.waiting.is_empty() {
        out += "\n";
        out += &waiting(&overview.waiting).render(columns);
    }
    out
}

fn leases(leases: &[Lease]) -> Table {
    let mut table = Table::new(["GPU", "NAME", "JOB", "USER", "SLICE", "ENFORCED BY"]);
    for lease in leases {
        let slice = lease.slice.as_ref().map(|slice| {
            let memory = slice.memory_bytes.map(|bytes| Bytes(bytes).to_string());
            let cores = slice.cores_percent.map(|percent| format!("{percent} %"));
            let parts: Vec<String> = memory.into_iter().chain(cores).collect();
            let by = slice.by.as_str();
            if parts.is_empty() { by.to_owned() } else { format!("{by}, {}", parts.join(", ")) }
        });
        table.row([
            short_name(lease.device),
            lease.name.clone(),
            lease.job.clone(),
            lease.user.to_string(),
            slice.unwrap_or_else(|| "all".to_owned()),
            lease.slice.as_ref().map_or_else(|| "-".to_owned(), |slice| slice.enforced_by.words().to_owned()),
        ]);
    }
    table
}

fn waiting(waiting: &[QueuedJob]) -> Table {
    let mut table = Table::new(["PLACE", "JOB", "USER", "WAITS FOR"]);
    for one in waiting {
        table.row([one.place.to_string(), one.job.clone(), one.user.to_string(), one.waits_for.clone()]);
    }
    table
}
