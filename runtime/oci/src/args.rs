//! `jobc oci`: the options that runc and crun have, so that what drives them can drive us.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

#[derive(Debug, Parser)]
#[command(
    name = "jobc oci",
    bin_name = "jobc oci",
    about = "Make, start and remove containers as an OCI runtime does, for podman, containerd and others",
    max_term_width = 100
)]
pub(crate) struct OciArgs {
    /// Keep the containers' state in this folder
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write errors and warnings to this file, besides standard error
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// How the log's lines look
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Say more
    #[arg(long)]
    pub debug: bool,
    /// Who makes control groups; `disabled` makes none
    ///
    /// With `systemd` config.json's `cgroupsPath` is `slice:prefix:name`.
    #[arg(long, value_enum, value_name = "WHO", default_value_t = CgroupManager::Cgroupfs)]
    pub cgroup_manager: CgroupManager,
    /// The same as `--cgroup-manager systemd`
    #[arg(long)]
    pub systemd_cgroup: bool,
    /// Taken for runc's sake: whether this is a normal user is seen without it
    #[arg(long, hide = true, value_name = "WHETHER", value_parser = ["auto", "true", "false"])]
    pub rootless: Option<String>,
    /// Print the version and the specification's
    #[arg(long, short = 'v', exclusive = true)]
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
    /// The kernel's file system
    Cgroupfs,
    /// systemd, as a unit for each container
    Systemd,
    /// Nobody
    Disabled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OciCommand {
    /// Set a container up, up to its program, which waits for `start`
    Create {
        #[command(flatten)]
        create: CreateArgs,
        /// The new container's name
        id: String,
    },
    /// Start the program of a container that was created
    Start {
        /// The container's name
        id: String,
    },
    /// Create a container, start it, wait for its end and delete it
    Run {
        #[command(flatten)]
        create: CreateArgs,
        /// Leave it running
        #[arg(long, short)]
        detach: bool,
        /// Do not delete it at its end
        #[arg(long)]
        keep: bool,
        /// Taken for runc's sake
        #[arg(long, hide = true)]
        no_subreaper: bool,
        /// The new container's name
        id: String,
    },
    /// Print a container's state as JSON
    State {
        /// The container's name
        id: String,
    },
    /// Send a signal to a container's first process
    Kill {
        /// To every process of the container
        #[arg(long, short)]
        all: bool,
        /// The container's name
        id: String,
        /// The signal, by name or number; 0 sends none and asks whether the container runs
        #[arg(default_value = "TERM", allow_hyphen_values = true)]
        signal: String,
    },
    /// Remove what a stopped container has left
    Delete {
        /// Kill it first where it runs; no error where it does not exist
        #[arg(long, short)]
        force: bool,
        /// The container's name
        id: String,
    },
    /// Run a further program in a running container
    Exec(ExecArgs),
    /// Show the processes of a container
    Ps {
        /// How they are shown
        #[arg(long, short, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        /// The container's name
        id: String,
        /// Options of ps(1); `-ef` unless given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        options: Vec<OsString>,
    },
    /// List the containers
    List {
        /// How they are shown
        #[arg(long, short, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        /// Only their names
        #[arg(long, short)]
        quiet: bool,
    },
    /// Freeze every process of a container
    Pause {
        /// The container's name
        id: String,
    },
    /// Let a frozen container go on
    Resume {
        /// The container's name
        id: String,
    },
    /// Change the limits of a container that is there
    Update(UpdateArgs),
    /// Tell what a container uses, and when its memory runs out, a line of JSON each
    Events {
        /// What it uses now, once
        #[arg(long)]
        stats: bool,
        /// How often what it uses is told
        #[arg(long, value_name = "TIME", value_parser = parse_interval, default_value = "5s")]
        interval: std::time::Duration,
        /// The container's name
        id: String,
    },
    /// Print what this runtime supports as JSON
    Features,
}

/// What makes a container.
#[derive(Debug, ClapArgs)]
pub(crate) struct CreateArgs {
    /// The bundle: a folder with a config.json
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub bundle: PathBuf,
    /// Write the first process's number to this file
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Send the terminal's other side to this Unix socket
    #[arg(long, value_name = "SOCKET")]
    pub console_socket: Option<PathBuf>,
    /// Keep so many descriptors from 3 on open in the container
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub preserve_fds: u32,
    /// Stay in the caller's session keyring
    #[arg(long)]
    pub no_new_keyring: bool,
    /// Go on where a limit cannot be enforced, and say so
    #[arg(long)]
    pub allow_unenforced: bool,
    /// Not there: the root is always entered with pivot_root(2)
    #[arg(long, hide = true)]
    pub no_pivot: bool,
}

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct ExecArgs {
    /// Take the process from this file: a `process` as in config.json
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["command", "cwd", "env", "user", "additional_gids", "cap", "apparmor", "process_label"])]
    pub process: Option<PathBuf>,
    /// Give it a terminal
    #[arg(long, short)]
    pub tty: bool,
    /// Its working directory
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Set a variable; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Its user and group, by number
    #[arg(long, short, value_name = "UID[:GID]", value_parser = parse_user)]
    pub user: Option<(u32, Option<u32>)>,
    /// A further group; may be repeated
    #[arg(long, short = 'g', value_name = "GID")]
    pub additional_gids: Vec<u32>,
    /// A further capability; may be repeated
    #[arg(long, short, value_name = "CAP")]
    pub cap: Vec<String>,
    /// Give up gaining privileges
    #[arg(long)]
    pub no_new_privs: bool,
    /// Its profile of AppArmor, in place of the container's
    #[arg(long, value_name = "PROFILE")]
    pub apparmor: Option<String>,
    /// Its label of SELinux, in place of the container's
    #[arg(long, value_name = "LABEL")]
    pub process_label: Option<String>,
    /// Leave it running
    #[arg(long, short)]
    pub detach: bool,
    /// Write its number to this file
    #[arg(long, value_name = "FILE")]
    pub pid_file: Option<PathBuf>,
    /// Send the terminal's other side to this Unix socket
    #[arg(long, value_name = "SOCKET")]
    pub console_socket: Option<PathBuf>,
    /// Keep so many descriptors from 3 on open
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub preserve_fds: u32,
    /// Also where the container is frozen; it begins when that ends
    #[arg(long)]
    pub ignore_paused: bool,
    /// The container's name
    pub id: String,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Sizes are bytes, or have a letter of `k`, `m`, `g` and `t` behind them; -1 takes a limit away, 0 leaves it.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct UpdateArgs {
    /// Take the changes from this file, `-` for standard input: `linux.resources` as in config.json
    #[arg(long, short, value_name = "FILE")]
    pub resources: Option<PathBuf>,
    /// The limit of memory
    #[arg(long, short, value_name = "SIZE", value_parser = parse_size, allow_hyphen_values = true)]
    pub memory: Option<i64>,
    /// The memory that is left to it when the machine runs short
    #[arg(long, value_name = "SIZE", value_parser = parse_size, allow_hyphen_values = true)]
    pub memory_reservation: Option<i64>,
    /// The limit of memory and swap together
    #[arg(long, value_name = "SIZE", value_parser = parse_size, allow_hyphen_values = true)]
    pub memory_swap: Option<i64>,
    /// The time on processors in each period, in microseconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub cpu_quota: Option<i64>,
    /// The period, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_period: Option<u64>,
    /// How much longer than its quota it may run at times, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_burst: Option<u64>,
    /// Its share of processors that others want too
    #[arg(long, alias = "cpu-shares", value_name = "N")]
    pub cpu_share: Option<u64>,
    /// 1 to let it run only where nobody else wants to, 0 to end that
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(i64).range(0..=1))]
    pub cpu_idle: Option<i64>,
    /// The real-time period, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_rt_period: Option<u64>,
    /// The real-time time in each such period, in microseconds
    #[arg(long, value_name = "TIME")]
    pub cpu_rt_runtime: Option<i64>,
    /// The processors it may run on, such as 0-3,7
    #[arg(long, value_name = "LIST")]
    pub cpuset_cpus: Option<String>,
    /// The memory nodes it may use
    #[arg(long, value_name = "LIST")]
    pub cpuset_mems: Option<String>,
    /// The most processes and threads
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub pids_limit: Option<i64>,
    /// Its weight at disks, 10 to 1000
    #[arg(long, value_name = "N")]
    pub blkio_weight: Option<u16>,
    /// The container's name
    pub id: String,
}

fn parse_size(text: &str) -> Result<i64, String> {
    let refused = || format!("`{text}` is no size; write bytes, or a number with k, m, g or t behind it");
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
    let refused = || format!("`{text}` is no time; write seconds, or a number with ms, s or m behind it");
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
