//! The metrics of a role, and the file or pattern that each is read from.

use indexmap::IndexMap;
use jobc_schema::metric::Metric;
use jobc_schema::plan::{CODE, MetricPlan, MetricSource, MountPlan, RolePlan};
use jobc_schema::progress::{DONE, Progress, TOTAL};
use jobc_schema::role::Role;
use jobc_schema::{Job, Pointer};
use regex::bytes::Regex;

use super::volumes::tidy;
use crate::diagnostic::{Diagnostic, Location, Safety, Sink, codes};
use crate::suggest;

/// The metrics of a role: the job's and its own. A file of the job's metrics that the role does not see belongs to
/// another role.
pub(super) fn resolve_metrics(
    job: &Job,
    name: &str,
    role: &Role,
    mounts: &[MountPlan],
    sink: &mut Sink,
) -> IndexMap<String, MetricPlan> {
    let mut metrics = IndexMap::new();
    // A directory of each instance ends with it, and its files with it; so does a copy of the code.
    let of_instance = |mount: &&MountPlan| {
        if mount.volume == CODE {
            return true;
        }
        let source = job.data.get(&mount.volume).and_then(|data| data.source.as_ref());
        source.is_some_and(|source| {
            ["instance:", "memory:", "job:memory"].iter().any(|start| source.starts_with(start))
        })
    };
    let mounts: Vec<MountPlan> = mounts.iter().filter(|mount| !of_instance(mount)).cloned().collect();
    let mounts = &mounts[..];
    for (metric, rules) in &job.metrics {
        let at = Pointer::ROOT.keys(["metrics", metric]);
        metrics
            .extend(resolve_metric(rules, mounts, &at, &mut |_| (), sink).map(|plan| (metric.clone(), plan)));
    }
    for (metric, rules) in &role.metrics {
        let at = Pointer::ROOT.keys(["roles", name, "metrics", metric]);
        let mut absent = None;
        let plan = resolve_metric(rules, mounts, &at, &mut |found| absent = Some(found), sink);
        if let Some(found) = absent {
            sink.push(found);
        }
        // At its own place, wherever the job's is.
        metrics.shift_remove(metric);
        metrics.extend(plan.map(|plan| (metric.clone(), plan)));
    }
    match (&role.progress, &job.progress) {
        (Some(progress), _) => {
            let at = Pointer::ROOT.keys(["roles", name, "progress"]);
            let mut absent = None;
            metrics.extend(resolve_progress(progress, mounts, &at, &mut |found| absent = Some(found), sink));
            if let Some(found) = absent {
                sink.push(found);
            }
        }
        (None, Some(progress)) => {
            metrics.extend(resolve_progress(
                progress,
                mounts,
                &Pointer::ROOT.key("progress"),
                &mut |_| (),
                sink,
            ));
        }
        (None, None) => {}
    }
    metrics
}

/// The progress of a role as two metrics.
fn resolve_progress(
    progress: &Progress,
    mounts: &[MountPlan],
    at: &Pointer,
    absent: &mut dyn FnMut(Diagnostic),
    sink: &mut Sink,
) -> Vec<(String, MetricPlan)> {
    let plan = |name: &str, source| (name.to_owned(), MetricPlan { source, better: None });
    if let Some(pattern) = &progress.log {
        let patterns = progress_patterns(pattern, &at.key("log"), sink);
        return patterns.map_or_else(Vec::new, |[done, total]| {
            vec![plan(DONE, MetricSource::Log(done)), plan(TOTAL, MetricSource::Log(total))]
        });
    }
    let metric =
        |key: &Option<String>| Metric { file: progress.file.clone(), key: key.clone(), ..Metric::default() };
    let done = resolve_metric(&metric(&progress.done), mounts, at, absent, sink);
    let Some(done) = done else { return vec![] };
    // What is wrong with the file was found already.
    let total = resolve_metric(&metric(&progress.total), mounts, at, &mut |_| (), &mut Sink::new());
    total.map_or_else(Vec::new, |total| vec![plan(DONE, done.source), plan(TOTAL, total.source)])
}

/// The pattern of each of the two numbers: the expression with that group alone.
fn progress_patterns(pattern: &str, at: &Pointer, sink: &mut Sink) -> Option<[String; 2]> {
    let Ok(regex) = Regex::new(pattern) else {
        check_pattern(pattern, at, sink);
        return None;
    };
    let names: Vec<Option<&str>> = regex.capture_names().skip(1).collect();
    let has = |name: &str| names.iter().filter(|known| **known == Some(name)).count() == 1;
    if !has("done") || !has("total") || names.len() != 2 {
        let what = if has("done") && has("total") { "other groups than" } else { "not the groups" };
        let message = format!("`{pattern}` has {what} `done` and `total`");
        sink.push(Diagnostic::error(codes::METRIC, message).at(at, "").note(
            "name the two numbers, as in `step (?P<done>[0-9]+)/(?P<total>[0-9]+)`; a group for anything else is `(?: )`",
        ));
        return None;
    }
    let without = |name: &str| {
        let pattern = pattern.replacen(&format!("(?P<{name}>"), "(?:", 1);
        pattern.replacen(&format!("(?<{name}>"), "(?:", 1)
    };
    Some([without("total"), without("done")])
}

