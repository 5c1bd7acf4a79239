//! The distribution of an image (os-release(5)).

/// A distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Its identifier: `debian`, `alpine`.
    pub id: String,
    /// Its version: `12`, `3.20.3`.
    pub version: Option<String>,
    /// Its name for people.
    pub name: Option<String>,
}

/// The distribution of a file.
pub(super) fn distribution(text: &str) -> Option<Distribution> {
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let value = line.trim().strip_prefix(name)?.strip_prefix('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            (!value.is_empty()).then(|| value.to_owned())
        })
    };
    Some(Distribution { id: field("ID")?, version: field("VERSION_ID"), name: field("PRETTY_NAME") })
}
