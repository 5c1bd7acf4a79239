//! Smaller limits, as a patch of the job files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::document::Document;
use jobc_compiler::parse::parse;
use jobc_compiler::source::{Source, Sources};
use jobc_job::directory::Directory;
use jobc_job::history::usage;
use jobc_job::record::Record;
use jobc_place::output::history::{JobUsage, TaskLimits, Used};
use jobc_place::state::JobState;
use jobc_place::time::Time;
use jobc_schema::{Bytes, Cpus, Pointer, plural};
use similar::TextDiff;

use crate::input::shorten;
use crate::runtime::quantity::bytes;

/// The newest successful runs of a job that are compared.
const MAX_RUNS: usize = 10;

/// A smaller limit that saves less than this share, in percent, is not suggested.
const MIN_SAVING_PERCENT: u64 = 20;

/// What the successful runs of a job say about a role.
#[derive(Clone, Debug, Default)]
struct RoleHistory {
    runs: usize,
    asked: TaskLimits,
    used: Used,
}

/// A smaller limit of a role.
#[derive(Debug, PartialEq, Eq)]
struct Suggestion {
    /// The key below `resources`.
    field: &'static str,
    /// What the last run asked for, as the plan has it.
    asked: u64,
    /// The new value, as the job file has it.
    value: String,
    /// `asked 64 GiB, used 9.1 GiB in 3 runs`.
    why: String,
}

/// The patch of all job files, and a line on each change, and on what is left as it is.
pub(super) fn patch(records: &[(Directory, Record)], now: Time, note: &dyn Fn(&str)) -> String {
    let mut files: BTreeMap<&Path, BTreeMap<String, RoleHistory>> = BTreeMap::new();
    let mut runs: BTreeMap<(&Path, &str), usize> = BTreeMap::new();
    for (directory, record) in records.iter().filter(|(_, record)| record.state == JobState::Succeeded) {
        let count = runs.entry((record.source.as_path(), record.id.name.as_str())).or_default();
        *count += 1;
        if *count <= MAX_RUNS {
            add(files.entry(record.source.as_path()).or_default(), &usage(directory, record, now));
        }
    }
    if files.is_empty() {
        note("no job has succeeded yet, so nothing is known of what it needs");
        return String::new();
    }
    let mut patch = String::new();
    let mut suggested = 0;
    for (path, roles) in files {
        let suggestions: Vec<(String, Suggestion)> = roles
            .iter()
            .flat_map(|(role, history)| of_role(history).into_iter().map(|one| (role.clone(), one)))
            .collect();
        suggested += suggestions.len();
        if !suggestions.is_empty() {
            patch += &edited(path, &suggestions, note);
        }
    }
    if suggested == 0 {
        note("no limit is more than a fifth too large");
    }
    patch
}

fn add(roles: &mut BTreeMap<String, RoleHistory>, job: &JobUsage) {
    for role in &job.roles {
        let known = roles.entry(role.role.clone()).or_default();
        if known.runs == 0 {
            // The newest run comes first: its limits are those of the job file.
            known.asked = role.asked;
        }
        known.runs += 1;
        let used = &mut known.used;
        used.cpu_millis_peak = used.cpu_millis_peak.max(role.used.cpu_millis_peak);
        used.memory_peak_bytes = used.memory_peak_bytes.max(role.used.memory_peak_bytes);
        used.oom_kills += role.used.oom_kills;
    }
}

/// The limits of a role that are much larger than what it used.
fn of_role(history: &RoleHistory) -> Vec<Suggestion> {
    let RoleHistory { runs, asked, used } = history;
    let runs = plural(*runs, "run");
    let saves = |asked: u64, new: u64| new <= asked / 100 * (100 - MIN_SAVING_PERCENT);
    let mut found = vec![];
    if let (Some(asked), Some(used)) = (asked.cpu_millis, used.cpu_millis_peak) {
        let unit = if used > 1000 { 1000 } else { 500 };
        let millis = used.saturating_add(used / 10).div_ceil(unit).max(1) * unit;
        if saves(asked, millis) {
            let why = format!(
                "asked {}, used {}.{:02} in {runs}",
                Cpus { millis: asked }.amount(),
                used / 1000,
                used % 1000 / 10
            );
            found.push(Suggestion { field: "cpu", asked, value: Cpus { millis }.to_string(), why });
        }
    }
    if let (Some(asked), Some(peak), 0) = (asked.memory_bytes, used.memory_peak_bytes, used.oom_kills) {
        let new = Bytes(round_memory(peak.saturating_add(peak / 5)));
        if saves(asked, new.0) {
            let why = format!("asked {}, used {} in {runs}", Bytes(asked).amount(), bytes(peak));
            found.push(Suggestion { field: "memory", asked, value: new.to_string(), why });
        }
    }
    found
}

/// Bytes rounded up to what people write: whole GiB, below 4 GiB to 256 MiB, below 1 GiB to 64 MiB.
fn round_memory(bytes: u64) -> u64 {
    let unit = match bytes {
        0..0x4000_0000 => 64 << 20,
        0x4000_0000..0x1_0000_0000 => 256 << 20,
        _ => 1 << 30,
    };
    bytes.div_ceil(unit).max(1) * unit
}

/// The patch of one job file.
fn edited(path: &Path, suggestions: &[(String, Suggestion)], note: &dyn Fn(&str)) -> String {
    let Some(path) = job_file(path) else {
        note(&format!("`{}` is not a job file that can be read", path.display()));
        return String::new();
    };
    let Some((shown, text)) = Utf8Path::from_path(&path)
        .and_then(|utf8| Some((shorten(utf8).to_string(), std::fs::read_to_string(utf8).ok()?)))
    else {
        note(&format!("`{}` cannot be read", path.display()));
        return String::new();
    };
    let (new, notes) = edit(&shown, &text, suggestions);
    for line in notes {
        note(&line);
    }
    if new == text {
        return String::new();
    }
    TextDiff::from_lines(text.as_str(), &new).unified_diff().header(&shown, &shown).to_string()
}

