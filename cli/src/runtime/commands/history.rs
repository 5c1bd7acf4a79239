//! `jobc history`: what jobs used of what they requested, and smaller limits.

mod suggest;

use std::process::ExitCode;

use jobc_job::directory::Directory;
use jobc_job::history::usage;
use jobc_job::local_place::{LocalPlace, summary};
use jobc_job::record::Record;
use jobc_place::job::JobSummary;
use jobc_place::output::history::{Cost, HistoryJob, JobUsage, RoleUsage};
use jobc_place::time::Time;
use jobc_schema::Cpus;
use jobc_sys::accounts;
use jobc_sys::error::{Error, Kind};

use super::job_list::state_text;
use super::jobs::{Failure, Result, format_ago, format_duration, id, open_local, print_list};
use super::target_table;
use crate::runtime::args::history::HistoryArgs;
use crate::runtime::quantity::bytes;
use crate::table::Table;
use crate::terminal;

/// A job of the history.
struct Entry {
    /// What a user calls it.
    id: String,
    summary: JobSummary,
    usage: Option<JobUsage>,
}

pub(crate) fn run(args: &HistoryArgs) -> Result<ExitCode> {
    let now = Time::now();
    if args.suggest {
        let place = open_local()?;
        let records = local_records(&place, args)?;
        terminal::print(&suggest::patch(&records, now, &|line| terminal::eprint(&format!("jobc: {line}\n"))));
        return Ok(ExitCode::SUCCESS);
    }
    let entries = match args.target.as_deref() {
        Some(target) => of_target(target, args)?,
        None => of_host(args, now)?,
    };
    let jobs = entries.iter().map(|one| HistoryJob::new(&one.id, &one.summary, one.usage.as_ref(), now));
    print_list(args.output_args.format, &jobs.collect::<Vec<_>>(), || table(&entries, now));
    Ok(ExitCode::SUCCESS)
}

/// The jobs of this host with their samples, the newest first.
fn of_host(args: &HistoryArgs, now: Time) -> Result<Vec<Entry>> {
    let place = open_local()?;
    let records = local_records(&place, args)?;
    let entry = |(directory, record): &(Directory, Record)| Entry {
        id: record.id.to_string(),
        summary: JobSummary { user: args.user.clone(), ..summary(record) },
        usage: Some(usage(directory, record, now)),
    };
    Ok(records.iter().map(entry).collect())
}

/// The records that the options keep, the newest first.
fn local_records(place: &LocalPlace, args: &HistoryArgs) -> Result<Vec<(Directory, Record)>> {
    let mut records = place.records()?;
    records.sort_by_key(|(_, record)| std::cmp::Reverse(record.submitted));
    require_names(args, records.iter().map(|(_, record)| (record.id.to_string(), record.id.name.clone())))?;
    let passwd = args.user.is_some().then(|| accounts::read_file("/etc/passwd").unwrap_or_default());
    records.retain(|(_, record)| {
        let owner = || accounts::name_of(passwd.as_deref().unwrap_or_default(), record.owner);
        let is_user = |user: &String| *user == record.owner.to_string() || owner().as_ref() == Some(user);
        is_kept(args, &summary(record)) && args.user.as_ref().is_none_or(is_user)
    });
    records.truncate(args.limit.unwrap_or(usize::MAX));
    Ok(records)
}

/// The jobs that a cluster lists; it has no samples of ended ones.
fn of_target(target: &str, args: &HistoryArgs) -> Result<Vec<Entry>> {
    let mut found = vec![];
    target_table::list(Some(target), &mut found)?;
    require_names(args, found.iter().map(|(_, job)| (job.name.clone(), job.job.clone())))?;
    found.retain(|(_, job)| {
        is_kept(args, job) && args.user.as_ref().is_none_or(|user| job.user.as_ref() == Some(user))
    });
    found.truncate(args.limit.unwrap_or(usize::MAX));
    let entry = |(target, summary): (Option<String>, JobSummary)| Entry {
        id: id(target.as_deref(), &summary.name),
        summary,
        usage: None,
    };
    Ok(found.into_iter().map(entry).collect())
}

/// Whether the options keep a job, except for its user.
fn is_kept(args: &HistoryArgs, job: &JobSummary) -> bool {
    (args.state.is_empty() || args.state.contains(&job.state))
        && args.since.is_none_or(|since| job.submitted.is_some_and(|submitted| submitted >= since))
        && (args.jobs.is_empty() || args.jobs.iter().any(|word| *word == job.name || *word == job.job))
}

/// An error for a word that is neither the ID nor the name of a job.
fn require_names(args: &HistoryArgs, known: impl Iterator<Item = (String, String)>) -> Result<()> {
    let known: Vec<(String, String)> = known.collect();
    for word in &args.jobs {
        if known.iter().any(|(id, name)| id == word || name == word) {
            continue;
        }
        let words = known.iter().flat_map(|(id, name)| [id.as_str(), name.as_str()]);
        let error = Error::new(Kind::NotFound, format!("unknown job `{word}`"));
        return Err(Failure::from(match jobc_compiler::suggest::nearest(word, words) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }));
    }
    Ok(())
}

