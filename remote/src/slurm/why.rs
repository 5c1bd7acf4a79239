//! Slurm's reasons in plain sentences (`job_reason_codes` of Slurm's documentation), at the lines of the job.

use super::queue::QueueRow;
use super::record::GroupRecord;
use super::time;

/// A reason as text, and the options of `sbatch` that cause it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) text: String,
    pub(crate) options: &'static [&'static str],
}

/// Options that request nodes.
const NODES: &[&str] = &["nodes"];
/// Options that request parts of nodes.
const RESOURCES: &[&str] = &[
    "gpus-per-node",
    "gres",
    "gpus-per-task",
    "mem",
    "mem-per-cpu",
    "mem-per-gpu",
    "cpus-per-task",
    "constraint",
    "nodes",
];
/// Options that request memory.
const MEMORY: &[&str] = &["mem", "mem-per-cpu", "mem-per-gpu"];

/// Why a job waits. `has_started` is whether it has run before.
pub(crate) fn pending(row: &QueueRow, has_started: bool) -> Reason {
    let (word, rest) = row.reason.split_once([',', ' ']).unwrap_or((row.reason.as_str(), ""));
    let of = |text: &str, options: &'static [&'static str]| Reason { text: text.to_owned(), options };
    if row.reason.starts_with("Nodes required for job are DOWN") {
        return of("the nodes that it needs are down, drained or reserved", NODES);
    }
    if row.reason.starts_with("launch failed requeued held") {
        return of("a node could not start it, and it is held; `scontrol release` lets it try again", &[]);
    }
    if row.reason == "job requeued in held state" {
        return of("it is held, and starts again after `jobc resume`", &[]);
    }
    match word {
        "None" | "" | "SchedDefer" => of("Slurm has not looked at it yet", &[]),
        "Priority" => of("other jobs are ahead of it", &[]),
        "Resources" => of("it is next, and waits for free nodes", RESOURCES),
        "ReqNodeNotAvail" if row.reason.contains("Reserved for maintenance") => {
            of("its nodes are reserved for maintenance; a shorter `timeout` lets it start before", &["time"])
        }
        "ReqNodeNotAvail" => {
            let nodes = rest.split_once(':').map_or("", |(_, nodes)| nodes).trim_matches(['(', ')', ' ']);
            let which = if nodes.is_empty() { String::new() } else { format!(": {nodes}") };
            Reason { text: format!("nodes that it needs are not available{which}"), options: NODES }
        }
        "Dependency" => Reason { text: dependency(&row.dependency), options: &[] },
        "DependencyNeverSatisfied" => of("what it waits for has failed, so it never runs", &[]),
        "JobArrayTaskLimit" => of("as many jobs of the matrix run as `max_parallel` allows", &[]),
        "JobHeldUser" => of("it is held by its user; `scontrol release` lets it go on", &[]),
        "JobHeldAdmin" => of("it is held by an administrator", &[]),
        "JobHoldMaxRequeue" => of("it was restarted too often, and is held", &[]),
        "BeginTime" => {
            let at = row.started.map(|at| format!(" at {}", time::rfc3339(at))).unwrap_or_default();
            if has_started {
                Reason { text: format!("it starts again{at}: Slurm lets a requeued job wait"), options: &[] }
            } else {
                Reason { text: format!("it starts{at} at the earliest"), options: &["begin"] }
            }
        }
        "Licenses" => of("no license is free", &["licenses"]),
        "Reservation" => of("its reservation has not begun", &["reservation"]),
        "ReservationDeleted" => of("its reservation is gone", &["reservation"]),
        "PartitionTimeLimit" => {
            of("its `timeout` is longer than the partition allows", &["time", "partition"])
        }
        "PartitionNodeLimit" | "PartitionConfig" => {
            of("it needs more nodes than the partition has or allows", &["nodes", "partition"])
        }
        "PartitionDown" | "PartitionInactive" => of("its partition is closed", &["partition"]),
        "MaxMemPerLimit" => of("its `memory` is more than the cluster allows a job", &["mem", "qos"]),
        "NodeDown" => of("a node that it needs is down", NODES),
        "Prolog" => of("its nodes are being prepared", &[]),
        "Cleaning" => of("its nodes are still being cleaned up after its last start", &[]),
        "BurstBufferResources" => of("the burst buffer has no room for it yet", &[]),
        "BurstBufferStageIn" => of("its data is being copied into the burst buffer", &[]),
        "DeadLine" => of("it cannot end before its deadline", &["time"]),
        _ if word.starts_with("QOSMin") => Reason {
            text: "it requests less than its quality of service requires".to_owned(),
            options: &["qos"],
        },
        "InvalidQOS" | "QOSNotAllowed" => of("it may not use this quality of service", &["qos"]),
        "InvalidAccount" | "AccountNotAllowed" => {
            of("it may not use this account", &["account", "partition"])
        }
        "BadConstraints" | "Constraints" => {
            of("no node has what it needs", &["constraint", "gpus-per-node", "mem"])
        }
        _ if word.contains("MaxWall") => of("its `timeout` is longer than allowed", &["time", "qos"]),
        _ if is_share(word, &["QOSMax", "AssocMax", "QOSUsage", "AssocUsage"]) => {
            share("you use as much as you may", word)
        }
        _ if is_share(word, &["QOSGrp", "AssocGrp", "AssociationResourceLimit", "QOSResourceLimit"]) => {
            share("your group uses as much as it may", word)
        }
        _ => Reason { text: format!("Slurm says: {}", row.reason), options: &[] },
    }
}

