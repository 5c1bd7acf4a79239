//! A metric that the command line picks: of the job file, in a line of the log, or in a file.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::str::FromStr;

use jobc_schema::plan::{JobPlan, MetricSource, MountPlan, RolePlan};
use jobc_schema::progress::is_progress;
use regex::bytes::Regex;

use crate::directory::Directory;
use crate::logs::{LineFilter, Reader, states};
use crate::metric_history::{MetricHistory, detected_in_line, detected_in_log, in_file, in_log};
use crate::provision::volume_path;
use crate::user_metrics::{last_number, read_number, read_values};
use jobc_place::job::JobDetail;
use jobc_place::logs::{Line, Stream};
use jobc_sys::id::TaskId;

/// Number of last lines of each task that are searched first.
const LAST_LINES: u64 = 200;

/// What `--metric` names.
#[derive(Clone, Debug)]
pub enum MetricChoice {
    /// A metric of the job file, or if it declares none of that name, one that the logs name.
    Name(String),
    /// The last number that the only group of a pattern matches in the log.
    Log(Regex),
    /// A number in a JSON or JSON Lines file.
    File {
        /// The path as the tasks see it, absolute.
        path: String,
        /// The key of the number.
        key: String,
    },
}

impl FromStr for MetricChoice {
    type Err = String;

    /// `FILE:KEY` begins with a slash, a pattern has a group, and all else is a name.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') && !text.contains('(') {
            return match text.rsplit_once(':') {
                Some((path, key)) if !key.is_empty() && !path.ends_with('/') => {
                    Ok(Self::File { path: path.to_owned(), key: key.to_owned() })
                }
                _ => Err("write FILE:KEY, as in `/output/result.json:loss`".to_owned()),
            };
        }
        if !text.contains('(') {
            return if is_name(text) {
                Ok(Self::Name(text.to_owned()))
            } else {
                Err("put the number in `( )`, as in `loss=([0-9.e+-]+)`, or write FILE:KEY with an absolute path, as in `/output/result.json:loss`"
                    .to_owned())
            };
        }
        let pattern = Regex::new(text).map_err(|error| {
            // Before its last line the error points into the pattern.
            let error = error.to_string();
            error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })?;
        match pattern.captures_len() - 1 {
            1 => Ok(Self::Log(pattern)),
            0 => Err("the regular expression has no group; put the number in `( )`".to_owned()),
            groups => Err(format!(
                "the regular expression has {groups} groups, and one is needed; write `(?: )` for the others"
            )),
        }
    }
}

/// Whether a text can be the name of a metric.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c))
}

impl MetricChoice {
    /// A short name for a heading: the key, or the last word before the group of the pattern.
    pub fn title(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::File { key, .. } => key.clone(),
            Self::Log(pattern) => {
                let before = pattern.as_str().split_once('(').map_or("", |(before, _)| before);
                let mut words = before.split(|c: char| !c.is_alphanumeric() && !"_/-".contains(c));
                words
                    .rfind(|word| word.chars().count() > 1 && word.starts_with(char::is_alphabetic))
                    .unwrap_or("metric")
                    .to_owned()
            }
        }
    }
}

/// The metrics of a job, as its files have them now.
pub struct JobMetrics<'a> {
    directory: &'a Directory,
    job: &'a JobDetail,
    /// The plan of the run; `None` if it cannot be read.
    plan: OnceCell<Option<JobPlan>>,
}

impl<'a> JobMetrics<'a> {
    /// Those of this job.
    pub fn new(directory: &'a Directory, job: &'a JobDetail) -> Self {
        Self { directory, job, plan: OnceCell::new() }
    }

    /// The last value that a task, or without `task` any task, has reported; `None` if there is none.
    pub fn value(&self, choice: &MetricChoice, task: Option<&TaskId>) -> Option<f64> {
        match choice {
            MetricChoice::Name(name) => {
                let of_task = |task: &TaskId| {
                    self.job.metrics.iter().find(|known| known.name == *name && known.task == *task)
                };
                let metric = task.map_or_else(|| self.job.metric(name), of_task);
                if metric.is_some() || self.is_declared(name) {
                    return metric.map(|metric| metric.value.0);
                }
                let name = name.to_lowercase();
                self.last_in_logs(task, |line| {
                    let mut found = detected_in_line(line).into_iter();
                    found.rfind(|(known, _)| *known == name).map(|(_, value)| value)
                })
            }
            MetricChoice::Log(pattern) => self.last_in_logs(task, |line| last_number(pattern, line)),
            MetricChoice::File { .. } => {
                let is_meant = |role: &&RolePlan| task.is_none_or(|task| task.role == role.name);
                let read = |role: &RolePlan| match self.source(choice, role)? {
                    Source::File { volume, path, key } => read_number(&volume, &path, &key).ok(),
                    Source::Log(_) | Source::Detected(_) => None,
                };
                self.plan()?.roles.iter().filter(is_meant).filter_map(read).next_back()
            }
        }
    }

