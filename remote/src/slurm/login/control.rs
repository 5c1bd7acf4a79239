//! Ends, pauses and continues the Slurm jobs of a run.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};

use jobc_sys::error::{Error, Kind, file_error};
use serde::{Deserialize, Serialize};

use super::commands::{self, Reply};
use super::fault::Fault;
use super::question::{COMMAND, Login, Question};
use super::runs;
use crate::slurm::queue;

/// How often the end of a job is looked for.
const INTERVAL: Duration = Duration::from_secs(1);

/// A Slurm job of a run.
struct Job {
    group: String,
    id: String,
    state: String,
}

/// The Slurm jobs of a run that Slurm still knows.
fn jobs(login: &Login, name: &str) -> Result<Vec<Job>, Fault> {
    let run = login.run(name);
    if !run.join("job.json").exists() {
        return Err(Fault::NoRun);
    }
    let entries = fs::read_dir(run.join("jobs")).into_iter().flatten().flatten();
    let ids: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let id = fs::read_to_string(entry.path()).ok()?.trim().to_owned();
            (!id.is_empty()).then(|| Some((entry.file_name().into_string().ok()?, id)))?
        })
        .collect();
    if ids.is_empty() {
        return Ok(vec![]);
    }
    let all = ids.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>().join(",");
    let said = runs::queue(Some(&all))?;
    if !said.is_ok && is_unknown(&said) {
        return Ok(vec![]);
    }
    let rows = queue::parse(&said.answer()?);
    let of_run = |(group, id): (String, String)| {
        let row = rows.get(&id).filter(|row| row.is_of(name))?;
        Some(Job { group, state: row.state.clone(), id })
    };
    Ok(ids.into_iter().filter_map(of_run).collect())
}

/// Whether Slurm has forgotten all of the jobs.
pub(super) fn is_unknown(said: &Reply) -> bool {
    said.all().to_ascii_lowercase().contains("invalid job id")
}

/// Writes down that the user stopped a run, and when.
fn mark_stopped(run: &Path) -> Result<(), Fault> {
    let path = run.join("stopped");
    if path.exists() {
        return Ok(());
    }
    fs::write(&path, format!("{}\n", crate::slurm::time::now()))
        .map_err(|error| file_error("write", &path, &error).into())
}

/// Has a script that has `retry` not start again.
fn keep_ended(id: &str) -> Result<(), Fault> {
    commands::ask(&["scontrol", "update", &format!("jobid={id}"), "requeue=0"]).map(drop)
}

/// Stops a run. Where jobc runs the tasks, it tells them. Others get SIGTERM, and a process here ends what is left after
/// the job's own time.
#[derive(Deserialize, Serialize)]
pub(crate) struct Stop {
    pub(crate) run: String,
    pub(crate) grace: u64,
}

impl Question for Stop {
    type Answer = ();

    fn answer(self, login: &Login) -> Result<(), Fault> {
        let run = login.run(&self.run);
        let jobs = jobs(login, &self.run)?;
        mark_stopped(&run)?;
        let (mut waiting, mut running, mut by_jobc) = (vec![], vec![], vec![]);
        for job in &jobs {
            let runs = matches!(job.state.as_str(), "RUNNING" | "SUSPENDED");
            let list = match () {
                () if runs && is_by_jobc(&run, &job.group) => &mut by_jobc,
                () if runs && has_step(&job.id)? => &mut running,
                // No task is there yet.
                () => &mut waiting,
            };
            list.push(job.id.as_str());
        }
        let cancel = |options: &[&str], ids: &[&str]| {
            if ids.is_empty() {
                Ok(Reply::default())
            } else {
                commands::ask(&[&["scancel"], options, ids].concat())
            }
        };
        // Those that wait for others first: they must not start.
        cancel(&[], &waiting)?;
        for id in &running {
            keep_ended(id)?;
        }
        cancel(&["--batch", "--signal=TERM"], &by_jobc)?;
        cancel(&["--signal=TERM"], &running)?;
        if running.is_empty() {
            return Ok(());
        }
        let later = Command::new("/proc/self/exe")
            .args([COMMAND, "end", &self.grace.to_string()])
            .args(&running)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let failed =
            |error| Error::new(Kind::System, "cannot start the end of the job").because(error).into();
        later.map(drop).map_err(failed)
    }
}

