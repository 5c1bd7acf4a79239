//! The resource usage of a container, in the format of an OCI runtime's `events --stats`.
//!
//! The names are those of runc's command line, which callers read; times are in nanoseconds, sizes in bytes, and no
//! limit is the largest number. Values that the kernel does not count here are left out.

use serde_json::{Map, Value, json};

use super::layout::Version;
use super::record::Cgroup;

/// Nanoseconds of a tick in which cpuacct.stat counts (`USER_HZ`, 100 on every architecture here).
const TICK_NANOSECONDS: u64 = 10_000_000;

impl Cgroup {
    /// The usage of the container so far, as JSON.
    pub fn stats(&self) -> Value {
        let files = Files(self);
        let mut stats = Map::new();
        for (name, part) in [
            ("cpu", files.cpu()),
            ("memory", files.memory()),
            ("pids", files.pids()),
            ("blkio", files.disks()),
        ] {
            if part.as_object().is_some_and(|part| !part.is_empty()) {
                stats.insert(name.to_owned(), part);
            }
        }
        Value::Object(stats)
    }
}

/// The files of all groups of a container.
struct Files<'a>(&'a Cgroup);

impl Files<'_> {
    /// A file of that version.
    fn text(&self, version: Version, name: &str) -> Option<String> {
        let groups = self.0.record.groups.iter().filter(|group| group.version == version && group.exists());
        groups.into_iter().find_map(|group| std::fs::read_to_string(group.directory.join(name)).ok())
    }

    /// The number that a file holds, by either name; `max` is the largest.
    fn number(&self, v2: &str, v1: &str) -> Option<u64> {
        let text = self.text(Version::V2, v2).or_else(|| self.text(Version::V1, v1))?;
        if text.trim() == "max" { Some(u64::MAX) } else { text.trim().parse().ok() }
    }

    fn cpu(&self) -> Value {
        let mut usage = Map::new();
        let mut throttling = Map::new();
        if let Some(text) = self.text(Version::V2, "cpu.stat") {
            let micro = |key: &str| value_of_key(&text, key).map(|time| time * 1_000);
            insert_numbers(
                &mut usage,
                &[
                    ("total", micro("usage_usec")),
                    ("user", micro("user_usec")),
                    ("kernel", micro("system_usec")),
                ],
            );
            insert_numbers(&mut throttling, &throttled(&text, micro("throttled_usec")));
        } else {
            insert_numbers(&mut usage, &[("total", self.number("", "cpuacct.usage"))]);
            if let Some(text) = self.text(Version::V1, "cpuacct.stat") {
                let ticks = |key: &str| value_of_key(&text, key).map(|ticks| ticks * TICK_NANOSECONDS);
                insert_numbers(&mut usage, &[("user", ticks("user")), ("kernel", ticks("system"))]);
            }
        }
        if let Some(text) = self.text(Version::V1, "cpu.stat") {
            insert_numbers(&mut throttling, &throttled(&text, value_of_key(&text, "throttled_time")));
        }
        parts([("usage", usage), ("throttling", throttling)])
    }

    fn memory(&self) -> Value {
        let (mut usage, mut swap, mut raw) = (Map::new(), Map::new(), Map::new());
        let used = self.number("memory.current", "memory.usage_in_bytes");
        let hits = self.text(Version::V2, "memory.events").and_then(|text| value_of_key(&text, "max"));
        insert_numbers(
            &mut usage,
            &[
                ("limit", self.number("memory.max", "memory.limit_in_bytes")),
                ("usage", used),
                ("max", self.number("memory.peak", "memory.max_usage_in_bytes")),
                ("failcnt", hits.or_else(|| self.number("", "memory.failcnt"))),
            ],
        );
        // Both versions are reported as cgroup v1 counts: memory and swap together.
        let both = |swap: Option<u64>, memory: Option<u64>| Some(swap?.saturating_add(memory?));
        let limit = both(self.number("memory.swap.max", ""), self.number("memory.max", ""));
        insert_numbers(
            &mut swap,
            &[
                ("limit", limit.or_else(|| self.number("", "memory.memsw.limit_in_bytes"))),
                (
                    "usage",
                    both(self.number("memory.swap.current", ""), used)
                        .or_else(|| self.number("", "memory.memsw.usage_in_bytes")),
                ),
                ("max", self.number("", "memory.memsw.max_usage_in_bytes")),
                ("failcnt", self.number("", "memory.memsw.failcnt")),
            ],
        );
        let text = self.text(Version::V2, "memory.stat").or_else(|| self.text(Version::V1, "memory.stat"));
        for line in text.as_deref().unwrap_or_default().lines() {
            if let Some((key, number)) = line.split_once(' ') {
                insert_numbers(&mut raw, &[(key, number.parse().ok())]);
            }
        }
        let cache = raw.get("cache").or_else(|| raw.get("file")).cloned();
        let mut memory = parts([("usage", usage), ("swap", swap), ("raw", raw)]);
        if let (Some(cache), Some(memory)) = (cache, memory.as_object_mut()) {
            memory.insert("cache".to_owned(), cache);
        }
        memory
    }

    fn pids(&self) -> Value {
        let mut pids = Map::new();
        // runc writes 0 for no limit here.
        let limit =
            self.number("pids.max", "pids.max").map(|limit| if limit == u64::MAX { 0 } else { limit });
        insert_numbers(
            &mut pids,
            &[("current", self.number("pids.current", "pids.current")), ("limit", limit)],
        );
        Value::Object(pids)
    }

    fn disks(&self) -> Value {
        let (mut bytes, mut operations) = (vec![], vec![]);
        for line in self.text(Version::V2, "io.stat").unwrap_or_default().lines() {
            let mut words = line.split(' ');
            let device = words.next().unwrap_or_default();
            for (key, value) in words.filter_map(|word| word.split_once('=')) {
                let (list, name) = match key {
                    "rbytes" => (&mut bytes, "Read"),
                    "wbytes" => (&mut bytes, "Write"),
                    "rios" => (&mut operations, "Read"),
                    "wios" => (&mut operations, "Write"),
                    _ => continue,
                };
                list.extend(entry(device, name, value));
            }
        }
        for (file, list) in [
            ("blkio.throttle.io_service_bytes_recursive", &mut bytes),
            ("blkio.throttle.io_serviced_recursive", &mut operations),
        ] {
            for line in self.text(Version::V1, file).unwrap_or_default().lines() {
                if let [device, name, value] = line.split(' ').collect::<Vec<_>>()[..] {
                    list.extend(entry(device, name, value));
                }
            }
        }
        let mut disks = Map::new();
        for (key, list) in [("ioServiceBytesRecursive", bytes), ("ioServicedRecursive", operations)] {
            if !list.is_empty() {
                disks.insert(key.to_owned(), Value::Array(list));
            }
        }
        Value::Object(disks)
    }
}

fn throttled(text: &str, time: Option<u64>) -> [(&'static str, Option<u64>); 3] {
    let of = |key| value_of_key(text, key);
    [("periods", of("nr_periods")), ("throttledPeriods", of("nr_throttled")), ("throttledTime", time)]
}

fn entry(device: &str, op: &str, value: &str) -> Option<Value> {
    let (major, minor) = device.split_once(':')?;
    let number = |text: &str| text.parse::<u64>().ok();
    Some(json!({"major": number(major)?, "minor": number(minor)?, "op": op, "value": number(value)?}))
}

fn value_of_key(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

fn insert_numbers(object: &mut Map<String, Value>, fields: &[(&str, Option<u64>)]) {
    for (key, value) in fields {
        if let Some(value) = value {
            object.insert((*key).to_owned(), json!(value));
        }
    }
}

fn parts<const N: usize>(parts: [(&str, Map<String, Value>); N]) -> Value {
    let filled = parts.into_iter().filter(|(_, part)| !part.is_empty());
    Value::Object(filled.map(|(name, part)| (name.to_owned(), Value::Object(part))).collect())
}
