//! Rights on resources of a cluster.

/// A rule of the Role.
pub(crate) struct Rule {
    pub(crate) groups: Words,
    pub(crate) resources: Words,
    pub(crate) verbs: Words,
    pub(crate) needed_for: &'static str,
    pub(crate) is_optional: bool,
}

/// Names of groups, resources or verbs.
type Words = &'static [&'static str];

impl Rule {
    /// A right without which jobs cannot be submitted and followed.
    pub(crate) const fn needed(
        groups: Words,
        resources: Words,
        verbs: Words,
        needed_for: &'static str,
    ) -> Self {
        Self { groups, resources, verbs, needed_for, is_optional: false }
    }

    /// A right that jobs do without.
    pub(crate) const fn optional(
        groups: Words,
        resources: Words,
        verbs: Words,
        needed_for: &'static str,
    ) -> Self {
        Self { is_optional: true, ..Self::needed(groups, resources, verbs, needed_for) }
    }

    /// Its resources with their groups, which are pairs where there are several groups.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (groups, resources) = (self.groups, self.resources);
        let group = move |position: usize| groups[if groups.len() > 1 { position } else { 0 }];
        resources.iter().enumerate().map(move |(position, resource)| (group(position), *resource))
    }
}
