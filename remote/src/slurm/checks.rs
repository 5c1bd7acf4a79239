//! Checks of the cluster before a job is submitted.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jobc_schema::target::SlurmContainer;
use jobc_sys::error::Result;
use jobc_sys::parallel::lock;

use super::access::Access;
use super::login::{AccessLine, Check, CheckAccess};
use super::{problems, submit};
use crate::built::BatchScript;
use crate::place::{AccessCheck, Problem, Submission};

/// The longest script that a cluster takes unless it says otherwise (`max_script_size`), in bytes.
const MAX_SCRIPT: usize = 4 << 20;
/// The release from which containers of Slurm get the environment of their task.
const OCI_RELEASE: (u32, u32) = (23, 2);

/// The configuration of a cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterFacts {
    /// The release, such as `22.05.8`.
    pub(crate) release: String,
    /// The lines of `scontrol show config`.
    config: BTreeMap<String, String>,
    /// The partitions with their fields.
    partitions: Vec<BTreeMap<String, String>>,
}

impl ClusterFacts {
    /// Reads the answer of `scontrol show config` and `show partition`.
    fn parse(text: &str) -> Self {
        let pair = |line: &str| {
            let (name, value) = line.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        // The prompt may precede it.
        let lines = || text.lines().map(|line| line.trim_start_matches("scontrol: "));
        let partitions = lines().filter(|line| line.starts_with("PartitionName="));
        let fields = |line: &str| line.split_whitespace().filter_map(pair).collect();
        let config: BTreeMap<String, String> = lines().filter_map(pair).collect();
        Self {
            release: config.get("SLURM_VERSION").cloned().unwrap_or_default(),
            config,
            partitions: partitions.map(fields).collect(),
        }
    }

    /// The partitions that a job asks for, or the default one.
    fn partitions_of(&self, wanted: Option<&str>) -> Vec<&BTreeMap<String, String>> {
        let is_wanted = |partition: &&BTreeMap<String, String>| match wanted {
            Some(names) => {
                names.split(',').any(|name| partition.get("PartitionName").is_some_and(|own| own == name))
            }
            None => partition.get("Default").is_some_and(|default| default == "YES"),
        };
        self.partitions.iter().filter(is_wanted).collect()
    }

    /// The longest script that the cluster takes, in bytes.
    fn max_script(&self) -> usize {
        let parameters = self.config.get("SchedulerParameters").map(String::as_str).unwrap_or_default();
        let own = parameters.split(',').find_map(|parameter| parameter.strip_prefix("max_script_size="));
        own.and_then(|size| size.parse().ok()).unwrap_or(MAX_SCRIPT)
    }
}

/// Results for requests, cached: the jobs of a matrix mostly have the same.
pub(crate) type Checked = Mutex<BTreeMap<Vec<String>, Vec<Problem>>>;

/// Checks a job without creating anything.
pub(crate) fn check(access: &Access, checked: &Checked, submission: &Submission<'_>) -> Result<Vec<Problem>> {
    let scripts = submit::scripts(submission)?;
    let options = scripts.iter().flat_map(|script| script.options().map(|(_, option)| option));
    let key: Vec<String> = options.filter(|option| !option.starts_with("job-name=")).collect();
    let known = || lock(checked);
    if let Some(found) = known().get(&key) {
        return Ok(found.clone());
    }
    let found = ask(access, scripts)?;
    known().insert(key, found.clone());
    Ok(found)
}

fn ask(access: &Access, scripts: &[BatchScript]) -> Result<Vec<Problem>> {
    let texts = scripts.iter().map(|script| script.text.clone()).collect();
    let (facts, answers) = access.ask("check the job with Slurm", Check(texts))?;
    let facts = ClusterFacts::parse(&facts);
    let mut found = releases(&facts, access);
    for (script, answer) in scripts.iter().zip(&answers) {
        if script.text.len() > facts.max_script() {
            found.push(
                Problem::error(format!(
                    "the batch script has {} bytes, and the cluster takes {}",
                    script.text.len(),
                    facts.max_script()
                ))
                .at(script.origin("job-name")),
            );
        }
        if script.option("comment").is_some() {
            found.push(Problem::error("the option `comment` of `sbatch` has the name of the run, by which it is found again".to_owned()).at(script.origin("comment")).help("remove it from `slurm.extra` of the target, or submit what `jobc build` writes by `sbatch`"));
        }
        let own = limits(&facts, script);
        // Slurm's own message says less.
        if own.iter().all(|problem| problem.is_warning) && !answer.is_ok {
            found.push(problems::of_sbatch(&answer.words, &answer.out, script));
        }
        found.extend(own);
    }
    found.dedup();
    Ok(found)
}

/// The features that the cluster's Slurm version lacks.
fn releases(facts: &ClusterFacts, access: &Access) -> Vec<Problem> {
    let setting = |name: &str| Some(format!("the setting `slurm.{name}` of the target"));
    let mut found = vec![];
    let settings = &access.settings;
    if let Some(release) = settings.release.as_deref().filter(|release| !facts.release.starts_with(*release))
    {
        found.push(
            Problem::warning(format!(
                "the target says Slurm {release}, and the cluster has {}",
                facts.release
            ))
            .at(setting("release"))
            .help(format!("set it to `{}`", facts.release)),
        );
    }
    if settings.container == SlurmContainer::Oci && number(&facts.release) < OCI_RELEASE {
        found.push(
            Problem::error(format!("containers of Slurm {} get no environment of their task", facts.release))
                .at(setting("container"))
                .help("it works from 23.02 on; write `container: jobc`"),
        );
    }
    found
}

/// The first two numbers of a release.
fn number(release: &str) -> (u32, u32) {
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Requests that would wait forever, because all partitions of the job allow less.
fn limits(facts: &ClusterFacts, script: &BatchScript) -> Vec<Problem> {
    let partitions = facts.partitions_of(script.option("partition").as_deref());
    if partitions.is_empty() {
        return vec![];
    }
    let name =
        |partition: &BTreeMap<String, String>| partition.get("PartitionName").cloned().unwrap_or_default();
    let names =
        partitions.iter().map(|partition| format!("`{}`", name(partition))).collect::<Vec<_>>().join(", ");
    let problem = |is_warning, option: &str, message: String, help: Option<&str>| Problem {
        help: help.map(str::to_owned),
        ..Problem::new(is_warning, message).at(script.origin(option))
    };
    let field =
        |partition: &BTreeMap<String, String>, name: &str| partition.get(name).cloned().unwrap_or_default();
    let mut found = vec![];
    if let Some(wanted) = script.option("time").as_deref().and_then(minutes) {
        let longest = partitions
            .iter()
            .map(|partition| minutes(&field(partition, "MaxTime")).unwrap_or(u64::MAX))
            .max();
        if let Some(longest) = longest.filter(|longest| wanted > *longest) {
            let message =
                format!("`timeout` is {wanted} minutes, and the partition {names} allows {longest}");
            found.push(problem(
                false,
                "time",
                message,
                Some("choose a shorter `timeout` or another partition"),
            ));
        }
    }
    if let Some(wanted) = script.option("nodes").and_then(|nodes| nodes.parse::<u64>().ok()) {
        let of = |partition: &&BTreeMap<String, String>| {
            let most = field(partition, "MaxNodes").parse().unwrap_or(u64::MAX);
            field(partition, "TotalNodes").parse().unwrap_or(u64::MAX).min(most)
        };
        if let Some(most) = partitions.iter().map(of).max().filter(|most| wanted > *most) {
            let message = format!("the job needs {wanted} nodes, and the partition {names} has {most}");
            found.push(problem(false, "nodes", message, Some("each instance gets a node of its own")));
        }
    }
    if partitions.iter().all(|partition| field(partition, "State") != "UP") {
        let message = format!("the partition {names} is closed, so the job will wait");
        found.push(problem(true, "partition", message, None));
    }
    found
}

/// A time limit in minutes: `M`, `M:S`, `H:M:S`, `D-H[:M[:S]]`; none if it is unlimited.
fn minutes(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let numbers = rest.split(':').map(|number| number.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let with_days = text.contains('-');
    let (hours, minutes, seconds) = match (&numbers[..], with_days) {
        ([hours], true) => (*hours, 0, 0),
        ([hours, minutes], true) => (*hours, *minutes, 0),
        ([minutes], false) => (0, *minutes, 0),
        ([minutes, seconds], false) => (0, *minutes, *seconds),
        ([hours, minutes, seconds], _) => (*hours, *minutes, *seconds),
        _ => return None,
    };
    Some(days * 24 * 60 + hours * 60 + minutes + seconds.div_ceil(60))
}

/// The user's prerequisites on the cluster, and whether they exist.
pub(crate) fn access(access: &Access) -> Result<Vec<AccessCheck>> {
    // A copy of this program gets there with the first job.
    let program = access.settings.program().filter(|_| !access.settings.copies_program()).unwrap_or_default();
    let question = CheckAccess {
        container: access.settings.container.as_str().to_owned(),
        images: access.settings.images.clone().unwrap_or_default(),
        partition: access.settings.partition.clone().unwrap_or_default(),
        program,
    };
    Ok(access.ask("check the cluster", question)?.into_iter().map(access_check).collect())
}

fn access_check(line: AccessLine) -> AccessCheck {
    let (needed_for, is_optional) = match line.key.as_str() {
        "slurm" => ("everything", false),
        "directory" => ("the files, logs and state of jobs", false),
        "partition" => ("jobs of this target", false),
        "container" => ("the containers of jobs", false),
        "program" => ("jobs that Slurm alone does not run", false),
        "images" => ("the images of containers", true),
        _ => ("the ends of jobs that Slurm has forgotten", true),
    };
    AccessCheck { what: line.what, is_allowed: line.is_there, needed_for, is_optional }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "Configuration data as of 2026-01-01\nSLURM_VERSION           = 22.05.8\n\
                          SchedulerParameters     = bf_interval=1,max_script_size=1000\nKillWait                = 30 sec\n";
    const PARTITIONS: &str = "PartitionName=all AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP TotalNodes=8\n\
                              PartitionName=short Default=NO MaxNodes=2 MaxTime=01:00:00 State=DOWN TotalNodes=8\n";

    fn facts() -> ClusterFacts {
        ClusterFacts::parse(&format!("{CONFIG}{PARTITIONS}"))
    }

    #[test]
    fn facts_are_read_from_slurms_answers() {
        let facts = facts();
        assert_eq!((facts.release.as_str(), facts.max_script()), ("22.05.8", 1000));
        assert_eq!(ClusterFacts::default().max_script(), MAX_SCRIPT);
        assert_eq!(number("22.05.8"), (22, 5));
    }

    #[test]
    fn limits_of_a_partition_are_reported() {
        let check = |options: &str| {
            let script = BatchScript::of_text("job", &format!("#!/bin/bash\n{options}\n"));
            limits(&facts(), &script).into_iter().map(|problem| problem.message).collect::<Vec<_>>()
        };
        assert_eq!(check("#SBATCH --nodes=8\n#SBATCH --time=9999"), Vec::<String>::new());
        assert_eq!(check("#SBATCH --nodes=9"), ["the job needs 9 nodes, and the partition `all` has 8"]);
        assert_eq!(
            check("#SBATCH --nodes=3\n#SBATCH --time=61\n#SBATCH --partition=short"),
            [
                "`timeout` is 61 minutes, and the partition `short` allows 60",
                "the job needs 3 nodes, and the partition `short` has 2",
                "the partition `short` is closed, so the job will wait",
            ]
        );
        assert_eq!(check("#SBATCH --nodes=3\n#SBATCH --partition=short,all"), Vec::<String>::new());
    }

    #[test]
    fn time_limits_are_minutes() {
        for (text, expected) in [
            ("90", Some(90)),
            ("1:30", Some(2)),
            ("01:00:00", Some(60)),
            ("2-00:00:00", Some(2880)),
            ("1-12", Some(2160)),
            ("UNLIMITED", None),
            ("INFINITE", None),
        ] {
            assert_eq!(minutes(text), expected, "{text}");
        }
    }
}