    /// The last value that is found in a line of a task's log, or without `task` of any task's.
    fn last_in_logs(&self, task: Option<&TaskId>, find: impl Fn(&[u8]) -> Option<f64>) -> Option<f64> {
        let logs = self.logs(task);
        [Some(LAST_LINES), None].into_iter().find_map(|tail| last_in_log(&find, &logs, tail))
    }

    fn logs(&self, task: Option<&TaskId>) -> Vec<PathBuf> {
        let is_meant = |known: &&TaskId| task.is_none_or(|task| task == *known);
        let tasks = self.job.tasks.iter().map(|known| &known.task).filter(is_meant);
        tasks.map(|task| self.directory.logs(task)).collect()
    }

    /// Whether the job file declares a metric of that name.
    fn is_declared(&self, name: &str) -> bool {
        self.plan().into_iter().flat_map(|plan| &plan.roles).any(|role| role.metrics.contains_key(name))
    }

    /// The names of the metrics in the last lines of the logs of a job that declares none, each once.
    pub fn detected_names(&self) -> Vec<String> {
        let mut names: Vec<String> = vec![];
        if self.plan().is_none_or(|plan| {
            plan.roles.iter().any(|role| role.metrics.keys().any(|name| !is_progress(name)))
        }) {
            return names;
        }
        each_line(&self.logs(None), Some(LAST_LINES), |line| {
            for (name, _) in detected_in_line(line) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        });
        names
    }

    /// All values of metrics, by metric and task. At most so many bytes of logs are read; the logs of further tasks are
    /// left out.
    pub fn histories(&self, choices: &[MetricChoice], bytes_left: &mut u64) -> Vec<MetricHistory> {
        let mut all = vec![];
        for role in self.plan().into_iter().flat_map(|plan| &plan.roles) {
            let (mut metrics, mut patterns, mut detected) = (vec![], vec![], vec![]);
            let tasks = self.job.tasks.iter().map(|known| &known.task).filter(|task| task.role == role.name);
            for (metric, choice) in choices.iter().enumerate() {
                match self.source(choice, role) {
                    Some(Source::Log(pattern)) => {
                        metrics.push(metric);
                        patterns.push(pattern);
                    }
                    Some(Source::Detected(name)) => detected.push((metric, name)),
                    // The tasks of a role share its files.
                    Some(Source::File { volume, path, key }) => {
                        let Some(task) = tasks.clone().next().cloned() else { continue };
                        let Some(values) = read_values(&volume, &path, &key) else { continue };
                        let values = in_file(values, self.job.summary.ended);
                        all.push(MetricHistory { metric, task, values });
                    }
                    None => {}
                }
            }
            for task in tasks {
                if !detected.is_empty() {
                    for (name, values) in detected_in_log(&self.directory.logs(task), bytes_left) {
                        let metric =
                            detected.iter().find(|(_, known)| *known == name).map(|(metric, _)| *metric);
                        all.extend(metric.map(|metric| MetricHistory { metric, task: task.clone(), values }));
                    }
                }
                if patterns.is_empty() {
                    continue;
                }
                let found = in_log(&self.directory.logs(task), &patterns, bytes_left);
                let found = metrics.iter().zip(found);
                all.extend(found.map(|(&metric, values)| MetricHistory {
                    metric,
                    task: task.clone(),
                    values,
                }));
            }
        }
        all.retain(|history| !history.values.is_empty());
        all.sort_by_key(|history| history.metric);
        all
    }

    /// The metrics that the logs name without a declaration, and their values, by metric and task; `bytes_left` as for
    /// [`histories`](Self::histories).
    pub fn detected(&self, bytes_left: &mut u64) -> (Vec<String>, Vec<MetricHistory>) {
        let (mut names, mut all) = (vec![], vec![]);
        for task in self.job.tasks.iter().map(|known| &known.task) {
            for (name, values) in detected_in_log(&self.directory.logs(task), bytes_left) {
                let metric = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                all.push(MetricHistory { metric, task: task.clone(), values });
            }
        }
        all.sort_by_key(|history| history.metric);
        (names, all)
    }

