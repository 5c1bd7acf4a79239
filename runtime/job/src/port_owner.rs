//! Who has a port of this host that a job needs: a job of this user, or another process.

use jobc_sys::id::JobId;
use jobc_sys::process::Process;
use jobc_sys::sockets::tcp_sockets;

use crate::directory::JobDirectories;
use crate::record::Record;

/// Who has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortOwner {
    /// A running job of this user.
    Job(JobId),
    /// Another process, as text: ``process 12 (`python3`)``.
    Process(String),
}

/// Who has a port, if this user can see it: the job that claims it, or the process that listens in the network namespace
/// of this thread.
pub fn of(port: u16) -> Option<PortOwner> {
    let jobs = running_jobs();
    if let Some(job) = jobs.iter().find(|job| job.claim.ports.contains(&port)) {
        return Some(PortOwner::Job(job.id.clone()));
    }
    let pid = listener(port)?;
    // All processes of a job descend from its supervisor.
    let of_job = std::iter::successors(Some(pid), |pid| parent(*pid)).find_map(|pid| {
        jobs.iter().find(|job| job.supervisor.is_some_and(|supervisor| supervisor.pid == pid))
    });
    let process = || {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        PortOwner::Process(format!("process {pid} (`{}`)", name.trim().escape_debug()))
    };
    Some(of_job.map_or_else(process, |job| PortOwner::Job(job.id.clone())))
}

/// The owner at the end of a message: `` by `web.1` ``; empty if it is unknown.
pub(crate) fn by(owner: Option<&PortOwner>) -> String {
    match owner {
        Some(PortOwner::Job(job)) => format!(" by the job `{job}`"),
        Some(PortOwner::Process(process)) => format!(" by {process}"),
        None => String::new(),
    }
}

/// The advice, after that to stop the job that has the port.
pub(crate) fn or_stop(owner: Option<&PortOwner>, advice: &str) -> String {
    match owner {
        Some(PortOwner::Job(job)) => format!("stop that job with `jobc stop {job}`, or {advice}"),
        _ => advice.to_owned(),
    }
}

/// The records of this user's running jobs.
fn running_jobs() -> Vec<Record> {
    let Ok(places) = JobDirectories::standard() else { return vec![] };
    let ids = places.list().unwrap_or_default().into_iter();
    let records = ids.filter_map(|id| Record::read(&places.job(&id)).ok().flatten());
    records
        .filter(|record| !record.state.is_final())
        .filter(|record| record.supervisor.is_some_and(Process::is_alive))
        .collect()
}

/// The process that listens at a port.
fn listener(port: u16) -> Option<u32> {
    let tables =
        ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"].iter().flat_map(std::fs::read_to_string);
    let socket = tables
        .flat_map(|table| tcp_sockets(&table).collect::<Vec<_>>())
        .find(|socket| socket.listens && socket.local_port == port)?
        .inode;
    let wanted = format!("socket:[{socket}]");
    let mut processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let mut open = std::fs::read_dir(entry.path().join("fd")).ok()?.flatten();
        open.find(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == wanted.as_str()))?;
        Some(pid)
    })
}

/// The parent of a process (proc_pid_status(5)).
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|parent| *parent > 0)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_host_tells_who_listens() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listener(port), Some(std::process::id()), "our own descriptors are ours to see");
        let owner = of(port);
        assert!(
            by(owner.as_ref()).starts_with(&format!(" by process {} (`", std::process::id())),
            "{owner:?}"
        );
        drop(socket);
        assert_eq!(listener(port), None);
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn the_advice_stops_only_an_own_job() {
        let job = PortOwner::Job("web.1".parse().unwrap());
        assert_eq!(by(Some(&job)), " by the job `web.1`");
        assert_eq!(or_stop(Some(&job), "choose"), "stop that job with `jobc stop web.1`, or choose");
        assert_eq!(or_stop(None, "choose"), "choose");
    }
}
