//! The line of the job file that a reason of a job of this host is about.

use camino::Utf8Path;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::document::{Document, Node};
use jobc_compiler::parse::parse;
use jobc_compiler::source::{Source, Sources};
use jobc_job::directory::JobDirectories;
use jobc_place::job::JobSummary;
use jobc_schema::Pointer;

use crate::input::shorten;

/// Words of a reason, and the fields that it is about: those of the job, and those of its roles below `roles.ROLE`.
const FIELDS: [(&str, &[&str], &[&str]); 9] = [
    ("needs a slice", &[], &["resources.gpu.share", "resources.gpu"]),
    (" GPU", &[], &["resources.gpu"]),
    (" CPU", &[], &["resources.cpu"]),
    (" of memory", &[], &["resources.memory"]),
    (" of disk", &[], &["resources.disk"]),
    ("of its sweep at once", &["matrix.max_parallel", "matrix"], &[]),
    ("waits until", &[], &["needs"]),
    ("out of memory", &[], &["resources.memory"]),
    ("timed out", &["timeout"], &["timeout"]),
];

/// The reasons, each with its line where the job file still has the text that the job was run from.
pub(super) fn located(job: &JobSummary, reasons: Vec<String>) -> Vec<String> {
    let Some((name, text)) = job_file(job) else { return reasons };
    let mut sources = Sources::new();
    let id = sources.add(Source::new(name.as_str(), text));
    let Some(document) = parse(&sources, id, &mut Sink::new()) else { return reasons };
    let ended_by = job.end.as_ref().and_then(|end| end.task.as_ref()).map(|task| task.role.as_str());
    let with_line = |reason: String| match pointer(&document, &reason, ended_by) {
        Some(pointer) => {
            let span = document.at(&pointer).map_or(document.root.span, |node| node.span);
            let at = sources.get(id).line_column(span.start);
            format!("{name}:{}:{}: {reason}", at.line, at.column)
        }
        None => reason,
    };
    reasons.into_iter().map(with_line).collect()
}

/// The name and the text of the job file, if it has not changed since.
fn job_file(job: &JobSummary) -> Option<(String, String)> {
    let path = Utf8Path::from_path(job.source.as_deref()?)?;
    let text = std::fs::read_to_string(path).ok()?;
    let directory = JobDirectories::standard().ok()?.find(&job.name).ok()?;
    let then = std::fs::read_to_string(directory.job_file()).ok()?;
    (then == text).then(|| (shorten(path).to_string(), text))
}

/// The field that a reason is about, which the file has; of the role whose task has ended the job, where one has.
fn pointer(document: &Document, reason: &str, ended_by: Option<&str>) -> Option<Pointer> {
    // What is missing comes before the jobs that have it.
    let waits = reason.strip_prefix("waits: ").and_then(|waits| waits.split(": ").next());
    let (_, of_job, of_role) = waits
        .into_iter()
        .chain([reason])
        .find_map(|what| FIELDS.iter().find(|(words, ..)| what.contains(words)))?;
    let roles = document.root.get("roles").map(Node::entries).unwrap_or_default();
    let all: Vec<&str> = roles.iter().map(|role| role.key.as_str()).collect();
    // Of several that a sentence names, the first is the one that it is about.
    let place = |role: &&str| reason.find(&format!("`{role}`")).unwrap_or(usize::MAX);
    let named = all.iter().copied().filter(|role| place(role) < usize::MAX).min_by_key(place);
    let role = all.iter().copied().find(|role| ended_by == Some(*role)).or(named);
    let candidates = role.map_or(all, |role| vec![role]);
    let exists = |pointer: &Pointer| document.at(pointer).is_some();
    let job = of_job.iter().map(|field| Pointer::ROOT.keys(field.split('.')));
    let roles = candidates.iter().flat_map(|role| {
        of_role
            .iter()
            .map(move |field| Pointer::ROOT.keys(["roles", role].into_iter().chain(field.split('.'))))
    });
    job.chain(roles).find(exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "name: a\nmatrix: {x: [1]}\nroles:\n  ps: {run: a}\n  worker:\n    needs: [ps]\n    resources:\n      cpu: 2\n      memory: 1GiB\n      gpu: 1\n";

    /// The line of a reason.
    fn check(reason: &str, line: Option<u32>) {
        let mut sources = Sources::new();
        let id = sources.add(Source::new("job.yaml", JOB));
        let document = parse(&sources, id, &mut Sink::new()).unwrap();
        let found =
            pointer(&document, reason, None).and_then(|pointer| document.at(&pointer).map(|node| node.span));
        assert_eq!(found.map(|span| sources.get(id).line_column(span.start).line), line, "{reason}");
    }

    #[test]
    fn reasons_are_at_the_field_that_they_are_about() {
        check("waits: needs 2 GPUs, and 0 of 2 are free: `b.1` has 2 GPUs", Some(10));
        check("waits: needs 4 CPUs, and 1 of 8 are free: `b.1` has 7 CPUs and 2 GPUs", Some(8));
        check("waits: needs 1 GiB of memory, and 1 MiB of 2 GiB is free: `b.1` has 1 GiB of memory", Some(9));
        check("waits: its turn: at most 2 of its sweep at once, by `--parallel` or `max_parallel`", Some(2));
        check("role `worker` waits until `ps` has succeeded", Some(6));
        check("something else", None);
        check("failed: worker-0: out of memory: used 1 GiB of 1 GiB", Some(9));
    }
}
