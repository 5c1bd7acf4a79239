//! JSON formatted for people.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// Writes a value as JSON with two spaces of indentation and a trailing newline, keys in the order of the value.
///
/// # Panics
/// Panics if the value is not plain JSON: a map with keys that are not strings.
pub fn to_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("artifacts are plain JSON");
    text.push('\n');
    text
}

/// Writes a value as JSON with its outer levels indented and each deeper value on one line: long tables are a third
/// of the size, and a diff shows whole rows.
///
/// # Panics
/// Panics if the value is not plain JSON: a map with keys that are not strings.
pub fn to_json_rows(value: &impl Serialize, levels: usize) -> String {
    let mut bytes = Vec::new();
    let mut serializer =
        serde_json::Serializer::with_formatter(&mut bytes, Rows { depth: 0, levels, filled: false });
    value.serialize(&mut serializer).expect("artifacts are plain JSON");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("serde_json writes UTF-8")
}

/// A formatter that breaks lines down to a given depth.
struct Rows {
    depth: usize,
    levels: usize,
    /// Whether the list or map that ends next has entries.
    filled: bool,
}

impl Rows {
    fn begin<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        out.write_all(bracket)
    }

    fn item<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.depth <= self.levels {
            self.line(out)
        } else if first {
            Ok(())
        } else {
            out.write_all(b" ")
        }
    }

    fn end<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.filled && self.depth < self.levels {
            self.line(out)?;
        }
        self.filled = true;
        out.write_all(bracket)
    }

    fn line<W: Write + ?Sized>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Rows {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{to_json, to_json_rows};

    #[test]
    fn each_row_is_one_line() {
        let value = json!({"a": [{"b": [1, 2], "c": {}}, 3], "d": [], "e": {"f": "x"}});
        let text = to_json_rows(&value, 2);
        assert_eq!(
            text,
            "{\n  \"a\": [\n    {\"b\": [1, 2], \"c\": {}},\n    3\n  ],\n  \"d\": [],\n  \"e\": {\n    \"f\": \"x\"\n  }\n}\n"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn keys_keep_their_order() {
        let value = json!({"b": [1, 2.5, "é\n"], "a": {}, "c": []});
        let text = to_json(&value);
        assert_eq!(
            text,
            "{\n  \"b\": [\n    1,\n    2.5,\n    \"é\\n\"\n  ],\n  \"a\": {},\n  \"c\": []\n}\n"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
