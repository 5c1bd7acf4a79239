//! What a row of the table says of a kind.

use super::super::rows::Table;

/// A kind of object that runs pods.
#[derive(Debug)]
pub(in super::super) struct Kind {
    /// Its name, as in `kind`.
    pub(in super::super) name: &'static str,
    /// Its API groups: what precedes the version in `apiVersion`; empty for the core.
    pub(in super::super) groups: &'static [&'static str],
    /// Its fields besides `metadata` and the groups of pods.
    pub(in super::super) fields: &'static [Table],
    /// Where its groups of pods are.
    pub(in super::super) places: &'static [PodGroups],
    /// Names of groups with a part in a framework: the name in the source, that of the role, and the part.
    pub(in super::super) parts: &'static [(&'static str, &'static str, &'static str)],
    /// The framework that it stands for.
    pub(in super::super) framework: Stands,
    /// Host names of its pods: `{job}` is its name, `{group}` that of the group, `{i}` a number, `{0}` zero.
    pub(in super::super) hosts: &'static [&'static str],
    /// Variables that its controller sets, with those of jobc.
    pub(in super::super) variables: &'static [(&'static str, &'static str)],
    /// `kubernetes.kind` of a target that builds it again; absent where `auto` does, or where jobc builds another kind.
    pub(in super::super) builds: Option<&'static str>,
    /// What differs where jobc builds it; empty if nothing does.
    pub(in super::super) becomes: &'static str,
}

/// The framework that a kind stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Stands {
    /// None.
    None,
    /// PyTorch: `torchrun` where a command starts it, else plain processes.
    Pytorch,
    /// That of `distributed.framework`, with the parts of the groups.
    Parts(&'static str),
    /// That of `distributed.framework`, with the groups in their order.
    Ordered(&'static str),
}

/// A place of groups of pods in an object.
#[derive(Debug)]
pub(in super::super) struct PodGroups {
    /// Its path. `.*` at the end means each entry of a map, and `[]` each item of a list.
    pub(in super::super) at: &'static str,
    /// How a group is called.
    pub(in super::super) name: Name,
    /// The path of the pod template below the group; empty if it is the group itself.
    pub(in super::super) template: &'static str,
    /// The fields of a group.
    pub(in super::super) fields: &'static [Table],
    /// Maps of metadata below a group, besides that of the template.
    pub(in super::super) metadata: &'static [&'static str],
}

/// How a group of pods is called.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Name {
    /// By the key of its entry.
    Key,
    /// By a field.
    Field(&'static str),
    /// Always so.
    Fixed(&'static str),
}

impl Kind {
    /// The kind as `apiVersion` and `kind` name it.
    pub(in super::super) fn of(
        kinds: &[&'static Self],
        api_version: &str,
        kind: &str,
    ) -> Option<&'static Self> {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        kinds.iter().copied().find(|known| known.name == kind && known.groups.contains(&group))
    }

    /// Whether Volcano runs it.
    pub(in super::super) fn is_of_volcano(&self) -> bool {
        self.groups == ["batch.volcano.sh"]
    }

    /// Its name with the API group, if another kind has the same name.
    pub(in super::super) fn title(&self) -> String {
        if self.is_of_volcano() { format!("Volcano {}", self.name) } else { self.name.to_owned() }
    }
}
