//! apk's list of packages (apk-installed(5)): lines of a letter, a colon and a value.

use super::debian::paragraphs;
use super::package::{License, Listed, PackageKind};

/// The packages that are installed.
pub(super) fn packages(text: &str) -> Vec<Listed> {
    paragraphs(text).filter_map(package).collect()
}

fn package(paragraph: &str) -> Option<Listed> {
    let field = |name: &str| {
        let mut lines = paragraph.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        value.filter(|value| !value.is_empty())
    };
    let mut qualifiers = vec![];
    qualifiers.extend(field("A").map(|architecture| ("arch", architecture.to_owned())));
    Some(Listed {
        kind: PackageKind::Alpine,
        name: field("P")?.to_owned(),
        version: field("V")?.to_owned(),
        qualifiers,
        license: field("L").map(|license| License::Name(license.to_owned())),
    })
}
