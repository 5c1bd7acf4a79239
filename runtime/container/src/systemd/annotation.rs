//! Properties of a unit that config.json's annotations name: `org.systemd.property.<Name>`.
//!
//! podman uses it to define how a container is stopped when the host shuts down (`KillSignal`, `TimeoutStopUSec`). The
//! value is written as glib writes its variants, as runc and crun read it: `true`, `15`, `uint64 10000000`, `'text'`,
//! `['a', 'b']`.

use oci_spec::runtime::Spec;

use super::Value;
use super::message::Property;
use jobc_schema::pointer;
use jobc_sys::error::{Error, Kind, Result};

const PREFIX: &str = "org.systemd.property.";

/// The properties that a bundle names, in the order of their names.
///
/// # Errors
///
/// An invalid name or value.
pub(crate) fn from_annotations(spec: &Spec) -> Result<Vec<Property>> {
    let annotations = spec.annotations().iter().flatten();
    let mut named: Vec<(&str, &str)> =
        annotations.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str()))).collect();
    named.sort_unstable();
    named.into_iter().map(|(name, written)| property(name, written)).collect()
}

fn property(name: &str, written: &str) -> Result<Property> {
    let wrong = |message: String| {
        Error::new(Kind::Config, message).at(format!("/annotations/{PREFIX}{}", pointer::escape(name)))
    };
    // D-Bus has no shorter ones than these; systemd's properties never begin with a lower-case letter.
    let plain = name.len() > 2 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !plain || !name.starts_with(|first: char| first.is_ascii_uppercase()) {
        return Err(wrong(format!("`{}` is not a unit property", name.escape_debug())));
    }
    let value = value(written.trim()).ok_or_else(|| {
        wrong(format!("`{}` is not a property value", written.escape_debug()))
            .help("write `true`, `15`, `uint64 10000000`, `'text'` or `['a', 'b']`")
    })?;
    Ok(in_microseconds(name, value))
}

/// `TimeoutStopSec` in seconds is `TimeoutStopUSec` in microseconds, the only form on D-Bus.
fn in_microseconds(name: &str, value: Value) -> Property {
    let seconds = match &value {
        Value::Int32(number) => u64::try_from(*number).ok(),
        Value::Uint32(number) => Some(u64::from(*number)),
        Value::Int64(number) => u64::try_from(*number).ok(),
        Value::Uint64(number) => Some(*number),
        _ => None,
    };
    match (name.strip_suffix("USec").is_none().then(|| name.strip_suffix("Sec")).flatten(), seconds) {
        (Some(stem), Some(seconds)) => {
            (format!("{stem}USec"), Value::Uint64(seconds.saturating_mul(1_000_000)))
        }
        _ => (name.to_owned(), value),
    }
}

fn value(written: &str) -> Option<Value> {
    if let Some(text) = text(written) {
        return Some(Value::Text(text));
    }
    if let Some(inner) = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
        return parts.map(text).collect::<Option<Vec<_>>>().filter(|list| !list.is_empty()).map(Value::Texts);
    }
    let (kind, number) = written.split_once(' ').unwrap_or(("int32", written));
    match (kind, number.trim()) {
        ("int32" | "boolean", "true") => Some(Value::Bool(true)),
        ("int32" | "boolean", "false") => Some(Value::Bool(false)),
        ("int32", number) => number.parse().ok().map(Value::Int32),
        ("uint32", number) => number.parse().ok().map(Value::Uint32),
        ("int64", number) => number.parse().ok().map(Value::Int64),
        ("uint64", number) => number.parse().ok().map(Value::Uint64),
        _ => None,
    }
}

/// A text between two quotes of one kind, without any of them in it and without escapes.
fn text(written: &str) -> Option<String> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let inner = written.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote) && !inner.contains('\\')).then(|| inner.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How an annotation is read, or why not.
    fn check(name: &str, written: &str) -> String {
        match property(name, written) {
            Ok((name, value)) => format!("{name} {value:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn values_as_callers_write_them() {
        for (name, written, read) in [
            ("KillSignal", "15", "KillSignal Int32(15)"),
            ("TimeoutStopUSec", "uint64 10000000", "TimeoutStopUSec Uint64(10000000)"),
            ("TimeoutStopSec", "10", "TimeoutStopUSec Uint64(10000000)"),
            ("SendSIGHUP", "true", "SendSIGHUP Bool(true)"),
            ("CollectMode", "'inactive-or-failed'", "CollectMode Text(\"inactive-or-failed\")"),
            ("After", "['a.service', \"b.service\"]", "After Texts([\"a.service\", \"b.service\"])"),
        ] {
            assert_eq!(check(name, written), read, "{name}={written}");
        }
    }

    #[test]
    fn invalid_values_are_errors_at_their_places() {
        for (name, written) in [
            ("KillSignal", "fifteen"),
            ("KillSignal", ""),
            ("KillSignal", "uint64"),
            ("After", "[]"),
            ("After", "['a', b]"),
            ("A", "1"),
            ("kill", "1"),
            ("Kill-Signal", "1"),
        ] {
            let message = check(name, written);
            assert!(
                message.starts_with(&format!("config.json: /annotations/org.systemd.property.{name}: `")),
                "{message}"
            );
        }
    }
}
