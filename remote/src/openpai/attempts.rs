//! The attempts of tasks, numbered from 1 over all attempts of the job.
//!
//! A job is tried again as a whole, and without gang allocation its tasks are tried again one by one. The server numbers
//! both from 0, and each job attempt begins anew with its tasks.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::api::{Detail, TaskHistory, TaskStatus};
use super::client::Client;
use super::state::task_state;
use super::status::ApiError;
use super::{names, why};
use crate::place;

/// Earlier attempts of a job whose tasks are read.
const MAX_JOB_ATTEMPTS: u32 = 20;
/// Tasks whose earlier attempts are read.
const MAX_HISTORIES: usize = 50;

/// An attempt of a task.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) role: String,
    pub(crate) index: u64,
    /// Its number, from 1.
    pub(crate) number: u32,
    pub(crate) status: TaskStatus,
}

impl Attempt {
    /// `train-0`.
    pub(crate) fn task(&self) -> String {
        format!("{}-{}", self.role, self.index)
    }

    /// Whether a word names the task or its role. The server keeps only letters and digits of a role's name.
    pub(crate) fn is_named(&self, word: &str) -> bool {
        let (role, index) = match word.rsplit_once('-') {
            Some((role, index)) => index.parse::<u64>().map_or((word, None), |index| (role, Some(index))),
            None => (word, None),
        };
        (converted(role) == converted(&self.role) && index.is_none_or(|index| index == self.index))
            || converted(word) == converted(&self.role)
    }

    /// Whether its container has started, so that there may be output.
    pub(crate) fn has_started(&self) -> bool {
        let is_placed = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        is_placed(&self.status.container_ip) && is_placed(&self.status.container_log)
    }

    /// Whether nothing more will be written.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state(), "SUCCEEDED" | "FAILED" | "STOPPED")
    }

    fn state(&self) -> &str {
        self.status.attempt_state.as_deref().unwrap_or(&self.status.task_state)
    }

    /// For `ps` and `inspect`.
    pub(crate) fn describe(&self) -> place::TaskStatus {
        let node = self.status.container_node_name.clone().or_else(|| self.status.container_ip.clone());
        place::TaskStatus {
            task: self.task(),
            attempt: self.number,
            state: task_state(self.state()),
            pod: self.status.container_id.clone(),
            node: node.filter(|node| !node.is_empty()),
            exit_code: why::task_exit_code(&self.status),
            started: None,
            ended: None,
            reason: why::task_reason(&self.status),
        }
    }
}

