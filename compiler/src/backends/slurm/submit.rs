//! `submit.sh`: submits a job that one `sbatch` does not.

use std::fmt::Write as _;

use jobc_schema::plan::{EnvPlan, FileContent, JobPlan, SecretPlan};
use jobc_schema::shell::quote;

use crate::backend::{Content, File};

use super::array::Array;
use super::form::{self, Form};
use super::group::Group;
use super::parts::Parts;
use super::shell::variable;

/// The script, if there are several Slurm jobs or arrays, or secrets to pass on. Next to an array, it submits that.
pub(super) fn script(parts: &Parts<'_>, groups: &[Group<'_>], array: Option<&Array>) -> Option<File> {
    let secrets = used_secrets(parts.job);
    let is_one = groups.len() < 2 && array.is_none_or(|array| array.parts.len() < 2);
    if is_one && secrets.is_empty() {
        return None;
    }
    let mut text = format!(
        "#!/bin/bash\n# Submits {} {} to Slurm, and prints the numbers of its Slurm jobs.\nset -euo pipefail\ncd \"$(dirname \"$0\")\"\n",
        if array.is_some() { "all jobs of the matrix of" } else { "job" },
        parts.job.name
    );
    if !secrets.is_empty() {
        text.push_str(
            "\n# Values of secrets, in files that only you can read. Remove them when the job has ended.\n",
        );
        text.push_str("secrets=${PWD%/slurm}.slurm/secrets\n(umask 077; mkdir -p \"$secrets\")\n");
    }
    for (name, plan) in secrets {
        let _ = match plan {
            SecretPlan::Env(variable) => writeln!(
                text,
                "(umask 077; printf %s \"${{{variable}?the value of the secret {name}}}\" >\"$secrets/{name}\")"
            ),
            SecretPlan::File(path) => {
                let path =
                    path.strip_prefix("~/").map_or_else(|| quote(path), |rest| format!("~/{}", quote(rest)));
                writeln!(text, "(umask 077; cat {path} >\"$secrets/{name}\")")
            }
            SecretPlan::Store { .. } => Ok(()),
        };
    }
    text.push('\n');
    match (groups, array) {
        (_, Some(array)) if array.parts.len() > 1 => arrays(array, &mut text),
        ([only], _) => {
            let name = if array.is_some() { "array" } else { only.name.as_str() };
            let _ = writeln!(text, "exec sbatch --parsable \"$@\" {name}.sbatch");
        }
        _ => chain(parts, groups, &mut text),
    }
    let mut file = File::new("submit.sh", Content::Text(text));
    file.mode = 0o755;
    Some(file)
}

/// Submits each of several arrays with the number of its first job.
fn arrays(array: &Array, text: &mut String) {
    text.push_str("# MaxArraySize of the cluster limits one array.\n");
    for (number, part) in array.parts.iter().enumerate() {
        let after =
            if array.one_by_one && number > 0 { " --dependency=\"afterany:${array%%;*}\"" } else { "" };
        let _ = writeln!(
            text,
            "array=$(sbatch --parsable \"$@\" --array={}{after} array.sbatch {})\necho \"$array\"",
            part.tasks, part.first
        );
    }
}

/// Submits one script. jobc keeps its state below the number of the first, which is its argument.
const SUBMIT: &str = r#"options=("$@") jobs=()
trap '[ $? -eq 0 ] || [ ${#jobs[@]} -eq 0 ] || scancel "${jobs[@]}"' EXIT
submit() { # SCRIPT ARGUMENT OPTION...
  submitted=$(sbatch --parsable ${options[@]+"${options[@]}"} "${@:3}" "$1.sbatch" ${2:+"$2"})
  submitted=${submitted%%;*}
  jobs+=("$submitted")
  echo "$1 $submitted"
}
"#;

/// Submits each group with the numbers of those it needs. The first ones are held until all are submitted: Slurm
/// forgets ended jobs, and a dependency on a forgotten one never holds, or always does.
fn chain(parts: &Parts<'_>, groups: &[Group<'_>], text: &mut String) {
    let id = |group: &Group<'_>| format!("job_{}", variable(&group.name));
    text.push_str(SUBMIT);
    for group in groups {
        let options = if group.after.is_empty() {
            "--hold".to_owned()
        } else {
            let after: Vec<String> =
                group.after.iter().map(|other| format!("afterok:${}", id(&groups[*other]))).collect();
            format!("--dependency={} --kill-on-invalid-dep=yes", after.join(","))
        };
        let argument = match form::of(parts, groups, group) {
            Form::Direct(_) => "''",
            Form::Node(_) => "\"${jobs[0]-}\"",
        };
        let _ = writeln!(text, "submit {} {argument} {options}\n{}=$submitted", group.name, id(group));
    }
    let held = groups.iter().filter(|group| group.after.is_empty());
    let held = held.map(|group| format!("\"${}\"", id(group))).collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "scontrol release {held}");
}

/// The secrets that roles use.
pub(super) fn used_secrets(job: &JobPlan) -> Vec<(&str, &SecretPlan)> {
    let uses = |name: &str| {
        job.roles.iter().any(|role| {
            role.env.values().any(|value| matches!(value, EnvPlan::Secret { secret } if secret == name))
                || role
                    .files
                    .iter()
                    .any(|file| matches!(&file.content, FileContent::Secret { secret } if secret == name))
        })
    };
    job.secrets.iter().filter(|(name, _)| uses(name)).map(|(name, plan)| (name.as_str(), plan)).collect()
}
