//! How a target fills in the placeholders of a text: addresses, ports, the index of the instance.

use jobc_schema::plan::{Reference, Text};

/// The values of the placeholders of a text at a place.
pub trait Address {
    /// The number of the instance that reads the text, or an expression that expands to it there.
    fn index(&self) -> String;

    /// The rank: [`Address::index`] plus an offset.
    fn rank(&self, offset: u32) -> String;

    /// The address of an instance; of the one that reads the text where `index` is absent.
    fn host(&self, role: &str, index: Option<u32>) -> String;

    /// The number of a port of an instance.
    fn port(&self, role: &str, label: &str, index: Option<u32>) -> String;

    /// The numbers of consecutive ports of an instance, with commas between.
    fn ports(&self, role: &str, label: &str, index: Option<u32>, count: u32) -> String {
        let first = self.port(role, label, index);
        match first.parse::<u32>() {
            Ok(first) => (first..first + count).map(|n| n.to_string()).collect::<Vec<_>>().join(","),
            Err(_) => first,
        }
    }

    /// How many instances a role has.
    fn instances(&self, role: &str) -> u32;
}

/// Fills one placeholder.
pub fn fill(reference: &Reference, at: &dyn Address) -> String {
    match reference {
        Reference::Index {} => at.index(),
        Reference::Rank { offset } => at.rank(*offset),
        Reference::Host { role, index } => at.host(role, *index),
        Reference::Port { role, label, index } => at.port(role, label, *index),
        Reference::Ports { role, label, index, count } => at.ports(role, label, *index, *count),
        Reference::Hosts { role, label, before, after, separator } => {
            let mut list = String::new();
            for index in 0..at.instances(role) {
                if index > 0 {
                    list.push_str(separator);
                }
                list.push_str(before);
                list.push_str(&at.host(role, Some(index)));
                if let Some(label) = label {
                    list.push(':');
                    list.push_str(&at.port(role, label, Some(index)));
                }
                list.push_str(after);
            }
            list
        }
    }
}

/// Renders a text for a place.
pub fn render(text: &Text, at: &dyn Address) -> String {
    text.render(|reference| fill(reference, at))
}
