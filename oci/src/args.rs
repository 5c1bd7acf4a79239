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
    #[arg(long, value_enum, value_name = "WHO", default_value_t = CgroupManager::Cgroupfs)]
    pub cgroup_manager: CgroupManager,
    /// Not there: control groups are made without systemd
    #[arg(long, hide = true)]
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
    /// Not there
    #[value(hide = true)]
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
        /// The signal, by name or number
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

fn parse_user(text: &str) -> Result<(u32, Option<u32>), String> {
    let number =
        |text: &str| text.parse().map_err(|_| format!("`{text}` is not a number; write UID or UID:GID"));
    match text.split_once(':') {
        Some((uid, gid)) => Ok((number(uid)?, Some(number(gid)?))),
        None => Ok((number(text)?, None)),
    }
}
