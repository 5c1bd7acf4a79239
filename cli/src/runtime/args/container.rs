//! The options of `docker run` that `jobc run -- COMMAND` also accepts, with the same names.

use std::path::Path;

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args as ClapArgs, Command, FromArgMatches};
use serde_json::{Value, json};

use crate::completion;

#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct ContainerArgs {
    /// Run COMMAND in this image instead of on the files of the host
    ///
    /// An image reference, or the path of an archive or a directory. COMMAND replaces the image's CMD and its
    /// ENTRYPOINT stays, as in `docker run`. Without COMMAND the image's CMD runs.
    #[arg(long, value_name = "IMAGE", help_heading = HEADING, add = completion::files())]
    pub image: Option<String>,
    /// Mount a file or directory of the host for COMMAND (repeatable)
    ///
    /// Example: `-v ./data:/data:ro`. HOST is a path; a relative path must begin with `./` or `../`.
    #[arg(long, short, value_name = "HOST:CONTAINER[:ro]", value_parser = parse_volume, help_heading = HEADING)]
    pub volume: Vec<Volume>,
    /// Mount an empty directory in memory for COMMAND (repeatable)
    ///
    /// Example: `--tmpfs /scratch:size=2g`. It counts against `--memory`.
    #[arg(long, value_name = "CONTAINER:size=SIZE", value_parser = parse_tmpfs, help_heading = HEADING)]
    pub tmpfs: Vec<(String, String)>,
    /// Add a device node of the host, or a directory of them (repeatable)
    ///
    /// Example: `--device /dev/fuse`. GPUs are given by `--gpus`.
    #[arg(long, value_name = "PATH", value_parser = parse_device, help_heading = HEADING)]
    pub device: Vec<String>,
    /// Add a name to /etc/hosts of COMMAND (repeatable)
    ///
    /// The address `host-gateway` stands for the host itself, whose loopback addresses are not reached otherwise.
    #[arg(long, value_name = "NAME:ADDRESS", value_parser = parse_host, help_heading = HEADING)]
    pub add_host: Vec<(String, String)>,
    /// Address of a name server, instead of those of the host (repeatable)
    #[arg(long, value_name = "ADDRESS", help_heading = HEADING)]
    pub dns: Vec<String>,
    /// Domain in which short names are looked up (repeatable)
    #[arg(long, value_name = "DOMAIN", help_heading = HEADING)]
    pub dns_search: Vec<String>,
    /// Option of the resolver, such as `ndots:2` (repeatable)
    #[arg(long, visible_alias = "dns-opt", value_name = "OPTION", help_heading = HEADING)]
    pub dns_option: Vec<String>,
    /// Working directory of COMMAND
    #[arg(long, short, value_name = "DIR", value_parser = parse_absolute, help_heading = HEADING)]
    pub workdir: Option<String>,
    /// User of COMMAND
    #[arg(long, short, value_name = "USER[:GROUP]", help_heading = HEADING)]
    pub user: Option<String>,
    /// Network of COMMAND [default: `job` with `--publish`, otherwise from the target]
    ///
    /// `host`, `none`, or `job`: a private network, called `bridge` by Docker.
    #[arg(long, alias = "net", value_name = "NETWORK", value_parser = parse_network, help_heading = HEADING)]
    pub network: Option<String>,
    /// Program to run instead of the image's ENTRYPOINT
    #[arg(long, value_name = "PROGRAM", requires = "image", help_heading = HEADING)]
    pub entrypoint: Option<String>,
    /// Limit of setrlimit(2) for COMMAND (repeatable)
    ///
    /// Example: `--ulimit memlock=-1`.
    #[arg(long, value_name = "NAME=N", value_parser = parse_ulimit, help_heading = HEADING)]
    pub ulimit: Vec<(String, Value)>,
    /// Limit the bytes per second that COMMAND reads from a device (repeatable)
    ///
    /// Example: `--device-read-bps /dev/nvme0n1:500mb`. A path that is not a device stands for the device of its file
    /// system.
    #[arg(long, value_name = "PATH:RATE", value_parser = parse_byte_rate, help_heading = HEADING)]
    pub device_read_bps: Vec<(String, Value)>,
    /// Limit the bytes per second that COMMAND writes to a device (repeatable)
    #[arg(long, value_name = "PATH:RATE", value_parser = parse_byte_rate, help_heading = HEADING)]
    pub device_write_bps: Vec<(String, Value)>,
    /// Limit the read operations of COMMAND per second on a device (repeatable)
    #[arg(long, value_name = "PATH:N", value_parser = parse_operation_rate, help_heading = HEADING)]
    pub device_read_iops: Vec<(String, Value)>,
    /// Limit the write operations of COMMAND per second on a device (repeatable)
    #[arg(long, value_name = "PATH:N", value_parser = parse_operation_rate, help_heading = HEADING)]
    pub device_write_iops: Vec<(String, Value)>,
    /// Linux capability to add (repeatable)
    #[arg(long, value_name = "CAPABILITY", help_heading = HEADING)]
    pub cap_add: Vec<String>,
    /// Linux capability to drop (repeatable)
    #[arg(long, value_name = "CAPABILITY", help_heading = HEADING)]
    pub cap_drop: Vec<String>,
    /// Give COMMAND all privileges on the host
    #[arg(long, help_heading = HEADING)]
    pub privileged: bool,
    /// Make the root file system read-only
    #[arg(long, help_heading = HEADING)]
    pub read_only: bool,
    /// Accepted for compatibility with `docker run`; containers are always removed when they exit
    #[arg(long, help_heading = HEADING)]
    pub rm: bool,
    #[command(flatten)]
    pub rejected: RejectedOptions,
}

