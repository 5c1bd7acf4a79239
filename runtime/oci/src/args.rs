//! `jobc oci`: the command line of runc and crun, so that podman and others can use jobc as their runtime.
#![allow(rustdoc::broken_intra_doc_links)] // `[default: ...]` is not a link

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(
    name = "jobc oci",
    bin_name = "jobc oci",
    about = "OCI runtime commands for podman, containerd and other engines",
    max_term_width = 100
)]
pub(crate) struct OciArgs {
    /// Container state directory [default: /run/jobc/containers; rootless: below $XDG_RUNTIME_DIR]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write errors and warnings to this file too [default: stderr only]
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Format of the log file
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Log debug messages
    #[arg(long)]
    pub debug: bool,
    /// Cgroup manager
    ///
    /// With `systemd`, `cgroupsPath` in config.json has the form `slice:prefix:name`.
    #[arg(long, value_enum, value_name = "MANAGER", default_value_t = CgroupManager::Cgroupfs)]
    pub cgroup_manager: CgroupManager,
    /// Same as `--cgroup-manager systemd`
    #[arg(long)]
    pub systemd_cgroup: bool,
    /// Accepted for compatibility with runc; rootless mode is detected automatically
    #[arg(long, hide = true, value_name = "MODE", value_parser = ["auto", "true", "false"])]
    pub rootless: Option<String>,
    /// Accepted for compatibility with runc
    #[arg(long, hide = true, value_name = "PROGRAM")]
    pub criu: Option<PathBuf>,
    /// Print the versions of jobc and of the OCI runtime specification
    #[arg(long, short = 'v')]
    pub version: bool,
    #[command(subcommand)]
    pub command: Option<OciCommand>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CgroupManager {
    /// jobc creates cgroups in the cgroup file system
    Cgroupfs,
    /// systemd creates a unit per container
    Systemd,
    /// No cgroups are created
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OciCommand {
    /// Create a container, whose process waits for `start`
    Create {
        #[command(flatten)]
        create: CreateArgs,
        /// ID of the new container
        id: String,
    },
    /// Start the process of a created container
    Start {
        /// Container ID
        id: String,
    },
    /// Create and start a container, wait until it exits, and delete it
    Run {
        #[command(flatten)]
        create: CreateArgs,
        /// Run the container in the background
        #[arg(long, short)]
        detach: bool,
        /// Do not delete the container after it exits
        #[arg(long)]
        keep: bool,
        /// Accepted for compatibility with runc
        #[arg(long, hide = true)]
        no_subreaper: bool,
        /// ID of the new container
        id: String,
    },
    /// Print the state of a container as JSON
    State {
        /// Container ID
        id: String,
    },
    /// Send a signal to the init process of a container
    Kill {
        /// Send the signal to all processes of the container
        #[arg(long, short)]
        all: bool,
        /// Container ID
        id: String,
        /// Signal, by name or number; 0 only checks whether the container is running
        #[arg(default_value = "TERM", allow_hyphen_values = true)]
        signal: String,
    },
    /// Delete a stopped container
    Delete {
        /// Kill a running container first, and ignore a container that does not exist
        #[arg(long, short)]
        force: bool,
        /// Delete every container whose ID the regular expression `ID` matches anywhere
        #[arg(long)]
        regex: bool,
        /// Container ID
        id: String,
    },
    /// Run a command in a running container
    Exec(ExecArgs),
    /// List the processes of a container
    Ps {
        /// Output format
        #[arg(long, short, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        /// Container ID
        id: String,
        /// Options of ps(1) [default: -ef]
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        options: Vec<OsString>,
    },
    /// List containers
    List {
        /// Output format
        #[arg(long, short, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        /// Print only IDs
        #[arg(long, short)]
        quiet: bool,
    },
    /// Pause all processes of a container
    Pause {
        /// Container ID
        id: String,
    },
    /// Resume a paused container
    Resume {
        /// Container ID
        id: String,
    },
    /// Update the resource limits of a container
    ///
    /// A SIZE is a number of bytes, or a number with the suffix `k`, `m`, `g` or `t`. -1 removes a limit, 0 keeps it.
    Update(UpdateArgs),
    /// Print resource usage and out-of-memory events of a container, as JSON lines
    Events {
        /// Print the resource usage once, and exit
        #[arg(long)]
        stats: bool,
        /// Time between two reports of the resource usage, such as `5s` or `500ms`
        #[arg(long, value_name = "TIME", value_parser = parse_interval, default_value = "5s")]
        interval: std::time::Duration,
        /// Container ID
        id: String,
    },
    /// Print the supported features as JSON
    Features,
    /// Write a first config.json, to be edited
    Spec {
        /// Directory to write config.json to
        #[arg(long, short, value_name = "DIR", default_value = ".")]
        bundle: PathBuf,
        /// Write it for a container of this unprivileged user, with a user namespace and without limits
        #[arg(long)]
        rootless: bool,
    },
    /// Not supported: a container cannot be saved to files
    // Callers look whether `checkpoint --help` succeeds to learn whether it is supported.
    #[command(hide = true, disable_help_flag = true)]
    Checkpoint(IgnoredArgs),
    /// Not supported: a container cannot be restored from files
    #[command(hide = true, disable_help_flag = true)]
    Restore(IgnoredArgs),
}

/// Whatever follows.
#[derive(Debug, ClapArgs)]
pub(crate) struct IgnoredArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Arguments of `create` and `run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CreateArgs {
    /// Bundle directory, which contains config.json
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub bundle: PathBuf,
    /// Configuration file, from the bundle directory on
    #[arg(long, short = 'f', value_name = "FILE", default_value = "config.json")]
    pub config: PathBuf,
    /// Write the PID of the init process to this file
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Unix socket that receives the terminal's file descriptor
    #[arg(long, value_name = "SOCKET")]
    pub console_socket: Option<PathBuf>,
    /// Number of file descriptors, from 3 on, to pass to the container
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub preserve_fds: u32,
    /// Do not create a new session keyring
    #[arg(long)]
    pub no_new_keyring: bool,
    /// Run even if a limit cannot be enforced, with a warning
    #[arg(long)]
    pub allow_unenforced: bool,
    /// Not supported: jobc always uses pivot_root(2)
    #[arg(long, hide = true)]
    pub no_pivot: bool,
}

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct ExecArgs {
    /// JSON file with the process, in the form of `process` in config.json
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["command", "cwd", "env", "user", "additional_gids", "cap", "apparmor", "process_label"])]
    pub process: Option<PathBuf>,
    /// Allocate a terminal
    #[arg(long, short)]
    pub tty: bool,
    /// Working directory [default: from config.json]
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Set an environment variable (repeatable)
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// User ID and group ID [default: from config.json]
    #[arg(long, short, value_name = "UID[:GID]", value_parser = parse_user)]
    pub user: Option<(u32, Option<u32>)>,
    /// Add a supplementary group ID (repeatable)
    #[arg(long, short = 'g', value_name = "GID")]
    pub additional_gids: Vec<u32>,
    /// Add a capability (repeatable)
    #[arg(long, short, value_name = "CAP")]
    pub cap: Vec<String>,
    /// Set no_new_privs
    #[arg(long)]
    pub no_new_privs: bool,
    /// AppArmor profile [default: from config.json]
    #[arg(long, value_name = "PROFILE")]
    pub apparmor: Option<String>,
    /// SELinux label [default: from config.json]
    #[arg(long, value_name = "LABEL")]
    pub process_label: Option<String>,
    /// Run the command in the background
    #[arg(long, short)]
    pub detach: bool,
    /// Write the PID of the command to this file
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Unix socket that receives the terminal's file descriptor
    #[arg(long, value_name = "SOCKET")]
    pub console_socket: Option<PathBuf>,
    /// Number of file descriptors, from 3 on, to pass to the command
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub preserve_fds: u32,
    /// Cgroup below the container's to run the command in: PATH, or for cgroup v1 CONTROLLERS:PATH (repeatable)
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<String>,
    /// Allow a paused container; the command starts when the container is resumed
    #[arg(long)]
    pub ignore_paused: bool,
    /// Container ID
    pub id: String,
    /// Command and arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Arguments of `update`.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct UpdateArgs {
    /// JSON file with the changes, in the form of `linux.resources` in config.json; `-` for stdin
    #[arg(long, short, value_name = "FILE")]
    pub resources: Option<PathBuf>,
    /// Memory limit
    #[arg(long, short, value_name = "SIZE", value_parser = parse_size, allow_hyphen_values = true)]
    pub memory: Option<i64>,
    /// Memory reservation (soft limit)
    #[arg(long, value_name = "SIZE", value_parser = parse_size, allow_hyphen_values = true)]
    pub memory_reservation: Option<i64>,
    /// Limit of memory plus swap
    #[arg(long, value_name = "SIZE", value_parser = parse_size, allow_hyphen_values = true)]
    pub memory_swap: Option<i64>,
    /// CPU quota per period, in microseconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub cpu_quota: Option<i64>,
    /// CPU period, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_period: Option<u64>,
    /// CPU burst above the quota, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_burst: Option<u64>,
    /// CPU shares (relative weight)
    #[arg(long, alias = "cpu-shares", value_name = "N")]
    pub cpu_share: Option<u64>,
    /// Scheduling policy: 1 for SCHED_IDLE, 0 for the default policy
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(i64).range(0..=1))]
    pub cpu_idle: Option<i64>,
    /// Real-time period, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_rt_period: Option<u64>,
    /// Real-time runtime per period, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_rt_runtime: Option<i64>,
    /// CPUs that the container may use, such as `0-3,7`
    #[arg(long, value_name = "LIST")]
    pub cpuset_cpus: Option<String>,
    /// Memory nodes that the container may use
    #[arg(long, value_name = "LIST")]
    pub cpuset_mems: Option<String>,
    /// Maximum number of processes and threads
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub pids_limit: Option<i64>,
    /// Block I/O weight, 10 to 1000
    #[arg(long, value_name = "N")]
    pub blkio_weight: Option<u16>,
    /// Container ID
    pub id: String,
}

fn parse_size(text: &str) -> Result<i64, String> {
    let refused = || "expected a number of bytes, or a number with the suffix k, m, g or t".to_owned();
    let lower = text.to_ascii_lowercase();
    let plain = lower.strip_suffix('b').unwrap_or(&lower);
    let letter = plain.chars().last().and_then(|letter| "kmgt".find(letter));
    let digits = if letter.is_some() { &plain[..plain.len() - 1] } else { plain };
    let number: i64 = digits.parse().map_err(|_| refused())?;
    let factor = letter.map_or(1, |power| 1024_i64.pow(u32::try_from(power).unwrap_or_default() + 1));
    match number {
        -1 if letter.is_none() => Ok(-1),
        0.. => number.checked_mul(factor).ok_or_else(refused),
        _ => Err(refused()),
    }
}

fn parse_interval(text: &str) -> Result<std::time::Duration, String> {
    let refused = || "expected a number of seconds, or a number with the suffix ms, s or m".to_owned();
    let at = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..at].parse().map_err(|_| refused())?;
    let milliseconds = match &text[at..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        _ => return Err(refused()),
    };
    let time = number.checked_mul(milliseconds).filter(|time| *time > 0).ok_or_else(refused)?;
    Ok(std::time::Duration::from_millis(time))
}

fn parse_user(text: &str) -> Result<(u32, Option<u32>), String> {
    let number =
        |text: &str| text.parse().map_err(|_| format!("`{text}` is not a number; write UID or UID:GID"));
    match text.split_once(':') {
        Some((uid, gid)) => Ok((number(uid)?, Some(number(gid)?))),
        None => Ok((number(text)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_of_a_command_line() {
        for (text, size) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("64m", Some(64 << 20)),
            ("2GB", Some(2 << 30)),
            ("7b", Some(7)),
            ("", None),
            ("m", None),
            ("-2", None),
            ("-1k", None),
            ("1x", None),
            ("9999999999t", None),
        ] {
            assert_eq!(parse_size(text).ok(), size, "{text}");
        }
        for (text, time) in [
            ("5s", Some(5_000)),
            ("200ms", Some(200)),
            ("2", Some(2_000)),
            ("1m", Some(60_000)),
            ("0", None),
            ("s", None),
            ("1h", None),
        ] {
            assert_eq!(parse_interval(text).ok().map(|time| time.as_millis()), time, "{text}");
        }
    }
}