fn table(entries: &[Entry], now: Time) -> Table {
    let user = entries.iter().any(|one| one.summary.user.is_some()).then_some("USER");
    let is_counted =
        |one: &Entry| one.usage.as_ref().is_some_and(|usage| usage.energy.millijoules().is_some());
    let energy = entries.iter().any(is_counted).then_some("ENERGY");
    let headings = ["JOB", "STATE"].into_iter().chain(user).chain(["SUBMITTED", "RAN", "GPU HOURS"]);
    let is_priced = |one: &Entry| one.usage.as_ref().is_some_and(|usage| usage.cost.is_some());
    let cost = entries.iter().any(is_priced).then_some("COST");
    let headings = headings.chain(energy).chain(cost).chain(["ROLE", "CPU", "MEMORY", "GPU"]);
    let mut table = Table::new(headings);
    for entry in entries {
        let job = &entry.summary;
        let ran = job.started.map(|started| format_duration(job.ended.unwrap_or(now).since(started)));
        let mut cells = vec![entry.id.clone(), state_text(job)];
        cells.extend(user.map(|_| job.user.clone().unwrap_or_default()));
        cells.push(job.submitted.map(|at| format_ago(at, now)).unwrap_or_default());
        cells.push(ran.unwrap_or_default());
        cells.push(gpu_hours(entry.usage.as_ref().map_or(0, |usage| usage.gpu_seconds)));
        cells.extend(energy.map(|_| match &entry.usage {
            Some(usage) => usage.energy.text(),
            None => "-".to_owned(),
        }));
        let text = || entry.usage.as_ref().and_then(|usage| usage.cost.as_ref()).map(Cost::text);
        cells.extend(cost.map(|_| text().unwrap_or_else(|| "-".to_owned())));
        let roles = entry.usage.as_ref().map_or(&[][..], |usage| &usage.roles);
        let width = cells.len();
        for (number, role) in roles.iter().enumerate() {
            // A job with several roles has its own cells once.
            let own = if number == 0 { cells.clone() } else { vec![String::new(); width] };
            table.row(own.into_iter().chain(role_cells(role)));
        }
        if roles.is_empty() {
            table.row(cells);
        }
    }
    table
}

/// Role, CPU, memory, GPU.
fn role_cells(role: &RoleUsage) -> [String; 4] {
    let of = |used: Option<String>, asked: Option<String>| match (used, asked) {
        (Some(used), Some(asked)) => format!("{used} of {asked}"),
        (Some(used), None) => used,
        (None, Some(asked)) => format!("- of {asked}"),
        (None, None) => "-".to_owned(),
    };
    let (asked, used) = (&role.asked, &role.used);
    let memory = |amount: u64| jobc_schema::Bytes(amount).amount().to_string();
    let gpu =
        [used.gpu_percent_mean.map(|percent| format!("{percent}%")), used.gpu_memory_peak_bytes.map(bytes)];
    let gpu: Vec<String> = gpu.into_iter().flatten().collect();
    let times = if asked.gpus > 1 { format!("{} x ", asked.gpus) } else { String::new() };
    let tasks = if role.tasks > 1 { format!("{} x {}", role.role, role.tasks) } else { role.role.clone() };
    [
        tasks,
        of(
            used.cpu_millis_peak.or(used.cpu_millis_mean).map(cpus),
            asked.cpu_millis.map(|millis| Cpus { millis }.amount().replace(" CPUs", "").replace(" CPU", "")),
        ),
        of(used.memory_peak_bytes.map(bytes), asked.memory_bytes.map(memory)),
        match asked.gpus {
            0 => "-".to_owned(),
            count if gpu.is_empty() => count.to_string(),
            _ => times + &gpu.join(" "),
        },
    ]
}

/// Thousandths of a CPU with two decimals: `0.03`, `3.97`.
fn cpus(millis: u64) -> String {
    format!("{}.{:02}", millis / 1000, millis % 1000 / 10)
}

/// Hours with two decimals; nothing for none.
fn gpu_hours(seconds: u64) -> String {
    if seconds == 0 { "-".to_owned() } else { format!("{}.{:02}", seconds / 3600, seconds % 3600 / 36) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobc_place::output::history::{TaskLimits, Used};

    #[test]
    fn a_row_is_what_was_used_of_what_was_requested() {
        let role = RoleUsage {
            role: "train".to_owned(),
            tasks: 4,
            attempts: 4,
            asked: TaskLimits { cpu_millis: Some(8000), memory_bytes: Some(64 << 30), gpus: 2 },
            used: Used {
                cpu_millis_peak: Some(3972),
                memory_peak_bytes: Some(9_800_000_000),
                gpu_percent_mean: Some(83),
                gpu_memory_peak_bytes: Some(41 << 30),
                ..Used::default()
            },
        };
        assert_eq!(role_cells(&role), ["train x 4", "3.97 of 8", "9.1 GiB of 64 GiB", "2 x 83% 41.0 GiB"]);
        let unmeasured = RoleUsage { used: Used::default(), asked: TaskLimits::default(), tasks: 1, ..role };
        assert_eq!(role_cells(&unmeasured), ["train", "-", "-", "-"]);
        assert_eq!([0, 36, 7200 + 1800].map(gpu_hours), ["-", "0.01", "2.50"]);
    }
}
