//! The whole reference of a format, type by type, as data: the pages of the documentation are laid out from it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::format::{Field, Format, text};
use super::kind::{Naming, words};

/// The reference of a format: the top level first, then each type in the order in which a field names it.
pub(crate) fn document(format: &'static Format) -> Value {
    let mut places: BTreeMap<Option<&str>, Vec<&Field>> = BTreeMap::new();
    for field in format.fields() {
        places.entry(field.owner).or_default().push(field);
    }
    let mut types = Vec::new();
    let mut named: Vec<&'static str> = Vec::new();
    let mut next = 0;
    types.push(section(format, None, &format.schema, &places, &mut named));
    while let Some(name) = named.get(next).copied() {
        next += 1;
        if named.iter().position(|known| *known == name) == Some(next - 1) {
            let rules = &format.schema["$defs"][name];
            types.push(section(format, Some(name), rules, &places, &mut named));
        }
    }
    json!({
        "name": format.name,
        "title": format.title,
        "description": format.schema["description"],
        "types": types,
    })
}

/// A type: its description, where it is used, its allowed values, its fields.
fn section(
    format: &'static Format,
    name: Option<&'static str>,
    rules: &'static Value,
    places: &BTreeMap<Option<&str>, Vec<&Field>>,
    named: &mut Vec<&'static str>,
) -> Value {
    let known = places.get(&name).map(Vec::as_slice).unwrap_or_default();
    let values = values(format, rules, named);
    let properties = rules["properties"].as_object().into_iter().flatten();
    let fields: Vec<Value> = properties
        .filter_map(|(key, _)| known.iter().find(|field| field.path.last() == Some(key)))
        .map(|field| {
            json!({
                "name": field.path.last(),
                "facts": field.facts(&mut Naming::Linked(named)),
                "text": field.text(),
            })
        })
        .collect();
    let mut above: Vec<String> = known
        .iter()
        .filter(|field| !field.is_chosen())
        .map(|field| field.path[..field.path.len() - 1].join("."))
        .filter(|it| !it.is_empty())
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    above.retain(|path| seen.insert(path.clone()));
    let patterns: Vec<&String> =
        rules["patternProperties"].as_object().into_iter().flatten().map(|(pattern, _)| pattern).collect();
    let description = text(rules, "description").unwrap_or_default();
    json!({
        "name": name, "description": description, "places": above, "values": values, "fields": fields,
        "patterns": patterns,
    })
}

/// The alternatives of a type that is not a map of known keys, each with its meaning.
fn values(format: &'static Format, rules: &'static Value, named: &mut Vec<&'static str>) -> Value {
    let branches = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| rules[keyword].as_array()).flatten();
    let options: Vec<Value> = branches
        .map(|branch| {
            let kind = words(format, branch, &mut Naming::Linked(named));
            json!({ "type": kind, "description": text(branch, "description").unwrap_or_default() })
        })
        .collect();
    if !options.is_empty() {
        return json!({ "options": options });
    }
    if rules["properties"].is_object() {
        return Value::Null;
    }
    json!({ "type": words(format, rules, &mut Naming::Linked(named)) })
}
