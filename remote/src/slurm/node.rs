//! Processes of tasks on a node, as a step beside them sees them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jobc_sys::pid_namespace;

/// Between the two measurements of processor time.
const INTERVAL: Duration = Duration::from_millis(500);

/// The process of a word: its number, or `@` and the number of a task in the first step of this job, where Slurm alone
/// runs it.
pub(crate) fn process(word: &str) -> Option<u32> {
    let Some(number) = word.strip_prefix('@') else { return word.parse().ok() };
    let job = std::env::var("SLURM_JOB_ID").ok()?;
    let wanted =
        [format!("SLURM_JOB_ID={job}"), format!("SLURM_PROCID={number}"), "SLURM_STEP_ID=0".to_owned()];
    let names =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut pids: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().find(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut left: Vec<&[u8]> = wanted.iter().map(String::as_bytes).collect();
        environment.split(|byte| *byte == 0).for_each(|pair| left.retain(|wanted| *wanted != pair));
        left.is_empty()
    })
}

/// The variables of a process, but for those of its step.
pub(crate) fn environment(pid: u32) -> Vec<(String, String)> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let pair = |pair: &[u8]| {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        let is_own = name.starts_with("SLURM_") || name == "_" || name.is_empty() || name.contains('%');
        (!is_own).then(|| (name.to_owned(), value.to_owned()))
    };
    bytes.split(|byte| *byte == 0).filter_map(pair).collect()
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok()
}

/// The fields of `stat` after the name, which may have blanks and brackets: state, parent, ...
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// The first process below one that has mounts of its own.
pub(crate) fn inside(pid: u32) -> u32 {
    let mounts = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = mounts("self");
    let below = pid_namespace::descendants(pid).unwrap_or_default();
    let all = std::iter::once(pid).chain(below.into_iter().map(|member| member.pid));
    all.into_iter()
        .find(|pid| mounts(&pid.to_string()).is_some_and(|found| Some(found) != own))
        .unwrap_or(pid)
}

/// Measures tasks with their processes: lines `TASK CPU MEMORY LIMIT GPU...`, with thousandths of a processor, bytes, bytes
/// or `-`, and `UUID,PERCENT,BYTES` for each GPU. It is the cgroup of a task's step where Slurm has one, otherwise the sum
/// over its processes.
pub(crate) fn measure(tasks: &[(&str, u32)]) -> Vec<String> {
    let before: BTreeMap<&str, (Instant, Sample)> =
        tasks.iter().filter_map(|(task, pid)| Some((*task, (Instant::now(), Sample::of(*pid)?)))).collect();
    let has_gpus = tasks.iter().any(|(_, pid)| !numbers_of(&pid.to_string()).is_empty());
    let cards = if has_gpus { cards() } else { BTreeMap::new() };
    std::thread::sleep(INTERVAL);
    let line = |(task, pid): &(&str, u32)| {
        let (since, first) = before.get(task)?;
        let now = Sample::of(*pid)?;
        let elapsed = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
        let cpu = now.micros.saturating_sub(first.micros) * 1000 / elapsed;
        let limit = now.limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
        let gpus = numbers_of(&pid.to_string());
        let gpus = gpus
            .iter()
            .filter_map(|number| cards.get(number))
            .fold(String::new(), |all, gpu| all + " " + gpu);
        Some(format!("{task} {cpu} {} {limit}{gpus}", now.memory))
    };
    tasks.iter().filter_map(line).collect()
}

/// The GPUs of the step of a process, by their numbers on the node.
fn numbers_of(pid: &str) -> Vec<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let value = environment.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(b"SLURM_STEP_GPUS="));
    let text = String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
    text.split(',').filter(|number| !number.is_empty()).map(str::to_owned).collect()
}