    fn plan(&self) -> Option<&JobPlan> {
        let read = || {
            let text = std::fs::read(self.directory.plan_file()).ok()?;
            serde_json::from_slice(&text).ok()
        };
        self.plan.get_or_init(read).as_ref()
    }

    /// Where a role reports a metric; `None` if it does not.
    fn source(&self, choice: &MetricChoice, role: &RolePlan) -> Option<Source> {
        let volume = |name: &str| {
            Some(volume_path(self.directory, self.plan()?, self.job.directory.as_deref()?, name))
        };
        match choice {
            MetricChoice::Log(pattern) => Some(Source::Log(pattern.clone())),
            MetricChoice::File { path, key } => {
                let (name, path) = place_of(role, path)?;
                Some(Source::File { volume: volume(name)?, path, key: key.clone() })
            }
            MetricChoice::Name(name) if !self.is_declared(name) => {
                Some(Source::Detected(name.to_lowercase()))
            }
            MetricChoice::Name(name) => match &role.metrics.get(name)?.source {
                MetricSource::Log(pattern) => Regex::new(pattern).ok().map(Source::Log),
                MetricSource::File { volume: name, path, key } => {
                    Some(Source::File { volume: volume(name)?, path: path.clone(), key: key.clone() })
                }
            },
        }
    }
}

/// Where the values of a metric are.
enum Source {
    Log(Regex),
    File {
        volume: PathBuf,
        path: String,
        key: String,
    },
    /// The log, without a declaration.
    Detected(String),
}

/// The last number in logs; of several, the last by time.
fn last_in_log(find: impl Fn(&[u8]) -> Option<f64>, logs: &[PathBuf], tail: Option<u64>) -> Option<f64> {
    let mut found = None;
    each_line(logs, tail, |line| found = find(line).or(found));
    found
}

/// Reads the lines of logs, or their last ones, by time.
fn each_line(logs: &[PathBuf], tail: Option<u64>, mut note: impl FnMut(&[u8])) {
    let mut reader = Reader::new(logs.iter().cloned(), LineFilter::default().tail(tail));
    // A long line comes in pieces.
    let mut open: Vec<Vec<u8>> = vec![vec![]; logs.len()];
    let mut each = |number: usize, line: &Line<'_>| {
        if line.stream != Stream::Jobc {
            open[number].extend_from_slice(line.text);
            if line.ends {
                states(&std::mem::take(&mut open[number])).for_each(&mut note);
            }
        }
        Ok(())
    };
    while reader.read(&mut each).unwrap_or(false) {}
}

/// The volume that a path of a role is in, and the path in the volume.
fn place_of<'a>(role: &'a RolePlan, file: &str) -> Option<(&'a str, String)> {
    let inside = |mount: &'a MountPlan| {
        let rest = file.strip_prefix(mount.path.trim_end_matches('/'))?.strip_prefix('/')?;
        let path = match &mount.subpath {
            Some(subpath) => format!("{subpath}/{rest}"),
            None => rest.to_owned(),
        };
        Some((mount.path.len(), mount.volume.as_str(), path))
    };
    let (_, volume, path) = role.mounts.iter().filter_map(inside).max_by_key(|(length, ..)| *length)?;
    Some((volume, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_name_a_pattern_or_a_file() {
        let shown = |text: &str| match text.parse::<MetricChoice>() {
            Ok(choice) => {
                let kind = match &choice {
                    MetricChoice::Name(_) => "name",
                    MetricChoice::Log(_) => "log",
                    MetricChoice::File { .. } => "file",
                };
                format!("{kind} {}", choice.title())
            }
            Err(why) => why,
        };
        assert_eq!(shown("val_loss"), "name val_loss");
        assert_eq!(shown("val_loss[=:] *([0-9.]+)"), "log val_loss");
        assert_eq!(shown("step 200: ([0-9.]+)%"), "log step");
        assert_eq!(shown("([0-9.]+)%"), "log metric");
        assert_eq!(shown("/output/result.json:eval.loss"), "file eval.loss");
        assert_eq!(shown("/output/result.json"), "write FILE:KEY, as in `/output/result.json:loss`");
        assert!(shown("loss=").starts_with("put the number in `( )`"));
        assert!(shown("out.json:loss").contains("absolute path"));
        assert_eq!(shown("loss=([0-9"), "unclosed character class");
        assert!(shown("(a)=(b)").contains("2 groups"));
        assert!(shown("loss=\\(").contains("no group"));
    }
}