/// Reports files of the job's metrics that no role sees.
pub(super) fn check_files(job: &Job, roles: &[RolePlan], sink: &mut Sink) {
    for (metric, rules) in &job.metrics {
        let Some(file) = &rules.file else { continue };
        let at = Pointer::ROOT.keys(["metrics", metric]);
        if file.starts_with('/') && roles.iter().all(|role| place_of(file, &role.mounts).is_none()) {
            let mounts = roles.iter().flat_map(|role| &role.mounts);
            sink.push(not_kept(file, mounts, &at.key("file")));
        }
    }
    if let Some(file) = job.progress.as_ref().and_then(|progress| progress.file.as_ref())
        && file.starts_with('/')
        && roles.iter().all(|role| place_of(file, &role.mounts).is_none())
    {
        let mounts = roles.iter().flat_map(|role| &role.mounts);
        sink.push(not_kept(file, mounts, &Pointer::ROOT.keys(["progress", "file"])));
    }
}

fn resolve_metric(
    rules: &Metric,
    mounts: &[MountPlan],
    at: &Pointer,
    absent: &mut dyn FnMut(Diagnostic),
    sink: &mut Sink,
) -> Option<MetricPlan> {
    let better = rules.better;
    if let Some(pattern) = &rules.log {
        return check_pattern(pattern, &at.key("log"), sink)
            .then(|| MetricPlan { source: MetricSource::Log(pattern.clone()), better });
    }
    // Exactly one of the two is set, and a key if it is a file: an earlier pass checks it.
    let (file, key) = (rules.file.as_ref()?, rules.key.as_ref()?);
    if !file.starts_with('/') || file.split('/').any(|part| part == "..") {
        let diagnostic = Diagnostic::error(codes::METRIC, format!("the path `{file}` is not absolute"));
        let at = at.key("file");
        let outputs = mounts.iter().filter(|mount| mount.writable);
        let near = outputs.map(|mount| tidy(&format!("{}/{file}", mount.path))).next();
        sink.push(match near.filter(|_| !file.contains("..")) {
            Some(near) => diagnostic.at(&at, "").fix(
                format!("write `{near}`"),
                Location::value(&at),
                serde_json::Value::from(near).to_string(),
                Safety::Unsafe,
            ),
            None => diagnostic
                .at(&at, "")
                .note("write the path as the role sees it, such as `/output/result.json`"),
        });
        return None;
    }
    let Some((volume, path)) = place_of(file, mounts) else {
        absent(not_kept(file, mounts.iter(), &at.key("file")));
        return None;
    };
    Some(MetricPlan { source: MetricSource::File { volume, path, key: key.clone() }, better })
}

/// The volume that contains a path of a role, and the path in the volume.
fn place_of(file: &str, mounts: &[MountPlan]) -> Option<(String, String)> {
    let file = tidy(file);
    let inside = |mount: &MountPlan| {
        let rest = file.strip_prefix(mount.path.trim_end_matches('/'))?.strip_prefix('/')?;
        let path = match &mount.subpath {
            Some(subpath) => format!("{subpath}/{rest}"),
            None => rest.to_owned(),
        };
        Some((mount.path.len(), mount.volume.clone(), path))
    };
    let (_, volume, path) = mounts.iter().filter_map(inside).max_by_key(|(length, ..)| *length)?;
    Some((volume, path))
}

/// Reports a file that is removed with its task's container.
fn not_kept<'a>(file: &str, mounts: impl Iterator<Item = &'a MountPlan>, at: &Pointer) -> Diagnostic {
    let mut places: Vec<&str> = mounts.map(|mount| mount.path.as_str()).collect();
    places.sort_unstable();
    places.dedup();
    let note = if places.is_empty() {
        "add an output, as in `outputs: {runs: {source: ./runs, mount: /output}}`, and write the file there"
            .to_owned()
    } else {
        let several = if places.len() > 1 { "one of " } else { "" };
        format!("write the file below {several}{}", suggest::list(places))
    };
    Diagnostic::error(codes::METRIC, format!("`{file}` is in no data and no output"))
        .at(at, "removed with the task")
        .note(note)
}

/// Reports a pattern that is not a regular expression with one group.
fn check_pattern(pattern: &str, at: &Pointer, sink: &mut Sink) -> bool {
    let groups = match Regex::new(pattern) {
        Ok(pattern) => pattern.captures_len() - 1,
        Err(error) => {
            // The lines before the last one show the position in the pattern.
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let message = format!("`{pattern}` is not a regular expression: {why}");
            sink.push(
                Diagnostic::error(codes::METRIC, message)
                    .at(at, "")
                    .note("escape a literal character with a backslash, as in `loss \\(mean\\): ([0-9.]+)`"),
            );
            return false;
        }
    };
    if groups == 1 {
        return true;
    }
    let has = if groups == 0 {
        "no group for the number".to_owned()
    } else {
        format!("{groups} groups, and one number is wanted")
    };
    sink.push(Diagnostic::error(codes::METRIC, format!("`{pattern}` has {has}")).at(at, "").note(
        "put the number in `( )`, as in `val_loss=([0-9.e+-]+)`; a group for anything else is `(?: )`",
    ));
    false
}
