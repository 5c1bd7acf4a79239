//! The network files of a task: /etc/hosts, /etc/hostname, /etc/resolv.conf.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jobc_schema::dns::Dns;
use jobc_schema::plan::{HOST_GATEWAY, JobPlan};
use oci_spec::runtime::{Mount, Spec};

use jobc_sys::error::{AtPath as _, Result};
use jobc_sys::id::TaskId;

/// The files of a job's network, in a directory of its state.
#[derive(Debug)]
pub(super) struct NetworkFiles {
    directory: PathBuf,
    /// Where containers have those that were written.
    places: Vec<&'static str>,
}

/// What tasks reach through the uplink of their network.
#[derive(Clone, Copy, Debug)]
pub(super) struct UplinkAddresses {
    /// The name server.
    pub(super) resolver: Ipv4Addr,
    /// The host itself, where the uplink leads to it.
    pub(super) gateway: Ipv4Addr,
}

/// The names of hosts, as the host itself and every container has them.
const HOSTS: &str = "/etc/hosts";
const HOST_NAME: &str = "/etc/hostname";
const RESOLVER: &str = "/etc/resolv.conf";

/// Creates the directory.
fn create_directory(directory: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.at_path("create the directory", directory)
}

/// Creates the directory, and the empty file in it that an [uplink](super::uplink) needs.
pub(super) fn create_bridge_file(directory: &Path) -> Result<PathBuf> {
    create_directory(directory)?;
    let file = directory.join("bridge");
    std::fs::write(&file, "").at_path("write", &file)?;
    Ok(file)
}

impl NetworkFiles {
    /// Writes the files of all tasks, into a directory that is created.
    pub(super) fn write(
        directory: PathBuf,
        plan: &JobPlan,
        tasks: &[(&TaskId, IpAddr)],
        uplink: Option<UplinkAddresses>,
    ) -> Result<Self> {
        create_directory(&directory)?;
        let files = Self { directory, places: vec![HOSTS, HOST_NAME, RESOLVER] };
        let gateway = uplink.map(|uplink| IpAddr::V4(uplink.gateway));
        let extra = extra_hosts(plan, gateway);
        files.write_one("hosts", &(extra + &hosts(LOCAL_NAMES, &plan.name, tasks)))?;
        let host = std::fs::read_to_string(RESOLVER).unwrap_or_default();
        let server = uplink.map(|uplink| format!("nameserver {}\n", uplink.resolver));
        let servers = server.as_deref().unwrap_or(NO_SERVER);
        files.write_one("resolv.conf", &resolv_conf(&host, servers, plan.dns.as_ref()))?;
        for (task, _) in tasks {
            files.write_one(&format!("hostname-{task}"), &format!("{task}\n"))?;
        }
        Ok(files)
    }

    /// Writes what the job adds for tasks without a network; `None` if it adds nothing.
    pub(super) fn write_alone(directory: PathBuf, plan: &JobPlan) -> Result<Option<Self>> {
        if plan.extra_hosts.is_empty() && plan.dns.is_none() {
            return Ok(None);
        }
        let mut files = Self::write(directory, plan, &[], None)?;
        files.places.retain(|place| *place != HOST_NAME);
        Ok(Some(files))
    }

