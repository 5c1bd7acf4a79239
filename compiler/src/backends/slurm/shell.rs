//! Text in bash: the user's own text in single quotes, placeholders as expansions next to it.

use jobc_schema::plan::{JobPlan, Piece, Reference, RolePlan, Text};
use jobc_schema::shell::quote;

use super::ports::Ports;

/// A role as part of a variable's name.
pub(super) fn variable(role: &str) -> String {
    role.replace('-', "_")
}

/// What fills placeholders: the arrays and numbers of `addresses.sh`, and `jobc_index`.
pub(super) struct Filling<'a> {
    pub job: &'a JobPlan,
    pub ports: &'a Ports,
    pub role: &'a RolePlan,
}

impl Filling<'_> {
    /// Text as one word.
    pub(super) fn word(&self, text: &Text) -> String {
        if text.pieces().is_empty() {
            return "''".to_owned();
        }
        let piece = |piece: &Piece| match piece {
            Piece::Literal(text) => quote(text),
            Piece::Reference(reference) => self.hole(reference),
        };
        text.pieces().iter().map(piece).collect()
    }

    /// Texts as words with spaces between.
    pub(super) fn words(&self, texts: &[Text]) -> String {
        texts.iter().map(|text| self.word(text)).collect::<Vec<_>>().join(" ")
    }

    fn hole(&self, reference: &Reference) -> String {
        match reference {
            Reference::Index {} | Reference::Rank { offset: 0 } => "\"$jobc_index\"".to_owned(),
            Reference::Rank { offset } => format!("\"$((jobc_index + {offset}))\""),
            Reference::Host { role, index } => {
                format!("\"${{jobc_hosts_{}[{}]-}}\"", variable(role), instance(*index))
            }
            Reference::Port { role, label, index } => self.port(role, label, *index, 1),
            Reference::Ports { role, label, index, count } => self.port(role, label, *index, *count),
            Reference::Hosts { role, label, before, after, separator } => {
                let (first, step) = match label {
                    Some(label) => self.port_and_step(role, label),
                    None => ("''".to_owned(), 0),
                };
                let call = format!(
                    "jobc_list {} {first} {step} {} {} {}",
                    variable(role),
                    quote(before),
                    quote(after),
                    quote(separator)
                );
                // `$(…)` drops line breaks at the end.
                let breaks = after.len() - after.trim_end_matches('\n').len();
                let tail = if breaks == 0 { String::new() } else { format!("$'{}'", "\\n".repeat(breaks)) };
                format!("\"$({call})\"{tail}")
            }
        }
    }

    /// The number of a port, or a list of several.
    fn port(&self, role: &str, label: &str, index: Option<u32>, count: u32) -> String {
        let (first, step) = self.port_and_step(role, label);
        let number = match (step, index) {
            (0, _) | (_, Some(0)) => first,
            (step, Some(index)) => format!("{first} + {}", step * index),
            (step, None) => format!("{first} + {step} * jobc_index"),
        };
        match (count, number.parse::<u32>()) {
            (1, Ok(number)) => number.to_string(),
            (1, Err(_)) => format!("\"$(({number}))\""),
            _ => format!("\"$(jobc_numbers $(({number})) {count})\""),
        }
    }

    /// The number of the first instance's port, and how far apart those of two instances are.
    fn port_and_step(&self, role: &str, label: &str) -> (String, u32) {
        let port = self.job.role(role).unwrap_or(self.role).port(label);
        match (port, self.ports.offset(role, label)) {
            (Some(port), Some(0)) => ("jobc_port".to_owned(), port.count),
            (Some(port), Some(offset)) => (format!("jobc_port+{offset}"), port.count),
            (Some(port), None) => (port.number.to_string(), 0),
            (None, _) => ("0".to_owned(), 0),
        }
    }
}

fn instance(index: Option<u32>) -> String {
    index.map_or("jobc_index".to_owned(), |index| index.to_string())
}
