//! What editors read in the schemas and validators skip: documentation with an example, and whole blocks to insert.
//!
//! `markdownDescription`, `defaultSnippets`, `deprecationMessage` and `doNotSuggest` are keywords of the JSON language
//! service of VS Code, which yaml-language-server understands as well. JSON Schema gives them no meaning, so a file may
//! hold the same with and without them. The same goes for the changes of form in [`Plain`].

mod snippets;

use std::collections::BTreeSet;

use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

/// Adds the keywords to a whole schema; `yaml` writes a value as a YAML document.
pub(crate) fn annotate(schema: &mut Schema, yaml: &dyn Fn(&Value) -> String) {
    let definitions = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    snippets::insert(schema);
    Document { definitions: &definitions, yaml }.transform(schema);
    Plain { definitions: &definitions }.transform(schema);
    name_alternatives(schema);
}

/// Gives the alternatives of a value titles, from their descriptions: for a value that fits none of them
/// yaml-language-server names what it expects, and would name a type of the program.
fn name_alternatives(schema: &mut Schema) {
    let mut alternatives = BTreeSet::new();
    collect_alternatives(schema.as_value(), &mut alternatives);
    let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) else { return };
    for (_, definition) in definitions.iter_mut().filter(|(name, _)| alternatives.contains(*name)) {
        let sentence = text(definition, "description").split(['.', ':', ';']).next().unwrap_or_default();
        let mut letters = sentence.chars();
        let title: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
        if let Some(definition) = definition.as_object_mut().filter(|_| !title.is_empty()) {
            definition.insert("title".to_owned(), Value::String(title));
        }
    }
}

/// The names of the definitions that are alternatives of a value.
fn collect_alternatives(node: &Value, found: &mut BTreeSet<String>) {
    match node {
        Value::Object(map) => {
            for branch in map.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
                found.extend(text(branch, "$ref").strip_prefix("#/$defs/").map(str::to_owned));
            }
            map.values().for_each(|value| collect_alternatives(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_alternatives(item, found)),
        _ => {}
    }
}

/// Writes unions so that yaml-language-server reports one correct message for a value that fits none of the branches.
///
/// It reports the first branch if several are equally wrong: for a map with a misspelled key the message should be
/// about the key. It reports the `type` and the `const` of a word separately: the `const` implies both. And it offers a
/// map among the `examples` of a value as `[object Object]`: the documentation shows it instead, and only required keys
/// keep it.
struct Plain<'a> {
    definitions: &'a Map<String, Value>,
}

impl Transform for Plain<'_> {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        if let Some(branches) = object.get_mut("anyOf").and_then(Value::as_array_mut) {
            branches.sort_by_key(|branch| text(resolve(self.definitions, branch), "type") != "object");
        }
        for branch in object.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(word) = branch.as_object_mut().filter(|branch| branch.contains_key("const")) {
                word.shift_remove("type");
            }
        }
        let required = object.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (key, property) in properties(object) {
            let Some(property) = property.as_object_mut().filter(|_| !required.contains(&json!(key))) else {
                continue;
            };
            if let Some(examples) = property.get_mut("examples").and_then(Value::as_array_mut) {
                examples.retain(|example| !example.is_object());
                if examples.is_empty() {
                    property.shift_remove("examples");
                }
            }
        }
    }
}

struct Document<'a> {
    definitions: &'a Map<String, Value>,
    yaml: &'a dyn Fn(&Value) -> String,
}

impl Transform for Document<'_> {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        // A type or a word has no key: it keeps the plain description, since editors would show its backticks
        // literally.
        if let Some(text) = object.get("description").and_then(Value::as_str).map(str::to_owned) {
            object.entry("markdownDescription").or_insert(Value::String(text));
        }
        for (key, property) in properties(object) {
            let text = self.page(key, property);
            let Some(property) = property.as_object_mut() else { continue };
            property.insert("markdownDescription".to_owned(), text.into());
            if property.get("deprecated") == Some(&json!(true)) {
                // Without a message, editors do not strike out a key; its description says what to write instead.
                let reason = property.get("description").cloned().unwrap_or_default();
                property.insert("deprecationMessage".to_owned(), reason);
                property.insert("doNotSuggest".to_owned(), json!(true));
            }
        }
    }
}

impl Document<'_> {
    /// The documentation of a key: what it means, how its value is written, the words it takes, its default, an
    /// example.
    fn page(&self, key: &str, property: &Value) -> String {
        let mut parts = vec![text(property, "description").to_owned()];
        let kind = self.kind(property);
        let spelling = text(kind, "description");
        // The rules of an amount or a duration are not in the key's own description; those of a map are in its keys'.
        if kind.get("pattern").is_some() && !spelling.is_empty() && spelling != parts[0] {
            parts.push(spelling.to_owned());
        }
        let words = self.words(kind);
        if !words.is_empty() {
            parts.push(words);
        }
        if let Some(default) = property.get("default") {
            parts.push(format!("Default: `{}`", inline(default)));
        }
        let examples = property.get("examples").and_then(Value::as_array);
        if let Some(example) = examples.and_then(|examples| examples.first()) {
            let text = (self.yaml)(&json!({ key: example }));
            parts.push(format!("```yaml\n{}\n```", text.trim_end()));
        }
        parts.join("\n\n")
    }

    /// The words that a value may be, each with its meaning.
    fn words(&self, kind: &Value) -> String {
        let branches = |keyword| kind.get(keyword).and_then(Value::as_array).into_iter().flatten();
        let mut lines: Vec<String> = branches("oneOf")
            .filter_map(|branch| {
                Some(format!("* `{}`: {}", branch.get("const")?.as_str()?, text(branch, "description")))
            })
            .collect();
        lines.extend(
            branches("anyOf").map(|branch| self.words(self.kind(branch))).filter(|text| !text.is_empty()),
        );
        if let Some(items) = kind.get("items") {
            lines.push(self.words(self.kind(items)));
        }
        lines.join("\n")
    }

    fn kind<'v>(&'v self, schema: &'v Value) -> &'v Value {
        resolve(self.definitions, schema)
    }
}

/// The definition that a `$ref` names, or the schema itself.
fn resolve<'v>(definitions: &'v Map<String, Value>, schema: &'v Value) -> &'v Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/$defs/"));
    name.and_then(|name| definitions.get(name)).unwrap_or(schema)
}

/// The keys that a map knows.
fn properties(object: &mut Map<String, Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
}

fn text<'v>(schema: &'v Value, keyword: &str) -> &'v str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

/// A default in one line: lists with blanks, words without quotes.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
