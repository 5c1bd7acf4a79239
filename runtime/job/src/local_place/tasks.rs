//! The tasks that a user names.

use jobc_place::task::TaskStatus;
use jobc_schema::suggest;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::id::TaskId;

use crate::record::Record;

/// The tasks that words name: a task, such as `worker-0`, or a role for all its tasks, also one with a matrix. All without
/// words.
///
/// # Errors
///
/// A word names none.
pub fn named(record: &Record, words: &[String]) -> Result<Vec<TaskId>> {
    if words.is_empty() {
        return Ok(record.tasks.iter().map(|task| task.task.clone()).collect());
    }
    let mut found = Vec::new();
    for word in words {
        let is_of_role = |task: &&TaskId| {
            let combination = record.combinations.get(&task.role);
            task.role == *word || combination.is_some_and(|combination| combination.role == *word)
        };
        let of_role = record.tasks.iter().map(|task| &task.task).filter(is_of_role);
        let before = found.len();
        found.extend(of_role.cloned());
        if found.len() == before {
            let task = record.tasks.iter().map(|task| &task.task).find(|task| task.to_string() == *word);
            found.push(task.ok_or_else(|| unknown(record, word))?.clone());
        }
    }
    Ok(found)
}

/// The task that a command is meant for: that of the name, the first of a role, or the only one that is alive.
pub(super) fn one<'a>(record: &'a Record, word: Option<&str>) -> Result<&'a TaskStatus> {
    if let Some(word) = word {
        let found = named(record, std::slice::from_ref(&word.to_owned()))?;
        if let [task] = &found[..]
            && let Some(task) = record.task(task)
        {
            return Ok(task);
        }
        return Err(several(record));
    }
    if let [task] = &record.tasks[..] {
        return Ok(task);
    }
    let mut alive = record.tasks.iter().filter(|task| task.state.is_alive());
    match (alive.next(), alive.next()) {
        (Some(task), None) => Ok(task),
        _ => Err(several(record)),
    }
}

fn several(record: &Record) -> Error {
    Error::new(Kind::Config, format!("job `{}` has several tasks; name one", record.id))
        .help(format!("its tasks are {}", known(record)))
}

fn unknown(record: &Record, word: &str) -> Error {
    let names: Vec<String> = record.tasks.iter().map(|task| task.task.to_string()).collect();
    let near = suggest::nearest(word, names.iter().map(String::as_str))
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    let message = format!("job `{}` has no task `{}`{near}", record.id, word.escape_debug());
    Error::new(Kind::Config, message).help(format!("its tasks are {}", known(record)))
}

fn known(record: &Record) -> String {
    let names: Vec<String> = record.tasks.iter().map(|task| task.task.to_string()).collect();
    suggest::list(names.iter().map(String::as_str))
}
