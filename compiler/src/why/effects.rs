//! Maps a line of a job file to the lines of built files that it causes.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_schema::Pointer;

use crate::compile::Output;
use crate::document::{Node, Value};
use crate::source::Source;

use super::causes::names_of_parameters;
use super::extent::last_line_of;
use super::lines::Lines;
use super::source_map::{FILE, Part, SourceMap};

/// The effects of fields of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// The fields.
    pub fields: Vec<Pointer>,
    /// The lines, ordered by job, target and file.
    pub lines: BTreeSet<EffectLine>,
}

/// A line of a built file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectLine {
    /// The job.
    pub job: String,
    /// The target.
    pub target: String,
    /// The path in the target's directory.
    pub path: Utf8PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The last line of the effect: for a script, its end.
    pub last: u32,
    /// The value, as a JSON Pointer; `None` in a text.
    pub pointer: Option<String>,
    /// The line, without blanks around it.
    pub text: String,
}

/// The field that a part of an output comes from.
type FieldOf<'a> = dyn Fn(&Output, &Part) -> Option<String> + 'a;

/// The effects of the fields on a line of the job file; `None` if it ends before the line.
pub fn effects_of_line(job: &Source, line: u32, outputs: &[Output]) -> Option<Effects> {
    at_line(job, line, outputs, &field_of_job(job.path()))
}

/// The effects of the settings on a line of the targets file; `None` if it ends before the line.
pub fn effects_of_setting(targets: &Source, line: u32, outputs: &[Output]) -> Option<Effects> {
    at_line(targets, line, outputs, &|output, part| {
        let setting = part.target.as_ref()?;
        Some(format!("{}{setting}", Pointer::ROOT.keys(["targets", &output.job.target.name]).as_str()))
    })
}

fn at_line(source: &Source, line: u32, outputs: &[Output], field_of: &FieldOf<'_>) -> Option<Effects> {
    let lines = Lines::new(source.path().as_str(), source.text());
    lines.text(line)?;
    let fields = lines.pointers_at(line);
    // What is caused by a map as a whole is caused by the line that has all of it.
    let all = fields.iter().cloned().chain(lines.containers_at(line)).collect();
    let found = lines_of(&lines, vec![all], outputs, field_of).pop();
    found.map(|effects| Effects { fields, ..effects })
}

fn field_of_job(path: &Utf8Path) -> impl Fn(&Output, &Part) -> Option<String> {
    let file_name = path.file_name().unwrap_or_default().to_owned();
    move |_, part| part.spec.clone().filter(|_| part.file.as_deref() == Some(file_name.as_str()))
}

/// The effects of each of some fields of the job file, including those of everything below it.
pub fn effects_of(job: &Source, fields: &[Pointer], outputs: &[Output]) -> Vec<Effects> {
    let lines = Lines::new(job.path().as_str(), job.text());
    let groups = fields.iter().map(|field| vec![field.clone()]).collect();
    lines_of(&lines, groups, outputs, &field_of_job(job.path()))
}

/// The effects of groups of fields. Each built file is read once.
fn lines_of(
    lines: &Lines,
    groups: Vec<Vec<Pointer>>,
    outputs: &[Output],
    field_of: &FieldOf<'_>,
) -> Vec<Effects> {
    let wanted: Vec<Vec<Pointer>> = groups.iter().map(|fields| with_users(lines, fields)).collect();
    let mut found = vec![BTreeSet::new(); groups.len()];
    for output in outputs {
        let bytes = |name: &str| output.artifacts.iter().find(|a| a.path == name).map(|a| &a.bytes[..]);
        let map = bytes(FILE).map(String::from_utf8_lossy).and_then(|text| SourceMap::parse(&text).ok());
        for (name, parts) in map.iter().flat_map(|map| &map.artifacts) {
            let mut artifact = None;
            for part in parts {
                let Some(from) = field_of(output, part) else { continue };
                let within = |fields: &[Pointer]| fields.iter().any(|field| is_within(&from, field.as_str()));
                let matching: Vec<usize> =
                    (0..groups.len()).filter(|&group| within(&wanted[group])).collect();
                if matching.is_empty() {
                    continue;
                }
                let read = || Lines::new(name, &String::from_utf8_lossy(bytes(name).unwrap_or_default()));
                let line = effect(output, name, part, parts, artifact.get_or_insert_with(read));
                for group in matching {
                    found[group].insert(line.clone());
                }
            }
        }
    }
    groups.into_iter().zip(found).map(|(fields, lines)| Effects { fields, lines }).collect()
}

fn effect(output: &Output, name: &str, part: &Part, parts: &[Part], artifact: &Lines) -> EffectLine {
    let line = part.line.or_else(|| artifact.line_of(part.pointer.as_deref()?)).unwrap_or(1);
    EffectLine {
        job: output.job.name.clone(),
        target: output.job.target.name.clone(),
        path: Utf8PathBuf::from(name),
        line,
        last: last_line_of(part, line, parts, artifact),
        pointer: part.pointer.clone(),
        text: artifact.text(line).unwrap_or_default().to_owned(),
    }
}

/// Fields, and for a parameter the fields whose expressions use it.
fn with_users(lines: &Lines, fields: &[Pointer]) -> Vec<Pointer> {
    let mut wanted = fields.to_vec();
    for field in fields {
        let mut segments = field.segments();
        if segments.next().as_deref() == Some("params")
            && let (Some(name), Some(tree)) = (segments.next(), lines.tree())
        {
            users_of_parameter(&tree.root, &Pointer::ROOT, &name, &mut wanted);
        }
    }
    wanted
}

/// Whether a field is another one, or inside it.
fn is_within(field: &str, outer: &str) -> bool {
    field.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The fields whose expressions use a parameter.
fn users_of_parameter(node: &Node, at: &Pointer, name: &str, found: &mut Vec<Pointer>) {
    match &node.value {
        Value::Mapping(entries) => {
            for entry in entries {
                users_of_parameter(&entry.value, &at.key(&entry.key), name, found);
            }
        }
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                users_of_parameter(item, &at.index(index), name, found);
            }
        }
        Value::String(text) if names_of_parameters(text).iter().any(|used| used == name) => {
            found.push(at.clone());
        }
        _ => {}
    }
}
