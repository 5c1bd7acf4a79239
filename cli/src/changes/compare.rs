//! Compares two sets of files: values of YAML and JSON files, lines of all others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jobc_compiler::why::lines::Lines;
use jobc_compiler::why::source_map::{FILE, Part, SourceMap};
use jobc_schema::Pointer;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::target_files::TargetFiles;

/// The name of the plan in the directory of a target.
pub(crate) const PLAN: &str = "plan.json";

/// What changed in one file of a target.
pub(crate) struct FileChange {
    pub job: String,
    pub target: String,
    pub path: String,
    pub kind: FileChangeKind,
}

/// How a file changed.
pub(crate) enum FileChangeKind {
    Added,
    Removed,
    Changed(Vec<Change>),
}

/// One changed value or line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Where: the path of a value, with the names of list items; `line N` in a text.
    pub place: String,
    /// The old value; `None` if it is new.
    pub old: Option<Value>,
    /// The new value; `None` if it was removed.
    pub new: Option<Value>,
    /// What caused it, if the source map knows: the line of the job, the setting of the target, the default.
    pub cause: Option<Part>,
}

/// The files of each job and target of two sides, in the order of jobs and targets.
pub(super) fn pairs<'a>(
    then: &'a [TargetFiles],
    now: &'a [TargetFiles],
) -> impl Iterator<Item = (String, String, Option<&'a TargetFiles>, Option<&'a TargetFiles>)> {
    let mut pairs: BTreeMap<_, (Option<&TargetFiles>, Option<&TargetFiles>)> = BTreeMap::new();
    let key = |files: &TargetFiles| (files.job.clone(), files.target.clone());
    for files in then {
        pairs.entry(key(files)).or_default().0 = Some(files);
    }
    for files in now {
        pairs.entry(key(files)).or_default().1 = Some(files);
    }
    pairs.into_iter().map(|((job, target), (old, new))| (job, target, old, new))
}

/// All changed files, in the order of jobs, targets and paths.
pub(crate) fn changes(then: &[TargetFiles], now: &[TargetFiles]) -> Vec<FileChange> {
    let mut all = vec![];
    for (job, target, old, new) in pairs(then, now) {
        let side = |files: Option<&'_ TargetFiles>| -> BTreeMap<String, Vec<u8>> {
            let artifacts = files.into_iter().flat_map(|files| &files.artifacts);
            artifacts.map(|artifact| (artifact.path.to_string(), artifact.bytes.clone())).collect()
        };
        let (before, after) = (side(old), side(new));
        let (old_map, new_map) =
            (old.map(parts_of).unwrap_or_default(), new.map(parts_of).unwrap_or_default());
        let paths: BTreeSet<&String> =
            before.keys().chain(after.keys()).filter(|path| *path != FILE).collect();
        // The plan comes before the files that follow from it.
        let (plan, files): (Vec<&String>, Vec<&String>) = paths.into_iter().partition(|path| *path == PLAN);
        for path in plan.into_iter().chain(files) {
            let kind = match (before.get(path), after.get(path)) {
                (None, _) => FileChangeKind::Added,
                (_, None) => FileChangeKind::Removed,
                (Some(before), Some(after)) if before == after => continue,
                (Some(before), Some(after)) => {
                    let parts =
                        |map: &BTreeMap<String, Vec<Part>>| map.get(path).cloned().unwrap_or_default();
                    let sides = (parts(&old_map), parts(&new_map));
                    FileChangeKind::Changed(in_file(path, before, after, &sides.0, &sides.1))
                }
            };
            all.push(FileChange { job: job.clone(), target: target.clone(), path: path.clone(), kind });
        }
    }
    all
}

/// A file of a target.
pub(super) fn file<'a>(files: &'a TargetFiles, path: &str) -> Option<&'a [u8]> {
    files.artifacts.iter().find(|artifact| artifact.path == path).map(|artifact| artifact.bytes.as_slice())
}

/// The source map of the files.
pub(super) fn parts_of(files: &TargetFiles) -> BTreeMap<String, Vec<Part>> {
    let text = file(files, FILE).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    SourceMap::parse(&text).map(|map| map.artifacts).unwrap_or_default()
}

