//! `jobc top` and `jobc stats` of a job on a cluster.

use std::process::ExitCode;
use std::time::Duration;

use jobc_remote::Handle;
use jobc_remote::place::{GpuUsage, TaskUsage};
use jobc_sys::error::{Error, Kind};
use serde_json::json;

use super::handle::failure;
use crate::args::FormatArg;
use crate::runtime::args::watch::StatsArgs;
use crate::runtime::commands::jobs::{Failure, Result, json_text};
use crate::runtime::commands::target_table::TargetTable;
use crate::runtime::quantity::{bytes, percent};
use crate::table::Table;
use crate::terminal;

/// Clusters measure every 15 s by default.
const INTERVAL: Duration = Duration::from_secs(15);

/// Prints the resource usage of the tasks of a job, repeatedly until it has ended.
pub(super) fn run(args: &StatsArgs, handle: &Handle) -> Result<ExitCode> {
    if args.jobs.len() > 1 {
        let error = Error::new(Kind::Unsupported, "only one job on a cluster can be measured at a time");
        return Err(Failure::usage_error(error.help("name one handle")));
    }
    let place = TargetTable::read(None)?.place(&handle.target)?;
    let mut is_first = true;
    loop {
        let usage = place.usage(&handle.name).map_err(failure)?;
        if args.output_args.format == FormatArg::Json {
            terminal::print(&json_text(&json!(usage)));
        } else {
            let gap = if is_first { "" } else { "\n" };
            terminal::print(&format!("{gap}{}", table(&usage).render(terminal::columns_of_stdout())));
        }
        is_first = false;
        if args.no_stream || place.find(&handle.name).map_err(failure)?.state.is_final() {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(INTERVAL);
    }
}

fn table(usage: &[TaskUsage]) -> Table<6> {
    let mut table = Table::new(["TASK", "CPU", "CPU LIMIT", "MEMORY", "MEMORY LIMIT", "GPU"]);
    for task in usage {
        table.row([
            task.task.clone(),
            percent(task.cpu_millis),
            task.cpu_limit_millis.map(percent).unwrap_or_default(),
            bytes(task.memory_bytes),
            task.memory_limit_bytes.map(bytes).unwrap_or_default(),
            gpus(&task.gpus),
        ]);
    }
    table
}

/// Each GPU: its utilization, and its memory in use.
fn gpus(gpus: &[GpuUsage]) -> String {
    let shown = gpus.iter().map(|gpu| {
        let busy = gpu.utilization.map(|percent| format!("{percent}%"));
        let words: Vec<String> = busy.into_iter().chain(gpu.memory_bytes.map(bytes)).collect();
        words.join(" ")
    });
    shown.collect::<Vec<_>>().join(", ")
}
