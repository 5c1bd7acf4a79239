//! `jobc node`: what the batch script of a Slurm job becomes.
//!
//! It starts the supervisor, hands the signals of Slurm on to it, writes down when the Slurm job starts and ends, and
//! exits with the code of the job.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use jobc_schema::plan::{JobPlan, Plan, RolePlan};
use jobc_schema::role::RetryScope;
use jobc_schema::steps::StepsPlan;
use jobc_schema::target::SlurmTarget;

use super::allocation::{ask, base};
use super::run::{RunDirectory, variable};
use crate::control::{Request, Response, write_line};
use crate::lifecycle::LEFT;
use jobc_place::exit_code;
use jobc_sys::error::{AtPath as _, Error, Kind, Result};
use jobc_sys::readable;
use jobc_sys::signals::{Signal, Signals};

/// The hidden command: `jobc node PLAN [RUN]`.
pub const COMMAND: &str = "node";

/// How often it is looked whether the user has stopped the run.
const STOP_INTERVAL: Duration = Duration::from_millis(500);

/// The exit code of a job that was cancelled.
const CANCELLED: u8 = 143;

/// Runs the tasks of the Slurm job that this process is in.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.collect();
    let run = || match &words[..] {
        [plan] => supervise(Path::new(plan), None),
        [plan, run, ..] => supervise(Path::new(plan), run.to_str().filter(|run| !run.is_empty())),
        [] => Err(Error::new(Kind::State, "this command is internal: batch scripts of Slurm run it")),
    };
    ExitCode::from(run().unwrap_or_else(|error| {
        eprintln!("jobc: {error}{}", error.advice().map(|advice| format!("; {advice}")).unwrap_or_default());
        exit_code::NOT_STARTED
    }))
}

/// Reads the plan of the steps, and that of the job one directory above.
pub(crate) fn read(path: &Path) -> Result<(StepsPlan, JobPlan)> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| {
        Error::new(Kind::Config, format!("`{}` is not what `jobc build` writes: {why}", path.display()))
            .help("run `sbatch` in the directory of its script, or with `--chdir`")
    };
    let text = |path: &Path| std::fs::read(path).map_err(|error| wrong(path, &error));
    let steps: StepsPlan = serde_json::from_slice(&text(path)?).map_err(|error| wrong(path, &error))?;
    let above = Path::new("../plan.json");
    let plan: Plan = serde_json::from_slice(&text(above)?).map_err(|error| wrong(above, &error))?;
    let job = plan.jobs.into_iter().next().ok_or_else(|| wrong(above, &"it has no job"))?;
    Ok((steps, job))
}

/// `run` is the directory that `jobc submit` made, or the number of the first Slurm job of the run.
fn supervise(path: &Path, run: Option<&str>) -> Result<u8> {
    let (steps, job) = read(path)?;
    let number = variable("SLURM_JOB_ID")?;
    let signals = Signals::block_forwarded()?;
    let submitted = run.map(Path::new).filter(|run| run.is_absolute());
    let directory = match submitted {
        Some(run) => run.to_owned(),
        None => run_of_sbatch(&steps, run.unwrap_or(&number))?,
    };
    let directory = RunDirectory::create(&directory, &steps.script)?;
    if submitted.is_some()
        && let Some(other) = directory.claim(&name_of_job(&number))?
    {
        eprintln!("jobc: this is Slurm job {other} already");
        return Ok(0);
    }
    let restarts = std::env::var("SLURM_RESTART_COUNT").unwrap_or_else(|_| "0".to_owned());
    let nodes = std::env::var("SLURM_JOB_NODELIST").unwrap_or_default();
    directory.note(&format!("started {restarts} {number} {nodes}"));
    let is_requeued = |role: &RolePlan| role.retry.scope == RetryScope::Job && role.retry.max > 0;
    let resumes = job.preemption.is_some();
    let may_start_again = resumes || job.roles.iter().any(is_requeued);
    let mut front = Front { directory, signals, is_stopping: false, may_start_again, resumes };
    let code = front.run(path)?;
    front.end(&number, code);
    Ok(code)
}

