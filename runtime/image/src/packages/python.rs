//! The metadata of an installed Python package (core metadata specifications; PEP 376, PEP 639).

use super::package::{License, Listed, PackageKind};

/// A longer license is its text, not its name.
const MAX_LICENSE_LENGTH: usize = 100;

/// The package of a METADATA or PKG-INFO file.
pub(super) fn package(text: &str) -> Option<Listed> {
    // The description comes behind an empty line.
    let header = || text.lines().take_while(|line| !line.trim().is_empty());
    let field = |name: &str| {
        header().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        })
    };
    let expression = field("License-Expression").map(License::Expression);
    let license = expression.or_else(|| {
        let is_name = |text: &String| text.len() <= MAX_LICENSE_LENGTH && text != "UNKNOWN";
        field("License").filter(is_name).map(License::Name)
    });
    Some(Listed {
        kind: PackageKind::Python,
        name: field("Name")?,
        version: field("Version")?,
        qualifiers: vec![],
        license,
    })
}
