//! The contents of the directories of runs: each file is small.
//!
//! `submitted` and `stopped` say that a submission is complete, and that the user stopped the run. `jobs/GROUP` has the
//! id of a group's Slurm job, `events/GROUP` its events, and `tasks/TASK` the events of a task.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jobc_place::verdict::Judgment;
use jobc_sys::id::TaskId;
use serde::{Deserialize, Serialize};

use super::record::RunRecord;
use super::time::seconds;

/// A run as its directory has it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RunFiles {
    pub(crate) record: Option<RunRecord>,
    /// Whether its submission is complete.
    pub(crate) is_submitted: bool,
    /// When its user stopped it.
    pub(crate) stopped: Option<u64>,
    /// Whether values of secrets exist.
    pub(crate) has_secrets: bool,
    /// The id of the Slurm job of each group.
    pub(crate) jobs: BTreeMap<String, String>,
    /// The history of each group, the oldest event first.
    pub(crate) events: BTreeMap<String, Vec<GroupEvent>>,
    /// The history of each task, the oldest event first.
    pub(crate) tasks: BTreeMap<String, Vec<TaskEvent>>,
    /// What `srun` says of the tasks of each group since its last start, the oldest first.
    pub(crate) errors: BTreeMap<String, Vec<TaskError>>,
    /// The last lines of tasks that Slurm alone runs, of the first ones that `srun` names.
    #[serde(default)]
    pub(crate) last_lines: BTreeMap<String, Vec<String>>,
}

/// Tasks that did not end by themselves with success.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct TaskError {
    /// Their numbers in the step, which are their indices.
    pub(crate) tasks: Vec<u32>,
    /// The exit code, as shells have it.
    pub(crate) code: Option<i32>,
    /// Whether they used more memory than they may.
    pub(crate) is_memory: bool,
}

/// The events of a group.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct GroupEvent {
    /// When, in seconds since 1970.
    pub(crate) time: u64,
    pub(crate) what: GroupChange,
}

/// Events of a group.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) enum GroupChange {
    /// Its script started.
    Started {
        /// How often Slurm had started it before.
        restarts: u32,
        /// Its nodes, such as `n[0-3]`.
        nodes: String,
    },
    /// A limit of the job was reached; its end follows.
    Limit {
        /// What was reached.
        why: String,
    },
    /// Its script asked for another start.
    Requeued {
        /// The exit code of the job.
        code: i32,
    },
    /// Its script ended.
    Ended {
        /// The exit code.
        code: i32,
        /// Slurm's reason, if a signal ended it.
        reason: Option<String>,
    },
    /// Slurm says that it has ended, and its script did not.
    Verdict {
        /// Slurm's state, such as `NODE_FAIL`.
        state: String,
        /// The exit code, as `CODE:SIGNAL`.
        code: String,
    },
}

/// The events of a task.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct TaskEvent {
    /// When, in seconds since 1970.
    pub(crate) time: u64,
    /// Which attempt it is about, from 1.
    pub(crate) attempt: u32,
    pub(crate) what: TaskChange,
}

/// Events of a task.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) enum TaskChange {
    /// It started.
    Started {
        /// The node.
        node: String,
        /// The process that runs it there.
        pid: u32,
    },
    /// It ended with this exit code.
    Ended(i32),
    /// What jobc on the node says of its end.
    Judged(Judgment),
}

/// The most lines of the output of a batch script that are kept.
const MAX_ERRORS: usize = 1000;

/// The most tasks of a script whose last lines are read, and how much of each: its end is judged by them.
const MAX_JUDGED: usize = 16;
const MAX_LAST_BYTES: u64 = 16 << 10;
const MAX_LAST_LINES: usize = 40;

impl RunFiles {
    /// Reads the directory of a run.
    pub(crate) fn read(run: &Path, with_tasks: bool) -> Self {
        let mut files = Self { has_secrets: run.join("secrets").is_dir(), ..Self::default() };
        for name in ["job.json", "submitted", "stopped"] {
            files.add_file(run, name);
        }
        for directory in ["jobs", "events"].into_iter().chain(with_tasks.then_some("tasks")) {
            for name in names(&run.join(directory)) {
                files.add_file(run, &format!("{directory}/{name}"));
            }
        }
        let outputs = with_tasks.then(|| names(&run.join("out"))).into_iter().flatten();
        for name in outputs.filter(|name| is_log(name)) {
            let Ok(file) = File::open(run.join("out").join(&name)) else { continue };
            let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
            let of_slurm =
                lines.filter(|line| line.starts_with(b"srun: error: ") || line.starts_with(b"slurmstepd"));
            for line in of_slurm.take(MAX_ERRORS) {
                files.add(&format!("out/{name}"), &String::from_utf8_lossy(&line));
            }
        }
        files.read_last_lines(run);
        files
    }

