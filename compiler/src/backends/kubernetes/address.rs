//! How pods find each other, and how a pod gets its own index.

use jobc_schema::plan::{Piece, Reference, RolePlan, Text};
use jobc_schema::shell::quote;

use crate::backend::Address;
use crate::backend::address::fill;

use super::cluster::Cluster;
use super::shape::Shape;

/// The variable that holds the instance's number in every pod.
pub(super) const INDEX: &str = "JOBC_INDEX";
/// The variable with the pod's own name, from which addresses in a LeaderWorkerSet are built.
pub(super) const POD: &str = "JOBC_POD";
/// The variable with the number of the pod's group, where a LeaderWorkerSet has several.
pub(super) const GROUP: &str = "JOBC_GROUP";

/// What puts the index of the instance into a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expander {
    /// The kubelet, which expands `$(NAME)` in commands, arguments and variables.
    Kubelet,
    /// A POSIX shell, inside double quotes.
    Shell,
}

/// The addresses of a job's pods as one role sees them.
pub(super) struct PodAddress<'a> {
    /// The job and its cluster.
    pub cluster: &'a Cluster<'a>,
    /// The role that reads the text.
    pub role: &'a RolePlan,
    /// What puts the index of the instance into it.
    pub by: Expander,
}

impl Address for PodAddress<'_> {
    fn index(&self) -> String {
        match self.by {
            _ if self.role.instances == 1 => "0".to_owned(),
            Expander::Kubelet => format!("$({INDEX})"),
            Expander::Shell => format!("${{{INDEX}}}"),
        }
    }

    /// The kubelet cannot add: texts with such a placeholder are left to a shell, see [`has_sum`].
    fn rank(&self, offset: u32) -> String {
        match self.by {
            _ if self.role.instances == 1 => offset.to_string(),
            _ if offset == 0 => self.index(),
            _ if is_prefix(offset, self.role) => format!("{}{}", offset / 10, self.index()),
            Expander::Kubelet | Expander::Shell => format!("$(({INDEX} + {offset}))"),
        }
    }

    fn host(&self, role: &str, index: Option<u32>) -> String {
        let name = &self.cluster.job.name;
        if self.cluster.shape == Shape::LeaderWorkerSet {
            return self.host_in_group(role, index);
        }
        let index = index.map_or_else(|| self.index(), |index| index.to_string());
        match self.cluster.shape {
            Shape::MpiJob if self.cluster.part_name(role) == "launcher" => format!("{name}-launcher.{name}"),
            // `rayjob` refuses what needs an address.
            Shape::Pod | Shape::Job | Shape::SharePod | Shape::RayJob => "localhost".to_owned(),
            _ => format!("{}-{index}.{name}", self.cluster.pod_base(role)),
        }
    }

    fn port(&self, role: &str, label: &str, _index: Option<u32>) -> String {
        let port = self.cluster.role(role).and_then(|role| role.port(label));
        port.map_or_else(String::new, |port| port.number.to_string())
    }

    fn instances(&self, role: &str) -> u32 {
        self.cluster.role(role).map_or(0, |role| role.instances)
    }
}

impl PodAddress<'_> {
    /// The address in a LeaderWorkerSet: the leader is `<job>-<group>`, and workers are `<job>-<group>-<i>` from 1.
    fn host_in_group(&self, role: &str, index: Option<u32>) -> String {
        let name = &self.cluster.job.name;
        let roles = &self.cluster.job.roles;
        let is_leader = roles.first().is_some_and(|first| first.name == role);
        let index = match (roles.len(), index) {
            (1, None) if self.role.instances > 1 => None,
            (1, index) => Some(index.unwrap_or(0)),
            (_, _) if is_leader => Some(0),
            (_, None) if self.role.instances > 1 => None,
            (_, index) => Some(index.unwrap_or(0) + 1),
        };
        let group = match (self.cluster.groups(), self.by) {
            (1, _) => "0".to_owned(),
            (_, Expander::Kubelet) => format!("$({GROUP})"),
            (_, Expander::Shell) => format!("${{{GROUP}}}"),
        };
        match (index, self.by) {
            (Some(0), _) => format!("{name}-{group}.{name}"),
            (Some(index), _) => format!("{name}-{group}-{index}.{name}"),
            (None, Expander::Kubelet) => format!("$({POD}).{name}"),
            (None, Expander::Shell) => format!("${{{POD}}}.{name}"),
        }
    }
}

