//! What becomes of each field, for the documentation.

use super::container::CONTAINER;
use super::kinds::{KINDS, Kind};
use super::metadata::METADATA;
use super::pod::POD_SPEC;
use super::rows::{Row, Table};
use super::security::SECURITY;

/// The fields of pods, and those of each kind: the field, and what it becomes.
pub(in super::super) fn table() -> Vec<(String, String)> {
    let below = |path: &'static str, rows: &'static [Row]| {
        rows.iter().map(move |row| (format!("{path}.{}", row.path), row.words()))
    };
    let pods = below("metadata", METADATA)
        .chain(below("pod", POD_SPEC))
        .chain(below("container", CONTAINER))
        .chain(below("securityContext", SECURITY));
    let kinds = KINDS.iter().flat_map(|kind| {
        let title = kind.title();
        all_fields(kind).into_iter().map(move |(path, row)| (format!("{title}: {path}"), row.words()))
    });
    pods.chain(kinds).collect()
}

/// The fields of all kinds, for the table.
fn all_fields(kind: &'static Kind) -> Vec<(String, &'static Row)> {
    let join = |first: &str, second: &str| match (first, second) {
        ("", second) => second.to_owned(),
        (first, "") => first.to_owned(),
        (first, second) => format!("{first}.{second}"),
    };
    let rows = |at: String, tables: &'static [Table]| {
        tables.iter().flat_map(move |(prefix, rows)| {
            let at = at.clone();
            rows.iter().map(move |row| (join(&join(&at, prefix), row.path), row))
        })
    };
    let own = rows(String::new(), kind.fields);
    let of_groups = kind.places.iter().flat_map(|place| rows(place.at.to_owned(), place.fields));
    own.chain(of_groups).collect()
}
