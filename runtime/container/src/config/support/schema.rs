//! The JSON Schemas of the OCI runtime specification, for tests: as much of JSON Schema as they use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A schema, and the directory its references are found in.
pub(crate) struct Schema {
    directory: PathBuf,
    file: String,
    value: Value,
}

impl Schema {
    /// A published schema: of the copy that lies beside the checkout, if there is one, else of Debian's package
    /// golang-github-opencontainers-specs-dev. Without either the test is skipped.
    pub(crate) fn published(file: &str) -> Option<Self> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/schemas/oci-runtime");
        let packaged = PathBuf::from("/usr/share/gocode/src/github.com/opencontainers/specs/schema");
        let found = [beside, packaged].into_iter().find(|directory| directory.join(file).is_file());
        if found.is_none() {
            jobc_test_skip::skip("the JSON Schemas of the OCI runtime specification");
        }
        found.map(|directory| Self::at(&directory, file, ""))
    }

    fn at(directory: &Path, file: &str, pointer: &str) -> Self {
        let text = std::fs::read(directory.join(file)).expect("a schema");
        let whole: Value = serde_json::from_slice(&text).expect("JSON");
        let value = whole.pointer(pointer).expect("what is referred to").clone();
        Self { directory: directory.to_owned(), file: file.to_owned(), value }.resolve_reference()
    }

    /// A part of this schema, or the schema it refers to.
    fn part(&self, value: &Value) -> Self {
        Self { directory: self.directory.clone(), file: self.file.clone(), value: value.clone() }
            .resolve_reference()
    }

    fn resolve_reference(self) -> Self {
        let Some((file, pointer)) =
            self.value["$ref"].as_str().and_then(|reference| reference.split_once('#'))
        else {
            return self;
        };
        Self::at(&self.directory, if file.is_empty() { &self.file } else { file }, pointer)
    }

    fn parts(&self, word: &str) -> Vec<(String, Self)> {
        match &self.value[word] {
            Value::Object(parts) => {
                parts.iter().map(|(name, part)| (name.clone(), self.part(part))).collect()
            }
            Value::Array(parts) => parts.iter().map(|part| (String::new(), self.part(part))).collect(),
            _ => Vec::new(),
        }
    }

    fn items(&self) -> Option<Self> {
        self.value["items"].is_object().then(|| self.part(&self.value["items"]))
    }

    /// Every property, as JSON Pointers with `*` for an index or for any key.
    pub(crate) fn properties(&self, at: &str, found: &mut BTreeSet<String>) {
        for (name, property) in self.parts("properties") {
            let at = format!("{at}/{name}");
            property.properties(&at, found);
            found.insert(at);
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            for (_, part) in self.parts(word) {
                part.properties(at, found);
            }
        }
        let inside = format!("{at}/*");
        if let Some(items) = self.items() {
            items.properties(&inside, found);
        }
        for (_, part) in self.parts("patternProperties") {
            part.properties(&inside, found);
        }
    }

    /// The errors of a value: types, values outside an enumeration, missing properties, unknown properties.
    pub(crate) fn validate(&self, value: &Value, at: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        let fits = match self.value["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            _ => true,
        };
        if !fits {
            wrong.push(format!("{at}: {value} is of another type"));
        }
        if let Some(words) = self.value["enum"].as_array().filter(|words| !words.contains(value)) {
            wrong.push(format!("{at}: {value} is none of {words:?}"));
        }
        for required in self.value["required"].as_array().into_iter().flatten() {
            if value.get(required.as_str().expect("a name")).is_none() {
                wrong.push(format!("{at}: {required} is missing"));
            }
        }
        let listed = self.parts("properties");
        for (name, field) in value.as_object().into_iter().flatten().filter(|_| !listed.is_empty()) {
            match listed.iter().find(|(known, _)| known == name) {
                Some((_, schema)) => wrong.extend(schema.validate(field, &format!("{at}/{name}"))),
                None => wrong.push(format!("{at}/{name}: unknown property")),
            }
        }
        if let Some(items) = self.items() {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                wrong.extend(items.validate(item, &format!("{at}/{index}")));
            }
        }
        wrong
    }
}
