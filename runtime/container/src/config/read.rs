//! From the text of config.json to its types: where it is not JSON, what has the wrong type, what is unknown.

use oci_spec::runtime::Spec;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment, Track};

use super::Config;
use super::complete::{SCHEDULER_FLAGS, complete_process};
use jobc_schema::pointer;
use jobc_sys::error::{Error, Kind, Result};

impl Config {
    /// Reads the text of config.json. The error names the field by its JSON Pointer, and the line and column.
    pub fn read(text: &[u8]) -> Result<Self> {
        if text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            // The types would take the values of an array in their own order.
            return Err(Error::new(Kind::Config, "expected an object, found an array").at(""));
        }
        match read_typed(text) {
            Ok(read) => Ok(Self::of(read, Vec::new())),
            Err((error, path)) => {
                let as_written = locate_error(text, &error, &path);
                match Self::read_completed(text) {
                    None => Err(as_written),
                    Some(Ok(config)) => Ok(config),
                    // Fields that existed before completion have a line.
                    Some(Err(error)) => {
                        let same = as_written.at == error.at && as_written.what.starts_with(&error.what);
                        Err(if same { as_written } else { error })
                    }
                }
            }
        }
    }

    /// Reads a text that could be read if its process were complete; nothing where that is not what is wrong.
    fn read_completed(text: &[u8]) -> Option<Result<Self>> {
        let mut json: Value = serde_json::from_slice(text).ok()?;
        let (true, unknown_capabilities) = complete_process(json.get_mut("process")?) else { return None };
        Some(
            read_typed(json.to_string().as_bytes())
                .map(|read| Self::of(read, unknown_capabilities))
                .map_err(|(error, path)| describe_serde_error(&error).at(as_pointer(&path))),
        )
    }

    fn of((spec, mut unknown): (Spec, Vec<String>), unknown_capabilities: Vec<String>) -> Self {
        unknown.extend(legacy_fields(&spec));
        Self { spec, unknown, unknown_capabilities }
    }
}

/// Reads a value of the OCI runtime specification from its text. Returns it with the JSON Pointers of unknown
/// properties, or the error with the path of the value that does not fit.
///
/// The only way from JSON to these types: each further kind of reader would compile all of them once more, which was a
/// fifth of `jobc-oci`.
pub(crate) fn read_typed<T: DeserializeOwned>(
    text: &[u8],
) -> std::result::Result<(T, Vec<String>), (serde_json::Error, Path)> {
    let mut unknown = Vec::new();
    let mut track = Track::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    // Of one type, whatever is read.
    let note: &mut dyn FnMut(serde_ignored::Path<'_>) = &mut |path| unknown.push(pointer(&path));
    match serde_ignored::deserialize(tracked, note) {
        Ok(value) => match json.end() {
            Ok(()) => Ok((value, unknown)),
            Err(error) => Err((error, Track::new().path())),
        },
        Err(error) => Err((error, track.path())),
    }
}

fn pointer(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}/{index}", pointer(parent)),
        Path::Map { parent, key } => format!("{}/{}", pointer(parent), pointer::escape(key)),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            pointer(parent)
        }
    }
}

/// Two fields that the types have and no specification ever had.
fn legacy_fields(spec: &Spec) -> impl Iterator<Item = String> {
    let uid = spec.uid_mappings().is_some().then(|| "/uidMappings".to_owned());
    let gid = spec.gid_mappings().is_some().then(|| "/gidMappings".to_owned());
    uid.into_iter().chain(gid)
}

/// The error with its line and column; at the value where there is one.
fn locate_error(text: &[u8], error: &serde_json::Error, path: &Path) -> Error {
    let at = format!("(line {}, column {})", error.line(), error.column());
    let error = match error.classify() {
        Category::Data => describe_serde_error(error),
        // Where a word is wanted, the reader calls any other value bad syntax.
        _ if serde_json::from_slice::<IgnoredAny>(text).is_ok() => {
            Error::new(Kind::Config, "expected a string")
        }
        _ => Error::new(Kind::Config, format!("not JSON: {}", lower(&without_line(error)))),
    };
    Error { what: format!("{} {at}", error.what), ..error }.at(as_pointer(path))
}

fn as_pointer(path: &Path) -> String {
    path.iter().map(segment).collect()
}

fn segment(segment: &Segment) -> String {
    match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", pointer::escape(key)),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    }
}

/// The message alone; serde_json ends it with the line and column.
fn without_line(error: &serde_json::Error) -> String {
    let output = error.to_string();
    output.rsplit_once(" at line ").map_or(output.as_str(), |(message, _)| message).to_owned()
}

/// serde's words for a value that does not fit, as ours and an advice.
pub(crate) fn describe_serde_error(error: &serde_json::Error) -> Error {
    let config = |message: String| Error::new(Kind::Config, message);
    let message = without_line(error);
    if let Some(rest) =
        message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))
        && let Some((found, expected)) = rest.rsplit_once(", expected ")
    {
        return config(format!("expected {}, found {}", json_type_name(expected), json_value_name(found)));
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return config(format!("{field} is missing"));
    }
    if let Some(field) = message.strip_prefix("duplicate field ") {
        return config(format!("duplicate field {field}")).help("keep one of the two");
    }
    if let Some((word, known)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        let known = known.strip_prefix("one of ").unwrap_or(known).to_owned();
        let known = SCHEDULER_FLAGS
            .iter()
            .fold(known, |known, (name, theirs)| known.replace(&format!("`{theirs}`"), &format!("`{name}`")));
        return config(format!("unknown value {word}")).help(format!("write one of {known}"));
    }
    if let Some((name, _)) = message.strip_prefix("no variant for ").and_then(|rest| rest.split_once(" (")) {
        return config(format!("`{name}` is not a capability"))
            .help("write a name of capabilities(7), such as `CAP_NET_BIND_SERVICE`");
    }
    config(lower(&message))
}

/// The name of a type in JSON.
fn json_type_name(expected: &str) -> String {
    match expected {
        "u16" => "a whole number from 0 to 65535".to_owned(),
        "u32" => "a whole number from 0 to 4294967295".to_owned(),
        "u64" | "usize" => "a whole number from 0 to 18446744073709551615".to_owned(),
        "i32" => "a whole number from -2147483648 to 2147483647".to_owned(),
        "i64" => "a whole number from -9223372036854775808 to 9223372036854775807".to_owned(),
        "a string" | "path string" => "a string".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" => "an object".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        _ if expected.starts_with("struct ") => "an object".to_owned(),
        _ if expected.starts_with("enum ") || expected.contains("variant") => "a string".to_owned(),
        other => other.to_owned(),
    }
}

/// The name of a value's type in JSON.
fn json_value_name(found: &str) -> String {
    match found {
        "sequence" => "an array".to_owned(),
        "map" => "an object".to_owned(),
        "null" => "`null`".to_owned(),
        _ => {
            let value = found.strip_prefix("boolean ").or_else(|| found.strip_prefix("integer "));
            let value = value.or_else(|| found.strip_prefix("floating point "));
            value.map_or_else(|| format!("the {found}"), str::to_owned)
        }
    }
}

fn lower(text: &str) -> String {
    if text.starts_with("EOF") {
        return text.replacen("EOF", "the file ends", 1);
    }
    let mut characters = text.chars();
    characters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests;
