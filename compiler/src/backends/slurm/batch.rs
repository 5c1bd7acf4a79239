//! The batch script of a group: the request, and what runs the tasks.

use std::fmt::Write as _;

use jobc_schema::plan::JobPlan;

use crate::backend::{Content, File, FilePart, Origin};

use super::form::{self, Form};
use super::group::Group;
use super::parts::Parts;
use super::{direct, header, node};

/// The script of a group.
pub(super) fn script(parts: &Parts<'_>, groups: &[Group<'_>], group: &Group<'_>) -> File {
    let mut text = "#!/bin/bash\n".to_owned();
    let mut origins = vec![];
    let request = form::request(parts, groups, group);
    for (number, line) in header::lines(parts, groups, group, &request).into_iter().enumerate() {
        let _ = writeln!(text, "{}", line.text);
        if let Some(from) = line.from {
            let number = u32::try_from(number + 2).unwrap_or(u32::MAX);
            origins.push(Origin { part: FilePart::Line(number), from });
        }
    }
    let file = format!("{}.sbatch", group.name);
    if !group.after.is_empty() {
        // For `jobc submit`, which submits the scripts by itself.
        let after: Vec<&str> = group.after.iter().map(|other| groups[*other].name.as_str()).collect();
        let _ = writeln!(text, "#JOBC --after={}", after.join(","));
    }
    about(parts.job, groups, group, &file, &mut text);
    match form::of(parts, groups, group) {
        Form::Direct(direct) => {
            text.push('\n');
            modules(parts, &mut text);
            text.push_str(&direct::body(parts, &direct, request.retries));
        }
        Form::Node(reason) => {
            let _ = writeln!(text, "# jobc runs its tasks: {reason}.\n\nexport SLURM_EXPORT_ENV=ALL PATH");
            modules(parts, &mut text);
            text.push_str(&node::line(parts, group));
        }
    }
    let mut file = File::new(file, Content::Text(text));
    file.mode = 0o755;
    file.origins = origins;
    file
}

fn about(job: &JobPlan, groups: &[Group<'_>], group: &Group<'_>, file: &str, text: &mut String) {
    let names = group.roles.iter().map(|role| role.name.as_str()).collect::<Vec<_>>().join(", ");
    let how = if groups.len() > 1 { "`./submit.sh`".to_owned() } else { format!("`sbatch {file}`") };
    let _ = writeln!(text, "# Job {}: {names}. Submit it in this directory: {how}.", job.name);
}

fn modules(parts: &Parts<'_>, text: &mut String) {
    if !parts.settings.modules.is_empty() {
        text.push_str("command -v module >/dev/null || . /etc/profile\n");
        let all = parts.settings.modules.iter().map(String::as_str);
        let (directories, names): (Vec<&str>, Vec<&str>) = all.partition(|name| name.starts_with('/'));
        for (verb, words) in [("use", directories), ("load", names)] {
            if !words.is_empty() {
                let _ = writeln!(text, "module {verb} {} || exit 125", words.join(" "));
            }
        }
    }
}