/// The job file that a record names; that of a command or of a built plan has none.
fn job_file(path: &Path) -> Option<PathBuf> {
    path.is_file().then(|| path.to_owned())
}

/// The text with the smaller limits, and a line on each.
fn edit(name: &str, text: &str, suggestions: &[(String, Suggestion)]) -> (String, Vec<String>) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(name, text));
    let Some(document) = parse(&sources, id, &mut Sink::new()) else {
        return (text.to_owned(), vec![format!("`{name}` has errors; `jobc check {name}` shows them")]);
    };
    let mut notes = vec![];
    let mut edits = vec![];
    for (role, suggestion) in suggestions {
        let pointer = Pointer::ROOT.keys(["roles", role, "resources", suggestion.field]);
        let Suggestion { field, value, why, .. } = suggestion;
        match current(&document, &pointer, suggestion) {
            Ok(()) => {
                let span = document.at(&pointer).map_or(document.root.span, |node| node.span);
                let at = sources.get(id).line_column(span.start);
                notes.push(format!("{name}:{}: role `{role}`: {field}: {why}; write `{value}`", at.line));
                edits.push((span.range(), value));
            }
            Err(reason) => notes.push(format!("{name}: role `{role}`: {field}: {why}; {reason}")),
        }
    }
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut new = text.to_owned();
    for (range, value) in edits {
        new.replace_range(range, value);
    }
    (new, notes)
}

/// Whether the job file still has the value that the last run had.
fn current(document: &Document, pointer: &Pointer, suggestion: &Suggestion) -> Result<(), String> {
    let value = &suggestion.value;
    let Some(node) = document.at(pointer) else {
        return Err(format!("the job file leaves it to the target or a template; write `{value}` there"));
    };
    let json = node.to_json();
    let written = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
    if written.contains("${{") {
        return Err(format!("it is an expression; `{value}` is enough"));
    }
    let now = match suggestion.field {
        "cpu" => Cpus::parse(&written).map(|cpus| cpus.millis),
        _ => Bytes::parse(&written).map(|bytes| bytes.0),
    };
    if now == Ok(suggestion.asked) { Ok(()) } else { Err(format!("the job file has `{written}` by now")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(cpu: (u64, u64), memory: (u64, u64)) -> RoleHistory {
        RoleHistory {
            runs: 3,
            asked: TaskLimits { cpu_millis: Some(cpu.0), memory_bytes: Some(memory.0), gpus: 0 },
            used: Used { cpu_millis_peak: Some(cpu.1), memory_peak_bytes: Some(memory.1), ..Used::default() },
        }
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn what_is_much_too_large_becomes_smaller() {
        let found = of_role(&history((16_000, 3100), (64 * GIB, 9_800_000_000)));
        let shown: Vec<(&str, &str)> = found.iter().map(|one| (one.field, one.value.as_str())).collect();
        assert_eq!(shown, [("cpu", "4"), ("memory", "11GiB")]);
        assert_eq!(found[1].why, "asked 64 GiB, used 9.1 GiB in 3 runs");
        // Little is saved, or the kernel had to kill.
        assert!(of_role(&history((4000, 3500), (4 * GIB, 3 * GIB))).is_empty());
        let mut killed = history((1000, 1000), (64 * GIB, GIB));
        killed.used.oom_kills = 1;
        assert!(of_role(&killed).is_empty());
        assert_eq!(of_role(&history((1000, 10), (0, 0)))[0].value, "500m");
    }

    #[test]
    fn memory_is_rounded_up_to_what_people_write() {
        let mib = |bytes: u64| round_memory(bytes) >> 20;
        assert_eq!([1, 65 << 20, 3 * GIB + 1, 9 * GIB + 1].map(mib), [64, 128, 3328, 10_240]);
    }

    #[test]
    fn only_values_that_still_hold_are_edited() {
        let text = "name: a\nroles:\n  train:\n    resources:\n      cpu: 16 # many\n      memory: 64Gi\n  other:\n    resources: {memory: \"${{ params.m }}\", cpu: 2}\n";
        let of = |role: &str, history: &RoleHistory| -> Vec<(String, Suggestion)> {
            of_role(history).into_iter().map(|one| (role.to_owned(), one)).collect()
        };
        let mut all = of("train", &history((16_000, 3100), (64 * GIB, GIB)));
        all.extend(of("other", &history((8000, 1), (64 * GIB, GIB))));
        all.extend(of("third", &history((8000, 8000), (64 * GIB, GIB))));
        let (new, notes) = edit("job.yaml", text, &all);
        assert_eq!(new, text.replace("cpu: 16", "cpu: 4").replace("memory: 64Gi", "memory: 1280MiB"));
        insta::assert_snapshot!(notes.join("\n"), @r"
        job.yaml:5: role `train`: cpu: asked 16 CPUs, used 3.10 in 3 runs; write `4`
        job.yaml:6: role `train`: memory: asked 64 GiB, used 1.0 GiB in 3 runs; write `1280MiB`
        job.yaml: role `other`: cpu: asked 8 CPUs, used 0.00 in 3 runs; the job file has `2` by now
        job.yaml: role `other`: memory: asked 64 GiB, used 1.0 GiB in 3 runs; it is an expression; `1280MiB` is enough
        job.yaml: role `third`: memory: asked 64 GiB, used 1.0 GiB in 3 runs; the job file leaves it to the target or a template; write `1280MiB` there
        ");
    }
}
