//! Why a job waits or ended, in one sentence: from exit codes, their meaning, and what the runtime in the container said.

use serde_json::Value;

use super::api::{Detail, ExitSpec, JobStatus, TaskStatus};

/// What the runtime writes for exit codes that it has no rule for; the code of the program is in its report.
const UNKNOWN_EXIT_CODE: i64 = 255;
/// Of the program's last line this much is shown.
const MAX_LINE: usize = 200;

/// The exit code of the program that ended a job, or of the controller if it is negative.
///
/// The runtime of OpenPAI replaces codes that no rule knows with 255 (openpai-runtime, `RuntimeExitInfo`).
pub(crate) fn exit_code(status: &JobStatus) -> Option<i64> {
    let runtime = status.app_exit_messages.as_ref().map(|messages| &messages.runtime);
    let own = runtime.and_then(|runtime| runtime.get("originUserExitCode")).and_then(Value::as_i64);
    own.filter(|code| *code != 0).or(status.app_exit_code)
}

/// The exit code of a task's program.
pub(crate) fn task_exit_code(task: &TaskStatus) -> Option<i64> {
    let text = task.container_exit_diagnostics.as_deref().unwrap_or_default();
    let own = text.split("originUserExitCode:").nth(1).and_then(|rest| {
        let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<i64>().ok().filter(|code| *code != 0)
    });
    own.or(task.container_exit_code)
}

/// Why a job failed: `task main-0 ended with exit code 1: RuntimeError: no data`.
pub(crate) fn end(status: &JobStatus) -> Option<String> {
    if status.state != "FAILED" {
        return None;
    }
    let mut text = String::new();
    if let (Some(role), Some(index)) =
        (&status.app_exit_trigger_task_role_name, status.app_exit_trigger_task_index)
    {
        text += &format!("task `{role}-{index}` ");
    }
    let code = exit_code(status);
    let meaning = status.app_exit_spec.as_ref().and_then(meaning);
    match code {
        // A program's own code says more than the controller's word for it.
        Some(code) if code > 0 => {
            text += &format!("ended with exit code {code}");
            if status.app_exit_code != Some(UNKNOWN_EXIT_CODE) {
                text += &meaning.map(|meaning| format!(": {meaning}")).unwrap_or_default();
            }
            let runtime = status.app_exit_messages.as_ref().map(|messages| &messages.runtime);
            let line = runtime.and_then(last_line);
            text += &line.map(|line| format!("; its last line: {line}")).unwrap_or_default();
        }
        _ => {
            let first = || status.app_exit_diagnostics.as_deref().and_then(first_line);
            let why = meaning.or_else(first).or_else(|| status.app_exit_trigger_message.clone())?;
            text += &if text.is_empty() { why } else { format!("failed: {why}") };
        }
    }
    Some(text)
}

/// Why a job has no running task, or waits for another attempt.
pub(crate) fn waiting(job: &Detail) -> Vec<String> {
    let status = &job.job_status;
    let mut reasons = Vec::new();
    if status.state == "WAITING" {
        let cluster = status.virtual_cluster.as_deref().unwrap_or("default");
        if let Some(delay) = status.retry_delay_time.filter(|delay| *delay > 0.0) {
            reasons.push(format!("the next attempt starts {delay} s after the last one ended"));
        } else {
            let tasks = job.task_roles.values().flat_map(|role| &role.task_statuses);
            let (all, placed) = tasks.fold((0, 0), |(all, placed), task| {
                (all + 1, placed + u64::from(task.container_ip.as_ref().is_some_and(|ip| !ip.is_empty())))
            });
            reasons.push(if placed == 0 {
                format!("it waits for resources of the virtual cluster `{cluster}`")
            } else {
                format!("{placed} of {all} tasks have a node; the others wait for resources of the virtual cluster `{cluster}`")
            });
        }
    }
    reasons
}

/// The word for the end of a task that did not succeed.
pub(crate) fn task_reason(task: &TaskStatus) -> Option<String> {
    let spec = task.container_exit_spec.as_ref()?;
    let is_failure = task.container_exit_code.is_some_and(|code| code != 0);
    Some(spec.phrase.clone()).filter(|phrase| is_failure && !phrase.is_empty())
}

