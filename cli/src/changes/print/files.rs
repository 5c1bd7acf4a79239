//! What changed in the built files. Tasks, jobs and targets with the same changes are one.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use jobc_compiler::why::source_map::{Part, dotted};
use jobc_schema::plural;

use crate::changes::compare::{Change, FileChange, FileChangeKind};
use crate::changes::fields::bytes;
use crate::origins::tasks::without_index;

use super::names::{Place, few};
use super::style::{Style, row, table};
use super::values::{cells, values};

/// Maximum number of files that are printed.
const MAX_FILES: usize = 40;
/// Maximum number of changes of a file that are printed.
const MAX_CHANGES: usize = 20;
/// The number of directories of a task: a task that is new or gone is one line.
const TASK_DEPTH: usize = 2;

/// Files with the same changes.
struct Group<'a> {
    first: &'a FileChange,
    /// The path that is printed: of the first file, or of the directory of a whole task.
    path: String,
    /// The number of files of the first task.
    files: usize,
    tasks: BTreeSet<String>,
    places: Vec<Place>,
}

impl Group<'_> {
    fn suffix(&self) -> String {
        let files = if self.path.ends_with('/') { plural(self.files, "file") } else { String::new() };
        let others = self.tasks.len().checked_sub(1).filter(|more| *more > 0);
        let others = others.map(|more| format!("and {}", plural(more, "more task")));
        let inside: Vec<String> = Some(files).filter(|it| !it.is_empty()).into_iter().chain(others).collect();
        let inside = if inside.is_empty() { String::new() } else { format!(" ({})", inside.join(", ")) };
        let state = match &self.first.kind {
            FileChangeKind::Added => " is new",
            FileChangeKind::Removed => " is gone",
            FileChangeKind::Changed(_) => "",
        };
        format!("{state}{inside}")
    }
}