/// The run of a script that `sbatch` was given by hand.
fn run_of_sbatch(steps: &StepsPlan, number: &str) -> Result<PathBuf> {
    let here = std::env::current_dir().at_path("read", Path::new("the current directory"))?;
    let user = std::env::var("USER").unwrap_or_default();
    let of_user = |directory: &String| {
        let directory = SlurmTarget::of_user(directory, &user);
        match directory.strip_prefix("~/").zip(std::env::home_dir()) {
            Some((rest, home)) => home.join(rest),
            None => PathBuf::from(directory),
        }
    };
    let base = steps.directory.as_ref().map_or_else(|| base(&here), of_user);
    Ok(base.join(format!("jobc-{number}")))
}

/// The Slurm job as `jobc submit` writes it down: a task of an array by the number of the array.
fn name_of_job(number: &str) -> String {
    match (std::env::var("SLURM_ARRAY_JOB_ID"), std::env::var("SLURM_ARRAY_TASK_ID")) {
        (Ok(array), Ok(task)) => format!("{array}_{task}"),
        _ => number.to_owned(),
    }
}

struct Front {
    directory: RunDirectory,
    signals: Signals,
    is_stopping: bool,
    /// Whether the Slurm job has `--requeue`.
    may_start_again: bool,
    /// Whether it is started again whenever it has to leave.
    resumes: bool,
}

