//! Rights on resources of a cluster.

/// A rule of the Role.
pub(crate) struct Rule {
    pub(crate) groups: &'static [&'static str],
    pub(crate) resources: &'static [&'static str],
    pub(crate) verbs: &'static [&'static str],
    pub(crate) needed_for: &'static str,
    pub(crate) is_optional: bool,
}

impl Rule {
    /// Its resources with their groups, which are pairs where there are several groups.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (groups, resources) = (self.groups, self.resources);
        let group = move |position: usize| groups[if groups.len() > 1 { position } else { 0 }];
        resources.iter().enumerate().map(move |(position, resource)| (group(position), *resource))
    }
}