/// One `--volume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Absolute path on the host.
    pub source: String,
    pub mount: String,
    pub writable: bool,
}

const HEADING: &str = "Command options";

/// Options of `docker run` that have no counterpart here, and what to write instead.
#[rustfmt::skip]
const REJECTED: [(&str, &str); 16] = [
    ("blkio-weight", "write `cgroup: {io_weight: N}` of a target, or limit rates, as in `--device-write-bps PATH:RATE`"),
    ("cgroup-parent", "start jobc in that cgroup: containers are created below its own"),
    ("cpuset-cpus", "write `--cpus N`; a job gets its own CPUs by `cpu_pinning` of a target"),
    ("env-file", "write `-e NAME` for each variable, or `env` in a job file"),
    ("hostname", "leave it out: a container has the name of its task; `--name` names the job"),
    ("ipc", "write `--shm-size SIZE`: processes of a task share its own /dev/shm of that size; roles of a job file share one by `source: \"job:memory\"` at /dev/shm"),
    ("label", "write `labels` in a job file"),
    ("link", "write several roles with `network: job` in a job file"),
    ("log-driver", "leave it out: `jobc logs` shows the output"),
    ("mount", "write `-v HOST:CONTAINER[:ro]`"),
    ("pid", "leave it out: a task has its own pid namespace; `jobc ps` and `jobc exec` reach its processes"),
    ("platform", "pull the image by its digest for that platform"),
    ("restart", "write `retry: {max: N}` in a job file; `--save FILE` writes the job file"),
    ("runtime", "write `--gpus N`: jobc adds GPUs to containers without another runtime"),
    ("security-opt", "leave it out: seccomp is on; `privileged` and `cap_add` change it"),
    ("volumes-from", "write `-v HOST:CONTAINER[:ro]`"),
];

/// Hidden options that say what to write instead.
#[derive(Clone, Debug, Default)]
pub(crate) struct RejectedOptions;

