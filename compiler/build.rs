//! Writes the tables of `stdlib/` as JSON: to read their YAML took a quarter of the time of `jobc build`.

#![allow(clippy::disallowed_methods, reason = "cargo runs it, not the compiler")]

use std::{env, fs};

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

const TABLES: [&str; 8] =
    ["gpu/arch", "gpu/cuda", "gpu/mig", "gpu/models", "gpu/nvidia", "gpu/providers", "images", "systems"];

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    for table in TABLES {
        let path = format!("../stdlib/{table}.yaml");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut events = Parser::new_from_str(&text).map(|event| match event {
            Ok((event, _)) => event,
            Err(error) => panic!("{path}: {error}"),
        });
        let first = events.find(Event::is_node).unwrap_or_else(|| panic!("{path} is empty"));
        let json = value(first, &mut events).to_string();
        let name = table.trim_start_matches("gpu/");
        fs::write(format!("{out}/{name}.json"), json).expect("cargo's directory is writable");
    }
}

/// The value that an event begins. A test of `stdlib` compares it with what the compiler's own reader finds.
fn value<'t>(event: Event<'t>, events: &mut impl Iterator<Item = Event<'t>>) -> Value {
    match event {
        // Numbers, booleans and null are written as in JSON.
        Event::Scalar(text, ScalarStyle::Plain, ..) => {
            serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()))
        }
        Event::Scalar(text, ..) => Value::String(text.into_owned()),
        Event::SequenceStart(..) => {
            let mut items = vec![];
            while let Some(event) = events.next().filter(|event| *event != Event::SequenceEnd) {
                items.push(value(event, events));
            }
            Value::Array(items)
        }
        Event::MappingStart(..) => {
            let mut map = Map::new();
            while let Some(Event::Scalar(key, ..)) = events.next() {
                let event = events.next().expect("a key has a value");
                map.insert(key.into_owned(), value(event, events));
            }
            Value::Object(map)
        }
        other => panic!("a table has {other:?}"),
    }
}
