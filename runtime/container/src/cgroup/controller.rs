//! The kernel's controllers, by the names they have in either version.

/// A controller of the kernel's (cgroups(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// CPU time.
    Cpu,
    /// The count of used CPU time; of cgroup v1 only, part of [`Self::Cpu`] later.
    Cpuacct,
    /// Which CPUs and memory nodes.
    Cpuset,
    /// Memory and swap.
    Memory,
    /// Processes and threads.
    Pids,
    /// Disk traffic: `blkio` in cgroup v1, `io` in cgroup v2.
    Io,
    /// Huge pages.
    Hugetlb,
    /// RDMA handles and objects.
    Rdma,
    /// Countable things of some hosts.
    Misc,
    /// Which devices may be opened; in cgroup v2 a program attached to a group.
    Devices,
    /// Halting of all processes; in cgroup v2 a file of every group.
    Freezer,
    /// The class of network packets; of cgroup v1 only.
    NetCls,
    /// The priority of network packets; of cgroup v1 only.
    NetPrio,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Cpu,
        Self::Cpuacct,
        Self::Cpuset,
        Self::Memory,
        Self::Pids,
        Self::Io,
        Self::Hugetlb,
        Self::Rdma,
        Self::Misc,
        Self::Devices,
        Self::Freezer,
        Self::NetCls,
        Self::NetPrio,
    ];

    /// The controller of a name of either version; nothing for one that this program does not use.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name || (name == "blkio" && *one == Self::Io))
    }

    /// Its name, which for disk traffic is that of cgroup v2.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuacct => "cpuacct",
            Self::Cpuset => "cpuset",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Io => "io",
            Self::Hugetlb => "hugetlb",
            Self::Rdma => "rdma",
            Self::Misc => "misc",
            Self::Devices => "devices",
            Self::Freezer => "freezer",
            Self::NetCls => "net_cls",
            Self::NetPrio => "net_prio",
        }
    }

    /// Whether every cgroup v2 group has it, without being enabled in the group above.
    pub fn is_always_enabled(self) -> bool {
        matches!(self, Self::Devices | Self::Freezer | Self::Cpuacct)
    }
}