    /// Reads the last lines of tasks that failed and that jobc on the nodes has not judged.
    fn read_last_lines(&mut self, run: &Path) {
        let groups = self.record.iter().flat_map(|record| &record.groups).filter(|group| group.direct);
        for group in groups {
            let (Some((role, _)), Some(errors)) = (group.roles.first(), self.errors.get(&group.name)) else {
                continue;
            };
            for index in errors.iter().flat_map(|error| &error.tasks).take(MAX_JUDGED) {
                let task = TaskId::new(role, *index).to_string();
                if let Ok(lines) = last_lines(&run.join("logs").join(format!("{task}.log"))) {
                    self.last_lines.insert(task, lines);
                }
            }
        }
    }

    /// Whether the directory has a run, or will have one.
    pub(crate) fn exists(&self) -> bool {
        self.record.is_some() || self.is_submitted || !self.jobs.is_empty()
    }

    fn add_file(&mut self, run: &Path, name: &str) {
        let Ok(bytes) = fs::read(run.join(name)) else { return };
        for line in String::from_utf8_lossy(&bytes).lines() {
            self.add(name, line);
        }
    }

    /// Adds a line of a file.
    fn add(&mut self, file: &str, line: &str) {
        match file.split_once('/') {
            None => match file {
                // A line that is cut off is a file that is being written.
                "job.json" => self.record = serde_json::from_str(line).ok(),
                "submitted" => self.is_submitted = true,
                "stopped" => self.stopped = seconds(line),
                _ => {}
            },
            Some(("jobs", group)) => {
                self.jobs.insert(group.to_owned(), line.trim().to_owned());
            }
            Some(("events", group)) => {
                self.events.entry(group.to_owned()).or_default().extend(group_event(line));
            }
            Some(("out", file)) => {
                let errors = self.errors.entry(file.trim_end_matches(".log").to_owned()).or_default();
                if line.contains("DUE TO JOB REQUEUE") {
                    errors.clear();
                } else {
                    errors.extend(task_error(line));
                }
            }
            Some(("tasks", task)) => {
                self.tasks.entry(task.to_owned()).or_default().extend(task_event(line));
            }
            Some(_) => {}
        }
    }
}

/// The last lines of a file, of which the first may be cut off.
fn last_lines(path: &Path) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(MAX_LAST_BYTES)))?;
    let mut bytes = vec![];
    file.take(MAX_LAST_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(MAX_LAST_LINES)..].iter().map(|line| (*line).to_owned()).collect())
}

/// Whether a file has output.
pub(crate) fn is_log(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "log")
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The runs by name, from lines `NAME/FILE:LINE`.
#[cfg(test)]
pub(crate) fn parse(text: &str) -> BTreeMap<String, RunFiles> {
    let mut found: BTreeMap<String, RunFiles> = BTreeMap::new();
    for line in text.lines() {
        let (path, line) = line.split_once(':').unwrap();
        let (name, file) = path.split_once('/').unwrap();
        found.entry(name.to_owned()).or_default().add(file, line);
    }
    found
}

/// Reads `srun: error: n[0-1]: tasks 0-1: Exited with exit code 7`, and Slurm's line about memory.
fn task_error(line: &str) -> Option<TaskError> {
    if line.starts_with("slurmstepd") {
        return line.contains("oom").then(|| TaskError { is_memory: true, ..TaskError::default() });
    }
    let mut parts = line.strip_prefix("srun: error: ")?.splitn(3, ": ");
    let (_, tasks, how) = (parts.next()?, parts.next()?, parts.next()?);
    let tasks = tasks.strip_prefix("tasks ").or_else(|| tasks.strip_prefix("task "))?;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(first..=last)
    };
    let code = match how.strip_prefix("Exited with exit code ") {
        Some(code) => code.trim().parse().ok(),
        None => SIGNALS.iter().find(|(word, _)| how.starts_with(word)).map(|(_, signal)| 128 + signal),
    };
    let is_memory = how.starts_with("Out Of Memory");
    Some(TaskError { tasks: tasks.split(',').filter_map(range).flatten().collect(), code, is_memory })
}

