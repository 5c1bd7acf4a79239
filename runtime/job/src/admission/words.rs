//! The counted resources, with their names in messages.

use jobc_schema::Bytes;

use super::capacity::Capacity;
use super::ledger::Entry;
use crate::record::Claim;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Gpus,
    Cpus,
    Memory,
    Disk,
}

impl Measure {
    /// Resources that are only numbers, scarcest first, which is the order of reports. GPUs are placed one by one.
    pub(super) const COUNTED: [Self; 3] = [Self::Cpus, Self::Memory, Self::Disk];

    pub(super) fn of(self, claim: &Claim) -> u64 {
        match self {
            Self::Gpus => claim.gpus,
            Self::Cpus => claim.cpu_millis,
            Self::Memory => claim.memory_bytes,
            Self::Disk => claim.disk_bytes,
        }
    }

    pub(super) fn of_machine(self, capacity: &Capacity) -> u64 {
        match self {
            Self::Gpus => capacity.gpus.devices().len() as u64,
            Self::Cpus => capacity.cpu_millis,
            Self::Memory => capacity.memory_bytes,
            Self::Disk => capacity.disk_bytes,
        }
    }

    /// What to ask for in place of too much.
    pub(super) fn fewer(self) -> &'static str {
        match self {
            Self::Gpus => "fewer GPUs",
            Self::Cpus => "fewer CPUs",
            Self::Memory => "less memory",
            Self::Disk => "less disk",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Gpus => "GPUs",
            Self::Cpus => "CPUs",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    /// `5 GPUs`, `1 CPU`, `2 GiB of memory`.
    pub(super) fn shown(self, amount: u64) -> String {
        let number = self.number(amount);
        match self {
            Self::Gpus | Self::Cpus => {
                let word = self.word();
                format!("{number} {}", if number == "1" { &word[..3] } else { word })
            }
            Self::Memory | Self::Disk => format!("{number} of {}", self.word()),
        }
    }

    /// `5`, `0.5`, `2 GiB`.
    pub(super) fn number(self, amount: u64) -> String {
        match self {
            Self::Gpus => amount.to_string(),
            Self::Cpus if amount.is_multiple_of(1000) => (amount / 1000).to_string(),
            Self::Cpus => format!("{}.{:03}", amount / 1000, amount % 1000).trim_end_matches('0').to_owned(),
            Self::Memory | Self::Disk => Bytes(amount).amount().to_string(),
        }
    }

    /// A total with the verb behind it: `8 are`, `16 GiB is`.
    pub(super) fn are(self, total: u64) -> String {
        let many = matches!(self, Self::Gpus | Self::Cpus);
        format!("{} {}", self.number(total), if many { "are" } else { "is" })
    }
}

/// The owner of a claim: `train.1`, with its user if that is another one.
pub(super) fn owner(entry: &Entry) -> String {
    if entry.uid == rustix::process::geteuid().as_raw() {
        format!("`{}`", entry.id)
    } else {
        format!("`{}` of user {}", entry.id, entry.uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_in_words() {
        let told = [
            Measure::Gpus.shown(1),
            Measure::Gpus.shown(5),
            Measure::Cpus.shown(1000),
            Measure::Cpus.shown(500),
            Measure::Cpus.shown(12_250),
            Measure::Memory.shown(2 << 30),
            Measure::Memory.shown((3 << 30) / 2),
            Measure::Memory.shown(1_000_000),
            Measure::Disk.shown(12),
            Measure::Disk.shown(u64::MAX),
        ];
        assert_eq!(
            told,
            [
                "1 GPU",
                "5 GPUs",
                "1 CPU",
                "0.5 CPUs",
                "12.25 CPUs",
                "2 GiB of memory",
                "1.5 GiB of memory",
                "976.5 KiB of memory",
                "12 bytes of disk",
                "16777215.9 TiB of disk",
            ]
        );
    }
}
