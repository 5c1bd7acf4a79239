//! Rights on resources of a cluster.

/// A rule of the Role.
pub(crate) struct Rule {
    pub(crate) groups: &'static [&'static str],
    pub(crate) resources: &'static [&'static str],
    pub(crate) verbs: &'static [&'static str],
    pub(crate) needed_for: &'static str,
    pub(crate) is_optional: bool,
}
