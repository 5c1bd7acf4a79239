//! `jobc explain FIELD`: what a field of the job file or of targets.yaml means, from the schemas.

use serde_json::Value;

/// Maximum number of places that are described in full.
const MAX_PLACES: usize = 4;
/// Maximum number of examples.
const MAX_EXAMPLES: usize = 3;

/// A place of a schema where a field can be written.
struct Place<'a> {
    file: &'static str,
    path: Vec<String>,
    schema: &'a Value,
}

/// The descriptions of all places of a field, such as `memory` or `resources.gpu.memory`; `None` if there is none.
pub(super) fn describe(field: &str) -> Option<String> {
    let wanted: Vec<&str> = field.split('.').filter(|part| !part.is_empty()).collect();
    let schemas = schemas();
    let mut places: Vec<Place<'_>> =
        all(&schemas).into_iter().filter(|place| ends_with(&place.path, &wanted)).collect();
    places.sort_by_key(|place| (place.file != "job file", place.path.len()));
    let rest = places.len().saturating_sub(MAX_PLACES);
    let mut text: String = places.iter().take(MAX_PLACES).map(page).collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return None;
    }
    if rest > 0 {
        let more: Vec<String> = places.iter().skip(MAX_PLACES).map(|place| place.path.join(".")).collect();
        text += &format!("\nalso: {}\n", more.join(", "));
    }
    Some(text)
}

/// The names of all fields, for a suggestion.
pub(super) fn names() -> Vec<String> {
    let schemas = schemas();
    let mut names: Vec<String> =
        all(&schemas).into_iter().filter_map(|place| place.path.last().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

fn schemas() -> [(&'static str, Value); 2] {
    let read = |text: &str| serde_json::from_str(text).expect("the schemas are JSON");
    [("job file", read(jobc_schema::JOB_SCHEMA)), ("targets file", read(jobc_schema::TARGETS_SCHEMA))]
}

fn all<'a>(schemas: &'a [(&'static str, Value); 2]) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    for (file, root) in schemas {
        collect(file, root, root, &mut Vec::new(), &mut places);
    }
    places
}

/// Follows properties, maps, lists and references; a definition within itself is not followed again.
fn collect<'a>(
    file: &'static str,
    root: &'a Value,
    schema: &'a Value,
    path: &mut Vec<String>,
    places: &mut Vec<Place<'a>>,
) {
    if path.len() > 8 {
        return;
    }
    if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        if let Some(definition) = root.pointer(pointer) {
            collect(file, root, definition, path, places);
        }
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        let same = |place: &Place<'_>| place.file == file && place.path == *path;
        if !places.iter().any(same) {
            places.push(Place { file, path: path.clone(), schema: property });
        }
        collect(file, root, property, path, places);
        path.pop();
    }
    if schema["additionalProperties"].is_object() {
        path.push("<name>".to_owned());
        collect(file, root, &schema["additionalProperties"], path, places);
        path.pop();
    }
    collect_lists(file, root, schema, path, places);
}

fn collect_lists<'a>(
    file: &'static str,
    root: &'a Value,
    schema: &'a Value,
    path: &mut Vec<String>,
    places: &mut Vec<Place<'a>>,
) {
    if schema["items"].is_object() {
        collect(file, root, &schema["items"], path, places);
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for branch in schema[keyword].as_array().into_iter().flatten() {
            collect(file, root, branch, path, places);
        }
    }
}

/// Whether a path ends with these names; names that the user chooses can be left out.
fn ends_with(path: &[String], wanted: &[&str]) -> bool {
    let named: Vec<&str> = path.iter().map(String::as_str).filter(|part| *part != "<name>").collect();
    !wanted.is_empty()
        && (named.ends_with(wanted) || path.iter().map(String::as_str).eq(wanted.iter().copied()))
}

fn page(place: &Place<'_>) -> String {
    let schema = place.schema;
    let mut text = format!("# `{}` of the {}\n", place.path.join("."), place.file);
    if let Some(description) = schema["description"].as_str() {
        text += &format!("\n{description}\n");
    }
    if let Some(default) = schema.get("default") {
        text += &format!("\nDefault: `{default}`\n");
    }
    let name = place.path.last().map_or("", String::as_str);
    let examples = schema["examples"].as_array().into_iter().flatten().take(MAX_EXAMPLES);
    let examples: Vec<String> = examples.map(|example| format!("    {name}: {example}\n")).collect();
    if !examples.is_empty() {
        text += &format!("\nExamples:\n\n{}", examples.concat());
    }
    text
}
