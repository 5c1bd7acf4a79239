//! Finds a field by its path, as users write it.

use jobc_compiler::suggest;

use super::format::{Field, Format, is_placeholder};

/// The places of a field: `roles.train.retry`, `roles.<role>.retry`, `resources.memory`, `memory`, `steps[0].apt`.
///
/// A whole path of several keys is one place. Other words are the end of a path, and may have several places, those of
/// the job file first. Names that the user chooses can be left out.
pub(crate) fn find(word: &str) -> Vec<&'static Field> {
    let wanted = keys_of(word);
    if wanted.is_empty() {
        return Vec::new();
    }
    let found = find_keys(&wanted);
    match wanted.split_last() {
        // A name in a map of plain values, such as a label.
        Some((_, map)) if found.is_empty() && !map.is_empty() => {
            find_keys(map).into_iter().filter(|field| field.takes_names).collect()
        }
        _ => found,
    }
}

fn find_keys(wanted: &[&str]) -> Vec<&'static Field> {
    let all = || Format::all().iter().flat_map(Format::fields);
    let mut whole: Vec<&'static Field> = all().filter(|field| is_whole(field, wanted)).collect();
    // `roles.retry` is the key of a role, and not a role of this name.
    if whole.iter().any(|field| !field.is_chosen()) {
        whole.retain(|field| !field.is_chosen());
    }
    if wanted.len() > 1 && !whole.is_empty() {
        return whole;
    }
    let mut found: Vec<&'static Field> =
        all().filter(|field| !field.is_chosen() && is_end(field, wanted)).collect();
    // What is meant is older than a preview.
    let is_preview = |field: &Field| field.text().starts_with("[preview]");
    found.sort_by_key(|field| (field.format.name != "job", is_preview(field), field.path.len()));
    found
}

/// The field that a word most likely means: below the part of it that exists, or by its last key.
pub(crate) fn nearest(word: &str) -> Option<String> {
    let wanted = keys_of(word);
    let (last, above) = wanted.split_last()?;
    if let Some(parent) =
        (!above.is_empty()).then(|| find(&above.join("."))).and_then(|found| found.into_iter().next())
    {
        let fields = parent.format.fields();
        let inside = |field: &&Field| {
            field.path.len() == parent.path.len() + 1
                && field.path.starts_with(&parent.path)
                && !field.is_chosen()
        };
        let keys: Vec<&str> =
            fields.iter().filter(inside).filter_map(|field| field.path.last()).map(String::as_str).collect();
        if let Some(near) = suggest::nearest(last, keys.iter().copied()) {
            return Some(format!("{}.{near}", above.join(".")));
        }
    }
    if let Some(field) = Format::all().iter().flat_map(Format::fields).find(|field| is_almost(field, &wanted))
    {
        let keys = field.path.iter().zip(&wanted);
        let keys = keys.map(|(key, wanted)| if is_placeholder(key) { *wanted } else { key.as_str() });
        return Some(keys.collect::<Vec<_>>().join("."));
    }
    let names = names();
    suggest::nearest(last, names.iter().map(String::as_str)).map(str::to_owned)
}

/// The last keys of all fields with what they mean, or only those at the top level of a file.
pub(crate) fn keys(top_level: bool) -> Vec<(String, String)> {
    let fields = Format::all().iter().flat_map(Format::fields).filter(|field| !field.is_chosen());
    let fields = fields.filter(|field| !top_level || field.path.len() == 1);
    fields.filter_map(|field| Some((field.path.last()?.clone(), field.summary()))).collect()
}

/// The last keys of all fields, each once.
fn names() -> Vec<String> {
    let fields = Format::all().iter().flat_map(Format::fields);
    let mut names: Vec<String> =
        fields.filter(|field| !field.is_chosen()).filter_map(|field| field.path.last().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The keys of a path; places in lists are left out: `steps[0].apt`, `steps.0.apt`.
fn keys_of(word: &str) -> Vec<&str> {
    let keys = word.split('.').map(|key| key.split('[').next().unwrap_or_default());
    keys.filter(|key| !key.is_empty() && !key.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// Whether keys are the whole path, with or without the names that the user chooses.
fn is_whole(field: &Field, wanted: &[&str]) -> bool {
    let with_names = field.path.len() == wanted.len() && matches(&field.path, wanted);
    with_names || !field.is_chosen() && named(field).eq(wanted.iter().copied())
}

/// Whether keys are the end of the path.
fn is_end(field: &Field, wanted: &[&str]) -> bool {
    let named: Vec<&str> = named(field).collect();
    let end = field.path.len().checked_sub(wanted.len()).map(|start| &field.path[start..]);
    named.ends_with(wanted) || end.is_some_and(|end| matches(end, wanted))
}

/// Whether one key above the last is misspelled, and all others are right.
fn is_almost(field: &Field, wanted: &[&str]) -> bool {
    let wrong = field.path.iter().zip(wanted).filter(|(key, wanted)| key != *wanted && !is_placeholder(key));
    let wrong: Vec<(&String, &&str)> = wrong.collect();
    let [(key, wrong)] = &wrong[..] else { return false };
    field.path.len() == wanted.len() && suggest::nearest(wrong, [key.as_str()]).is_some()
}

fn matches(path: &[String], wanted: &[&str]) -> bool {
    path.iter().zip(wanted).all(|(key, wanted)| key == wanted || is_placeholder(key))
}

/// The keys that are not chosen by the user.
fn named(field: &Field) -> impl Iterator<Item = &str> {
    field.path.iter().map(String::as_str).filter(|key| !is_placeholder(key))
}
