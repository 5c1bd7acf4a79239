//! Roles and tasks of the job file, for options of commands that run it.

use clap_complete::engine::ArgValueCompleter;
use jobc_compiler::document::Node;

use crate::completion::described;
use crate::completion::job_file::{assignments, with_job_file};

/// Maximum number of tasks of a role that are listed.
const MAX_TASKS: u64 = 100;

/// `ROLE=` of each role of the job file.
pub(crate) fn roles() -> ArgValueCompleter {
    with_job_file(|root| assignments(root, "roles"))
}

/// The tasks that the job file will have.
pub(crate) fn tasks_of_file() -> ArgValueCompleter {
    with_job_file(|root| {
        let roles = root.get("roles").map_or(&[][..], Node::entries).iter();
        let tasks = roles.flat_map(|role| {
            let count = role.value.get("instances").and_then(|count| count.to_json().as_u64()).unwrap_or(1);
            (0..count.min(MAX_TASKS)).map(|index| described(&format!("{}-{index}", role.key), "task"))
        });
        tasks.collect()
    })
}
