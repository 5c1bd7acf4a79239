//! How Slurm jobs ended whose scripts did not say it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::SystemTime;

use jobc_sys::error::file_error;
use jobc_sys::program_path;
use serde::{Deserialize, Serialize};

use super::commands::{self, Reply};
use super::control::{is_direct, is_unknown};
use super::fault::Fault;
use super::question::{Login, Question};
use crate::slurm::queue::QueueRow;
use crate::slurm::{group, time};

/// The state of a job that nothing is known about.
const LOST: &str = "LOST";

/// Writes down how Slurm jobs ended: each by its run, group and id.
#[derive(Deserialize, Serialize)]
pub(crate) struct Ends(pub(crate) Vec<(String, String, String)>);

impl Question for Ends {
    type Answer = ();

    fn answer(self, login: &Login) -> Result<(), Fault> {
        for (name, group, id) in &self.0 {
            let run = login.run(name);
            let shown = commands::ask(&["scontrol", "show", "job", "--oneliner", id])?;
            let mut end = of_scontrol(name, &shown);
            if end.is_none() && (is_unknown(&shown) || field(&shown.text, "JobName").is_some()) {
                let (user, jobs) = (format!("--user={}", commands::uid()), format!("--jobs={id}"));
                let format = "--format=State,ExitCode,JobName,Start,End,NodeList";
                let words = ["sacct", "--allocations", &user, &jobs, "--noheader", "--parsable2", format];
                let is_missing = program_path::find("sacct").is_none();
                end =
                    if is_missing { Some(End::lost()) } else { of_sacct(name, id, &commands::ask(&words)?) };
            }
            let Some(mut end) = end else { continue };
            let path = run.join("events").join(group);
            let has_started = fs::read_to_string(&path).is_ok_and(|text| text.contains(" started "));
            if end.state == LOST && is_direct(&run, group) {
                end = guess(&run, group).unwrap_or(end);
            }
            if end.state == LOST && !has_started {
                // It was canceled, or its dependency failed.
                "CANCELLED".clone_into(&mut end.state);
            }
            if end.state == LOST || group::is_final(&end.state) {
                let failed = |error| file_error("write", &path, &error);
                fs::create_dir_all(run.join("events")).map_err(failed)?;
                let mut file = OpenOptions::new().append(true).create(true).open(&path).map_err(failed)?;
                file.write_all(end.lines(id, has_started).as_bytes()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// The end of a Slurm job; times are those of Slurm.
#[derive(Debug, Default, PartialEq, Eq)]
struct End {
    state: String,
    /// The exit code, as `CODE:SIGNAL`.
    code: String,
    started: Option<u64>,
    ended: Option<u64>,
    nodes: String,
    restarts: String,
}

impl End {
    fn lost() -> Self {
        Self { state: LOST.to_owned(), ..Self::default() }
    }

    /// The events of the group that say it.
    fn lines(&self, id: &str, has_started: bool) -> String {
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        let is_none = matches!(self.nodes.as_str(), "" | "(null)" | "None assigned");
        let started = match self.started.filter(|_| !is_none && !has_started) {
            Some(at) => format!("{at} started {} {id} {}\n", or(&self.restarts, "0"), self.nodes),
            None => String::new(),
        };
        let at = self.ended.unwrap_or_else(time::now);
        format!("{started}{at} verdict {} {}\n", self.state, or(&self.code, "0:0"))
    }
}

/// The value of a field in what `scontrol` shows.
fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    let is_name = |word: &&str| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    shown.split_whitespace().find(is_name).map(|word| &word[name.len() + 1..])
}

/// What `scontrol` says, if the job is that of the run.
fn of_scontrol(run: &str, shown: &Reply) -> Option<End> {
    let text = |name: &str| field(&shown.text, name).unwrap_or_default().to_owned();
    let row = QueueRow { name: text("JobName"), comment: text("Comment"), ..QueueRow::default() };
    (!text("JobState").is_empty() && row.is_of(run)).then(|| End {
        state: text("JobState"),
        code: text("ExitCode"),
        started: time::seconds(&text("StartTime")),
        ended: time::seconds(&text("EndTime")),
        nodes: text("NodeList"),
        restarts: text("Restarts"),
    })
}

/// What the accounting says of a job that Slurm has forgotten. None if it does not answer: it may be known in a moment.
fn of_sacct(run: &str, id: &str, said: &Reply) -> Option<End> {
    if !said.is_ok {
        return said.all().contains("accounting storage is disabled").then(End::lost);
    }
    let mut fields = said.text.lines().next().unwrap_or_default().split('|').map(str::to_owned);
    let mut next = || fields.next().unwrap_or_default();
    let (state, code, name) = (next(), next(), next());
    let row = QueueRow { name, ..QueueRow::default() };
    // The tasks of an array have the name of the matrix.
    if state.is_empty() || !id.contains('_') && !row.is_of(run) {
        return Some(End::lost());
    }
    let (started, ended) = (time::seconds(&next()), time::seconds(&next()));
    let state = state.split(' ').next().unwrap_or_default().to_owned();
    Some(End { state, code, started, ended, nodes: next(), restarts: String::new() })
}

/// How a job that Slurm alone runs ended, by its output: Slurm has forgotten it, and has no accounting.
fn guess(run: &Path, group: &str) -> Option<End> {
    let out = run.join(format!("out/{group}.log"));
    let logs = fs::read_dir(run.join("logs")).into_iter().flatten().flatten().map(|entry| entry.path());
    // Nothing was written after the end.
    let changed =
        |path: &Path| fs::metadata(path).ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok();
    let ended = logs.chain([out.clone()]).filter_map(|path| changed(&path)).max()?.as_secs();
    let text = String::from_utf8_lossy(&fs::read(&out).unwrap_or_default()).into_owned();
    let is_canceled = |line: &str| {
        line.starts_with("slurmstepd") && line.contains("*** JOB ") && line.contains(" CANCELLED")
    };
    let state = match () {
        () if text.contains("DUE TO TIME LIMIT") => "TIMEOUT",
        () if text.contains("DUE TO NODE FAILURE") => "NODE_FAIL",
        () if text.lines().any(is_canceled) => "CANCELLED",
        () if text.lines().any(|line| line.starts_with("srun: error: ")) => "FAILED",
        () => "COMPLETED",
    };
    let code = text
        .lines()
        .find_map(|line| line.strip_prefix("srun: error: ")?.split_once("Exited with exit code "));
    let code = code.and_then(|(_, code)| code.trim().parse::<u8>().ok()).unwrap_or(1);
    let code = if state == "FAILED" { format!("{code}:0") } else { String::new() };
    Some(End { state: state.to_owned(), code, ended: Some(ended), ..End::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_job_is_found_with_accounting_and_without() {
        let said = |text: &str| match text.strip_prefix('!') {
            Some(errors) => Reply { errors: errors.to_owned(), ..Reply::default() },
            None => Reply { is_ok: true, text: text.to_owned(), ..Reply::default() },
        };
        let unknown = "!slurm_load_jobs error: Invalid job id specified";
        let disabled = "!Slurm accounting storage is disabled";
        let job = |name: &str, comment: &str, state: &str| {
            format!(
                "JobId=7 JobName={name} UserId=me(1000) JobState={state} Reason=None ExitCode=0:9 EndTime=12 Comment={comment} Power="
            )
        };
        for (scontrol, sacct, expected) in [
            (job("x-1a", "jobc:x-1a:p:job", "FAILED"), disabled, "12 verdict FAILED 0:9\n"),
            // The number is that of another job now.
            (job("bash", "", "RUNNING"), disabled, " verdict LOST 0:0\n"),
            (
                job("x-1ab", "jobc:x-1ab:p:job", "COMPLETED"),
                "TIMEOUT|0:0|x-1a|3|4|n0",
                "4 verdict TIMEOUT 0:0\n",
            ),
            (unknown.to_owned(), "TIMEOUT|0:0|x-1a|3|4|n0", "4 verdict TIMEOUT 0:0\n"),
            (unknown.to_owned(), "CANCELLED by 1000|0:0|x-1a|None|4|", "4 verdict CANCELLED 0:0\n"),
            (unknown.to_owned(), "FAILED|7:0|x-1a-train|3|4|n0", "4 verdict FAILED 7:0\n"),
            (unknown.to_owned(), "COMPLETED|0:0|bash|3|4|n0", " verdict LOST 0:0\n"),
            (unknown.to_owned(), "", " verdict LOST 0:0\n"),
            (unknown.to_owned(), disabled, " verdict LOST 0:0\n"),
            // It may be known again in a moment.
            (unknown.to_owned(), "!sacct: error: Connection refused", ""),
        ] {
            let shown = said(&scontrol);
            let end = of_scontrol("x-1a", &shown).or_else(|| of_sacct("x-1a", "7", &said(sacct)));
            let lines = end.map(|end| end.lines("7", true)).unwrap_or_default();
            let is_now = expected.starts_with(' ');
            let lines = if is_now {
                lines.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned()
            } else {
                lines
            };
            assert_eq!(lines, expected, "{scontrol} {sacct}");
        }
        let shown = said(
            "JobName=x-1a JobState=NODE_FAIL ExitCode=0:0 StartTime=3 EndTime=4 NodeList=n0 Restarts=1 Comment=",
        );
        let end = of_scontrol("x-1a", &shown).unwrap();
        assert_eq!(end.lines("7", false), "3 started 1 7 n0\n4 verdict NODE_FAIL 0:0\n");
    }

    #[test]
    fn a_forgotten_job_ended_when_its_output_did() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(guess(run.path(), "job"), None);
        fs::create_dir(run.path().join("out")).unwrap();
        fs::write(run.path().join("out/job.log"), "srun: error: n0: task 0: Exited with exit code 7\n")
            .unwrap();
        let end = guess(run.path(), "job").unwrap();
        assert_eq!((end.state.as_str(), end.code.as_str(), end.ended.is_some()), ("FAILED", "7:0", true));
    }
}