/// A limit of a quality of service or an association, at what it is about, with Slurm's word for it.
fn share(text: &str, word: &str) -> Reason {
    let limits = if word.starts_with("QOS") { "qos" } else { "associations" };
    let options: &[&str] = match word {
        _ if word.contains("Cpu") => &["cpus-per-task"],
        _ if word.contains("GRES") || word.contains("Gres") => &["gpus-per-node", "gres", "gpus-per-task"],
        _ if word.contains("Mem") => MEMORY,
        _ if word.contains("Node") => &["nodes"],
        _ if word.contains("Job") || word.contains("Submit") => &["qos", "account"],
        _ => RESOURCES,
    };
    Reason { text: format!("{text} ({word}); `sacctmgr show {limits}` lists the limits"), options }
}

fn is_share(word: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| word.starts_with(beginning))
}

/// The dependencies that a job waits for: `afterok:12(unfulfilled),afterok:13(unfulfilled)`.
fn dependency(text: &str) -> String {
    let ids = text.split([',', '?']).filter_map(|part| part.split_once(':'));
    let ids: Vec<&str> = ids.map(|(_, id)| id.split('(').next().unwrap_or(id)).collect();
    match &ids[..] {
        [] => "it waits for another Slurm job".to_owned(),
        [one] => format!("it waits for the Slurm job {one}"),
        several => format!("it waits for the Slurm jobs {}", several.join(", ")),
    }
}

/// Why a job ended, with the options that it is about.
pub(crate) fn ended(word: &str) -> Reason {
    let options: &[&str] = match word {
        "OUT_OF_MEMORY" => MEMORY,
        "TIMEOUT" => &["time"],
        _ => &[],
    };
    Reason { text: format!("{} ({word})", end(word)), options }
}

/// Why a job ended, for words of Slurm that say more than an exit code.
pub(crate) fn end(word: &str) -> String {
    match word {
        "OUT_OF_MEMORY" => "it used more memory than it asked for".to_owned(),
        "TIMEOUT" => "it exceeded its time limit".to_owned(),
        "NODE_FAIL" | "NodeDown" => "one of its nodes failed".to_owned(),
        "BOOT_FAIL" => "its nodes did not start".to_owned(),
        "PREEMPTED" | "Preempted" => "another job took its place".to_owned(),
        "REVOKED" => "another cluster took it".to_owned(),
        "JobLaunchFailure" => "a node could not start it".to_owned(),
        "Lost" => "its script was killed, and Slurm no longer knows it".to_owned(),
        other => format!("Slurm says: {other}"),
    }
}