/// Groups by their places, in the order of their first files.
fn groups(changes: &[FileChange]) -> Vec<(Vec<Place>, Vec<Group<'_>>)> {
    let mut groups: Vec<Group<'_>> = vec![];
    let mut known: HashMap<String, usize> = HashMap::new();
    for file in changes {
        let (path, what) = match &file.kind {
            FileChangeKind::Added => (task_of(&file.path), "new".to_owned()),
            FileChangeKind::Removed => (task_of(&file.path), "gone".to_owned()),
            FileChangeKind::Changed(changes) => (file.path.clone(), format!("{changes:?}")),
        };
        let general = path.replace(&file.job, "*");
        let key = format!("{}\n{what}", without_index(&general));
        let index = *known.entry(key).or_insert(groups.len());
        if index == groups.len() {
            let (tasks, places) = (BTreeSet::new(), vec![]);
            groups.push(Group { first: file, path: path.clone(), files: 0, tasks, places });
        }
        let group = &mut groups[index];
        let place = Place { job: file.job.clone(), target: file.target.clone(), is_combination: false };
        if group.path == path && group.places.first().is_none_or(|first| *first == place) {
            group.files += 1;
        }
        if group.places.last() != Some(&place) {
            group.places.push(place);
        }
        group.tasks.insert(general);
    }
    let mut sets: Vec<(Vec<Place>, Vec<Group<'_>>)> = vec![];
    for group in groups {
        match sets.iter_mut().find(|(places, _)| *places == group.places) {
            Some((_, same)) => same.push(group),
            None => sets.push((group.places.clone(), vec![group])),
        }
    }
    sets
}

/// The directory of the task of a file; the file itself if it is not of a task.
fn task_of(path: &str) -> String {
    match path.match_indices('/').nth(TASK_DEPTH - 1) {
        Some((end, _)) => path[..=end].to_owned(),
        None => path.to_owned(),
    }
}

/// The changes; in Markdown, as tables.
pub(crate) fn print(changes: &[FileChange], style: Style) -> String {
    let sets = groups(changes);
    let sets: Vec<_> = sets.iter().map(|(places, groups)| (&places[..], groups.iter().collect())).collect();
    style.print(&sets, (MAX_FILES, "files"), |out, heading, groups: &[&Group<'_>], left| {
        let _ = writeln!(out, "{heading}");
        for group in groups.iter().take(left) {
            let _ = match style {
                Style::Text => writeln!(out, "  {}{}", group.path, group.suffix()),
                Style::Markdown => writeln!(out, "\n`{}`{}\n", group.path, group.suffix()),
            };
            let FileChangeKind::Changed(changes) = &group.first.kind else { continue };
            if style == Style::Markdown {
                table(out, "cause");
            }
            let rows = rows(changes);
            for (place, change) in rows.iter().take(MAX_CHANGES) {
                let (old, new) = (change.old.as_ref(), change.new.as_ref());
                let cause = change.cause.as_ref().and_then(cause);
                match style {
                    Style::Text => {
                        let amounts = amounts(&group.first.path, change).unwrap_or_default();
                        let _ = writeln!(out, "    {place}: {}{amounts}", values(old, new));
                        let _ = cause.map(|cause| writeln!(out, "      by {cause}"));
                    }
                    Style::Markdown => row(out, place, cells(old, new), cause),
                }
            }
            style.more(out, "    ", (rows.len(), MAX_CHANGES), "");
        }
    })
}

/// The changes of a file; list items with the same change are one.
fn rows(changes: &[Change]) -> Vec<(String, &Change)> {
    let mut rows: Vec<(String, Vec<&str>, &Change)> = vec![];
    let mut known: HashMap<String, usize> = HashMap::new();
    for change in changes {
        let (around, name) = match change.place.split_once('[').and_then(|(before, rest)| {
            let (name, after) = rest.split_once(']')?;
            Some((format!("{before}[\n]{after}"), name))
        }) {
            Some(item) => item,
            None => (change.place.clone(), ""),
        };
        let key = format!("{around}\n{:?}", (&change.old, &change.new, &change.cause));
        let index = *known.entry(key).or_insert(rows.len());
        if index == rows.len() {
            rows.push((around, vec![], change));
        }
        rows[index].1.push(name);
    }
    rows.into_iter().map(|(around, names, change)| (around.replace('\n', &few(&names)), change)).collect()
}

/// Both amounts of memory in larger units.
fn amounts(path: &str, change: &Change) -> Option<String> {
    const UNIT: u64 = 1 << 20;
    let words = format!("{path} {}", change.place).to_lowercase();
    let amount = |value: &serde_json::Value| -> Option<String> {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (name, number) = text.rsplit_once('=').unwrap_or(("", &text));
        let is_memory = ["memory", "bytes", "shm"]
            .iter()
            .any(|word| words.contains(word) || name.to_lowercase().contains(word));
        let number: u64 = number.parse().ok().filter(|_| is_memory)?;
        (number >= UNIT).then(|| bytes(number))
    };
    Some(format!(" ({} -> {})", amount(change.old.as_ref()?)?, amount(change.new.as_ref()?)?))
}

/// How many files changed, are new and are gone; the plan does not count.
pub(super) fn counts(changes: &[FileChange]) -> Option<String> {
    let count = |is: fn(&FileChangeKind) -> bool| {
        changes.iter().filter(|file| file.path != crate::changes::compare::PLAN && is(&file.kind)).count()
    };
    let counts = [
        (count(|kind| matches!(kind, FileChangeKind::Changed(_))), "changed"),
        (count(|kind| matches!(kind, FileChangeKind::Added)), "new"),
        (count(|kind| matches!(kind, FileChangeKind::Removed)), "gone"),
    ];
    let words: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// What caused a change, in one line.
fn cause(part: &Part) -> Option<String> {
    if let Some(spec) = &part.spec {
        let [line, _] = part.start?;
        return Some(format!("`{}` at {}:{line}", dotted(spec), part.file.as_deref().unwrap_or("job.yaml")));
    }
    if let Some(setting) = &part.target {
        return Some(format!("the setting `{}` of the target", dotted(setting)));
    }
    part.default.clone()
}
