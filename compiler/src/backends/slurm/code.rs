//! The code of a job: an archive beside the batch scripts, which the first Slurm job of a run unpacks.

use jobc_schema::plan::{CODE, RolePlan};
use jobc_schema::shell::quote;

/// The directory of the run with the code, as one word of the shell.
pub(super) const DIRECTORY: &str = "\"$jobc_run\"/code";

/// The directory in which commands start without a container, as one word of the shell, if it is that of the code or below
/// it. `code` is that directory.
pub(super) fn workdir(role: &RolePlan, code: &str) -> Option<String> {
    let mount = role.mounts.iter().find(|mount| mount.volume == CODE)?;
    let below = role.workdir.as_deref()?.strip_prefix(mount.path.as_str())?;
    (below.is_empty() || below.starts_with('/')).then(|| format!("{code}{}", quote_below(below)))
}

fn quote_below(path: &str) -> String {
    if path.is_empty() { String::new() } else { quote(path) }
}
