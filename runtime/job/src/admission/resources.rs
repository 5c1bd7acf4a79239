//! The counted resources, with their names in messages.

use jobc_schema::Bytes;

use super::capacity::Capacity;
use crate::record::Claim;

/// The type of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Gpus,
    Cpus,
    Memory,
    Disk,
}

impl Resource {
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

    pub(super) fn of_host(self, capacity: &Capacity) -> u64 {
        match self {
            Self::Gpus => capacity.gpus.devices().len() as u64,
            Self::Cpus => capacity.cpu_millis,
            Self::Memory => capacity.memory_bytes,
            Self::Disk => capacity.disk_bytes,
        }
    }

    /// Advice for a request that is too large.
    pub(super) fn fewer(self) -> &'static str {
        match self {
            Self::Gpus => "fewer GPUs",
            Self::Cpus => "fewer CPUs",
            Self::Memory => "less memory",
            Self::Disk => "less disk",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gpus => "GPUs",
            Self::Cpus => "CPUs",
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    /// `5 GPUs`, `1 CPU`, `2 GiB of memory`.
    pub(super) fn format_amount(self, amount: u64) -> String {
        let number = self.format_number(amount);
        match self {
            Self::Gpus | Self::Cpus => {
                let word = self.name();
                format!("{number} {}", if number == "1" { &word[..3] } else { word })
            }
            Self::Memory | Self::Disk => format!("{number} of {}", self.name()),
        }
    }

    /// `5`, `0.5`, `2 GiB`.
    pub(super) fn format_number(self, amount: u64) -> String {
        match self {
            Self::Gpus => amount.to_string(),
            Self::Cpus if amount.is_multiple_of(1000) => (amount / 1000).to_string(),
            Self::Cpus => format!("{}.{:03}", amount / 1000, amount % 1000).trim_end_matches('0').to_owned(),
            Self::Memory | Self::Disk => Bytes(amount).amount().to_string(),
        }
    }

    /// A total with the verb behind it: `8 are`, `16 GiB is`.
    pub(super) fn format_total(self, total: u64) -> String {
        let many = matches!(self, Self::Gpus | Self::Cpus);
        format!("{} {}", self.format_number(total), if many { "are" } else { "is" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_formatted() {
        let texts = [
            Resource::Gpus.format_amount(1),
            Resource::Gpus.format_amount(5),
            Resource::Cpus.format_amount(1000),
            Resource::Cpus.format_amount(500),
            Resource::Cpus.format_amount(12_250),
            Resource::Memory.format_amount(2 << 30),
            Resource::Memory.format_amount((3 << 30) / 2),
            Resource::Memory.format_amount(1_000_000),
            Resource::Disk.format_amount(12),
            Resource::Disk.format_amount(u64::MAX),
        ];
        assert_eq!(
            texts,
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