    /// Writes the names of tasks that share the host's network into a directory, which is created.
    ///
    /// A container's host name is that of its task, which the host's own file does not have. Programs that look for
    /// their own address by it, such as gloo in PyTorch and JAX, would find none. Each task has a loopback address of
    /// its own: an elastic torchrun tells its instances apart by the name of the address.
    pub(super) fn write_shared(directory: PathBuf, plan: &JobPlan, tasks: &[TaskId]) -> Result<Self> {
        create_directory(&directory)?;
        let mut files = Self { directory, places: vec![HOSTS] };
        let host = std::fs::read_to_string(HOSTS).unwrap_or_else(|_| LOCAL_NAMES.to_owned());
        let tasks: Vec<(&TaskId, IpAddr)> = tasks.iter().zip(loopback_addresses()).collect();
        let extra = extra_hosts(plan, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        files.write_one("hosts", &(extra + &hosts(&host, &plan.name, &tasks)))?;
        if let Some(dns) = &plan.dns {
            let host = std::fs::read_to_string(RESOLVER).unwrap_or_default();
            let servers = lines(&host, &["nameserver"]);
            files.write_one("resolv.conf", &resolv_conf(&host, &servers, Some(dns)))?;
            files.places.push(RESOLVER);
        }
        Ok(files)
    }

    /// Replaces the host's files in the container of a task that shares the host's network; returns whether the
    /// container had one. A file of the job at that place takes precedence.
    pub(super) fn replace_shared(&self, spec: &mut Spec) -> bool {
        let mut has_changed = false;
        for mount in spec.mounts_mut().get_or_insert_default() {
            let own = self.places.iter().find(|place| mount.destination() == Path::new(place));
            let Some(place) = own.filter(|place| mount.source().as_deref() == Some(Path::new(place))) else {
                continue;
            };
            mount.set_source(Some(self.directory.join(place.trim_start_matches("/etc/"))));
            has_changed = true;
        }
        has_changed
    }

    /// Writes a file that every user of a container may read.
    fn write_one(&self, name: &str, text: &str) -> Result<()> {
        use std::io::Write as _;
        let path = self.directory.join(name);
        let write = || {
            let _ = std::fs::remove_file(&path);
            let mut file =
                std::fs::OpenOptions::new().create_new(true).write(true).mode(0o644).open(&path)?;
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
            file.write_all(text.as_bytes())
        };
        write().at_path("write", &path)
    }

    /// Binds the files into a task's container, read-only. The job's own mounts take precedence.
    pub(super) fn bind(&self, task: &TaskId, spec: &mut Spec) {
        let mounts = spec.mounts_mut().get_or_insert_default();
        for place in &self.places {
            let name = match *place {
                HOST_NAME => format!("hostname-{task}"),
                other => other.trim_start_matches("/etc/").to_owned(),
            };
            let place = Path::new(place);
            // A volume at /etc is the job's own too, and not to be written to.
            let covers = |mount: &Mount| {
                place.starts_with(mount.destination()) && mount.destination() != Path::new("/")
            };
            if mounts.iter().any(covers) {
                continue;
            }
            let mut mount = Mount::default();
            mount.set_destination(place.to_owned());
            mount.set_typ(Some("bind".to_owned()));
            mount.set_source(Some(self.directory.join(name)));
            mount.set_options(Some(["bind", "ro", "nosuid", "nodev", "noexec"].map(str::to_owned).to_vec()));
            mounts.push(mount);
        }
    }
}

/// The names that every host has.
const LOCAL_NAMES: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// Addresses of 127.0.0.0/8, all of which are the host's own, apart from those that distributions use.
fn loopback_addresses() -> impl Iterator<Item = IpAddr> {
    let first = u32::from(Ipv4Addr::new(127, 1, 0, 1));
    (first..u32::from(Ipv4Addr::new(127, 255, 255, 255))).map(|address| IpAddr::V4(Ipv4Addr::from(address)))
}

/// Other names, then those of all tasks (hosts(5)): `worker-0`, and `worker-0.train` as on a cluster.
fn hosts(others: &str, job: &str, tasks: &[(&TaskId, IpAddr)]) -> String {
    let mut text = others.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (task, address) in tasks {
        let _ = writeln!(text, "{address}\t{task} {task}.{job}");
    }
    text
}

/// The names of the job file, which come first: of a name that is there twice, the first line counts.
fn extra_hosts(plan: &JobPlan, gateway: Option<IpAddr>) -> String {
    let mut text = String::new();
    for (name, address) in &plan.extra_hosts {
        let gateway = || gateway.map(|gateway| gateway.to_string());
        let address = if address == HOST_GATEWAY { gateway() } else { Some(address.clone()) };
        if let Some(address) = address {
            let _ = writeln!(text, "{address}\t{name}");
        }
    }
    text
}

/// What a network without an uplink has instead of name servers.
const NO_SERVER: &str = "# The job's network has no uplink, and therefore no name server.\n";

/// The lines of a resolv.conf(5) that begin with one of these words.
fn lines(text: &str, words: &[&str]) -> String {
    let kept = |line: &&str| line.split_whitespace().next().is_some_and(|word| words.contains(&word));
    text.lines().filter(kept).map(|line| format!("{line}\n")).collect()
}

/// The configuration of the resolver (resolv.conf(5)): what the job sets, and otherwise the host's search list and
/// options with these servers.
fn resolv_conf(host: &str, servers: &str, dns: Option<&Dns>) -> String {
    let none = Dns::default();
    let dns = dns.unwrap_or(&none);
    let one = |word: &str, values: &[String], other: String| match values {
        [] => other,
        // As for Docker: no domain, not even that of the host.
        [root] if word == "search" && root == "." => String::new(),
        values => format!("{word} {}\n", values.join(" ")),
    };
    let has_uplink = !servers.starts_with('#');
    let of_host = |words: &[&str]| if has_uplink { lines(host, words) } else { String::new() };
    let servers = match &dns.servers[..] {
        [] => servers.to_owned(),
        own => own.iter().map(|server| format!("nameserver {server}\n")).collect(),
    };
    one("search", &dns.search, of_host(&["search", "domain"]))
        + &one("options", &dns.options, of_host(&["options"]))
        + &servers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_knows_all_names() {
        let (worker, server) = (TaskId::new("worker", 1), TaskId::new("ps", 0));
        let tasks = [(&worker, IpAddr::from([10, 201, 1, 2])), (&server, IpAddr::from([10, 201, 1, 1]))];
        insta::assert_snapshot!(hosts(LOCAL_NAMES, "train", &tasks), @r"
        127.0.0.1	localhost
        ::1	localhost ip6-localhost ip6-loopback
        10.201.1.2	worker-1 worker-1.train
        10.201.1.1	ps-0 ps-0.train
        ");
    }

    #[test]
    fn tasks_on_the_host_network_get_its_names() {
        let (first, second) = (TaskId::new("worker", 0), TaskId::new("worker", 1));
        let host = "127.0.0.1 localhost\n192.0.2.7 storage.lab";
        let tasks: Vec<(&TaskId, IpAddr)> = [&first, &second].into_iter().zip(loopback_addresses()).collect();
        insta::assert_snapshot!(hosts(host, "train", &tasks), @r"
        127.0.0.1 localhost
        192.0.2.7 storage.lab
        127.1.0.1	worker-0 worker-0.train
        127.1.0.2	worker-1 worker-1.train
        ");
    }

    #[test]
    fn only_the_file_of_the_host_is_replaced() {
        let files = NetworkFiles { directory: PathBuf::from("/state/network"), places: vec![HOSTS] };
        let replaced = |source: &str| {
            let mut mount = Mount::default();
            mount.set_destination(PathBuf::from("/etc/hosts")).set_source(Some(PathBuf::from(source)));
            let mut spec = Spec::default();
            spec.set_mounts(Some(vec![mount]));
            let changed = files.replace_shared(&mut spec);
            (changed, spec.mounts().as_ref().unwrap()[0].source().clone().unwrap())
        };
        assert_eq!(replaced("/etc/hosts"), (true, PathBuf::from("/state/network/hosts")));
        assert_eq!(replaced("/bundle/files/etc/hosts"), (false, PathBuf::from("/bundle/files/etc/hosts")));
    }

    #[test]
    fn names_are_resolved_at_the_uplink() {
        let machine = "# made by x\nnameserver 127.0.0.53\nsearch lab.example\noptions edns0 trust-ad\n";
        let uplink = "nameserver 10.202.0.3\n";
        insta::assert_snapshot!(resolv_conf(machine, uplink, None), @r"
        search lab.example
        options edns0 trust-ad
        nameserver 10.202.0.3
        ");
        assert_eq!(resolv_conf(machine, NO_SERVER, None), NO_SERVER);
        let list = |values: &[&str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
        let dns =
            Dns { servers: list(&["10.0.0.2", "10.0.0.3"]), search: list(&["a", "b"]), ..Dns::default() };
        insta::assert_snapshot!(resolv_conf(machine, uplink, Some(&dns)), @r"
        search a b
        options edns0 trust-ad
        nameserver 10.0.0.2
        nameserver 10.0.0.3
        ");
        let dns = Dns { search: list(&["."]), options: list(&["ndots:2"]), ..Dns::default() };
        insta::assert_snapshot!(resolv_conf(machine, uplink, Some(&dns)), @r"
        options ndots:2
        nameserver 10.202.0.3
        ");
    }

    #[test]
    fn files_of_the_job_take_precedence() {
        let places = |written: &[&str]| {
            let mut spec = Spec::default();
            let mount = |place: &&str| {
                let mut mount = Mount::default();
                mount.set_destination(PathBuf::from(place));
                mount
            };
            spec.set_mounts(Some(written.iter().map(mount).collect()));
            let places = vec![HOSTS, HOST_NAME, RESOLVER];
            let files = NetworkFiles { directory: PathBuf::from("/state/network"), places };
            files.bind(&TaskId::new("w", 0), &mut spec);
            let mounts = spec.mounts().iter().flatten().skip(written.len());
            mounts.map(|mount| mount.destination().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(places(&["/proc"]), ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"]);
        assert_eq!(places(&["/etc/hosts", "/etc/resolv.conf/"]), ["/etc/hostname"]);
        assert!(places(&["/etc"]).is_empty());
    }
}