/// What an exit code means, in words.
fn meaning(spec: &ExitSpec) -> Option<String> {
    let first = match &spec.reason {
        Value::Array(list) => list.first().and_then(Value::as_str),
        reason => reason.as_str(),
    };
    first.and_then(first_line).or_else(|| Some(spec.phrase.clone()).filter(|phrase| !phrase.is_empty()))
}

/// The last line that the program wrote before it failed.
fn last_line(runtime: &Value) -> Option<String> {
    let text = runtime.pointer("/errorLogs/user").and_then(Value::as_str)?;
    text.lines().rev().find_map(|line| shortened(line.trim()))
}

fn first_line(text: &str) -> Option<String> {
    text.lines().find_map(|line| shortened(line.trim().trim_end_matches('.')))
}

fn shortened(line: &str) -> Option<String> {
    if line.is_empty() {
        return None;
    }
    let mut short: String = line.chars().filter(|c| !c.is_control()).take(MAX_LINE).collect();
    if line.chars().count() > MAX_LINE {
        short.push_str("...");
    }
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(value: Value) -> JobStatus {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_failed_job_names_its_task_and_cause() {
        let failed = status(json!({
            "state": "FAILED", "appExitCode": 255,
            "appExitSpec": {"code": 255, "phrase": "PAIRuntimeUnknownFailed", "reason": "Container failed"},
            "appExitMessages": {"container": null, "launcher": null, "runtime": {
                "exitCode": 255, "originUserExitCode": 3, "errorLogs": {"user": "Traceback\nRuntimeError: no data\n"},
            }},
            "appExitTriggerTaskRoleName": "train", "appExitTriggerTaskIndex": 2,
        }));
        assert_eq!(exit_code(&failed), Some(3));
        assert_eq!(
            end(&failed).as_deref(),
            Some("task `train-2` ended with exit code 3; its last line: RuntimeError: no data")
        );
        let killed = status(json!({
            "state": "FAILED", "appExitCode": -1200,
            "appExitSpec": {"phrase": "UserContainerDockerOOMKilled",
                            "reason": "User Container killed by docker due to it exceeded the request memory"},
            "appExitTriggerTaskRoleName": "train", "appExitTriggerTaskIndex": 0,
        }));
        assert_eq!(
            end(&killed).as_deref(),
            Some(
                "task `train-0` failed: User Container killed by docker due to it exceeded the request memory"
            )
        );
        let bare = status(
            json!({"state": "FAILED", "appExitCode": -300, "appExitDiagnostics": "Pod failed.\nmore"}),
        );
        assert_eq!(end(&bare).as_deref(), Some("Pod failed"));
        assert_eq!(end(&status(json!({"state": "SUCCEEDED", "appExitCode": 0}))), None);
    }

    #[test]
    fn a_task_has_the_exit_code_of_its_program() {
        let task: TaskStatus = serde_json::from_value(json!({
            "taskIndex": 0, "containerExitCode": 255,
            "containerExitDiagnostics": "PodPattern matched:\ncontainers:\n  - message: |\n      originUserExitCode: 124\n",
            "containerExitSpec": {"phrase": "PAIRuntimeUnknownFailed"},
        }))
        .unwrap();
        assert_eq!(
            (task_exit_code(&task), task_reason(&task).as_deref()),
            (Some(124), Some("PAIRuntimeUnknownFailed"))
        );
    }

    #[test]
    fn a_job_says_what_it_waits_for() {
        let job = |placed: &str| -> Detail {
            serde_json::from_value(json!({
                "jobStatus": {"state": "WAITING", "virtualCluster": "research"},
                "taskRoles": {"main": {"taskStatuses": [{"taskIndex": 0, "containerIp": placed}, {"taskIndex": 1}]}},
            }))
            .unwrap()
        };
        assert_eq!(waiting(&job("")), ["it waits for resources of the virtual cluster `research`"]);
        assert_eq!(
            waiting(&job("10.0.0.1")),
            ["1 of 2 tasks have a node; the others wait for resources of the virtual cluster `research`"]
        );
    }
}
