//! Which job a command uses if none is named.
//!
//! Commands that only show something use the newest job. `wait` and `exec` use the newest running one. `stop`, `pause` and
//! `resume` never choose: they use the only job that they can be meant for, and `stop` asks on a terminal.

use std::io::{self, BufRead as _, IsTerminal as _};

use jobc_job::directory::Directory;
use jobc_job::local_place::{named_tasks, summary};
use jobc_job::record::Record;
use jobc_job::sweep::Sweep;
use jobc_place::job_ref::{HandleError, JobRef};
use jobc_place::state::JobState;
use jobc_place::time::{Time, format_ago};
use jobc_sys::error::{Error, Kind};
use jobc_sys::id::JobId;

use super::found::{NamedJobs, Places};
use super::jobs::{Failure, Jobs, Result};
use super::sweep::count;
use crate::table::{Table, escape_control};
use crate::terminal;

/// A job with its record.
type Job = (Directory, Record);

/// The newest job, whether it runs or has ended.
fn newest_job(jobs: &Jobs) -> Result<Job> {
    newest(jobs)?.ok_or_else(|| no_job("there is no job yet"))
}

/// The newest job or sweep, whether it runs or has ended.
fn newest_or_sweep(jobs: &Jobs) -> Result<JobId> {
    newest_job(jobs).map(|job| or_sweep(jobs, &job))
}

/// The sweep of a job of a sweep; otherwise the job.
fn or_sweep(jobs: &Jobs, (directory, record): &Job) -> JobId {
    let sweep = record.sweep.as_ref();
    let sweep = sweep.and_then(|sweep| Sweep::of_job(jobs.directories(), &directory.id, sweep));
    sweep.map_or_else(|| directory.id.clone(), |sweep| sweep.id)
}

fn here(id: &JobId) -> Result<NamedJobs> {
    Places::default().find(&JobRef::Local(id.to_string()))
}

/// The named job or sweep, at any place; without a name the newest job of this host.
pub(crate) fn named_or_newest(job: Option<&JobRef>) -> Result<NamedJobs> {
    match job {
        Some(job) => Places::default().find(job),
        None => here(&newest_job(&Jobs::open()?)?.0.id),
    }
}

/// The same, where the newest may be a sweep.
pub(crate) fn named_or_newest_sweep(job: Option<&JobRef>) -> Result<NamedJobs> {
    match job {
        Some(job) => Places::default().find(job),
        None => here(&newest_or_sweep(&Jobs::open()?)?),
    }
}

/// The newest job of this host that runs.
pub(crate) fn running() -> Result<NamedJobs> {
    here(&newest_running(&Jobs::open()?)?.0.id)
}

/// The job or sweep, and the tasks, of `[JOB] [TASK]...`: the job can be left out before tasks of the newest one of this
/// host.
pub(crate) fn named_with_tasks(words: &[String]) -> Result<(NamedJobs, &[String])> {
    let [first, rest @ ..] = words else { return Ok((named_or_newest_sweep(None)?, words)) };
    let job: JobRef = first
        .parse()
        .map_err(|error: HandleError| Failure::usage_error(Error::new(Kind::Config, error.to_string())))?;
    let error = match Places::default().find(&job) {
        Ok(found) => return Ok((found, rest)),
        Err(error) => error,
    };
    if matches!(job, JobRef::Local(_)) && error.is_about_the_job() {
        let jobs = Jobs::open()?;
        if let Some(job) = newest(&jobs)?.filter(|(_, record)| named_tasks(record, words).is_ok()) {
            return Ok((here(&or_sweep(&jobs, &job))?, words));
        }
    }
    Err(error)
}

/// The newest job that runs.
pub(crate) fn newest_running(jobs: &Jobs) -> Result<Job> {
    all_running(jobs)?.into_iter().next().ok_or_else(|| no_job("no job is running"))
}

/// The newest job or sweep that runs, or else the newest one.
pub(crate) fn running_or_newest() -> Result<NamedJobs> {
    let jobs = Jobs::open()?;
    match all_running(&jobs)?.first() {
        Some(job) => here(&or_sweep(&jobs, job)),
        None => here(&newest_or_sweep(&jobs)?),
    }
}

/// A job or a sweep that runs.
struct RunningJobs {
    id: JobId,
    state: &'static str,
    submitted: Time,
    /// Its tasks, or the jobs of a sweep that run.
    parts: String,
}

/// The jobs that run, those of a sweep as one.
fn all_with_sweeps(jobs: &Jobs) -> Result<Vec<RunningJobs>> {
    let mut found: Vec<RunningJobs> = Vec::new();
    let mut by_sweep: Vec<(JobId, Vec<JobState>)> = Vec::new();
    for job in all_running(jobs)? {
        let record = &job.1;
        if let Some((_, states)) = by_sweep.iter_mut().find(|(id, _)| Some(id) == record.sweep.as_ref()) {
            states.push(record.state);
            continue;
        }
        let id = or_sweep(jobs, &job);
        if id != job.0.id {
            by_sweep.push((id.clone(), vec![record.state]));
        }
        found.push(RunningJobs {
            id,
            state: record.state.as_str(),
            submitted: record.submitted,
            parts: summary(record).tasks_text(),
        });
    }
    for running in &mut found {
        if let Some((_, states)) = by_sweep.iter().find(|(id, _)| *id == running.id) {
            // It is queued only if all of its jobs are.
            let state = states.iter().find(|state| **state != JobState::Queued).unwrap_or(&JobState::Queued);
            running.state = state.as_str();
            running.parts = format!("jobs: {}", count(states.iter().map(|state| state.as_str())));
        }
    }
    Ok(found)
}