/// The words of strsignal(3), and that of Slurm.
const SIGNALS: [(&str, i32); 8] = [
    ("Hangup", 1),
    ("Interrupt", 2),
    ("Aborted", 6),
    ("Floating point exception", 8),
    ("Killed", 9),
    ("Out Of Memory", 9),
    ("Segmentation fault", 11),
    ("Terminated", 15),
];

fn group_event(line: &str) -> Option<GroupEvent> {
    let mut words = line.split_whitespace();
    let time = words.next().and_then(seconds)?;
    let what = match words.next()? {
        "started" => GroupChange::Started {
            restarts: words.next()?.parse().ok()?,
            // The id is between them.
            nodes: words.nth(1).unwrap_or_default().to_owned(),
        },
        "limit" => GroupChange::Limit { why: line.splitn(3, ' ').nth(2)?.to_owned() },
        "requeued" => GroupChange::Requeued { code: words.next()?.parse().ok()? },
        "ended" => GroupChange::Ended {
            code: words.next()?.parse().ok()?,
            reason: words.next().filter(|reason| *reason != "None").map(str::to_owned),
        },
        "verdict" => GroupChange::Verdict {
            state: words.next()?.to_owned(),
            code: words.next().unwrap_or_default().to_owned(),
        },
        _ => return None,
    };
    Some(GroupEvent { time, what })
}

fn task_event(line: &str) -> Option<TaskEvent> {
    let mut words = line.split_whitespace();
    let time = words.next().and_then(seconds)?;
    let what = words.next()?;
    let attempt = words.next()?.parse().ok()?;
    let what = match what {
        "started" => TaskChange::Started {
            node: words.next()?.to_owned(),
            pid: words.next().and_then(|pid| pid.parse().ok()).unwrap_or_default(),
        },
        "ended" => TaskChange::Ended(words.next()?.parse().ok()?),
        "judged" => TaskChange::Judged(serde_json::from_str(line.splitn(4, ' ').nth(3)?).ok()?),
        _ => return None,
    };
    Some(TaskEvent { time, attempt, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_collected_by_run() {
        let text = "\
a-1/job.json:{\"version\":1,\"job\":\"a\",\"plan\":\"ab\",\"user\":\"me\",\"submitted\":5,\"grace\":30,\"groups\":[]}
a-1/jobs/job:12
a-1/submitted:5
a-1/events/job:10 started 1 12 n[0-1]
a-1/events/job:11 ended 143 TimeLimit
a-1/tasks/train-0:10 started 1 n0 77
a-1/tasks/train-0:11 ended 1 7
a-1/tasks/train-0:11 judged 1 {\"kind\":\"user error\",\"evidence\":[\"exit 7\"]}
b-2/events/job:9 requeued 5
b-2/events/job:cut o
b-2/stopped:12
b-2/job.json:{\"version\":
";
        let runs = parse(text);
        let a = &runs["a-1"];
        assert_eq!((a.record.as_ref().unwrap().job.as_str(), a.is_submitted), ("a", true));
        assert_eq!(a.jobs["job"], "12");
        let (started, ended) = (&a.events["job"][0], &a.events["job"][1]);
        assert_eq!(started.what, GroupChange::Started { restarts: 1, nodes: "n[0-1]".to_owned() });
        assert_eq!(ended.what, GroupChange::Ended { code: 143, reason: Some("TimeLimit".to_owned()) });
        let task = &a.tasks["train-0"];
        assert_eq!(task[0].what, TaskChange::Started { node: "n0".to_owned(), pid: 77 });
        assert_eq!((task[1].attempt, &task[1].what), (1, &TaskChange::Ended(7)));
        let TaskChange::Judged(judgment) = &task[2].what else { panic!("{:?}", task[2]) };
        assert_eq!(
            (judgment.kind.as_str(), &judgment.evidence[..]),
            ("user error", &["exit 7".to_owned()][..])
        );
        let b = &runs["b-2"];
        assert_eq!((b.stopped, b.is_submitted, b.record.is_none()), (Some(12), false, true));
        assert_eq!(b.events["job"].len(), 1);
    }
}
