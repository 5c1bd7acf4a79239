//! From a line of a job file to the lines of written files that it causes.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use camino::Utf8PathBuf;
use jobc_compiler::compile::Output;
use jobc_compiler::source::Source;
use jobc_compiler::why::source_map::dotted;
use jobc_compiler::why::{self, effects_of_line, effects_of_setting};
use jobc_schema::Pointer;
use serde_json::{Value as Json, json};

use crate::commands::build::OutputDirectory;
use crate::input::{InputError, shorten};
use crate::origins::tasks::without_index;

use super::file_line::FileLine;

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

/// The effects of a line of the job file or the targets file.
///
/// # Errors
/// A file that ends before the line.
pub(super) fn of_line(
    place: &FileLine,
    source: &Source,
    of_target: bool,
    outputs: &[Output],
    directories: &OutputDirectory,
) -> Result<Effects, InputError> {
    let find = if of_target { effects_of_setting } else { effects_of_line };
    let Some(found) = find(source, place.line, outputs) else {
        let count = source.text().lines().count();
        return Err(InputError(format!("`{}` has only {count} lines", place.file)));
    };
    let line = |effect: why::EffectLine| EffectLine {
        file: shorten(&directories.directory(&effect.job, &effect.target).join(effect.path)),
        line: effect.line,
        pointer: effect.pointer,
        text: effect.text,
    };
    Ok(Effects { fields: found.fields, lines: found.lines.into_iter().map(line).collect() })
}

/// Maximum number of lines that are printed.
const MAX_LINES: usize = 50;

/// The effects, for people. Of tasks with the same lines the first is printed.
pub(super) fn text(place: &FileLine, effects: &Effects) -> String {
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
pub(super) fn json(place: &FileLine, effects: &Effects) -> Json {
    let lines: Vec<Json> = effects
        .lines
        .iter()
        .map(|effect| json!({"file": effect.file, "line": effect.line, "pointer": effect.pointer, "text": effect.text}))
        .collect();
    let fields: Vec<&str> = effects.fields.iter().map(Pointer::as_str).collect();
    json!({"file": place.file, "line": place.line, "fields": fields, "effects": lines})
}
