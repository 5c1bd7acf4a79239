//! Processor and disk scheduling and the execution domain: `process.scheduler`, `process.ioPriority`,
//! `process.execCPUAffinity`, `linux.personality`.

#![allow(clippy::ref_option)] // the getters of the types return references to options

use std::collections::BTreeSet;

use linux_raw_sys::general as kernel;
use oci_spec::runtime::{
    ExecCPUAffinity, IOPriorityClass, LinuxIOPriority, LinuxPersonality, LinuxPersonalityDomain,
    LinuxSchedulerFlag, LinuxSchedulerPolicy, Scheduler,
};

use crate::cgroup::parse_list;
use jobc_sys::error::{Error, Kind, Result};

/// The size of `struct sched_attr` in its first version (`SCHED_ATTR_SIZE_VER0`).
const SCHED_ATTR_SIZE: u32 = 48;

/// The `struct sched_attr` for sched_setattr(2), in the host's byte order.
pub fn scheduler(written: &Scheduler) -> Result<Vec<u8>> {
    use LinuxSchedulerPolicy as Policy;
    let policy = match written.policy() {
        Policy::SchedOther => kernel::SCHED_NORMAL,
        Policy::SchedFifo => kernel::SCHED_FIFO,
        Policy::SchedRr => kernel::SCHED_RR,
        Policy::SchedBatch => kernel::SCHED_BATCH,
        Policy::SchedIdle => kernel::SCHED_IDLE,
        Policy::SchedDeadline => kernel::SCHED_DEADLINE,
        Policy::SchedIso => {
            let error = Error::new(Kind::Unsupported, "`SCHED_ISO` is reserved and not implemented in Linux");
            return Err(error.at("/process/scheduler/policy").help("write another policy of sched(7)"));
        }
    };
    let wrong = |field: &str, message: &str| {
        Error::new(Kind::Config, message).at(format!("/process/scheduler/{field}"))
    };
    let (nice, priority) = (written.nice().unwrap_or(0), written.priority().unwrap_or(0));
    if !(-20..=19).contains(&nice)
        || (nice != 0 && !matches!(policy, kernel::SCHED_NORMAL | kernel::SCHED_BATCH))
    {
        return Err(wrong(
            "nice",
            "a nice value is from -20 to 19, and for `SCHED_OTHER` and `SCHED_BATCH` only",
        ));
    }
    let real_time = matches!(policy, kernel::SCHED_FIFO | kernel::SCHED_RR);
    let priority = u32::try_from(priority)
        .ok()
        .filter(|priority| if real_time { (1..=99).contains(priority) } else { *priority == 0 });
    let Some(priority) = priority else {
        let message =
            "a priority is from 1 to 99 for `SCHED_FIFO` and `SCHED_RR`, and 0 or absent for the others";
        return Err(wrong("priority", message));
    };
    let times = [*written.runtime(), *written.deadline(), *written.period()].map(Option::unwrap_or_default);
    let [runtime, deadline, period] = times;
    if policy == kernel::SCHED_DEADLINE {
        if runtime == 0 || runtime > deadline || (period != 0 && deadline > period) {
            return Err(wrong(
                "runtime",
                "the times must be runtime <= deadline <= period, and runtime above 0",
            ));
        }
    } else if times != [0; 3] {
        return Err(wrong("runtime", "runtime, deadline and period are for `SCHED_DEADLINE` only"));
    }
    let flags = flags(written.flags().as_deref().unwrap_or_default())?;
    let mut bytes = Vec::with_capacity(SCHED_ATTR_SIZE as usize);
    bytes.extend(SCHED_ATTR_SIZE.to_ne_bytes());
    bytes.extend(policy.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(nice.to_ne_bytes());
    bytes.extend(priority.to_ne_bytes());
    bytes.extend(times.iter().flat_map(|time| time.to_ne_bytes()));
    Ok(bytes)
}

fn flags(written: &[LinuxSchedulerFlag]) -> Result<u64> {
    use LinuxSchedulerFlag as Flag;
    written.iter().enumerate().try_fold(0, |flags, (index, flag)| {
        let flag = match flag {
            Flag::SchedResetOnFork => kernel::SCHED_FLAG_RESET_ON_FORK,
            Flag::SchedFlagReclaim => kernel::SCHED_FLAG_RECLAIM,
            Flag::SchedFlagDLOverrun => kernel::SCHED_FLAG_DL_OVERRUN,
            Flag::SchedFlagKeepPolicy => kernel::SCHED_FLAG_KEEP_POLICY,
            Flag::SchedFlagKeepParams => kernel::SCHED_FLAG_KEEP_PARAMS,
            Flag::SchedFlagUtilClampMin | Flag::SchedFlagUtilClampMax => {
                return Err(Error::new(
                    Kind::Unsupported,
                    "the specification has no field for the clamp that this flag sets",
                )
                .at(format!("/process/scheduler/flags/{index}"))
                .help("use `cpu.uclamp.min` and `cpu.uclamp.max` below `/linux/resources/unified`"));
            }
        };
        Ok(flags | u64::from(flag))
    })
}

/// The value for ioprio_set(2): the class in the upper bits, the level within it in the lower 13.
pub fn io_priority(written: LinuxIOPriority) -> Result<u32> {
    let class = match written.class() {
        IOPriorityClass::IoprioClassRt => 1,
        IOPriorityClass::IoprioClassBe => 2,
        IOPriorityClass::IoprioClassIdle => 3,
    };
    match u32::try_from(written.priority()) {
        Ok(level @ 0..=7) => Ok((class << 13) | level),
        _ => Err(Error::new(Kind::Config, format!("{} is not an I/O priority level", written.priority()))
            .at("/process/ioPriority/priority")
            .help("write a number from 0 (highest) to 7 (lowest)")),
    }
}

/// The CPUs that a process of `exec` begins on and those that it runs on, a bit for each; empty where nothing is written.
pub fn affinity(written: &ExecCPUAffinity) -> Result<[Vec<u64>; 2]> {
    let mask = |field: &str, list: &Option<String>| match list.as_deref().unwrap_or_default() {
        "" => Ok(Vec::new()),
        list => match parse_list(list).filter(|cpus| !cpus.is_empty()) {
            Some(cpus) => Ok(bits(&cpus)),
            None => Err(Error::new(Kind::Config, format!("`{}` is not a list of CPUs", list.escape_debug()))
                .at(format!("/process/execCPUAffinity/{field}"))
                .help("write numbers and ranges, such as `0-3,7`")),
        },
    };
    Ok([mask("initial", written.initial())?, mask("final", written.cpu_affinity_final())?])
}

/// A bit for each number.
pub(super) fn bits(numbers: &BTreeSet<u32>) -> Vec<u64> {
    let mut bits = vec![0_u64; numbers.last().map_or(0, |last| *last as usize / 64 + 1)];
    for number in numbers {
        bits[*number as usize / 64] |= 1 << (number % 64);
    }
    bits
}

/// The value for personality(2).
pub fn personality(written: &LinuxPersonality) -> Result<u32> {
    if written.flags().as_ref().is_some_and(|flags| !flags.is_empty()) {
        return Err(Error::new(Kind::Unsupported, "the specification defines no execution domain flags")
            .at("/linux/personality/flags")
            .help("remove the flags"));
    }
    Ok(match written.domain() {
        LinuxPersonalityDomain::PerLinux => 0,
        LinuxPersonalityDomain::PerLinux32 => 0x0008,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use jobc_sys::syscall::Kernel as _;
    use jobc_sys::syscall::linux::Linux;

    /// A scheduler of config.json, and the kernel's bytes as numbers or the error.
    fn check(written: &Value) -> String {
        let message = match scheduler(&serde_json::from_value(written.clone()).expect("a scheduler")) {
            Ok(bytes) => {
                let small = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four"));
                let large = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight"));
                let (nice, priority) = (small(16).cast_signed(), small(20));
                let times = [large(24), large(32), large(40)];
                format!(
                    "size {} of {}, policy {}, flags {:#x}, nice {nice}, priority {priority}, times {times:?}",
                    small(0),
                    bytes.len(),
                    small(4),
                    large(8)
                )
            }
            Err(error) => error.to_string(),
        };
        format!("{written}\n  {message}\n")
    }

    #[test]
    fn schedulers() {
        let cases = [
            json!({"policy": "SCHED_OTHER", "nice": -5}),
            json!({"policy": "SCHED_BATCH", "nice": 19, "flags": ["SCHED_RESET_ON_FORK"]}),
            json!({"policy": "SCHED_IDLE"}),
            json!({"policy": "SCHED_FIFO", "priority": 99}),
            json!({"policy": "SCHED_DEADLINE", "runtime": 10, "deadline": 20, "period": 30, "flags": ["SCHED_FLAG_RECLAIM"]}),
            json!({"policy": "SCHED_ISO"}),
            json!({"policy": "SCHED_OTHER", "nice": 20}),
            json!({"policy": "SCHED_RR", "nice": 1, "priority": 1}),
            json!({"policy": "SCHED_RR"}),
            json!({"policy": "SCHED_FIFO", "priority": 100}),
            json!({"policy": "SCHED_OTHER", "priority": 1}),
            json!({"policy": "SCHED_DEADLINE"}),
            json!({"policy": "SCHED_DEADLINE", "runtime": 10, "deadline": 5}),
            json!({"policy": "SCHED_OTHER", "runtime": 10}),
            json!({"policy": "SCHED_OTHER", "flags": ["SCHED_FLAG_UTIL_CLAMP_MIN"]}),
        ];
        insta::assert_snapshot!(cases.map(|written| check(&written)).concat());
    }

    #[test]
    fn the_kernel_takes_the_bytes() {
        // The scheduler of this process stays as it is: `SCHED_OTHER` with the nice value it has.
        let nice = rustix::process::getpriority_process(None).expect("a nice value");
        let written = json!({"policy": "SCHED_OTHER", "nice": nice});
        let bytes = scheduler(&serde_json::from_value(written).expect("a scheduler")).expect("bytes");
        Linux.sched_setattr(&bytes).expect("taken");
    }

    #[test]
    fn io_priorities() {
        let check = |class: &str, priority: i64| {
            let written = json!({"class": format!("IOPRIO_CLASS_{class}"), "priority": priority});
            io_priority(serde_json::from_value(written).expect("a priority"))
                .map_err(|error| error.to_string())
        };
        assert_eq!(check("RT", 0), Ok(0x2000));
        assert_eq!(check("BE", 4), Ok(0x4004));
        assert_eq!(check("IDLE", 7), Ok(0x6007));
        let wrong = "config.json: /process/ioPriority/priority: 8 is not an I/O priority level";
        assert_eq!(check("BE", 8), Err(wrong.to_owned()));
        assert!(check("BE", -1).is_err());
    }

    #[test]
    fn execution_domains() {
        let check = |written: Value| {
            personality(&serde_json::from_value(written).expect("a domain"))
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(json!({"domain": "LINUX"})), Ok(0));
        assert_eq!(check(json!({"domain": "LINUX32", "flags": []})), Ok(8));
        assert!(check(json!({"domain": "LINUX32", "flags": ["ADDR_NO_RANDOMIZE"]})).is_err());
    }
}
