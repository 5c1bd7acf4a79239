//! What a task reads about the network: /etc/hosts, /etc/hostname, /etc/resolv.conf.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use oci_spec::runtime::{Mount, Spec};

use jobc_sys::error::{Result, file_error};
use jobc_sys::id::TaskId;

/// The files of a job's network, in a directory of its state.
#[derive(Debug)]
pub(super) struct NetworkFiles {
    directory: PathBuf,
}

/// Creates the directory, and the empty file in it that an [uplink](super::uplink) needs.
pub(super) fn create_directory(directory: &Path) -> Result<PathBuf> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| file_error("create the directory", directory, &error))?;
    let file = directory.join("bridge");
    std::fs::write(&file, "").map_err(|error| file_error("write", &file, &error))?;
    Ok(file)
}

impl NetworkFiles {
    /// Writes the files of all tasks into a directory that is there.
    pub(super) fn write(
        directory: PathBuf,
        job: &str,
        tasks: &[(&TaskId, IpAddr)],
        resolver: Option<IpAddr>,
    ) -> Result<Self> {
        let files = Self { directory };
        files.write_one("hosts", &hosts(job, tasks))?;
        let host = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        files.write_one("resolv.conf", &resolv_conf(&host, resolver))?;
        for (task, _) in tasks {
            files.write_one(&format!("hostname-{task}"), &format!("{task}\n"))?;
        }
        Ok(files)
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
        write().map_err(|error| file_error("write", &path, &error))
    }

    /// Binds the files into a task's container, read-only. The job's own mounts take precedence.
    pub(super) fn bind(&self, task: &TaskId, spec: &mut Spec) {
        let mounts = spec.mounts_mut().get_or_insert_default();
        let places = [
            ("/etc/hosts", "hosts".to_owned()),
            ("/etc/hostname", format!("hostname-{task}")),
            ("/etc/resolv.conf", "resolv.conf".to_owned()),
        ];
        for (place, name) in places {
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

/// The names of all tasks (hosts(5)): `worker-0`, and `worker-0.train` as on a cluster.
fn hosts(job: &str, tasks: &[(&TaskId, IpAddr)]) -> String {
    let mut text = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned();
    for (task, address) in tasks {
        let _ = writeln!(text, "{address}\t{task} {task}.{job}");
    }
    text
}

/// The name server configuration (resolv.conf(5)): the host's own search list and options with another server.
fn resolv_conf(host: &str, resolver: Option<IpAddr>) -> String {
    let Some(resolver) = resolver else {
        return "# The job's network has no uplink, so there is no name server.\n".to_owned();
    };
    let kept = |line: &&str| matches!(line.split_whitespace().next(), Some("search" | "domain" | "options"));
    let kept: String = host.lines().filter(kept).map(|line| format!("{line}\n")).collect();
    format!("{kept}nameserver {resolver}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_knows_all_names() {
        let (worker, server) = (TaskId::new("worker", 1), TaskId::new("ps", 0));
        let tasks = [(&worker, IpAddr::from([10, 201, 1, 2])), (&server, IpAddr::from([10, 201, 1, 1]))];
        insta::assert_snapshot!(hosts("train", &tasks), @r"
        127.0.0.1	localhost
        ::1	localhost ip6-localhost ip6-loopback
        10.201.1.2	worker-1 worker-1.train
        10.201.1.1	ps-0 ps-0.train
        ");
    }

    #[test]
    fn names_are_resolved_at_the_uplink() {
        let machine = "# made by x\nnameserver 127.0.0.53\nsearch lab.example\noptions edns0 trust-ad\n";
        insta::assert_snapshot!(resolv_conf(machine, Some(IpAddr::from([10, 202, 0, 3]))), @r"
        search lab.example
        options edns0 trust-ad
        nameserver 10.202.0.3
        ");
        assert!(!resolv_conf(machine, None).contains("nameserver"));
    }

    #[test]
    fn what_the_job_puts_there_goes_before() {
        let places = |written: &[&str]| {
            let mut spec = Spec::default();
            let mount = |place: &&str| {
                let mut mount = Mount::default();
                mount.set_destination(PathBuf::from(place));
                mount
            };
            spec.set_mounts(Some(written.iter().map(mount).collect()));
            NetworkFiles { directory: PathBuf::from("/state/network") }.bind(&TaskId::new("w", 0), &mut spec);
            let mounts = spec.mounts().iter().flatten().skip(written.len());
            mounts.map(|mount| mount.destination().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(places(&["/proc"]), ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"]);
        assert_eq!(places(&["/etc/hosts", "/etc/resolv.conf/"]), ["/etc/hostname"]);
        assert!(places(&["/etc"]).is_empty());
    }
}