/// The changed values of two trees; a function finds the cause of a value by its pointer.
pub(super) fn differences(
    old: &Value,
    new: &Value,
    cause: &dyn Fn(Side, &str) -> Option<Part>,
) -> Vec<Change> {
    let mut found = Walk { cause, changes: vec![] };
    found.values(old, new, &At { old: Pointer::ROOT, new: Pointer::ROOT, shown: String::new() });
    found.changes
}

/// The changes inside a file.
fn in_file(path: &str, before: &[u8], after: &[u8], old_parts: &[Part], new_parts: &[Part]) -> Vec<Change> {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let (old, new) = (Lines::new(path, &before), Lines::new(path, &after));
    if let (Some(old), Some(new)) = (old.tree(), new.tree()) {
        let cause = |side: Side, pointer: &str| {
            let parts = if matches!(side, Side::New) { new_parts } else { old_parts };
            nearest(parts, pointer).cloned()
        };
        let (old, new) = (old.to_json(), new.to_json());
        let changes = match (path, &old["jobs"][0], &new["jobs"][0]) {
            // A plan has one job, which the heading names.
            (PLAN, old @ Value::Object(_), new @ Value::Object(_)) => differences(old, new, &cause),
            _ => differences(&old, &new, &cause),
        };
        if !changes.is_empty() {
            return changes;
        }
    }
    in_lines(&before, &after, new_parts)
}

/// The changed lines of a text. A removed line directly before an added one is shown as its old text.
fn in_lines(before: &str, after: &str, parts: &[Part]) -> Vec<Change> {
    let mut changes: Vec<Change> = vec![];
    for change in TextDiff::from_lines(before, after).iter_all_changes() {
        let text = Value::from(change.value().trim_end_matches('\n'));
        match change.tag() {
            ChangeTag::Equal => {}
            ChangeTag::Delete => {
                let place = format!("line {}", change.old_index().unwrap_or(0) + 1);
                changes.push(Change { place, old: Some(text), new: None, cause: None });
            }
            ChangeTag::Insert => {
                let line = change.new_index().unwrap_or(0) + 1;
                let cause =
                    parts.iter().find(|part| part.line.is_some_and(|at| at as usize == line)).cloned();
                let place = format!("line {line}");
                match changes.iter_mut().find(|known| known.new.is_none()) {
                    Some(known) => (known.place, known.new, known.cause) = (place, Some(text), cause),
                    None => changes.push(Change { place, old: None, new: Some(text), cause }),
                }
            }
        }
    }
    changes
}

/// The path of two compared values.
struct At {
    old: Pointer,
    new: Pointer,
    /// For people: keys with dots between them, and list items by their names.
    shown: String,
}

impl At {
    fn key(&self, key: &str) -> Self {
        let shown = match self.shown.as_str() {
            "" => key.to_owned(),
            above => format!("{above}.{key}"),
        };
        Self { old: self.old.key(key), new: self.new.key(key), shown }
    }

    fn item(&self, old: usize, new: usize, name: &str) -> Self {
        Self { old: self.old.index(old), new: self.new.index(new), shown: format!("{}[{name}]", self.shown) }
    }
}

/// A side of a comparison.
pub(super) enum Side {
    Old,
    New,
}

struct Walk<'a> {
    cause: &'a dyn Fn(Side, &str) -> Option<Part>,
    changes: Vec<Change>,
}

impl Walk<'_> {
    fn values(&mut self, old: &Value, new: &Value, at: &At) {
        if old == new {
            return;
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                for (key, before) in old {
                    match new.get(key) {
                        Some(after) => self.values(before, after, &at.key(key)),
                        None => self.push(&at.key(key), Some(before), None),
                    }
                }
                for (key, after) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                    self.push(&at.key(key), None, Some(after));
                }
            }
            (Value::Array(old), Value::Array(new)) => self.items(old, new, at),
            (old, new) => self.push(at, Some(old), Some(new)),
        }
    }

    /// Items are paired by their names if all have distinct ones, otherwise by their numbers.
    fn items(&mut self, old: &[Value], new: &[Value], at: &At) {
        let (Some(before), Some(after)) = (names(old), names(new)) else {
            for (index, pair) in
                (0..old.len().max(new.len())).map(|index| (index, (old.get(index), new.get(index))))
            {
                let at = at.item(index, index, &index.to_string());
                match pair {
                    (Some(before), Some(after)) => self.values(before, after, &at),
                    (before, after) => self.push(&at, before, after),
                }
            }
            return;
        };
        let places: HashMap<&String, usize> = after.iter().zip(0..).collect();
        let known: HashSet<&String> = before.iter().collect();
        for (index, name) in before.iter().enumerate() {
            match places.get(name) {
                Some(&other) => self.values(&old[index], &new[other], &at.item(index, other, name)),
                None => self.push(&at.item(index, 0, name), Some(&old[index]), None),
            }
        }
        for (index, name) in after.iter().enumerate().filter(|(_, name)| !known.contains(name)) {
            self.push(&at.item(0, index, name), None, Some(&new[index]));
        }
    }

    fn push(&mut self, at: &At, old: Option<&Value>, new: Option<&Value>) {
        let (side, pointer) = if new.is_some() { (Side::New, &at.new) } else { (Side::Old, &at.old) };
        self.changes.push(Change {
            place: at.shown.clone(),
            old: old.cloned(),
            new: new.cloned(),
            cause: (self.cause)(side, pointer.as_str()),
        });
    }
}