/// A name as the server has it (pai, `convertName` of `src/rest-server/src/models/v2/utils/name.js`).
pub(crate) fn converted(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// What was read of earlier attempts, which does not change.
#[derive(Default)]
pub(crate) struct History {
    jobs: BTreeMap<u32, Option<Detail>>,
    /// By attempt of the job, role, index and newest attempt of the task.
    tasks: BTreeMap<(u32, String, u64, u32), Vec<TaskStatus>>,
}

impl History {
    /// All attempts of a job's tasks by task, the oldest first. Releases without a history have only the newest ones.
    pub(crate) fn attempts(&mut self, client: &Client, job: &Detail) -> Result<Vec<Attempt>, ApiError> {
        let path = names::path(&job.job_status.username, &job.name);
        let newest = job.job_status.attempt_id.unwrap_or(0);
        for number in newest.saturating_sub(MAX_JOB_ATTEMPTS)..newest {
            if let Entry::Vacant(vacant) = self.jobs.entry(number) {
                // The history is kept by another service, which need not run.
                vacant.insert(client.find(&format!("{path}/attempts/{number}")).ok().flatten());
            }
        }
        let earlier = self.jobs.iter().filter(|(number, _)| **number < newest);
        let earlier = earlier.filter_map(|(number, job)| Some((*number, job.clone()?)));
        let jobs: Vec<(u32, Detail)> = earlier.chain([(newest, job.clone())]).collect();
        for (number, job) in &jobs {
            self.read_tasks(client, &path, *number, job)?;
        }
        Ok(self.numbered(&jobs))
    }

    /// Reads the earlier attempts of tasks in one attempt of a job.
    fn read_tasks(&mut self, client: &Client, path: &str, number: u32, job: &Detail) -> Result<(), ApiError> {
        for (role, tasks) in &job.task_roles {
            let retried = tasks.task_statuses.iter().filter(|task| task.attempt_id.unwrap_or(0) > 0);
            for task in retried.take(MAX_HISTORIES) {
                let (index, newest) = (task.task_index, task.attempt_id.unwrap_or(0));
                let Entry::Vacant(vacant) = self.tasks.entry((number, role.clone(), index, newest)) else {
                    continue;
                };
                let at = format!("{path}/attempts/{number}/taskRoles/{role}/taskIndex/{index}/attempts");
                let history = match client.find::<TaskHistory>(&at) {
                    Ok(history) => history.unwrap_or_default(),
                    Err(error) if error.is_unknown_route() => TaskHistory::default(),
                    Err(error) => return Err(error),
                };
                vacant.insert(history.attempts);
            }
        }
        Ok(())
    }

    /// Numbers the attempts of all tasks.
    fn numbered(&self, jobs: &[(u32, Detail)]) -> Vec<Attempt> {
        let mut counts: BTreeMap<(&str, u64), u32> = BTreeMap::new();
        let mut found = Vec::new();
        let tasks = jobs.iter().flat_map(|(number, job)| {
            job.task_roles.iter().flat_map(move |(role, tasks)| {
                tasks.task_statuses.iter().map(move |task| (*number, role, task))
            })
        });
        for (job, role, task) in tasks {
            let (index, newest) = (task.task_index, task.attempt_id.unwrap_or(0));
            let count = counts.entry((role, index)).or_default();
            let mut push = |status: &TaskStatus, number| {
                let status = TaskStatus { task_index: index, ..status.clone() };
                found.push(Attempt { role: role.clone(), index, number, status });
            };
            for past in self.tasks.get(&(job, role.clone(), index, newest)).into_iter().flatten() {
                if let Some(number) = past.attempt_id.filter(|number| *number < newest) {
                    push(past, *count + number + 1);
                }
            }
            push(task, *count + newest + 1);
            *count += newest + 1;
        }
        found.sort_by(|a, b| (&a.role, a.index, a.number).cmp(&(&b.role, b.index, b.number)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn attempts_are_numbered_over_all_attempts_of_the_job() {
        let job = |attempts: &[u32]| -> Detail {
            let tasks: Vec<_> =
                (0..).zip(attempts).map(|(i, a)| json!({"taskIndex": i, "attemptId": a})).collect();
            serde_json::from_value(json!({"taskRoles": {"main": {"taskStatuses": tasks}}})).unwrap()
        };
        let mut history = History::default();
        let past: TaskStatus =
            serde_json::from_value(json!({"attemptId": 0, "containerId": "first"})).unwrap();
        history.tasks.insert((0, "main".to_owned(), 1, 1), vec![past]);
        let attempts = history.numbered(&[(0, job(&[0, 1])), (1, job(&[0, 0]))]);
        let shown: Vec<_> = attempts.iter().map(|a| format!("{} {}", a.task(), a.number)).collect();
        assert_eq!(shown, ["main-0 1", "main-0 2", "main-1 1", "main-1 2", "main-1 3"]);
        assert_eq!(attempts[2].status.container_id.as_deref(), Some("first"));
    }

    #[test]
    fn tasks_are_named_as_in_the_job_file() {
        let attempt =
            Attempt { role: "traina".to_owned(), index: 2, number: 1, status: TaskStatus::default() };
        for (word, expected) in [
            ("train-a-2", true),
            ("traina-2", true),
            ("train-a", true),
            ("traina", true),
            ("train-a-1", false),
            ("train", false),
        ] {
            assert_eq!(attempt.is_named(word), expected, "{word}");
        }
        // A role's own name can end with a number.
        let attempt = Attempt { role: "step1".to_owned(), ..attempt };
        assert!(attempt.is_named("step-1") && attempt.is_named("step-1-2") && !attempt.is_named("step-1-1"));
    }
}