/// The newest run of a name that has not ended, if there is one. With the IDs of the other runs of that name that have not
/// ended.
pub(crate) fn run_to_stop(name: &str) -> Result<Option<(JobId, Vec<JobId>)>> {
    let running = all_with_sweeps(&Jobs::open()?)?.into_iter().map(|one| one.id);
    let mut running = running.filter(|id| id.name == name);
    Ok(running.next().map(|newest| (newest, running.collect())))
}

/// The jobs and sweeps to stop if none is named: the only one that runs. On a terminal the user is asked, and may
/// choose none.
pub(crate) fn jobs_to_stop() -> Result<Vec<JobRef>> {
    let running = all_with_sweeps(&Jobs::open()?)?;
    let asks = io::stdin().is_terminal() && io::stderr().is_terminal();
    let choice = match &running[..] {
        [] => return Err(no_job("no job is running")),
        [_] if !asks => vec![0],
        [one] => {
            let age = format_ago(one.submitted, Time::now());
            let question = format!("stop {}, {}, submitted {age}? [Y/n] ", one.id, one.state);
            let answer = ask(&question);
            if answer.is_some_and(|answer| is_yes(&answer)) { vec![0] } else { vec![] }
        }
        several if asks => {
            terminal::eprint(&overview(several));
            let answer = ask("stop which? numbers such as `1 2`, `all`, or Enter for none: ");
            chosen(&answer.unwrap_or_default(), several.len())?
        }
        several => {
            return Err(several_jobs(several, "running; name those to stop"));
        }
    };
    if choice.is_empty() {
        return Err(Error::new(Kind::State, "no job was stopped").into());
    }
    Ok(choice.into_iter().map(|number| JobRef::Local(running[number].id.to_string())).collect())
}

/// The job or sweep in a state, if it is the only one: the one to pause, or to resume.
pub(crate) fn only_one(state: JobState) -> Result<NamedJobs> {
    let mut found = all_with_sweeps(&Jobs::open()?)?;
    found.retain(|one| one.state == state.as_str());
    match &found[..] {
        [] => Err(no_job(&format!("no job is {}", state.as_str()))),
        [one] => here(&one.id),
        several => Err(several_jobs(several, &format!("{}; name those that are meant", state.as_str()))),
    }
}

/// The error of a command that does not choose among several jobs.
fn several_jobs(found: &[RunningJobs], what: &str) -> Failure {
    let names: Vec<String> = found.iter().map(|one| one.id.to_string()).collect();
    let error = Error::new(Kind::State, format!("{} jobs are {what}", names.len()));
    let known = jobc_compiler::suggest::list(names.iter().map(String::as_str));
    Failure::usage_error(error.help(format!("they are {known}")))
}

/// Tells a user at a terminal which job was taken.
pub(crate) fn show_choice(id: &str, what: &str) {
    if io::stderr().is_terminal() {
        let style = terminal::style();
        let (dim, plain) = if style.color { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        terminal::eprint(&format!("{dim}jobc: {id}, {what}{plain}\n"));
    }
}

/// The job that was submitted last.
fn newest(jobs: &Jobs) -> Result<Option<Job>> {
    Ok(jobc_job::newest::newest(jobs.directories())?)
}

/// The jobs that run, or wait to, the newest first.
fn all_running(jobs: &Jobs) -> Result<Vec<Job>> {
    Ok(jobc_job::newest::running(jobs.directories())?)
}

fn no_job(message: &str) -> Failure {
    let error = Error::new(Kind::State, message);
    error.help("`jobc run` starts a job, `jobc ps --all` lists those of this user").into()
}

fn overview(running: &[RunningJobs]) -> String {
    let mut table = Table::new(["", "JOB", "STATE", "SUBMITTED", "TASKS"]);
    for (number, one) in (1..).zip(running) {
        table.row([
            number.to_string(),
            one.id.to_string(),
            one.state.to_owned(),
            format_ago(one.submitted, Time::now()),
            one.parts.clone(),
        ]);
    }
    table.render(terminal::columns_of_stderr())
}

/// The answer to a question at the terminal, without spaces around it; nothing at the end of the input.
fn ask(question: &str) -> Option<String> {
    terminal::eprint(question);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    if !line.ends_with('\n') {
        terminal::eprint("\n");
    }
    read.ok().filter(|&bytes| bytes > 0).map(|_| line.trim().to_owned())
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.to_ascii_lowercase().as_str(), "" | "y" | "yes")
}

/// The places of the chosen jobs of so many, in order; none for an empty answer.
fn chosen(answer: &str, count: usize) -> Result<Vec<usize>> {
    if answer.eq_ignore_ascii_case("all") {
        return Ok((0..count).collect());
    }
    let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
    let mut places = words
        .map(|word| {
            let number = word.parse::<usize>().ok().filter(|number| (1..=count).contains(number));
            number.map(|number| number - 1).ok_or_else(|| {
                let message = format!("`{}` is not one of the numbers 1 to {count}", escape_control(word));
                Failure::usage_error(Error::new(Kind::State, message).help("no job was stopped"))
            })
        })
        .collect::<Result<Vec<usize>>>()?;
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_numbers_select_jobs() {
        assert_eq!(chosen("", 3).unwrap(), [0; 0]);
        assert_eq!(chosen("3, 1 3", 3).unwrap(), [0, 2]);
        assert_eq!(chosen("ALL", 3).unwrap(), [0, 1, 2]);
        for answer in ["0", "4", "1 x", "y", "-1"] {
            assert!(chosen(answer, 3).is_err(), "{answer}");
        }
        assert!(is_yes("") && is_yes("Y") && !is_yes("n") && !is_yes("what"));
    }
}
