//! From a line of a job file to the lines of written files that it causes.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use camino::Utf8PathBuf;
use jobc_compiler::compile::Output;
use jobc_compiler::document::{Node, Value};
use jobc_compiler::source::Source;
use jobc_schema::Pointer;
use serde_json::{Value as Json, json};

use crate::commands::build::OutputDirectory;
use crate::input::{InputError, shorten};
use crate::origins::tasks::without_index;

use super::cause::names_of_parameters;
use super::place::Place;
use crate::origins::lines::Lines;
use crate::origins::source_map::{FILE, Part, SourceMap, dotted};

/// What a line of a job file causes.
pub(super) struct Effects {
    /// The fields on the line.
    fields: Vec<Pointer>,
    /// The lines, in the order of the targets and files.
    lines: BTreeSet<EffectLine>,
}

/// A line of a file that a build writes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct EffectLine {
    /// The path that `jobc build` writes it to.
    file: Utf8PathBuf,
    line: u32,
    pointer: Option<String>,
    text: String,
}

/// The effects of a line of the job file.
///
/// # Errors
/// A job file that ends before the line.
pub(super) fn of_line(
    place: &Place,
    job: &Source,
    outputs: &[Output],
    directories: &OutputDirectory,
) -> Result<Effects, InputError> {
    let lines = Lines::new(job.path().as_str(), job.text());
    if lines.text(place.line).is_none() {
        return Err(InputError(format!("`{}` has only {} lines", place.file, lines.count())));
    }
    let fields = lines.pointers_at(place.line);
    let mut wanted = fields.clone();
    for field in &fields {
        let mut segments = field.segments();
        if segments.next().as_deref() == Some("params")
            && let (Some(name), Some(tree)) = (segments.next(), lines.tree())
        {
            users_of_parameter(&tree.root, &Pointer::ROOT, &name, &mut wanted);
        }
    }
    let file_name = job.path().file_name().unwrap_or_default();
    let mut found = BTreeSet::new();
    for output in outputs {
        let directory = directories.directory(&output.job.name, &output.job.target.name);
        let bytes = |name: &str| output.artifacts.iter().find(|a| a.path == name).map(|a| &a.bytes[..]);
        let map = bytes(FILE).map(String::from_utf8_lossy).and_then(|text| SourceMap::parse(&text).ok());
        for (name, parts) in map.iter().flat_map(|map| &map.artifacts) {
            let matching = |part: &&Part| {
                let spec = part.spec.as_deref().filter(|_| part.file.as_deref() == Some(file_name));
                spec.is_some_and(|spec| wanted.iter().any(|field| is_within(spec, field.as_str())))
            };
            let parts: Vec<&Part> = parts.iter().filter(matching).collect();
            if parts.is_empty() {
                continue;
            }
            let text = String::from_utf8_lossy(bytes(name).unwrap_or_default());
            let artifact = Lines::new(name, &text);
            found.extend(parts.into_iter().map(|part| {
                let line = part.line.or_else(|| artifact.line_of(part.pointer.as_deref()?)).unwrap_or(1);
                EffectLine {
                    file: shorten(&directory.join(name)),
                    line,
                    pointer: part.pointer.clone(),
                    text: artifact.text(line).unwrap_or_default().to_owned(),
                }
            }));
        }
    }
    Ok(Effects { fields, lines: found })
}

/// Whether a field is another one, or inside it.
fn is_within(field: &str, outer: &str) -> bool {
    field.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The fields whose expressions have a parameter.
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

/// Maximum number of lines that are printed.
const MAX_LINES: usize = 50;

/// The effects, for people. Of tasks with the same lines the first is printed.
pub(super) fn text(place: &Place, effects: &Effects) -> String {
    if effects.fields.is_empty() {
        return "an empty line or a comment\n".to_owned();
    }
    let names: Vec<String> =
        effects.fields.iter().map(|field| format!("`{}`", dotted(field.as_str()))).collect();
    let mut out = format!("{} at {}:{}\n", names.join(", "), place.file, place.line);
    let mut groups: Vec<(&EffectLine, usize)> = vec![];
    let mut places: HashMap<(String, u32, &str), usize> = HashMap::new();
    for effect in &effects.lines {
        let place = (without_index(effect.file.as_str()), effect.line, effect.text.as_str());
        match places.entry(place) {
            Entry::Occupied(known) => groups[*known.get()].1 += 1,
            Entry::Vacant(new) => {
                new.insert(groups.len());
                groups.push((effect, 0));
            }
        }
    }
    for (effect, others) in groups.iter().take(MAX_LINES) {
        let others = match others {
            0 => String::new(),
            1 => "  (and 1 more task)".to_owned(),
            others => format!("  (and {others} more tasks)"),
        };
        let _ = writeln!(out, "  {}:{}: {}{others}", effect.file, effect.line, effect.text);
    }
    if let Some(more) = groups.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {more} more; `--format json` prints all");
    }
    if groups.is_empty() {
        out += "  no line of the files of these targets: it is in plan.json only, or what it asks for is the default\n";
    }
    out
}

/// The effects, for programs.
pub(super) fn json(place: &Place, effects: &Effects) -> Json {
    let lines: Vec<Json> = effects
        .lines
        .iter()
        .map(|effect| json!({"file": effect.file, "line": effect.line, "pointer": effect.pointer, "text": effect.text}))
        .collect();
    let fields: Vec<&str> = effects.fields.iter().map(Pointer::as_str).collect();
    json!({"file": place.file, "line": place.line, "fields": fields, "effects": lines})
}
