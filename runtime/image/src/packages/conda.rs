//! The record of a package in a conda environment: `conda-meta/NAME-VERSION-BUILD.json`.

use serde::Deserialize;

use super::package::{License, Listed, PackageKind};

#[derive(Deserialize)]
struct Record {
    name: String,
    version: String,
    build: Option<String>,
    channel: Option<String>,
    subdir: Option<String>,
    license: Option<String>,
}

/// The package of a record.
pub(super) fn package(text: &str) -> Option<Listed> {
    let record: Record = serde_json::from_str(text).ok()?;
    let channel = record.channel.map(|channel| without_credentials(&channel));
    let qualifiers = [("build", record.build), ("channel", channel), ("subdir", record.subdir)];
    let qualifiers = qualifiers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Some(Listed {
        kind: PackageKind::Conda,
        name: record.name,
        version: record.version,
        qualifiers: qualifiers.filter(|(_, value)| !value.is_empty()).collect(),
        license: record.license.filter(|license| !license.is_empty()).map(License::Name),
    })
}

/// A channel can be a URL with a token or a password: `https://host/t/TOKEN/channel`.
fn without_credentials(channel: &str) -> String {
    let Some((scheme, rest)) = channel.split_once("://") else { return channel.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit('@').next().unwrap_or(host);
    let path = match path.strip_prefix("t/").and_then(|path| path.split_once('/')) {
        Some((_, path)) => path,
        None => path,
    };
    format!("{scheme}://{host}/{path}")
}
