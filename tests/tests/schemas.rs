//! The published schemas: up to date, documented, and true about their own examples.
#![forbid(unsafe_code)]

use jobc_schema::{JOB_SCHEMA, PLAN_SCHEMA, PLUGIN_SCHEMA, TARGETS_SCHEMA};
use serde_json::{Map, Value, json};

/// The schemas of files that people write.
fn generated_schemas() -> [(&'static str, Value); 2] {
    [("job", JOB_SCHEMA), ("targets", TARGETS_SCHEMA)]
        .map(|(name, text)| (name, serde_json::from_str(text).expect("JSON")))
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    let committed = [JOB_SCHEMA, TARGETS_SCHEMA, PLAN_SCHEMA, PLUGIN_SCHEMA];
    for ((name, text), committed) in
        jobc_schema::generate::schemas(&jobc_compiler::emit::to_yaml).iter().zip(committed)
    {
        assert!(text == committed, "{name} is stale: run `cargo run -p jobc-tests --bin schemas`");
    }
}

/// Calls `look` with every subschema and its pointer.
fn walk(schema: &Value, at: &str, look: &mut dyn FnMut(&str, &Map<String, Value>)) {
    let Some(object) = schema.as_object() else { return };
    look(at, object);
    for keyword in ["properties", "$defs", "patternProperties"] {
        for (key, child) in object.get(keyword).and_then(Value::as_object).into_iter().flatten() {
            walk(child, &format!("{at}/{keyword}/{key}"), look);
        }
    }
    for keyword in ["additionalProperties", "items", "propertyNames"] {
        if let Some(child) = object.get(keyword) {
            walk(child, &format!("{at}/{keyword}"), look);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for (index, child) in object.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            walk(child, &format!("{at}/{keyword}/{index}"), look);
        }
    }
}

/// Calls `look` with every property's name, pointer and subschema.
fn properties(schema: &Value, look: &mut dyn FnMut(&str, &str, &Value)) {
    walk(schema, "", &mut |at, object| {
        for (key, child) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            look(key, &format!("{at}/properties/{key}"), child);
        }
    });
}

/// The example in the documentation of a key, as the value of that key.
fn example(key: &str, property: &Value) -> Option<Value> {
    let page = property["markdownDescription"].as_str()?;
    let (_, text) = page.split_once("```yaml\n")?;
    let document: Value = serde_yaml::from_str(text.strip_suffix("\n```")?).expect("the example is YAML");
    document.get(key).cloned()
}

#[test]
fn every_property_has_a_description_and_an_example() {
    for (name, schema) in generated_schemas() {
        let mut bare = vec![];
        let mut count = 0;
        properties(&schema, &mut |key, at, property| {
            count += 1;
            let description = property["description"].as_str().filter(|text| text.len() > 3);
            let page = property["markdownDescription"].as_str().unwrap_or_default();
            if description.is_none_or(|text| !page.starts_with(text)) || example(key, property).is_none() {
                bare.push(at.to_owned());
            }
        });
        assert!(bare.is_empty(), "{name}: {bare:#?}");
        assert!(count > 30, "{name}: only {count} properties");
    }
}

/// A validator of one part of a schema, which keeps the definitions of the whole.
fn part(schema: &Value, part: &Map<String, Value>) -> jsonschema::Validator {
    let mut part = part.clone();
    part.insert("$defs".to_owned(), schema["$defs"].clone());
    jsonschema::draft202012::new(&Value::Object(part)).expect("a schema")
}

#[test]
fn every_default_and_example_is_valid_where_it_stands() {
    for (name, schema) in generated_schemas() {
        let mut wrong = vec![];
        let mut count = 0;
        walk(&schema, "", &mut |at, object| {
            let examples = object.get("examples").and_then(Value::as_array).into_iter().flatten();
            let values: Vec<&Value> = examples.chain(object.get("default")).collect();
            if values.is_empty() {
                return;
            }
            let validator = part(&schema, object);
            for value in values {
                count += 1;
                if let Err(error) = validator.validate(value) {
                    wrong.push(format!("{at}: {value}: {error}"));
                }
            }
        });
        properties(&schema, &mut |key, at, property| {
            let validator = part(&schema, property.as_object().expect("a map"));
            let shown = example(key, property).expect("an example");
            if let Err(error) = validator.validate(&shown) {
                wrong.push(format!("{at}: {shown}: {error}"));
            }
        });
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        assert!(count > 40, "{name}: only {count} values");
    }
}

#[test]
fn null_is_refused_but_where_it_has_a_meaning() {
    for (name, schema) in generated_schemas() {
        let mut accepted = vec![];
        walk(&schema, "", &mut |at, object| {
            // Parts without their own type: the free values of a patch, and the values of `x-` keys.
            let says_something = ["type", "$ref", "anyOf", "oneOf", "enum", "const"].iter();
            let is_part = says_something.filter(|keyword| object.contains_key(**keyword)).count() > 0;
            if is_part && !at.contains("/propertyNames") && part(&schema, object).is_valid(&json!(null)) {
                accepted.push(at.to_owned());
            }
        });
        let unexpected: Vec<&String> = accepted
            .iter()
            .filter(|at| *at != "/$defs/EnvValue" && !at.contains("/env/additionalProperties"))
            .collect();
        assert!(unexpected.is_empty(), "{name}: {unexpected:#?}");
        assert_eq!(!accepted.is_empty(), name == "job", "{name}: {accepted:#?}");
    }
}

#[test]
fn maps_with_known_keys_take_no_others() {
    for (name, schema) in generated_schemas() {
        let mut open = vec![];
        walk(&schema, "", &mut |at, object| {
            let closed = ["additionalProperties", "unevaluatedProperties"]
                .iter()
                .any(|keyword| object.contains_key(*keyword));
            if object.contains_key("properties") && !closed {
                open.push(at.to_owned());
            }
        });
        assert!(open.is_empty(), "{name}: {open:#?}");
    }
}
