//! Text in a direct script: what the batch shell expands before `srun`, and what the shell of a task does.
//!
//! A script has variables of Slurm where the scripts of tasks have those of jobc. One instance needs no index, and ports are
//! numbers that follow from the job's own.

use std::fmt::Write as _;

use jobc_schema::plan::{Piece, Reference, RolePlan, Text};
use jobc_schema::shell::quote;

use super::parts::Parts;
use super::ports;

/// The nodes of the job, as an array.
pub(super) const NODES: &str = "mapfile -t nodes < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")";

/// Who expands a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shell {
    /// The batch script, once for all tasks.
    Batch,
    /// The shell of a task.
    Task,
}

/// Renders the texts of a role.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    pub(super) parts: &'a Parts<'a>,
    pub(super) role: &'a RolePlan,
}

impl Texts<'_> {
    /// A text as one word; nothing if that shell does not know a value.
    pub(super) fn word(self, text: &Text, shell: Shell) -> Option<String> {
        if text.pieces().is_empty() {
            return Some("''".to_owned());
        }
        let piece = |piece: &Piece| match piece {
            Piece::Literal(text) => Some(quote(text)),
            Piece::Reference(reference) => {
                let value = self.value(reference, shell)?;
                Some(if value.starts_with('$') { format!("\"{value}\"") } else { quote(&value) })
            }
        };
        text.pieces().iter().map(piece).collect()
    }

    /// What a placeholder is: a number, or an expansion without quotes.
    pub(super) fn value(self, reference: &Reference, shell: Shell) -> Option<String> {
        let instances = self.role.instances;
        let own = |index: &Option<u32>| if instances == 1 { Some(0) } else { *index };
        let is_own = |role: &String| *role == self.role.name;
        match reference {
            Reference::Index {} if instances == 1 => Some("0".to_owned()),
            Reference::Rank { offset } if instances == 1 => Some(offset.to_string()),
            Reference::Index {} | Reference::Rank { offset: 0 } if shell == Shell::Task => {
                Some("$SLURM_PROCID".to_owned())
            }
            Reference::Rank { offset } if shell == Shell::Task => {
                Some(format!("$((SLURM_PROCID + {offset}))"))
            }
            Reference::Host { role, index } if is_own(role) => match (own(index), shell) {
                (Some(0), _) if instances == 1 => Some("$SLURMD_NODENAME".to_owned()),
                (Some(index), Shell::Batch) => Some(format!("${{nodes[{index}]}}")),
                (None, Shell::Task) => Some("$SLURMD_NODENAME".to_owned()),
                _ => None,
            },
            Reference::Port { role, label, index } if is_own(role) => self.port(label, own(index), shell),
            Reference::Ports { role, label, index, count: 1 } if is_own(role) => {
                self.port(label, own(index), shell)
            }
            Reference::Hosts { role, label: None, before, after, separator }
                if is_own(role) && shell == Shell::Batch && before.is_empty() && after.is_empty() =>
            {
                match (instances, separator.as_str()) {
                    (1, _) => Some("$SLURMD_NODENAME".to_owned()),
                    (_, "," | " ") => Some(format!("$(IFS='{separator}'; echo \"${{nodes[*]}}\")")),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The number of a port.
    fn port(self, label: &str, index: Option<u32>, shell: Shell) -> Option<String> {
        let port = self.role.port(label)?;
        let Some(offset) = self.parts.ports.offset(&self.role.name, label) else {
            return Some(port.number.to_string());
        };
        let sum = match index {
            Some(index) => port_sum(self.parts, offset + index * port.count),
            None if shell == Shell::Batch => return None,
            None if port.count > 1 => {
                format!("{} + SLURM_PROCID * {}", port_sum(self.parts, offset), port.count)
            }
            None => format!("{} + SLURM_PROCID", port_sum(self.parts, offset)),
        };
        Some(format!("$(({sum}))"))
    }
}

/// The number of one of the job's ports, which follows from the number of the Slurm job.
pub(super) fn port_sum(parts: &Parts<'_>, offset: u32) -> String {
    let total = parts.ports.total;
    let mut sum = format!("{} + SLURM_JOB_ID % {}", ports::FIRST, ports::COUNT / total);
    for (sign, number) in [('*', total), ('+', offset)] {
        if number > u32::from(sign == '*') {
            let _ = write!(sum, " {sign} {number}");
        }
    }
    sum
}

/// Whether the batch script needs the array of nodes for a word.
pub(super) fn uses_nodes(text: &str) -> bool {
    text.contains("{nodes[")
}
