//! The use of GPUs, which the metrics API does not have: `nvidia-smi` says it in the tasks themselves.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use jobc_sys::parallel::{self, lock};

use crate::kubernetes::client::Client;
use crate::kubernetes::exec::exec;
use crate::kubernetes::pods::Pod;
use crate::place::{ExecRequest, ExecStreams, GpuUse, TaskUsage};

/// The query. The container toolkit puts the program into every container with GPUs; a driver that hangs is left alone.
const QUERY: [&str; 5] = [
    "timeout",
    "5",
    "nvidia-smi",
    "--query-gpu=utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
];
/// Tasks that are asked; of more, the first.
const MAX_TASKS: usize = 64;
/// Tasks that are asked at a time.
const MAX_CONCURRENT: usize = 8;

/// Adds the use of GPUs to that of the tasks of some pods. What cannot be read, for lack of rights too, is left out.
pub(super) fn add(client: &Client, pods: &[&Pod], usage: &mut [TaskUsage]) {
    let pods = &pods[..pods.len().min(MAX_TASKS)];
    let found = Mutex::new(BTreeMap::new());
    let _ = parallel::for_each(pods, MAX_CONCURRENT, |pod, _| {
        if let Some(gpus) = ask(client, pod) {
            lock(&found).insert(pod.task(), gpus);
        }
        Ok::<_, ()>(())
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    for task in usage {
        task.gpu = found.remove(&task.task.to_string()).unwrap_or_default();
    }
}

fn ask(client: &Client, pod: &Pod) -> Option<Vec<GpuUse>> {
    let request = ExecRequest { command: QUERY.map(str::to_owned).to_vec(), ..ExecRequest::default() };
    let (mut reader, writer) = std::io::pipe().ok()?;
    let nowhere = OpenOptions::new().write(true).open("/dev/null").ok()?;
    let streams = ExecStreams {
        stdin: None,
        stdout: OwnedFd::from(writer),
        stderr: OwnedFd::from(nowhere),
        signals: None,
        started: None,
    };
    // Less than a pipe holds, so that it can be read at the end.
    (exec(client, pod, &request, streams).ok()? == 0).then_some(())?;
    let mut text = String::new();
    reader.read_to_string(&mut text).ok()?;
    Some(text.lines().map(read).collect())
}

/// Reads a line `UTILIZATION, MEBIBYTES`; a MIG instance has no utilization.
fn read(line: &str) -> GpuUse {
    let mut words = line.split(',').map(str::trim);
    let utilization = words.next().and_then(|percent| percent.parse().ok());
    let mebibytes = words.next().and_then(|memory| memory.parse::<u64>().ok());
    GpuUse {
        utilization,
        memory: mebibytes.and_then(|memory| memory.checked_mul(1 << 20)),
        ..GpuUse::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_gpu() {
        let known = |line| (read(line).utilization, read(line).memory);
        assert_eq!(known("97, 40536"), (Some(97), Some(40536 << 20)));
        assert_eq!(known("[N/A], 13"), (None, Some(13 << 20)));
        assert_eq!(read("No devices were found"), GpuUse::default());
    }
}