/// A reason at the line that it is about: `job.yaml:11:3: …`.
pub(crate) fn show(reason: &Reason, group: &GroupRecord) -> String {
    let place = reason.options.iter().find_map(|option| group.places.get(*option));
    match place {
        Some(place) if place.starts_with("the setting") => format!("{} (from {place})", reason.text),
        Some(place) => format!("{place}: {}", reason.text),
        None => reason.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reason: &str) -> QueueRow {
        QueueRow {
            reason: reason.to_owned(),
            dependency: "afterok:12(unfulfilled),afterok:13(unfulfilled)".to_owned(),
            started: Some(1_600_000_000),
            ..QueueRow::default()
        }
    }

    /// The table of reasons: each word, the sentence, and the first option that it is about.
    #[test]
    fn each_reason_is_a_sentence_at_its_line() {
        for (reason, text, option) in [
            ("None", "Slurm has not looked at it yet", ""),
            ("Priority", "other jobs are ahead of it", ""),
            ("Resources", "it is next, and waits for free nodes", "gpus-per-node"),
            (
                "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
                "the nodes that it needs are down, drained or reserved",
                "nodes",
            ),
            ("ReqNodeNotAvail, UnavailableNodes:n1", "nodes that it needs are not available: n1", "nodes"),
            ("ReqNodeNotAvail", "nodes that it needs are not available", "nodes"),
            (
                "ReqNodeNotAvail, Reserved for maintenance",
                "its nodes are reserved for maintenance; a shorter `timeout` lets it start before",
                "time",
            ),
            ("Dependency", "it waits for the Slurm jobs 12, 13", ""),
            ("DependencyNeverSatisfied", "what it waits for has failed, so it never runs", ""),
            ("JobArrayTaskLimit", "as many jobs of the matrix run as `max_parallel` allows", ""),
            ("JobHeldUser", "it is held by its user; `scontrol release` lets it go on", ""),
            ("JobHeldAdmin", "it is held by an administrator", ""),
            ("JobHoldMaxRequeue", "it was restarted too often, and is held", ""),
            (
                "launch failed requeued held",
                "a node could not start it, and it is held; `scontrol release` lets it try again",
                "",
            ),
            ("BeginTime", "it starts again at 2020-09-13T12:26:40Z: Slurm lets a requeued job wait", ""),
            ("Licenses", "no license is free", "licenses"),
            ("Reservation", "its reservation has not begun", "reservation"),
            ("ReservationDeleted", "its reservation is gone", "reservation"),
            (
                "QOSMaxCpuPerUserLimit",
                "you use as much as you may (QOSMaxCpuPerUserLimit); `sacctmgr show qos` lists the limits",
                "cpus-per-task",
            ),
            (
                "AssocMaxJobsLimit",
                "you use as much as you may (AssocMaxJobsLimit); `sacctmgr show associations` lists the limits",
                "qos",
            ),
            (
                "QOSGrpGRES",
                "your group uses as much as it may (QOSGrpGRES); `sacctmgr show qos` lists the limits",
                "gpus-per-node",
            ),
            (
                "AssocGrpMemLimit",
                "your group uses as much as it may (AssocGrpMemLimit); `sacctmgr show associations` lists the limits",
                "mem",
            ),
            ("QOSMaxWallDurationPerJobLimit", "its `timeout` is longer than allowed", "time"),
            ("AssocMaxWallDurationPerJobLimit", "its `timeout` is longer than allowed", "time"),
            ("PartitionTimeLimit", "its `timeout` is longer than the partition allows", "time"),
            ("PartitionNodeLimit", "it needs more nodes than the partition has or allows", "nodes"),
            ("PartitionConfig", "it needs more nodes than the partition has or allows", "nodes"),
            ("PartitionDown", "its partition is closed", "partition"),
            ("PartitionInactive", "its partition is closed", "partition"),
            ("InvalidQOS", "it may not use this quality of service", "qos"),
            ("InvalidAccount", "it may not use this account", "account"),
            ("AccountNotAllowed", "it may not use this account", "account"),
            ("BadConstraints", "no node has what it needs", "constraint"),
            ("Constraints", "no node has what it needs", "constraint"),
            ("QOSNotAllowed", "it may not use this quality of service", "qos"),
            ("QOSMinGRES", "it requests less than its quality of service requires", "qos"),
            ("MaxMemPerLimit", "its `memory` is more than the cluster allows a job", "mem"),
            ("NodeDown", "a node that it needs is down", "nodes"),
            ("Prolog", "its nodes are being prepared", ""),
            ("Cleaning", "its nodes are still being cleaned up after its last start", ""),
            ("BurstBufferResources", "the burst buffer has no room for it yet", ""),
            ("BurstBufferStageIn", "its data is being copied into the burst buffer", ""),
            ("DeadLine", "it cannot end before its deadline", "time"),
            ("SchedDefer", "Slurm has not looked at it yet", ""),
            ("FedJobLock", "Slurm says: FedJobLock", ""),
        ] {
            let found = pending(&row(reason), true);
            assert_eq!(found.text, text, "{reason}");
            assert_eq!(found.options.first().copied().unwrap_or_default(), option, "{reason}");
        }
    }

    #[test]
    fn a_begin_time_is_that_of_the_user_before_the_first_start() {
        let found = pending(&row("BeginTime"), false);
        assert_eq!(found.text, "it starts at 2020-09-13T12:26:40Z at the earliest");
        assert_eq!(found.options, ["begin"]);
    }

    #[test]
    fn a_reason_stands_at_the_line_or_names_the_setting() {
        let places =
            [("time", "job.yaml:3:10"), ("partition", "the setting `slurm.partition` of the target")];
        let places = places.into_iter().map(|(name, place)| (name.to_owned(), place.to_owned())).collect();
        let group = GroupRecord { places, ..GroupRecord::default() };
        let shown = |reason: &str| show(&pending(&row(reason), false), &group);
        assert_eq!(
            shown("PartitionTimeLimit"),
            "job.yaml:3:10: its `timeout` is longer than the partition allows"
        );
        assert_eq!(
            shown("PartitionDown"),
            "its partition is closed (from the setting `slurm.partition` of the target)"
        );
        assert_eq!(shown("Licenses"), "no license is free");
    }

    #[test]
    fn ends_are_sentences_too() {
        for (word, text) in [
            ("OUT_OF_MEMORY", "it used more memory than it asked for"),
            ("NODE_FAIL", "one of its nodes failed"),
            ("NodeDown", "one of its nodes failed"),
            ("PREEMPTED", "another job took its place"),
            ("X", "Slurm says: X"),
        ] {
            assert_eq!(end(word), text);
        }
    }
}