/// The use of each GPU that `nvidia-smi` shows in this step, by its number on the node: that of the whole card.
fn cards() -> BTreeMap<String, String> {
    // It does not end on a node whose driver hangs.
    let query = [
        "5",
        "nvidia-smi",
        "--query-gpu=index,uuid,utilization.gpu,memory.used",
        "--format=csv,noheader,nounits",
    ];
    let shown = Command::new("timeout").args(query).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = shown.map(|shown| String::from_utf8_lossy(&shown.stdout).into_owned()).unwrap_or_default();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split(',').map(str::trim).collect())
        .filter(|row: &Vec<_>| row.len() == 4)
        .collect();
    // Where Slurm hides the others, those of this step are numbered from 0.
    let own = numbers_of("self");
    let is_own = rows.len() == own.len();
    let number =
        |position: usize, row: &[&str]| if is_own { own[position].clone() } else { row[0].to_owned() };
    let bytes = |mebibytes: &str| {
        mebibytes.parse::<u64>().map_or_else(|_| "-".to_owned(), |count| (count << 20).to_string())
    };
    let card = |row: &[&str]| format!("{},{},{}", row[1], row[2].replace(' ', ""), bytes(row[3]));
    rows.iter().enumerate().map(|(position, row)| (number(position, row), card(row))).collect()
}

/// What a task has used.
struct Sample {
    /// The time of all processors, in microseconds.
    micros: u64,
    memory: u64,
    limit: Option<u64>,
}

impl Sample {
    fn of(pid: u32) -> Option<Self> {
        let own = Self::of_processes(pid)?;
        let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let value = |path: PathBuf, name: &str| {
            let text = fs::read_to_string(path).ok()?;
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
        };
        let cpu = step(pid, "cpuacct").and_then(|at| {
            let old = || number(at.join("cpuacct.usage")).map(|nanos| nanos / 1000);
            value(at.join("cpu.stat"), "usage_usec").or_else(old)
        });
        let at = step(pid, "memory");
        let memory = at.as_ref().and_then(|at| {
            let used =
                number(at.join("memory.current")).or_else(|| number(at.join("memory.usage_in_bytes")))?;
            // What can be reclaimed at once is not in use.
            let stat = |name| value(at.join("memory.stat"), name);
            let cache = stat("total_inactive_file").or_else(|| stat("inactive_file")).unwrap_or(0);
            Some(used.saturating_sub(cache))
        });
        let limit = at.and_then(|at| {
            number(at.join("memory.max")).or_else(|| number(at.join("memory.limit_in_bytes")))
        });
        // Without a limit, older kernels have a number near that of all addresses.
        let limit = limit.filter(|limit| *limit < 1_000_000_000_000_000);
        Some(Self { micros: cpu.unwrap_or(own.micros), memory: memory.unwrap_or(own.memory), limit })
    }

    /// The sum over a process and all below it.
    fn of_processes(pid: u32) -> Option<Self> {
        stat(pid)?;
        let below = pid_namespace::descendants(pid).unwrap_or_default();
        let (mut ticks, mut pages) = (0, 0);
        for pid in std::iter::once(pid).chain(below.into_iter().map(|member| member.pid)) {
            let Some(fields) = stat(pid) else { continue };
            let at =
                |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
            // Its own time and that of children that have ended, and its resident pages.
            ticks += at(11) + at(12) + at(13) + at(14);
            pages += at(21);
        }
        let (hertz, size) = (rustix::param::clock_ticks_per_second(), rustix::param::page_size());
        Some(Self { micros: ticks * 1_000_000 / hertz.max(1), memory: pages * size as u64, limit: None })
    }
}

/// The directory of the step of a process in the hierarchy of a controller.
fn step(pid: u32, controller: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let at = path.find("/step_")?;
        let end = path[at + 1..].find('/').map_or(path.len(), |length| at + 1 + length);
        let below = path[..end].trim_start_matches('/');
        let unified = PathBuf::from("/sys/fs/cgroup").join(below);
        let old = PathBuf::from("/sys/fs/cgroup").join(controller).join(below);
        if number == "0" && unified.join("cgroup.controllers").exists() {
            Some(unified)
        } else {
            (names.split(',').any(|name| name == controller) && old.is_dir()).then_some(old)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_measured_with_those_below_it() {
        let own = std::process::id();
        let lines = measure(&[("main-0", own), ("gone-0", u32::MAX - 1)]);
        let words: Vec<&str> = lines.iter().flat_map(|line| line.split(' ')).collect();
        assert_eq!((lines.len(), words[0]), (1, "main-0"));
        assert!(words[2].parse::<u64>().unwrap() > 1 << 20, "{lines:?}");
        assert_eq!(parent(own), Some(std::os::unix::process::parent_id()));
        assert_eq!(process("77"), Some(77));
        assert!(environment(own).iter().any(|(name, _)| name == "PATH"));
    }
}