/// Whether a text contains a rank that must be computed, which only a shell can do.
pub(super) fn has_sum(text: &Text, role: &RolePlan) -> bool {
    let is_sum = |offset: u32| offset > 0 && !is_prefix(offset, role);
    role.instances > 1
        && text.references().any(|r| matches!(r, Reference::Rank { offset } if is_sum(*offset)))
}

/// Whether the ranks of a role are its indexes with a common prefix: those of ten instances from 10, 20, 30, ...
fn is_prefix(offset: u32, role: &RolePlan) -> bool {
    offset > 0 && offset.is_multiple_of(10) && role.instances <= 10
}

/// Renders a text where the kubelet expands `$(NAME)`, with everything else that it would read kept as it is.
pub(super) fn render_expanded(text: &Text, at: &PodAddress<'_>) -> String {
    let pieces = text.pieces();
    let mut out = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Literal(literal) => escape_into(literal, i + 1 < pieces.len(), &mut out),
            Piece::Reference(reference) => out.push_str(&fill(reference, at)),
        }
    }
    out
}

/// A lower bound for the length of the rendered text, without rendering a list of 100,000 hosts.
pub(super) fn min_length(text: &Text, at: &PodAddress<'_>) -> usize {
    let hosts = text.references().map(|reference| match reference {
        Reference::Hosts { role, .. } => at.instances(role) as usize * 8,
        _ => 0,
    });
    hosts.sum()
}

/// Renders a text as one word of a POSIX shell.
pub(super) fn render_word(text: &Text, at: &PodAddress<'_>) -> String {
    text.render_with(quote, |reference| format!("\"{}\"", fill(reference, at)))
}

/// Escapes text so that the kubelet's expansion leaves it unchanged.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(text, false, &mut out);
    out
}

/// Doubles each `$` that the kubelet would not leave alone: before `(`, before another `$`, before a placeholder, and
/// before a character outside ASCII, of which its expansion copies the first byte as if it were Latin-1
/// (third_party/forked/golang/expansion of k8s.io/kubernetes).
fn escape_into(text: &str, hole_follows: bool, out: &mut String) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        let read = match chars.peek() {
            Some(&next) => next == '(' || next == '$' || !next.is_ascii(),
            None => hole_follows,
        };
        if c == '$' && read {
            out.push('$');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::escape;

    /// The kubelet's expansion, without any known variables.
    fn expand(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            match rest.chars().next() {
                Some('$') => {
                    out.push('$');
                    rest = &rest[1..];
                }
                Some('(') if rest.contains(')') => out.push_str("<expanded>$"),
                Some(c) if !c.is_ascii() => out.push_str("<broken>$"),
                _ => out.push('$'),
            }
        }
        out + rest
    }

    #[test]
    fn what_a_user_wrote_survives_the_kubelet() {
        let check = |text: &str, escaped: &str| {
            assert_eq!(escape(text), escaped);
            assert_eq!(expand(&escape(text)), text);
        };
        check("echo $HOME ${x}", "echo $HOME ${x}");
        check("x=$(date)", "x=$$(date)");
        check("kill $$", "kill $$$");
        check("$$(a)", "$$$$(a)");
        check("$(( 1 + 1 ))", "$$(( 1 + 1 ))");
        check("價$價", "價$$價");
        check("a$", "a$");
    }
}
