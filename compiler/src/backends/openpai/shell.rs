//! Text in the shell script that OpenPAI runs.
//!
//! The user's text is in single quotes, what OpenPAI fills in is in double quotes next to it, so that a value arrives
//! as it would on a target that knows it beforehand, whatever quotes the user's own text has around it.

use jobc_schema::plan::{JobPlan, Piece, Reference, RolePlan, Text};
use jobc_schema::shell;

use super::names;

/// The variable with the instance's own number.
pub(super) const INDEX: &str = "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX";

/// Lists the addresses of a role's instances; bash, so that a list of any length takes one line of the job.
pub(super) const HOSTS: &str = r#"jobc_hosts() { # ROLE COUNT LABEL BEFORE AFTER SEPARATOR
  local i host port list=
  for ((i = 0; i < $2; i++)); do
    host="PAI_HOST_IP_$1_$i" port="PAI_PORT_LIST_$1_${i}_$3"
    [ "$i" = 0 ] || list+=$6
    list+=$4${!host}
    [ -z "$3" ] || list+=:${!port%%,*}
    list+=$5
  done
  printf %s "$list"
}
"#;

/// The same with the names of OpenPAI's ssh setup.
pub(super) const ALIASES: &str = r#"jobc_aliases() { # ROLE COUNT BEFORE AFTER SEPARATOR
  local i list=
  for ((i = 0; i < $2; i++)); do
    [ "$i" = 0 ] || list+=$5
    list+=$3$1-$i$4
  done
  printf %s "$list"
}
"#;

/// How addresses are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hosts {
    /// IP addresses.
    Addresses,
    /// The host aliases of the ssh plugin, `ROLE-INDEX`.
    Aliases,
}

/// Literal text as one word of the shell.
///
/// `<%` begins a template that OpenPAI fills in, so it is never written as such: `'<''%'` is the same to a shell.
pub(super) fn literal(text: &str) -> String {
    shell::quote(text).replace("<%", "<''%")
}

/// Text as one word of the shell.
pub(super) fn word(job: &JobPlan, role: &RolePlan, text: &Text, hosts: Hosts) -> String {
    if text.pieces().is_empty() {
        return "''".to_owned();
    }
    let mut out = String::new();
    let mut last_ends_open = false;
    for piece in text.pieces() {
        match piece {
            Piece::Literal(text) => {
                // `<` and `%` on both sides of a boundary would still be adjacent.
                if last_ends_open && text.starts_with('%') {
                    out.push_str("''");
                }
                last_ends_open = text.ends_with('<');
                out.push_str(&literal(text));
            }
            Piece::Reference(reference) => {
                last_ends_open = false;
                out.push_str(&hole(job, role, reference, hosts));
            }
        }
    }
    out
}

/// Whether a text can be in the script unchanged: it has no placeholders and begins no template.
pub(super) fn is_verbatim(text: &Text) -> bool {
    text.as_literal().is_some_and(|text| !text.contains("<%"))
}

/// What fills a placeholder.
fn hole(job: &JobPlan, role: &RolePlan, reference: &Reference, hosts: Hosts) -> String {
    match reference {
        Reference::Index {} | Reference::Rank { offset: 0 } => format!("\"${INDEX}\""),
        Reference::Rank { offset } => format!("\"$(({INDEX} + {offset}))\""),
        Reference::Host { role: of, index } => match (hosts, index) {
            (Hosts::Aliases, Some(index)) => format!("{}-{index}", names::role(of)),
            (Hosts::Aliases, None) => format!("{}-\"${INDEX}\"", names::role(of)),
            (Hosts::Addresses, Some(index)) => format!("\"$PAI_HOST_IP_{}_{index}\"", names::role(of)),
            (Hosts::Addresses, None) => "\"$PAI_CURRENT_CONTAINER_IP\"".to_owned(),
        },
        Reference::Port { role: of, label, index } => {
            let called = names::label(job, of, label);
            let variable = match index {
                Some(index) => format!("PAI_PORT_LIST_{}_{index}_{called}", names::role(of)),
                None => format!("PAI_CONTAINER_HOST_{called}_PORT_LIST"),
            };
            let count = job.role(of).unwrap_or(role).port(label).map_or(1, |port| port.count);
            // Several ports are a list, of which a placeholder means the first.
            if count > 1 { format!("\"${{{variable}%%,*}}\"") } else { format!("\"${variable}\"") }
        }
        Reference::Ports { role: of, label, index, .. } => {
            let called = names::label(job, of, label);
            match index {
                Some(index) => format!("\"$PAI_PORT_LIST_{}_{index}_{called}\"", names::role(of)),
                None => format!("\"$PAI_CONTAINER_HOST_{called}_PORT_LIST\""),
            }
        }
        Reference::Hosts { role: of, label, before, after, separator } => {
            let count = job.role(of).map_or(0, |role| role.instances);
            let called = names::role(of);
            let (before, after_word, separator) = (literal(before), literal(after), literal(separator));
            let call = match hosts {
                Hosts::Aliases => format!("jobc_aliases {called} {count} {before} {after_word} {separator}"),
                Hosts::Addresses => {
                    let label = literal(
                        &label.as_deref().map(|label| names::label(job, of, label)).unwrap_or_default(),
                    );
                    format!("jobc_hosts {called} {count} {label} {before} {after_word} {separator}")
                }
            };
            // `$(…)` drops line breaks at the end.
            let breaks = after.len() - after.trim_end_matches('\n').len();
            let tail = if breaks == 0 { String::new() } else { format!("$'{}'", "\\n".repeat(breaks)) };
            format!("\"$({call})\"{tail}")
        }
    }
}
