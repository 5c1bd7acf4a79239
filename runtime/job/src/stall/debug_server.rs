//! PyTorch's debug server: the Python stacks of a rank, and its last collective, by the rank itself.
//!
//! A process that has called `torch.distributed.debug.start_debug_server` (PyTorch 2.10 and later) serves HTTP in a
//! thread of its own, at any port. Which one is known without a request to another socket of it: the thread waits in
//! `accept` for it. A rank that holds Python's lock does not answer.

use std::fmt::Write as _;
use std::fs;
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use jobc_sys::write_atomic::Durability;
use serde_json::Value;

use super::examine::{ExaminedTask, in_network_of};
use super::sockets;

/// The name that PyTorch gives the thread.
const THREAD: &str = "pt_workerserver";

/// The numbers of `accept` and `accept4`.
#[cfg(target_arch = "x86_64")]
const ACCEPT: [&str; 2] = ["43", "288"];
#[cfg(not(target_arch = "x86_64"))]
const ACCEPT: [&str; 2] = ["202", "242"];

/// How long a rank may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long all ranks of a job may take.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(15);

/// More of an answer is not read.
const MAX_BYTES: usize = 16 << 20;

/// More lines of stacks are not shown.
const MAX_LINES: usize = 400;

/// Asks all ranks of these tasks; what they say, for the report. Flight recorders are kept in `into`.
pub(super) fn ask(tasks: &[ExaminedTask], into: &Path) -> String {
    let until = Instant::now() + TOTAL_TIMEOUT;
    let mut text = String::new();
    for (task, pid) in tasks.iter().flat_map(|task| task.processes.iter().map(move |pid| (task, *pid))) {
        let Some(port) = port_of(pid) else { continue };
        let _ = writeln!(text, "{}, process {pid}, port {port}", task.id);
        let ask = |handler: &str| {
            let until = until.min(Instant::now() + TIMEOUT);
            in_network_of(pid, || post(port, handler, until).map_err(|error| error.to_string()))
                .unwrap_or_else(|error| Err(error.to_string()))
        };
        match ask("dump_traceback") {
            Ok(stacks) => {
                stacks.lines().take(MAX_LINES).for_each(|line| _ = writeln!(text, "  {line}"));
            }
            Err(error) => {
                let _ = writeln!(text, "  no stacks: {error}");
                if !error.starts_with("HTTP") {
                    continue;
                }
            }
        }
        if let Ok(trace) = ask("fr_trace_json") {
            let kept = into.join(format!("flight-recorder-{}-{pid}.json", task.id));
            let is_kept = fs::create_dir_all(into).is_ok()
                && crate::directory::replace(&kept, trace.as_bytes(), Durability::Rename).is_ok();
            let file = if is_kept { format!(": {}", kept.display()) } else { String::new() };
            let last = last_collective(&trace).unwrap_or_else(|| "none".to_owned());
            let _ = writeln!(text, "  last collective: {last}{file}");
        }
    }
    text
}

/// The port of the debug server of a process.
fn port_of(pid: u32) -> Option<u16> {
    let mut threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let waits_for = |thread: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).ok();
        if read("comm")?.trim() != THREAD {
            return None;
        }
        let call = read("syscall")?;
        let mut words = call.split_whitespace();
        let number = words.next()?;
        let descriptor = words.next()?.strip_prefix("0x")?;
        ACCEPT.contains(&number).then(|| u32::from_str_radix(descriptor, 16).ok())?
    };
    sockets::listening_port(pid, threads.find_map(waits_for)?)
}

/// The answer of a handler, in the network namespace of this thread.
fn post(port: u16, handler: &str, until: Instant) -> Result<String> {
    let left = || Some(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
    let connect = |address: SocketAddr| TcpStream::connect_timeout(&address, left().unwrap_or(TIMEOUT));
    let mut stream = connect((Ipv4Addr::LOCALHOST, port).into())
        .or_else(|_| connect((Ipv6Addr::LOCALHOST, port).into()))?;
    stream.set_write_timeout(left())?;
    // In one write: a server may read only once. The end of an answer of HTTP/1.0 is that of the connection.
    let request = format!("POST /handler/{handler} HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut buffer) = (vec![], [0; 16 << 10]);
    while answer.len() < MAX_BYTES {
        if Instant::now() >= until {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(left())?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| Error::other("not an answer of HTTP"))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split_whitespace().nth(1) != Some("200") {
        return Err(Error::other(format!("{status}: {}", body.lines().next().unwrap_or_default())));
    }
    Ok(body.to_owned())
}

/// The last entry of a flight recorder: `gloo:all_reduce of default_pg, number 4, scheduled`.
fn last_collective(trace: &str) -> Option<String> {
    let trace: Value = serde_json::from_str(trace).ok()?;
    let last = trace.get("entries")?.as_array()?.iter().max_by_key(|entry| entry["record_id"].as_u64())?;
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let state = if last["retired"] == true { "completed".to_owned() } else { word(&last["state"]) };
    let number = &last["collective_seq_id"];
    Some(format!(
        "{} of {}, number {number}, {state}",
        word(&last["profiling_name"]),
        word(&last["process_group"][1])
    ))
}

#[cfg(test)]
mod tests {
    use super::last_collective;

    /// As gloo of PyTorch 2.15 has it.
    #[test]
    fn the_last_collective_is_named() {
        let entry = |number: u32, retired: bool| {
            serde_json::json!({
                "collective_seq_id": number, "record_id": number - 1, "retired": retired, "state": "scheduled",
                "process_group": ["0", "default_pg"], "profiling_name": "gloo:all_reduce",
            })
        };
        let of = |entries: &[serde_json::Value]| {
            last_collective(&serde_json::json!({"entries": entries}).to_string())
        };
        let last = of(&[entry(4, false), entry(3, true)]);
        assert_eq!(last.as_deref(), Some("gloo:all_reduce of default_pg, number 4, scheduled"));
        let last = of(&[entry(3, true)]);
        assert_eq!(last.as_deref(), Some("gloo:all_reduce of default_pg, number 3, completed"));
        assert_eq!((of(&[]), last_collective("no json")), (None, None));
    }
}
