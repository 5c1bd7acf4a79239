//! Resource limits of the process (getrlimit(2)).

use std::collections::HashSet;

use linux_raw_sys::general as kernel;
use oci_spec::runtime::{PosixRlimit, PosixRlimitType};

use jobc_sys::error::{Error, Kind, Result};

/// One limit: what prlimit(2) takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name in config.json, such as `RLIMIT_NOFILE`.
    pub name: &'static str,
    /// Its number, `RLIMIT_*` of the kernel.
    pub resource: u32,
    /// The effective limit, in the resource's own unit; 18446744073709551615 is none (`RLIM_INFINITY`).
    pub soft: u64,
    /// How far the process itself may raise it.
    pub hard: u64,
}

/// The limits of config.json's `process.rlimits`, in its order.
///
/// A duplicate type is an error, as config.md, "POSIX process", requires.
pub fn from_config(limits: &[PosixRlimit]) -> Result<Vec<Limit>> {
    let mut seen = HashSet::new();
    let wrong = |index: usize, message: String| {
        Err(Error::new(Kind::Config, message).at(format!("/process/rlimits/{index}")))
    };
    let mut all = Vec::with_capacity(limits.len());
    for (index, limit) in limits.iter().enumerate() {
        let (name, resource) = resource(limit.typ());
        let new = Limit { name, resource, soft: limit.soft(), hard: limit.hard() };
        if new.soft > new.hard {
            return wrong(index, format!("the soft limit {} is above the hard limit {}", new.soft, new.hard));
        }
        if !seen.insert(resource) {
            return wrong(index, format!("duplicate limit `{name}`"));
        }
        all.push(new);
    }
    Ok(all)
}

fn resource(limit: PosixRlimitType) -> (&'static str, u32) {
    match limit {
        PosixRlimitType::RlimitCpu => ("RLIMIT_CPU", kernel::RLIMIT_CPU),
        PosixRlimitType::RlimitFsize => ("RLIMIT_FSIZE", kernel::RLIMIT_FSIZE),
        PosixRlimitType::RlimitData => ("RLIMIT_DATA", kernel::RLIMIT_DATA),
        PosixRlimitType::RlimitStack => ("RLIMIT_STACK", kernel::RLIMIT_STACK),
        PosixRlimitType::RlimitCore => ("RLIMIT_CORE", kernel::RLIMIT_CORE),
        PosixRlimitType::RlimitRss => ("RLIMIT_RSS", kernel::RLIMIT_RSS),
        PosixRlimitType::RlimitNproc => ("RLIMIT_NPROC", kernel::RLIMIT_NPROC),
        PosixRlimitType::RlimitNofile => ("RLIMIT_NOFILE", kernel::RLIMIT_NOFILE),
        PosixRlimitType::RlimitMemlock => ("RLIMIT_MEMLOCK", kernel::RLIMIT_MEMLOCK),
        PosixRlimitType::RlimitAs => ("RLIMIT_AS", kernel::RLIMIT_AS),
        PosixRlimitType::RlimitLocks => ("RLIMIT_LOCKS", kernel::RLIMIT_LOCKS),
        PosixRlimitType::RlimitSigpending => ("RLIMIT_SIGPENDING", kernel::RLIMIT_SIGPENDING),
        PosixRlimitType::RlimitMsgqueue => ("RLIMIT_MSGQUEUE", kernel::RLIMIT_MSGQUEUE),
        PosixRlimitType::RlimitNice => ("RLIMIT_NICE", kernel::RLIMIT_NICE),
        PosixRlimitType::RlimitRtprio => ("RLIMIT_RTPRIO", kernel::RLIMIT_RTPRIO),
        PosixRlimitType::RlimitRttime => ("RLIMIT_RTTIME", kernel::RLIMIT_RTTIME),
    }
}

/// What a process of this one's rights may set a limit to at most; `None` for any value.
pub fn own_hard_limit(resource: u32) -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    let resource = match resource {
        kernel::RLIMIT_CPU => Resource::Cpu,
        kernel::RLIMIT_FSIZE => Resource::Fsize,
        kernel::RLIMIT_DATA => Resource::Data,
        kernel::RLIMIT_STACK => Resource::Stack,
        kernel::RLIMIT_CORE => Resource::Core,
        kernel::RLIMIT_RSS => Resource::Rss,
        kernel::RLIMIT_NPROC => Resource::Nproc,
        kernel::RLIMIT_NOFILE => Resource::Nofile,
        kernel::RLIMIT_MEMLOCK => Resource::Memlock,
        kernel::RLIMIT_AS => Resource::As,
        kernel::RLIMIT_LOCKS => Resource::Locks,
        kernel::RLIMIT_SIGPENDING => Resource::Sigpending,
        kernel::RLIMIT_MSGQUEUE => Resource::Msgqueue,
        kernel::RLIMIT_NICE => Resource::Nice,
        kernel::RLIMIT_RTPRIO => Resource::Rtprio,
        kernel::RLIMIT_RTTIME => Resource::Rttime,
        _ => return None,
    };
    getrlimit(resource).maximum
}

#[cfg(test)]
mod tests;