impl Front {
    /// Starts the supervisor and waits for its end; returns the code of the job.
    fn run(&mut self, plan: &Path) -> Result<u8> {
        let failed =
            |error: std::io::Error| Error::new(Kind::System, format!("cannot start the supervisor: {error}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        // This one starts the supervisor and ends, so that nothing leads from Slurm's process to the supervisor.
        let status = Command::new("/proc/self/exe")
            .args([super::SUPERVISE.as_ref(), plan.as_os_str(), self.directory.path.as_os_str()])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .status()
            .map_err(failed)?;
        if !status.success() {
            return Ok(exit_code::NOT_STARTED);
        }
        let mut stream = ours.try_clone().map_err(failed)?;
        let mut answers = BufReader::new(ours);
        loop {
            let both = [self.signals.as_fd(), answers.get_ref().as_fd()];
            let has_answer = readable::wait(&both, Some(STOP_INTERVAL)).is_ok_and(|ready| ready[1]);
            let mut requests = Vec::new();
            while let Some(signal) = self.signals.next() {
                requests.push(match signal {
                    Signal::INT | Signal::TERM => Request::Stop { grace_seconds: None, interrupt: false },
                    other => Request::Kill { signal: other.number(), tasks: vec![] },
                });
            }
            if !self.is_stopping && self.directory.is_stopped() {
                requests.push(Request::Stop { grace_seconds: None, interrupt: false });
            }
            for request in requests {
                self.is_stopping |= matches!(request, Request::Stop { .. });
                // A supervisor that is gone has said so, or is found to be below.
                let _ = write_line(&mut stream, &request);
            }
            if has_answer {
                let mut line = String::new();
                if answers.read_line(&mut line).map_or(true, |count| count == 0) {
                    return Ok(exit_code::NOT_STARTED);
                }
                if let Ok(Response::Ended { code }) = serde_json::from_str(&line) {
                    let is_cancelled = self.is_stopping && code == exit_code::STOPPED;
                    return Ok(if is_cancelled { CANCELLED } else { code });
                }
            }
        }
    }

    /// Writes the end down, and removes what the run must not leave.
    fn end(&self, number: &str, code: u8) {
        let show = || ask("scontrol", &["show", "job", number, "--oneliner"]).unwrap_or_default();
        // A preemption tells the tasks alone, which may then end by themselves.
        let has_left = code == LEFT && self.resumes;
        let is_asked = self.is_stopping || self.may_start_again || code == super::LOST;
        let mut shown = if is_asked { show() } else { String::new() };
        // Slurm announces the end of the time limit to the script of a job that still runs.
        let is_late = self.resumes && self.is_stopping && field(&shown, " JobState=") == Some("RUNNING");
        let is_preempted = (has_left || is_late || is_preempted(&shown)) && !self.directory.is_stopped();
        // When a node fails, Slurm ends the job in a moment.
        for _ in 0..10 {
            if code != super::LOST || self.is_stopping || field(&shown, " JobState=") != Some("RUNNING") {
                break;
            }
            std::thread::sleep(Duration::from_millis(300));
            shown = show();
        }
        let is_over = matches!(code, CANCELLED | super::LOST) && !self.directory.is_stopped();
        if is_preempted || is_over && starts_again(&shown) {
            self.directory.note(&format!("requeued {code}"));
            // Slurm would take an end in the time that a preemption leaves for that of the job. This ends the script, too.
            if is_preempted && Command::new("scontrol").args(["requeue", number]).status().is_ok() {
                std::thread::sleep(Duration::from_mins(1));
            }
            return;
        }
        if field(&shown, " JobState=") == Some("NODE_FAIL") {
            // Slurm says so itself.
            return;
        }
        let why = field(&shown, " Reason=").filter(|word| *word != "None").unwrap_or_default();
        self.directory.note(format!("ended {code} {why}").trim_end());
        if self.directory.is_over() {
            for name in ["secrets", "etc"] {
                let _ = std::fs::remove_dir_all(self.directory.path.join(name));
            }
        }
        // Slurm calls a job cancelled only if it cancels it.
        if self.directory.is_stopped() && Command::new("scancel").arg(number).status().is_ok() {
            std::thread::sleep(Duration::from_mins(1));
        }
    }
}

/// Whether Slurm may start a job again that it ends: one that was requeued or preempted, or of which it does not say yet.
/// `shown` is the line of `scontrol`.
fn starts_again(shown: &str) -> bool {
    let state = field(shown, " JobState=").unwrap_or_default();
    field(shown, " Requeue=") == Some("1")
        && matches!(state, "COMPLETING" | "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "PREEMPTED")
}

/// Whether another job takes the place of one that may start again.
fn is_preempted(shown: &str) -> bool {
    let is_due =
        field(shown, " PreemptTime=").is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()));
    is_due && field(shown, " Requeue=") == Some("1") && field(shown, " JobState=") == Some("RUNNING")
}

/// The value of a field in a line of `scontrol show job`.
fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    shown.lines().next()?.split_once(name)?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_slurm_requeues_has_not_ended() {
        let line = |state: &str, requeue: u8| {
            format!(
                "JobId=7 JobName=x JobState={state} Reason=None Dependency=(null) Requeue={requeue} Restarts=0\n"
            )
        };
        for (state, requeue, expected) in [
            ("PENDING", 1, true),
            ("COMPLETING", 1, true),
            ("PREEMPTED", 1, true),
            ("PREEMPTED", 0, false),
            ("CANCELLED", 1, false),
            ("RUNNING", 1, false),
        ] {
            assert_eq!(starts_again(&line(state, requeue)), expected, "{state} {requeue}");
        }
        assert!(!starts_again(""));
    }

    #[test]
    fn a_preemption_has_a_time() {
        let line = |time: &str, requeue: u8| {
            format!(
                "JobId=7 JobState=RUNNING Reason=None Requeue={requeue} PreemptEligibleTime=2026-01-01T10:00:00 PreemptTime={time} X=1\n"
            )
        };
        assert!(is_preempted(&line("2026-01-01T10:00:05", 1)));
        assert!(!is_preempted(&line("2026-01-01T10:00:05", 0)) && !is_preempted(&line("None", 1)));
    }
}
