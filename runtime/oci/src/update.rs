//! `jobc oci update` and `jobc oci events`: changes a running container's limits, and reports its usage.

use std::io::Read as _;
use std::time::{Duration, Instant};

use jobc_container::container::update::{oom_kills, stats};
use jobc_container::container::{self, Container};
use jobc_container::oci_state::Status;
use jobc_container::state::Id;
use jobc_container::state::store::Store;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::signals::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::args::UpdateArgs;

/// The interval of checks whether a container has run out of memory or has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Changes the limits.
pub(super) fn run(store: &Store, args: &UpdateArgs) -> Result<()> {
    let change = change(args)?;
    Container::open(store, &Id::new(&args.id)?)?.update(&change)
}

/// The change that a command line asks for: that of the file, with the options over it.
fn change(args: &UpdateArgs) -> Result<Value> {
    let mut change = match &args.resources {
        None => json!({}),
        Some(path) => {
            let mut text = Vec::new();
            let read = if path.as_os_str() == "-" {
                std::io::stdin().read_to_end(&mut text).map(drop)
            } else {
                std::fs::read(path).map(|read| text = read)
            };
            read.map_err(|error| {
                let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
                Error::system(format!("read `{}`", path.display()), errno)
            })?;
            serde_json::from_slice(&text)
                .map_err(|error| Error::new(Kind::Config, format!("the resources are not JSON: {error}")))?
        }
    };
    let options = [
        ("memory", "limit", json!(args.memory)),
        ("memory", "reservation", json!(args.memory_reservation)),
        ("memory", "swap", json!(args.memory_swap)),
        ("cpu", "quota", json!(args.cpu_quota)),
        ("cpu", "period", json!(args.cpu_period)),
        ("cpu", "burst", json!(args.cpu_burst)),
        ("cpu", "shares", json!(args.cpu_share)),
        ("cpu", "idle", json!(args.cpu_idle)),
        ("cpu", "realtimePeriod", json!(args.cpu_rt_period)),
        ("cpu", "realtimeRuntime", json!(args.cpu_rt_runtime)),
        ("cpu", "cpus", json!(args.cpuset_cpus)),
        ("cpu", "mems", json!(args.cpuset_mems)),
        ("pids", "limit", json!(args.pids_limit)),
        ("blockIO", "weight", json!(args.blkio_weight)),
    ];
    for (section, field, value) in options.into_iter().filter(|(.., value)| !value.is_null()) {
        let Some(sections) = change.as_object_mut() else { break };
        let section = sections.entry(section).or_insert_with(|| json!({}));
        if section.is_null() {
            *section = json!({});
        }
        // A value that is not a section stays as it is, and is rejected as such.
        if let Some(section) = section.as_object_mut() {
            section.insert(field.to_owned(), value);
        }
    }
    Ok(change)
}

/// Reports the usage of a container once.
pub(super) fn print_stats(store: &Store, id: &Id) -> Result<()> {
    line("stats", id, Some(stats(store, id)?));
    Ok(())
}

/// Tells again and again, and of memory that runs out, until the container ends or a signal comes.
pub(super) fn follow(store: &Store, id: &Id, interval: Duration) -> Result<()> {
    let signals = Signals::block_forwarded()?;
    let mut killed = oom_kills(store, id)?;
    let mut next = Instant::now() + interval;
    loop {
        let left = next.saturating_duration_since(Instant::now()).min(POLL_INTERVAL);
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let came = poll(&mut [PollFd::new(&signals, PollFlags::IN)], Some(&time));
        if came.is_ok_and(|came| came > 0) && signals.next().is_some() {
            return Ok(());
        }
        // Deleting the container meanwhile ends this too.
        let Ok(record) = store.read(id) else { return Ok(()) };
        let now = oom_kills(store, id)?;
        if now > killed {
            killed = now;
            line("oom", id, None);
        }
        if container::status(&store.directory(id), &record) == Status::Stopped {
            return Ok(());
        }
        if Instant::now() >= next {
            next += interval;
            line("stats", id, Some(stats(store, id)?));
        }
    }
}

fn line(kind: &str, id: &Id, data: Option<Value>) {
    let mut line = json!({"type": kind, "id": id.to_string()});
    if let Some(data) = data {
        line["data"] = data;
    }
    jobc_terminal::print(&format!("{line}\n"));
}
