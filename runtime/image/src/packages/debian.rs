//! dpkg's list of packages (dpkg(1), /var/lib/dpkg/status; deb822(5)).

use super::package::{Listed, PackageKind};

/// The packages that are installed. Entries of packages that were removed stay in the file.
pub(super) fn packages(text: &str) -> Vec<Listed> {
    paragraphs(text).filter_map(package).collect()
}

/// The parts between empty lines.
pub(super) fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").filter(|part| !part.trim().is_empty())
}

fn package(paragraph: &str) -> Option<Listed> {
    let field = |name: &str| {
        paragraph.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            (found == name).then(|| value.trim()).filter(|value| !value.is_empty())
        })
    };
    // Files of single packages have no state.
    let is_installed = field("Status").is_none_or(|state| state.ends_with(" installed"));
    let (name, version) = (field("Package")?, field("Version")?);
    let mut qualifiers = vec![];
    qualifiers.extend(field("Architecture").map(|architecture| ("arch", architecture.to_owned())));
    is_installed.then(|| Listed {
        kind: PackageKind::Debian,
        name: name.to_owned(),
        version: version.to_owned(),
        qualifiers,
        license: None,
    })
}
