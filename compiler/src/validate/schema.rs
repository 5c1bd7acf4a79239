//! The published schemas, queried for what a place allows and where a key belongs.

use std::sync::LazyLock;

use jobc_schema::{JOB_SCHEMA, TARGETS_SCHEMA};
use serde_json::Value;

/// The schema of job files.
pub(super) static JOB: LazyLock<Schema> = LazyLock::new(|| Schema::read(JOB_SCHEMA));
/// The schema of `targets.yaml`.
pub(super) static TARGETS: LazyLock<Schema> = LazyLock::new(|| Schema::read(TARGETS_SCHEMA));

/// A step of a level's path that matches any name.
pub(super) const ANY: &str = "*";

/// A schema and its maps with known keys.
pub(super) struct Schema {
    root: Value,
    /// Every map with known keys, from the root down.
    pub(super) levels: Vec<Level>,
}

/// A map with known keys.
pub(super) struct Level {
    /// The path from the root, with [`ANY`] for user-defined names and list items.
    pub(super) path: Vec<String>,
    /// The known keys.
    pub(super) keys: Vec<String>,
}

impl Schema {
    fn read(text: &str) -> Self {
        let root: Value = serde_json::from_str(text).expect("the committed schema is JSON");
        let mut schema = Self { root, levels: vec![] };
        let mut levels = vec![];
        schema.collect(&schema.root, &mut vec![], &mut levels);
        schema.levels = levels;
        schema
    }

    /// Visits every place that a document can have; the schema has no cycles (a test visits all of it).
    fn collect(&self, node: &Value, path: &mut Vec<String>, levels: &mut Vec<Level>) {
        let node = self.resolve(node);
        for branch in branches(node) {
            self.collect(branch, path, levels);
        }
        if let Some(properties) = node.get("properties").and_then(Value::as_object) {
            levels.push(Level { path: path.clone(), keys: properties.keys().cloned().collect() });
            for (key, child) in properties {
                path.push(key.clone());
                self.collect(child, path, levels);
                path.pop();
            }
        }
        for keyword in ["additionalProperties", "items"] {
            if let Some(child) = node.get(keyword).filter(|child| child.is_object()) {
                path.push(ANY.to_owned());
                self.collect(child, path, levels);
                path.pop();
            }
        }
    }

    /// The part of the schema at a JSON Pointer, such as an error's `schema_path` without its keyword.
    pub(super) fn part(&self, pointer: &str) -> Option<&Value> {
        self.root.pointer(pointer).map(|node| self.resolve(node))
    }

    /// The node itself, or the target of its `$ref`.
    pub(super) fn resolve<'a>(&'a self, node: &'a Value) -> &'a Value {
        let target = node.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(node)
    }

    /// The part of the schema for a place in a document, unresolved, with its own `examples`.
    ///
    /// In a union, the branch that knows the next key is used.
    pub(super) fn at<'a>(&'a self, segments: &[String]) -> Option<&'a Value> {
        segments.iter().try_fold(&self.root, |node, segment| self.child(node, segment))
    }

    fn child<'a>(&'a self, node: &'a Value, segment: &str) -> Option<&'a Value> {
        let node = self.resolve(node);
        if let Some(child) = node.get("properties").and_then(|p| p.get(segment)) {
            return Some(child);
        }
        if let Some(child) = branches(node).find_map(|branch| self.child(branch, segment)) {
            return Some(child);
        }
        let list = segment.bytes().all(|b| b.is_ascii_digit()).then(|| node.get("items")).flatten();
        list.or_else(|| node.get("additionalProperties")).filter(|child| child.is_object())
    }

    /// The known keys of a place, if it is a map that has some.
    pub(super) fn keys(&self, segments: &[String]) -> &[String] {
        let fits = |level: &&Level| {
            level.path.len() == segments.len()
                && level.path.iter().zip(segments).all(|(known, s)| known == s || known == ANY)
        };
        // A property of the schema is preferred to a place for any name.
        let named = |level: &&Level| level.path.iter().filter(|s| *s != ANY).count();
        self.levels.iter().filter(fits).max_by_key(named).map_or(&[], |level| &level.keys)
    }
}

/// The branches of a union.
pub(super) fn branches(node: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().filter_map(|keyword| node.get(keyword).and_then(Value::as_array)).flatten()
}