impl FromArgMatches for RejectedOptions {
    fn from_arg_matches(_: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

impl ClapArgs for RejectedOptions {
    fn augment_args(command: Command) -> Command {
        command.args(REJECTED.map(|(name, help)| {
            let reject = move |_: &str| Err::<String, _>(format!("`jobc run` has no `--{name}`; {help}"));
            Arg::new(name).long(name).hide(true).value_parser(ValueParser::from(reject))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn parse_volume(text: &str) -> Result<Volume, String> {
    let form = "write HOST:CONTAINER or HOST:CONTAINER:ro";
    let mut parts = text.split(':');
    let (Some(host), Some(mount), mode, None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        let verbose = if text.contains(':') { "" } else { "; `--verbose` prints the chosen settings" };
        return Err(format!("{form}{verbose}"));
    };
    if !mount.starts_with('/') {
        return Err(format!("{form}; CONTAINER is an absolute path"));
    }
    let mut writable = true;
    for word in mode.unwrap_or_default().split(',') {
        match word {
            // SELinux labels are not changed.
            "" | "rw" | "z" | "Z" => {}
            "ro" => writable = false,
            other => return Err(format!("unknown mode `{other}`; write `ro` or leave it out")),
        }
    }
    if !matches!(host, "." | "..") && !host.contains('/') {
        return Err(format!(
            "`{host}` is a named volume in Docker, which jobc does not have; write `./{host}` for the directory"
        ));
    }
    let source = match host.strip_prefix("~/") {
        Some(_) => {
            return Err(
                "write the path of your home directory instead of `~`, or leave out quotes".to_owned()
            );
        }
        None => Path::new(host)
            .canonicalize()
            .map_err(|error| format!("cannot mount `{host}`: {}", crate::input::reason(&error)))?,
    };
    let source =
        source.into_os_string().into_string().map_err(|_| format!("the path `{host}` is not UTF-8"))?;
    Ok(Volume { source, mount: mount.to_owned(), writable })
}

/// The mount point and the size of a file system in memory.
fn parse_tmpfs(text: &str) -> Result<(String, String), String> {
    let form = "write an absolute path and a size, such as `/scratch:size=2g`";
    let (mount, options) = text.split_once(':').ok_or(form)?;
    let mut size = None;
    for option in options.split(',') {
        match option.split_once('=').unwrap_or((option, "")) {
            ("size", value) => size = Some(docker_size(value).unwrap_or_else(|| value.to_owned())),
            // As it is.
            ("rw" | "exec" | "nosuid" | "nodev", "") | ("mode", "1777") => {}
            _ => return Err(format!("unknown option `{option}`; {form}")),
        }
    }
    let size = size.filter(|_| mount.starts_with('/')).ok_or(form)?;
    jobc_schema::Bytes::parse(&size).map_err(|error| error.to_string())?;
    Ok((mount.to_owned(), size))
}

/// The path of a device, `PATH[:PATH[:rwm]]` as for Docker.
fn parse_device(text: &str) -> Result<String, String> {
    let mut parts = text.split(':');
    let path = parts.next().unwrap_or_default();
    if !path.starts_with("/dev/") {
        return Err("write the path of a device, such as `/dev/fuse`".to_owned());
    }
    if parts.next().is_some_and(|inner| inner != path) {
        return Err("a device has the same path in the container; write it once".to_owned());
    }
    if parts.next().is_some_and(|rights| rights != "rwm") {
        return Err("a device can be read and written; leave out the permissions".to_owned());
    }
    Ok(path.to_owned())
}

/// The name and the address of a line of /etc/hosts; an IPv6 address may be in brackets.
fn parse_host(text: &str) -> Result<(String, String), String> {
    let form = "write NAME:ADDRESS, such as `db.lab:10.0.0.7` or `host.containers.internal:host-gateway`";
    let (name, address) = text.split_once([':', '=']).ok_or(form)?;
    let address = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    if name.is_empty() || address.is_empty() {
        return Err(form.to_owned());
    }
    Ok((name.to_owned(), address.to_owned()))
}

/// The device and the rate of `PATH:RATE`.
fn parse_rate(text: &str) -> Result<(&str, &str), String> {
    let form = "write the path of a device and a rate, such as `/dev/nvme0n1:500mb`";
    let (path, rate) = text.rsplit_once(':').ok_or(form)?;
    if path.starts_with('/') { Ok((path, rate)) } else { Err(form.to_owned()) }
}

/// Bytes as Docker counts them: `1mb` is 1 MiB.
fn parse_byte_rate(text: &str) -> Result<(String, Value), String> {
    let (path, rate) = parse_rate(text)?;
    let size = docker_size(rate).unwrap_or_else(|| rate.to_owned());
    jobc_schema::Bytes::parse(&size).map_err(|error| error.to_string())?;
    Ok((path.to_owned(), json!(size)))
}

fn parse_operation_rate(text: &str) -> Result<(String, Value), String> {
    let (path, rate) = parse_rate(text)?;
    let rate: u32 = rate.parse().map_err(|_| format!("`{rate}` is not a number of operations per second"))?;
    Ok((path.to_owned(), json!(rate)))
}

fn parse_absolute(text: &str) -> Result<String, String> {
    if text.starts_with('/') { Ok(text.to_owned()) } else { Err("write an absolute path".to_owned()) }
}

fn parse_network(text: &str) -> Result<String, String> {
    match text {
        "host" | "none" | "job" => Ok(text.to_owned()),
        "bridge" | "default" => Ok("job".to_owned()),
        _ => Err("write `host`, `none` or `job`; networks that several jobs share do not exist".to_owned()),
    }
}

/// `NAME=SOFT[:HARD]` as a limit of a job file, which has one number for both.
fn parse_ulimit(text: &str) -> Result<(String, Value), String> {
    let form = "write NAME=N, such as `memlock=-1` or `nofile=65536`";
    let (name, limits) = text.split_once('=').ok_or(form)?;
    let (soft, hard) = limits.split_once(':').unwrap_or((limits, limits));
    if soft != hard {
        return Err("the soft and the hard limit are the same here; write one number".to_owned());
    }
    let value = match soft {
        "-1" | "unlimited" => json!("unlimited"),
        number => json!(number.parse::<u64>().map_err(|_| form)?),
    };
    Ok((name.to_owned(), value))
}

/// A size in the syntax of `docker run` (`16g`, `512m`, `64k`, bytes) or of job files, as a size of a job file.
pub(crate) fn docker_size(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "k" | "K" | "kb" => "KiB",
        "m" | "M" | "mb" => "MiB",
        "g" | "G" | "gb" => "GiB",
        "t" | "T" | "tb" => "TiB",
        "" | "b" | "B" => {
            let bytes = number.parse::<u64>().ok()?;
            // A smaller number probably lacks its unit.
            return (bytes >= 1 << 20 && bytes.is_multiple_of(1024))
                .then(|| jobc_schema::Bytes(bytes).to_string());
        }
        _ => return None,
    };
    (!number.is_empty()).then(|| format!("{number}{unit}"))
}

/// A port as `docker run` names it, `[[ADDRESS:]PORT:]INNER[/tcp]`: what is before the inner port, and that.
pub(crate) fn docker_port(word: &str) -> Option<(&str, u16)> {
    let word = word.strip_suffix("/tcp").unwrap_or(word);
    // A label begins with a letter.
    let (rest, inner) = word.rsplit_once(':').unwrap_or(("", word));
    Some((rest, inner.parse().ok().filter(|&port| port > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_parsed_like_docker() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap().display().to_string();
        let volume = |source: &str, mount: &str, writable| {
            Ok(Volume { source: source.to_owned(), mount: mount.to_owned(), writable })
        };
        assert_eq!(parse_volume("/tmp:/data"), volume("/tmp", "/data", true));
        assert_eq!(parse_volume("/tmp:/data:ro"), volume("/tmp", "/data", false));
        assert_eq!(parse_volume("/tmp:/data:ro,z"), volume("/tmp", "/data", false));
        assert_eq!(parse_volume(".:/work"), volume(&here, "/work", true));
        for (wrong, why) in [
            ("job.yaml", "`--verbose` prints"),
            ("/tmp:data", "CONTAINER is an absolute path"),
            ("data:/data", "named volume"),
            ("/tmp:/data:wo", "unknown mode `wo`"),
            ("./absent-5d1:/data", "cannot mount `./absent-5d1`: no such file"),
        ] {
            let error = parse_volume(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn mounts_in_memory_devices_and_names_are_parsed_like_docker() {
        let pair = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(parse_tmpfs("/scratch:size=2g"), pair("/scratch", "2GiB"));
        assert_eq!(parse_tmpfs("/t:rw,size=64m,mode=1777"), pair("/t", "64MiB"));
        assert_eq!(parse_host("db:10.0.0.7"), pair("db", "10.0.0.7"));
        assert_eq!(parse_host("db:[2001:db8::7]"), pair("db", "2001:db8::7"));
        assert_eq!(parse_host("db=host-gateway"), pair("db", "host-gateway"));
        for device in ["/dev/fuse", "/dev/fuse:/dev/fuse", "/dev/fuse:/dev/fuse:rwm"] {
            assert_eq!(parse_device(device).as_deref(), Ok("/dev/fuse"));
        }
        for wrong in ["/scratch", "scratch:size=1g", "/s:size=", "/s:size=1g,uid=3"] {
            assert!(parse_tmpfs(wrong).is_err(), "{wrong}");
        }
        for wrong in ["fuse", "/dev/a:/dev/b", "/dev/a:/dev/a:r"] {
            assert!(parse_device(wrong).is_err(), "{wrong}");
        }
        assert!(parse_host("db").is_err());
    }

    #[test]
    fn sizes_and_limits_are_parsed_like_docker() {
        assert_eq!(docker_size("16g").as_deref(), Some("16GiB"));
        assert_eq!(docker_size("512M").as_deref(), Some("512MiB"));
        assert_eq!(docker_size("1073741824").as_deref(), Some("1GiB"));
        for other in ["16", "16GiB", "8GB", "g", "1.5g", ""] {
            assert_eq!(docker_size(other), None, "{other}");
        }
        assert_eq!(parse_ulimit("memlock=-1"), Ok(("memlock".to_owned(), json!("unlimited"))));
        assert_eq!(parse_ulimit("stack=67108864:67108864"), Ok(("stack".to_owned(), json!(67_108_864))));
        for wrong in ["memlock", "nofile=x", "nofile=1:2"] {
            assert!(parse_ulimit(wrong).is_err(), "{wrong}");
        }
    }
}
