//! `jobc submit --target lab,cloud`: the first of several targets that has room for the job now.

use jobc_compiler::compile::plan;
use jobc_compiler::diagnostic::Sink;
use jobc_remote::place::Capacity;
use jobc_schema::plan::JobPlan;
use jobc_sys::error::{Error, Kind};

use crate::input::{Input, InputError};
use crate::runtime::args::submit::SubmitArgs;
use crate::runtime::commands::jobs::{Failure, Result};
use crate::runtime::commands::target_table::TargetTable;
use crate::runtime::commands::target_table::listing;
use crate::runtime::message::container_warning;
use crate::terminal;

/// The target among several, separated by commas, that has the GPUs of the job free now; the first that answers if none has.
pub(super) fn choose(args: &SubmitArgs, words: &str) -> Result<String> {
    let names: Vec<&str> = words.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let table = TargetTable::read(args.targets.as_deref())?;
    let mut reachable = None;
    for (name, answer) in listing::of_each(&table, &names, |place| place.capacity()) {
        let rows = match answer {
            Ok(rows) => rows,
            Err(error) => {
                terminal::eprint(&container_warning(&format!("target `{name}`: {}", error.message())));
                continue;
            }
        };
        let wanted = gpus(args, &name)?;
        if has_room(&rows, wanted) {
            terminal::eprint(&format!("jobc: `{name}` has room for the job now\n"));
            return Ok(name);
        }
        reachable.get_or_insert(name);
    }
    let Some(first) = reachable else {
        let error = Error::new(Kind::System, format!("none of the targets {} answers", names.join(", ")));
        return Err(error.into());
    };
    terminal::eprint(&format!("jobc: no target has room for the job now; it waits at `{first}`\n"));
    Ok(first)
}

/// The GPUs that a job needs at once at a target; of a matrix, those of its largest job. Errors are reported when it is
/// submitted.
fn gpus(args: &SubmitArgs, target: &str) -> Result<u64> {
    let own = SubmitArgs { target: Some(target.to_owned()), ..args.clone() };
    let job_args = super::job_args(&own);
    let wrong = |InputError(why): InputError| Failure::usage_error(Error::new(Kind::Config, why));
    let mut input = Input::read(&job_args).map_err(wrong)?;
    let mut sources = std::mem::take(&mut input.sources);
    let directory = input.directory.clone();
    let to_job = move |_: &str| directory.clone();
    let request = input.request(&job_args, &to_job);
    let planned = plan(&mut sources, &request, &mut Sink::new());
    let of = |job: &JobPlan| job.roles.iter().map(jobc_schema::plan::RolePlan::gpus_at_once).sum();
    Ok(planned.iter().flat_map(|planned| planned.jobs.iter().map(of)).max().unwrap_or_default())
}

/// Whether so many GPUs are free in a part of a place: in every queue and quota, which limit it, and in nodes of one kind.
/// A user who may not see what is free of the nodes can trust a queue or quota alone.
fn has_room(rows: &[Capacity], gpus: u64) -> bool {
    let (limits, nodes): (Vec<&Capacity>, Vec<&Capacity>) =
        rows.iter().partition(|row| row.name.starts_with("queue ") || row.name.starts_with("quota "));
    let free = |row: &&Capacity| row.gpus.and_then(|gpus| gpus.free);
    // A part that says nothing of GPUs does not limit them.
    let is_within =
        |row: &Capacity| row.gpus.is_none_or(|amount| amount.free.is_none_or(|free| free >= gpus));
    let known: Vec<u64> = nodes.iter().filter_map(free).collect();
    let known = if known.is_empty() { limits.iter().filter_map(free).collect() } else { known };
    gpus == 0
        || limits.into_iter().all(|row| is_within(row) && row.note.as_deref() != Some("stopped"))
            && known.into_iter().any(|free| free >= gpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_remote::place::Amount;

    fn row(name: &str, free: Option<u64>) -> Capacity {
        let gpus = Some(Amount { free, total: 16 });
        Capacity { name: name.to_owned(), gpus, ..Capacity::default() }
    }

    #[test]
    fn room_is_in_nodes_of_one_kind_and_within_every_queue() {
        let stopped = Capacity { note: Some("stopped".to_owned()), ..row("queue a", Some(16)) };
        for (rows, gpus, expected) in [
            (vec![row("nodes A100", Some(8))], 8, true),
            (vec![row("nodes A100", Some(4)), row("nodes H100", Some(4))], 8, false),
            (vec![row("nodes A100", Some(8)), row("queue a", Some(4))], 8, false),
            (vec![row("nodes A100", Some(8)), row("quota a", Some(8))], 8, true),
            (vec![row("nodes A100", Some(8)), stopped], 8, false),
            (vec![row("nodes A100", None)], 8, false),
            (vec![row("nodes A100", None), row("queue a", Some(8))], 8, true),
            (vec![row("queue a", Some(4))], 8, false),
            (vec![row("partition all", Some(8))], 8, true),
            (vec![], 0, true),
            (vec![], 1, false),
        ] {
            assert_eq!(has_room(&rows, gpus), expected, "{rows:?} {gpus}");
        }
    }
}