/// `jobc on-cluster end GRACE ID...`: ends what runs after so many seconds.
pub(super) fn end_after(grace: &str, ids: &[&str]) -> ExitCode {
    let _ = rustix::process::setsid();
    let until = Instant::now() + Duration::from_secs(grace.parse().unwrap_or_default());
    let jobs = format!("--jobs={}", ids.join(","));
    let runs = || {
        commands::ask(&["squeue", "--noheader", "--states=RUNNING", &jobs])
            .is_ok_and(|said| !said.text.is_empty())
    };
    while Instant::now() < until && runs() {
        std::thread::sleep(INTERVAL);
    }
    let _ = commands::ask(&[&["scancel", "--state=RUNNING"], ids].concat());
    ExitCode::SUCCESS
}

/// Whether a job has its first step.
fn has_step(id: &str) -> Result<bool, Fault> {
    let said = commands::ask(&["squeue", "--noheader", "--steps", &format!("--jobs={id}"), "--format=%i"])?;
    Ok(said.text.lines().any(|line| line.trim().ends_with(".0")))
}

/// Whether jobc runs the tasks of a group on the nodes.
fn is_by_jobc(run: &Path, group: &str) -> bool {
    script(run, group).lines().any(|line| line.starts_with("exec ") && line.contains(" node "))
}

/// Whether Slurm alone runs the tasks of a group.
pub(super) fn is_direct(run: &Path, group: &str) -> bool {
    let is_step = |line: &str| line.strip_prefix("exec ").unwrap_or(line).starts_with("srun --job-name=");
    script(run, group).lines().any(is_step)
}

fn script(run: &Path, group: &str) -> String {
    fs::read_to_string(run.join(format!("target/slurm/{group}.sbatch"))).unwrap_or_default()
}

/// Sends a signal to the tasks of a run. KILL ends the run: its script gets the signal too, and jobs that wait are
/// canceled.
#[derive(Deserialize, Serialize)]
pub(crate) struct Kill {
    pub(crate) run: String,
    pub(crate) signal: String,
}

impl Question for Kill {
    type Answer = ();

    fn answer(self, login: &Login) -> Result<(), Fault> {
        let jobs = jobs(login, &self.run)?;
        let ends = self.signal == "KILL";
        if ends {
            mark_stopped(&login.run(&self.run))?;
        }
        let signal = format!("--signal={}", self.signal);
        for Job { id, state, .. } in &jobs {
            match state.as_str() {
                "RUNNING" | "SUSPENDED" if ends => {
                    keep_ended(id)?;
                    commands::ask(&["scancel", "--signal=KILL", "--full", id])?;
                }
                _ if ends => {
                    commands::ask(&["scancel", id])?;
                }
                "RUNNING" => {
                    commands::ask(&["scancel", &signal, id])?.check()?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Holds a run back, or lets it go on.
#[derive(Deserialize, Serialize)]
pub(crate) struct Hold {
    pub(crate) run: String,
    pub(crate) hold: bool,
}

impl Question for Hold {
    /// Why a job that runs can be neither suspended nor started again.
    type Answer = Option<String>;

    fn answer(self, login: &Login) -> Result<Option<String>, Fault> {
        for Job { id, state, .. } in &jobs(login, &self.run)? {
            let word = match (self.hold, state.as_str()) {
                (true, "PENDING") => "hold",
                (false, "PENDING") => "release",
                (false, "SUSPENDED") => "resume",
                (true, "RUNNING") => {
                    if let Some(why) = pause(id)? {
                        return Ok(Some(why));
                    }
                    continue;
                }
                _ => continue,
            };
            commands::ask(&["scontrol", word, id])?.check()?;
        }
        Ok(None)
    }
}

/// Most sites allow operators only to suspend a job that runs. Its user may have it start again later, if it has
/// `--requeue`.
fn pause(id: &str) -> Result<Option<String>, Fault> {
    let said = commands::ask(&["scontrol", "suspend", id])?;
    if said.is_ok {
        return Ok(None);
    }
    let shown = commands::ask(&["scontrol", "show", "job", "--oneliner", id])?;
    if !shown.text.contains(" Requeue=1 ") {
        return Ok(Some(said.reason()));
    }
    commands::ask(&["scontrol", "requeuehold", id])?.check()?;
    // Its tasks have their grace period. Until they have ended it cannot be released.
    let since = SystemTime::now();
    let jobs = format!("--jobs={id}");
    while since.elapsed().is_ok_and(|time| time < Duration::from_hours(1)) {
        let said = commands::ask(&["squeue", "--noheader", &jobs, "--format=%T"])?;
        if !said.text.contains("RUNNING") && !said.text.contains("COMPLETING") {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(None)
}
