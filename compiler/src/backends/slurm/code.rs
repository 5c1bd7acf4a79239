//! The code of a job: an archive beside the batch scripts, which the first Slurm job of a run unpacks.

use jobc_schema::plan::{CODE, RolePlan};
use jobc_schema::shell::quote;
use jobc_schema::target::SlurmContainer;

use super::parts::Parts;

/// The directory of the run with the code, as one word of the shell.
pub(super) const DIRECTORY: &str = "\"$jobc_run\"/code";

/// Unpacks the code once for all Slurm jobs of a run.
const UNPACK: &str = r#"# Unpacks the code of the run, once for all its Slurm jobs.
jobc_unpack() {
  local new=$jobc_run/code-$SLURM_JOB_ID
  [ ! -d "$jobc_run/code" ] || return 0
  rm -rf "$new" && mkdir "$new" && tar -xzf "$jobc_directory/code.tar.gz" -C "$new" || return
  # Another Slurm job of the run may have been faster.
  mv -T "$new" "$jobc_run/code" 2>/dev/null || rm -rf "$new"
}
"#;

/// Puts the code where bundles look for it.
const LINK: &str =
    r#"mkdir -p "$jobc_bundles/volumes" && ln -sfn "$jobc_run/code" "$jobc_bundles/volumes/jobc-code""#;

/// The function of a batch script that unpacks the code, and the line that calls it.
pub(super) fn unpacking(parts: &Parts<'_>) -> (&'static str, String) {
    if !parts.job.volumes.contains_key(CODE) {
        return ("", String::new());
    }
    let has_bundles = matches!(parts.container(), SlurmContainer::Jobc | SlurmContainer::Oci);
    let link = if has_bundles { format!("  {LINK} || return\n") } else { String::new() };
    (UNPACK, format!("  jobc_unpack || return\n{link}"))
}

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
