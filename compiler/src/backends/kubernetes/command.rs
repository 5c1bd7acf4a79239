//! The command of a container: `command` and `args`, with a shell if a rank must be computed.

use std::fmt::Write as _;

use jobc_schema::plan::{RolePlan, Text};
use jobc_schema::shell::quote;

use crate::backend::command::{argv, keeps_entrypoint};
use crate::diagnostic::{Diagnostic, Sink, codes};

use super::address::{Expander, PodAddress, escape, has_sum, render_expanded, render_word};

use super::cluster::Cluster;
use super::signals;

/// A container's `command` and `args`.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Replaces the image's ENTRYPOINT.
    pub command: Option<Vec<String>>,
    /// Replaces the image's CMD.
    pub args: Option<Vec<String>>,
}

/// The command of a role; `sums` are variables that only a shell can compute, exported before it.
pub(super) fn command(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    sums: &[(&str, &Text)],
    sink: &mut Sink,
) -> Command {
    let kubelet = PodAddress { cluster, role, by: Expander::Kubelet };
    let own = argv(cluster.job, role);
    let sum_inside = own.iter().flatten().any(|text| has_sum(text, role));
    let keeps = keeps_entrypoint(role);
    let Some(own) = own.filter(|_| !(keeps && (sum_inside || !sums.is_empty()))) else {
        if !sums.is_empty() || sum_inside {
            sink.push(no_shell(role, sums));
        }
        return Command::default();
    };
    if sums.is_empty() && !sum_inside {
        let rendered = own.iter().map(|text| render_expanded(text, &kubelet)).collect();
        let rendered = signals::reachable(role, rendered);
        return if keeps {
            Command { command: None, args: Some(rendered) }
        } else {
            Command { command: Some(rendered), args: None }
        };
    }
    let shell = PodAddress { cluster, role, by: Expander::Shell };
    let mut script = String::new();
    for (name, text) in sums {
        let _ = writeln!(script, "export {name}={}", render_word(text, &shell));
    }
    let mut command = vec!["/bin/sh".to_owned(), "-euc".to_owned()];
    if sum_inside {
        let before = signals::before(role).into_iter().map(|word| quote(&word));
        let words: Vec<String> = before.chain(own.iter().map(|text| render_word(text, &shell))).collect();
        let _ = writeln!(script, "exec {}", words.join(" "));
        command.push(escape(&script));
    } else {
        script.push_str("exec \"$@\"\n");
        command.extend([escape(&script), "jobc".to_owned()]);
        let own = own.iter().map(|text| render_expanded(text, &kubelet)).collect();
        command.extend(signals::reachable(role, own));
    }
    Command { command: Some(command), args: None }
}

/// The image's own command would have to be known to put a shell before it.
fn no_shell(role: &RolePlan, sums: &[(&str, &Text)]) -> Diagnostic {
    let names: Vec<String> = sums.iter().map(|(name, _)| format!("`{name}`")).collect();
    let what = if names.is_empty() { "the rank".to_owned() } else { names.join(", ") };
    Diagnostic::error(
        codes::KUBERNETES_RANK,
        format!("role `{}` runs the command of the image, so {what} cannot be computed", role.name),
    )
    .at_key(&role.at(), "has ranks that do not begin at 0")
    .note(
        "Kubernetes provides the pod index but cannot add to it; a shell before the command computes the sum",
    )
    .note(format!(
        "write the command as `run` in role `{}`, or list the role first in `distributed.roles`",
        role.name
    ))
}

/// The command of a probe, which the kubelet expands with literal variables only; the instance's number needs a shell.
pub(super) fn probe_command(cluster: &Cluster<'_>, role: &RolePlan, argv: &[Text]) -> Vec<String> {
    if role.instances == 1 || argv.iter().all(|text| text.references().next().is_none()) {
        let at = PodAddress { cluster, role, by: Expander::Kubelet };
        return argv.iter().map(|text| render_expanded(text, &at)).collect();
    }
    let at = PodAddress { cluster, role, by: Expander::Shell };
    let words: Vec<String> = argv.iter().map(|text| render_word(text, &at)).collect();
    vec!["/bin/sh".to_owned(), "-euc".to_owned(), escape(&format!("exec {}", words.join(" ")))]
}
