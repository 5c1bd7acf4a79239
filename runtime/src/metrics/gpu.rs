//! What tasks use of NVIDIA's GPUs, as `nvidia-smi` tells it.
//!
//! The program takes a tenth of a second to several seconds, so it is started at one sample and heard at a later one. It is
//! started only where the driver has made device nodes. Unlike the rest of a sample this was written from NVIDIA's
//! documentation ("nvidia-smi --help-query-compute-apps") and not tried on a machine with GPUs.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// What a task uses of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuUse {
    /// The GPU's UUID.
    pub gpu: String,
    /// Bytes of its memory that the task's processes hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Percent of the time in which the GPU was busy, with whichever processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<u8>,
}

/// How often to ask.
const EVERY: Duration = Duration::from_secs(5);

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// After so many failures in a row nobody asks any more.
const FAILURES: u32 = 3;

/// The questions.
const QUESTIONS: [&str; 2] =
    ["--query-compute-apps=pid,gpu_uuid,used_memory", "--query-gpu=uuid,utilization.gpu"];

/// The GPUs of this machine.
#[derive(Debug)]
pub(super) struct Gpus {
    asking: Option<(Instant, [Child; 2])>,
    next: Instant,
    failures: u32,
    said: Said,
}

/// What `nvidia-smi` said last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    /// The process, its GPU's UUID, the bytes it holds.
    processes: Vec<(u32, String, Option<u64>)>,
    /// The busy percent of each GPU.
    utilization: BTreeMap<String, u8>,
}

impl Gpus {
    /// The GPUs that NVIDIA's driver has made nodes for; nothing where there are none.
    pub(super) fn find() -> Option<Self> {
        let is_node =
            |name: &str| name.strip_prefix("nvidia").is_some_and(|number| number.parse::<u32>().is_ok());
        let entries = std::fs::read_dir("/dev").ok()?;
        let found = entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_node));
        found.then(|| Self { asking: None, next: Instant::now(), failures: 0, said: Said::default() })
    }

    /// Hears an answer that has come, or asks again; never waits.
    pub(super) fn look(&mut self, now: Instant) {
        if let Some((since, mut children)) = self.asking.take() {
            match hear(&mut children) {
                Ok(Some(said)) => (self.said, self.failures) = (said, 0),
                Ok(None) if now.duration_since(since) < PATIENCE => self.asking = Some((since, children)),
                Ok(None) | Err(_) => {
                    self.said = Said::default();
                    self.failures += 1;
                    for child in &mut children {
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                }
            }
        }
        if self.asking.is_none() && now >= self.next && self.failures < FAILURES {
            self.next = now + EVERY;
            match ask() {
                Ok(children) => self.asking = Some((now, children)),
                Err(_) => self.failures += 1,
            }
        }
    }

    /// Whether any process uses a GPU.
    pub(super) fn in_use(&self) -> bool {
        !self.said.processes.is_empty()
    }

    /// What these processes use.
    pub(super) fn used_by(&self, processes: &[u32]) -> Vec<GpuUse> {
        self.said.used_by(processes)
    }
}

impl Drop for Gpus {
    fn drop(&mut self) {
        for child in self.asking.iter_mut().flat_map(|(_, children)| children) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ask() -> io::Result<[Child; 2]> {
    let start = |question| {
        let mut command = Command::new("nvidia-smi");
        command.args([question, "--format=csv,noheader,nounits"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    };
    let mut first = start(QUESTIONS[0])?;
    match start(QUESTIONS[1]) {
        Ok(second) => Ok([first, second]),
        Err(error) => {
            let _ = first.kill();
            let _ = first.wait();
            Err(error)
        }
    }
}

/// What both have said, once they have ended. An answer fits into a pipe, so nobody waits for us to read it.
fn hear(children: &mut [Child; 2]) -> io::Result<Option<Said>> {
    for child in children.iter_mut() {
        match child.try_wait()? {
            None => return Ok(None),
            Some(status) if !status.success() => return Err(io::Error::other("it failed")),
            Some(_) => {}
        }
    }
    let mut texts = [String::new(), String::new()];
    for (child, text) in children.iter_mut().zip(&mut texts) {
        child.stdout.take().map(|mut pipe| pipe.read_to_string(text)).transpose()?;
    }
    Ok(Some(Said::parse(&texts[0], &texts[1])))
}

impl Said {
    /// Reads lines such as `4711, GPU-8a56…, 1024` (MiB) and `GPU-8a56…, 97` (percent); what cannot be told is
    /// `[N/A]` there.
    fn parse(processes: &str, gpus: &str) -> Self {
        let process = |line: &str| {
            let mut fields = line.split(',').map(str::trim);
            let (pid, gpu, memory) = (fields.next()?.parse().ok()?, fields.next()?, fields.next()?);
            Some((pid, gpu.to_owned(), memory.parse::<u64>().ok().map(|mebibytes| mebibytes << 20)))
        };
        let gpu = |line: &str| {
            let (gpu, percent) = line.split_once(',')?;
            Some((gpu.trim().to_owned(), percent.trim().parse().ok()?))
        };
        Self {
            processes: processes.lines().filter_map(process).collect(),
            utilization: gpus.lines().filter_map(gpu).collect(),
        }
    }

    fn used_by(&self, processes: &[u32]) -> Vec<GpuUse> {
        let mut used: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        for (_, gpu, memory) in self.processes.iter().filter(|(pid, ..)| processes.contains(pid)) {
            let sum = used.entry(gpu).or_default();
            *sum = memory.map(|memory| memory + sum.unwrap_or(0)).or(*sum);
        }
        used.into_iter()
            .map(|(gpu, memory)| GpuUse {
                gpu: gpu.to_owned(),
                memory,
                utilization: self.utilization.get(gpu).copied(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_matched_to_their_gpus() {
        let processes = "4711, GPU-8a56a4bc-d184-a047-2620-be19fdd913d5, 1024\n\
                         4712, GPU-8a56a4bc-d184-a047-2620-be19fdd913d5, 512\n\
                         4713, GPU-5a5ba042-e31d-49b9-9c23-0e1c0fc2a9d4, [N/A]\n\
                         9, GPU-5a5ba042-e31d-49b9-9c23-0e1c0fc2a9d4, 70000\n";
        let gpus =
            "GPU-8a56a4bc-d184-a047-2620-be19fdd913d5, 97\nGPU-5a5ba042-e31d-49b9-9c23-0e1c0fc2a9d4, [N/A]\n";
        let said = Said::parse(processes, gpus);
        let used = said.used_by(&[4711, 4712, 4713]);
        assert_eq!(
            used,
            [
                GpuUse {
                    gpu: "GPU-5a5ba042-e31d-49b9-9c23-0e1c0fc2a9d4".into(),
                    memory: None,
                    utilization: None
                },
                GpuUse {
                    gpu: "GPU-8a56a4bc-d184-a047-2620-be19fdd913d5".into(),
                    memory: Some(1536 << 20),
                    utilization: Some(97)
                },
            ]
        );
        assert_eq!(said.used_by(&[1]), []);
    }

    #[test]
    fn other_words_are_no_processes() {
        for text in
            ["", "No running processes found\n", "NVIDIA-SMI has failed, because\n", "a, b\n", "1, GPU\n"]
        {
            assert_eq!(Said::parse(text, text), Said::default(), "{text}");
        }
    }
}