/// The part of a value or of its nearest ancestor, or the first inside it.
fn nearest<'a>(parts: &'a [Part], pointer: &str) -> Option<&'a Part> {
    let mut at = pointer;
    loop {
        if let Some(part) = parts.iter().find(|part| part.pointer.as_deref() == Some(at)) {
            return Some(part);
        }
        if at == pointer {
            let below = format!("{pointer}/");
            let inside =
                parts.iter().find(|part| part.pointer.as_ref().is_some_and(|p| p.starts_with(&below)));
            if inside.is_some() {
                return inside;
            }
        }
        at = &at[..at.rfind('/')?];
    }
}

/// The keys that identify a list item in our files.
const NAMING_KEYS: [&str; 6] = ["name", "destination", "mountPath", "path", "key", "type"];

/// The name of each item; `None` if one has none, or two have the same.
fn names(items: &[Value]) -> Option<Vec<String>> {
    let name = |item: &Value| match item {
        Value::Object(fields) => {
            NAMING_KEYS.iter().find_map(|key| fields.get(*key)?.as_str()).map(str::to_owned)
        }
        // Environment variables of OCI bundles.
        Value::String(text) => text.split_once('=').map(|(name, _)| name.to_owned()),
        _ => None,
    };
    let names: Vec<String> = items.iter().map(name).collect::<Option<_>>()?;
    let distinct: HashSet<&String> = names.iter().collect();
    (distinct.len() == names.len()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, before: &str, after: &str) -> Vec<String> {
        let show = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let changes = in_file(path, before.as_bytes(), after.as_bytes(), &[], &[]);
        changes.into_iter().map(|c| format!("{}: {} -> {}", c.place, show(c.old), show(c.new))).collect()
    }

    #[test]
    fn named_items_are_paired_by_name() {
        let before = "env:\n- {name: A, value: '1'}\n- {name: B, value: '2'}\n";
        let after = "env:\n- {name: C, value: '3'}\n- {name: A, value: '4'}\n";
        assert_eq!(
            check("x.yaml", before, after),
            [
                r#"env[A].value: "1" -> "4""#,
                r#"env[B]: {"name":"B","value":"2"} -> -"#,
                r#"env[C]: - -> {"name":"C","value":"3"}"#
            ]
        );
        assert_eq!(
            check("x.json", r#"{"env":["A=1","B=2"]}"#, r#"{"env":["B=3"]}"#),
            [r#"env[A]: "A=1" -> -"#, r#"env[B]: "B=2" -> "B=3""#]
        );
    }

    #[test]
    fn unnamed_items_are_paired_by_index() {
        assert_eq!(
            check("x.json", r#"{"args":["a","b"]}"#, r#"{"args":["a","c","d"]}"#),
            [r#"args[1]: "b" -> "c""#, r#"args[2]: - -> "d""#]
        );
    }

    #[test]
    fn text_files_are_compared_by_line() {
        assert_eq!(
            check("Dockerfile", "FROM a\nRUN x\n", "FROM b\nRUN x\nRUN y\n"),
            [r#"line 1: "FROM a" -> "FROM b""#, r#"line 3: - -> "RUN y""#]
        );
        // The values are the same, the bytes are not.
        assert_eq!(check("x.yaml", "a: 1\n", "a:  1\n"), [r#"line 1: "a: 1" -> "a:  1""#]);
    }
}
