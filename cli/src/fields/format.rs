//! A file format with its fields, as the schema has them.

use std::sync::OnceLock;

use serde_json::Value;

/// Maximum depth of a path; a definition within itself is not followed for ever.
const MAX_DEPTH: usize = 8;

/// A file format with its schema.
#[derive(Debug)]
pub(crate) struct Format {
    /// `job file`.
    pub title: &'static str,
    /// `job`, as `jobc schema` calls it.
    pub name: &'static str,
    pub(super) schema: Value,
    fields: OnceLock<Vec<Field>>,
}

/// A field, at one place where it can be written.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub format: &'static Format,
    /// The keys that lead to it. One that the user chooses is a placeholder, such as `<role>`.
    pub path: Vec<String>,
    /// The schema of its value.
    pub(super) rules: &'static Value,
    /// The type of the map that it is a key of; none at the top level.
    pub(super) owner: Option<&'static str>,
    pub(super) is_required: bool,
    /// Whether its value is a map with names that the user chooses.
    pub(super) takes_names: bool,
}

impl Format {
    /// The job file and the targets file.
    pub(crate) fn all() -> &'static [Self; 2] {
        static FORMATS: OnceLock<[Format; 2]> = OnceLock::new();
        FORMATS.get_or_init(|| {
            [
                Self::new("job file", "job", jobc_schema::JOB_SCHEMA),
                Self::new("targets file", "targets", jobc_schema::TARGETS_SCHEMA),
            ]
        })
    }

    fn new(title: &'static str, name: &'static str, schema: &str) -> Self {
        let schema = serde_json::from_str(schema).expect("the schemas are JSON");
        Self { title, name, schema, fields: OnceLock::new() }
    }

    /// Every field, in the order of the schema.
    pub(crate) fn fields(&'static self) -> &'static [Field] {
        self.fields.get_or_init(|| {
            let mut fields = Vec::new();
            self.collect(&self.schema, None, &mut Vec::new(), &mut fields);
            fields
        })
    }

    /// Follows properties, maps, lists and references.
    fn collect(
        &'static self,
        rules: &'static Value,
        owner: Option<&'static str>,
        path: &mut Vec<String>,
        fields: &mut Vec<Field>,
    ) {
        if path.len() > MAX_DEPTH {
            return;
        }
        let (owner, rules) = match self.definition(rules) {
            Some((name, definition)) => (Some(name), definition),
            None => (owner, rules),
        };
        let required =
            |key: &str| rules["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
        let properties = rules["properties"].as_object().into_iter().flatten();
        for (key, property) in properties {
            self.add(key.clone(), property, owner, required(key), path, fields);
        }
        let any_name = &rules["additionalProperties"];
        if any_name.is_object() {
            let name = placeholder(path.last().map_or("", String::as_str)).to_owned();
            if let Some(map) = fields.iter_mut().find(|field| field.path == *path) {
                map.takes_names = true;
            }
            // A plain value, such as that of a label, is described with the map.
            if self.describes(any_name) {
                self.add(name, any_name, owner, false, path, fields);
            }
        }
        let items = Some(&rules["items"]).filter(|items| items.is_object());
        let branches =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| rules[keyword].as_array());
        for inner in items.into_iter().chain(branches.flatten()) {
            self.collect(inner, owner, path, fields);
        }
    }

    fn add(
        &'static self,
        key: String,
        rules: &'static Value,
        owner: Option<&'static str>,
        is_required: bool,
        path: &mut Vec<String>,
        fields: &mut Vec<Field>,
    ) {
        path.push(key);
        if !fields.iter().any(|field| field.path == *path) {
            fields.push(Field {
                format: self,
                path: path.clone(),
                rules,
                owner,
                is_required,
                takes_names: false,
            });
        }
        self.collect(rules, owner, path, fields);
        path.pop();
    }

    fn describes(&self, rules: &Value) -> bool {
        markdown(rules).or_else(|| markdown(self.definition(rules)?.1)).is_some()
    }

    /// The definition that a reference names.
    pub(super) fn definition<'a>(&'a self, rules: &'a Value) -> Option<(&'a str, &'a Value)> {
        let name = rules["$ref"].as_str()?.strip_prefix("#/$defs/")?;
        Some((name, self.schema["$defs"].get(name)?))
    }
}

impl Field {
    /// `roles.<role>.resources.memory`.
    pub(crate) fn name(&self) -> String {
        self.path.join(".")
    }

    /// Whether its last key is one that the user chooses.
    pub(crate) fn is_chosen(&self) -> bool {
        self.path.last().is_some_and(|key| is_placeholder(key))
    }

    /// What it means in full, with an example, as Markdown: the text of the schema.
    pub(crate) fn text(&self) -> &str {
        markdown(self.rules)
            .or_else(|| self.format.definition(self.rules).and_then(|(_, definition)| markdown(definition)))
            .unwrap_or_default()
    }

    /// The first sentence of what it means.
    pub(crate) fn summary(&self) -> String {
        let first = self.text().split("\n\n").next().unwrap_or_default().replace('\n', " ");
        match first.split_once(". ") {
            Some((sentence, _)) => format!("{sentence}."),
            None => first,
        }
    }
}

/// The documentation that editors show.
pub(super) fn markdown(rules: &Value) -> Option<&str> {
    text(rules, "markdownDescription").or_else(|| text(rules, "description"))
}

pub(super) fn text<'v>(rules: &'v Value, keyword: &str) -> Option<&'v str> {
    rules.get(keyword).and_then(Value::as_str)
}

pub(super) fn is_placeholder(key: &str) -> bool {
    key.starts_with('<')
}

/// What stands for the names in a map.
fn placeholder(map: &str) -> &'static str {
    match map {
        "roles" => "<role>",
        "targets" => "<target>",
        "images" => "<image>",
        "data" => "<data>",
        "outputs" => "<output>",
        "params" => "<param>",
        "secrets" => "<secret>",
        _ => "<name>",
    }
}
