//! How the tests show values in snapshots: without what every job has, and in few lines.

#[path = "../../tests/src/difference.rs"]
#[allow(unreachable_pub, reason = "the tests of the workspace import it")]
mod difference;

use serde_json::Value;

pub(crate) use difference::{difference, shorten_pods};

/// The longest line that a value is written in.
const WIDTH: usize = 110;

/// A value as JSON. A map or list that fits in a line is written in one.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

fn write(out: &mut String, value: &Value, indent: usize) {
    let line = line(value);
    let items: Vec<(String, &Value)> = match value {
        Value::Object(map) if indent + line.len() > WIDTH => {
            map.iter().map(|(key, value)| (format!("{}: ", Value::from(key.as_str())), value)).collect()
        }
        Value::Array(items) if indent + line.len() > WIDTH => {
            items.iter().map(|value| (String::new(), value)).collect()
        }
        _ => return out.push_str(&line),
    };
    let [open, close] = if value.is_object() { ['{', '}'] } else { ['[', ']'] };
    out.push(open);
    for (i, (key, value)) in items.iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n(' ', indent + 2));
        out.push_str(key);
        write(out, value, indent + 2);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(close);
}

fn line(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), line(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(line).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    }
}
