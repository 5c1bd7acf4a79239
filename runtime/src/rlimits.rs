//! Resource limits of the process (getrlimit(2)).

use std::collections::HashSet;

use oci_spec::runtime::{PosixRlimit, PosixRlimitType};
use rustix::process::Resource;

use crate::error::{Error, Kind, Result};

/// One limit: what prlimit(2) takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Which resource.
    pub resource: Resource,
    /// The limit that counts, in the resource's own unit; 18446744073709551615 is none (`RLIM_INFINITY`).
    pub soft: u64,
    /// How far the process itself may raise it.
    pub hard: u64,
}

/// The limits of config.json's `process.rlimits`, in its order.
///
/// A type that is there twice is an error, as config.md, "POSIX process", asks.
pub fn of(limits: &[PosixRlimit]) -> Result<Vec<Limit>> {
    let mut seen = HashSet::new();
    let wrong = |index: usize, message: String| {
        Err(Error::new(Kind::Config, message).at(format!("/process/rlimits/{index}")))
    };
    let mut all = Vec::with_capacity(limits.len());
    for (index, limit) in limits.iter().enumerate() {
        let name = limit.typ();
        let new = Limit { resource: resource(name), soft: limit.soft(), hard: limit.hard() };
        if new.soft > new.hard {
            return wrong(index, format!("the soft limit {} is above the hard limit {}", new.soft, new.hard));
        }
        if !seen.insert(name.to_string()) {
            return wrong(index, format!("`{name}` is limited twice"));
        }
        all.push(new);
    }
    Ok(all)
}

fn resource(name: PosixRlimitType) -> Resource {
    match name {
        PosixRlimitType::RlimitCpu => Resource::Cpu,
        PosixRlimitType::RlimitFsize => Resource::Fsize,
        PosixRlimitType::RlimitData => Resource::Data,
        PosixRlimitType::RlimitStack => Resource::Stack,
        PosixRlimitType::RlimitCore => Resource::Core,
        PosixRlimitType::RlimitRss => Resource::Rss,
        PosixRlimitType::RlimitNproc => Resource::Nproc,
        PosixRlimitType::RlimitNofile => Resource::Nofile,
        PosixRlimitType::RlimitMemlock => Resource::Memlock,
        PosixRlimitType::RlimitAs => Resource::As,
        PosixRlimitType::RlimitLocks => Resource::Locks,
        PosixRlimitType::RlimitSigpending => Resource::Sigpending,
        PosixRlimitType::RlimitMsgqueue => Resource::Msgqueue,
        PosixRlimitType::RlimitNice => Resource::Nice,
        PosixRlimitType::RlimitRtprio => Resource::Rtprio,
        PosixRlimitType::RlimitRttime => Resource::Rttime,
    }
}

#[cfg(test)]
mod tests;
