//! Dumps of PyTorch's flight recorder: what each rank did in its collectives, for `torchfrtrace`.
//!
//! A process writes its dump when a collective times out, or when something is written to its pipe
//! (`TORCH_NCCL_DEBUG_INFO_PIPE_FILE`). All paths are those of the task's own files, and its links are followed in there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use super::examine::ExaminedTask;

/// More of a dump is not kept.
const MAX_BYTES: u64 = 64 << 20;

/// How long processes that were asked may take; they look at their pipes once a second.
const DUMP_TIMEOUT: Duration = Duration::from_secs(5);

/// A process with a rank.
struct Recorder {
    pid: u32,
    rank: String,
    /// Where its dump is, the first of these.
    dumps: Vec<String>,
    /// Its pipe.
    pipe: Option<String>,
    /// When it was asked.
    asked: Option<SystemTime>,
}

impl Recorder {
    fn of(pid: u32) -> Option<Self> {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let pairs: BTreeMap<&str, &str> = environment
            .split(|byte| *byte == 0)
            .filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='))
            .collect();
        let rank = pairs.get("RANK").filter(|rank| rank.parse::<u32>().is_ok())?;
        let set =
            |name: &str| pairs.get(name).filter(|value| !value.is_empty()).map(|value| (*value).to_owned());
        let cache = || set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home + "/.cache"));
        let prefixes = match set("TORCH_FR_DUMP_TEMP_FILE").or_else(|| set("TORCH_NCCL_DEBUG_INFO_TEMP_FILE"))
        {
            Some(prefix) => vec![prefix],
            // The defaults of PyTorch from 2.7 on and before.
            None => cache()
                .map(|cache| cache + "/torch/comm_lib_trace_rank_")
                .into_iter()
                .chain(["/tmp/nccl_trace_rank_".to_owned()])
                .collect(),
        };
        let pipe = set("TORCH_NCCL_DEBUG_INFO_PIPE_FILE").map(|prefix| format!("{prefix}{rank}.pipe"));
        let dumps = prefixes.into_iter().map(|prefix| prefix + rank).collect();
        Some(Self { pid, rank: (*rank).to_owned(), dumps, pipe, asked: None })
    }

    /// A file of the process, which may be anything.
    fn open(&self, path: &str, how: OFlags) -> Option<File> {
        let root = format!("/proc/{}/root", self.pid);
        let root = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        // A relative path is one of its working directory.
        let path = fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()?.join(path);
        let how = how | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(root, path, how, Mode::empty(), resolve).ok().map(File::from)
    }

    fn ask(&mut self) {
        let Some(mut pipe) = self.pipe.as_ref().and_then(|pipe| self.open(pipe, OFlags::WRONLY)) else {
            return;
        };
        let is_pipe = pipe.metadata().is_ok_and(|status| status.file_type().is_fifo());
        let now = SystemTime::now();
        if is_pipe && pipe.write_all(b"1").is_ok() {
            self.asked = Some(now);
        }
    }

    /// Its dump, and when it was written.
    fn dump(&self) -> Option<(&str, File, SystemTime)> {
        self.dumps.iter().find_map(|path| {
            let file = self.open(path, OFlags::RDONLY)?;
            let status = file.metadata().ok().filter(|status| status.is_file() && status.len() > 0)?;
            Some((path.as_str(), file, status.modified().ok()?))
        })
    }

    /// Whether it has answered, or was not asked.
    fn is_done(&self) -> bool {
        let is_new = |asked: SystemTime| {
            // Its clock is that of the file system, which may be coarse.
            self.dump().is_some_and(|(.., written)| written + Duration::from_millis(20) >= asked)
        };
        self.asked.is_none_or(is_new)
    }
}

/// Has all ranks of these tasks write their dumps, and copies those that there are; a line for each.
pub(super) fn keep(tasks: &[ExaminedTask], into: &Path) -> Vec<String> {
    let mut recorders: BTreeMap<String, Recorder> = BTreeMap::new();
    for pid in tasks.iter().flat_map(|task| &task.processes) {
        if let Some(recorder) = Recorder::of(*pid) {
            // Data loaders have the environment of their rank, and come later.
            recorders.entry(recorder.rank.clone()).or_insert(recorder);
        }
    }
    recorders.values_mut().for_each(Recorder::ask);
    let until = Instant::now() + DUMP_TIMEOUT;
    while !recorders.values().all(Recorder::is_done) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    if recorders.values().any(|recorder| recorder.asked.is_some()) {
        // They are written in several steps.
        std::thread::sleep(Duration::from_millis(200));
    }
    recorders.values().filter_map(|recorder| copy(recorder, into)).collect()
}

fn copy(recorder: &Recorder, into: &Path) -> Option<String> {
    let (path, dump, written) = recorder.dump()?;
    let name = Path::new(path).file_name()?;
    let copied = || {
        fs::create_dir_all(into)?;
        let mut out = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(into.join(name))?;
        std::io::copy(&mut dump.take(MAX_BYTES), &mut out)
    };
    let age = written.elapsed().unwrap_or_default().as_secs();
    Some(match copied() {
        Ok(_) => {
            format!("rank {}: {path}, written {age} s ago: {}", recorder.rank, into.join(name).display())
        }
        Err(error) => format!("rank {}: {path}: not kept: {error}", recorder.rank),
    })
}
