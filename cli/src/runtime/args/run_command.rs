//! `jobc run -- COMMAND`: a command without a job file, and the options that stand for fields of one.

use std::str::FromStr as _;

use camino::Utf8PathBuf;
use clap::Args as ClapArgs;
use jobc_schema::{Bytes, Cpus, Seconds};

use super::gpu_option::GpuOption;

use super::container::{ContainerArgs, docker_size};

#[derive(Debug, Default, ClapArgs)]
pub(crate) struct CommandArgs {
    /// Command to run without a job file
    ///
    /// It runs in this directory, on the files of the host, with the active virtual environment or conda environment
    /// and the variables of this shell, as the user who starts it. Changes outside this directory are discarded, and the
    /// end of the run names large ones. With `--image`, it runs in a container of that image, as with `docker run`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// GPUs for COMMAND: a number, `all`, or `device=0,1` [default: 0]
    ///
    /// The syntax is that of `docker run --gpus`. `device=` takes indexes, UUIDs and MIG instances, like `--devices`.
    #[arg(long, value_name = "N|all|device=GPU,...", value_parser = GpuOption::from_str,
          help_heading = COMMAND_HEADING)]
    pub gpus: Option<GpuOption>,
    /// CPUs for COMMAND, request and limit [default: no limit]
    ///
    /// Examples: `--cpus 4`, `--cpus 0.5`.
    #[arg(long, value_name = "N", value_parser = parse_cpus, help_heading = COMMAND_HEADING)]
    pub cpus: Option<Cpus>,
    /// Memory for COMMAND, request and limit [default: no limit]
    ///
    /// Example: `--memory 16GiB`, or `-m 16g` as in `docker run`.
    #[arg(long, short, value_name = "SIZE", value_parser = parse_bytes, help_heading = COMMAND_HEADING)]
    pub memory: Option<Amount>,
    /// Size of /dev/shm for COMMAND [default: as on the host, or with `--image` as in a job file]
    #[arg(long, visible_alias = "shm-size", value_name = "SIZE", value_parser = parse_bytes, help_heading = COMMAND_HEADING)]
    pub shm: Option<Amount>,
    /// Stop COMMAND after this time
    #[arg(long, value_name = "TIME", value_parser = parse_timeout, help_heading = COMMAND_HEADING)]
    pub timeout: Option<String>,
    /// Environment variable for COMMAND (repeatable) [default: all except those of the login session; none with
    /// `--image`]
    ///
    /// `NAME` passes a variable of this shell, `HF_*` all that begin with `HF_`; then no others are passed.
    /// `NAME=VALUE` sets a variable. Values passed by name are not written to any file.
    #[arg(long, short, value_name = "NAME[=VALUE]", value_parser = parse_variable, help_heading = COMMAND_HEADING)]
    pub env: Vec<Variable>,
    /// Name of the job [default: from COMMAND]
    #[arg(long, value_name = "NAME", value_parser = parse_name, help_heading = COMMAND_HEADING)]
    pub name: Option<String>,
    /// Write the equivalent job file to FILE
    #[arg(long, value_name = "FILE", value_parser = parse_path, help_heading = COMMAND_HEADING)]
    pub save: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub container: ContainerArgs,
}

/// One `--env`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Variables of this shell, by name or prefix.
    Passed(String),
    /// With a value.
    Set(String, String),
}

/// An amount of memory, as written and in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub text: String,
    pub bytes: Bytes,
}

const COMMAND_HEADING: &str = "Command options";

/// The maximum length of the name of a job.
pub(crate) const MAX_JOB_NAME: usize = 40;

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    Cpus::parse(text).map_err(|error| error.to_string())
}

fn parse_bytes(text: &str) -> Result<Amount, String> {
    let text = docker_size(text).unwrap_or_else(|| text.to_owned());
    let bytes = Bytes::parse(&text).map_err(|error| error.to_string())?;
    Ok(Amount { text, bytes })
}

fn parse_timeout(text: &str) -> Result<String, String> {
    Seconds::parse(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn parse_variable(text: &str) -> Result<Variable, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let plain = if value.is_none() { name.strip_suffix('*').unwrap_or(name) } else { name };
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if name.is_empty() || !is_name(plain) || (plain.is_empty() && name != "*") {
        return Err("write NAME, NAME=VALUE, or `NAME*` for all variables that begin so".to_owned());
    }
    Ok(match value {
        Some(value) => Variable::Set(name.to_owned(), value.to_owned()),
        None => Variable::Passed(name.to_owned()),
    })
}

fn parse_name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = text.len() <= MAX_JOB_NAME
        && text.chars().all(is_allowed)
        && text.starts_with(|c: char| c != '-')
        && !text.ends_with('-');
    if fits {
        return Ok(text.to_owned());
    }
    Err(format!("use at most {MAX_JOB_NAME} lower-case letters, digits and `-`, with no `-` at either end"))
}

fn parse_path(text: &str) -> Result<Utf8PathBuf, String> {
    match text {
        "-" | "" => Err("write the name of a file, such as `job.yaml`".to_owned()),
        path => Ok(path.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_parsed() {
        let passed = |name: &str| Ok(Variable::Passed(name.to_owned()));
        assert_eq!(parse_variable("HF_*"), passed("HF_*"));
        assert_eq!(parse_variable("*"), passed("*"));
        assert_eq!(parse_variable("A"), passed("A"));
        assert_eq!(parse_variable("A=b=c"), Ok(Variable::Set("A".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_variable("A="), Ok(Variable::Set("A".to_owned(), String::new())));
        for wrong in ["", "=b", "*=b", "A*=b", "1A", "A-B", "**", "*A"] {
            assert!(parse_variable(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_follow_the_rules_of_job_files() {
        for name in ["a", "3d", "a-b", &"a".repeat(MAX_JOB_NAME)] {
            assert_eq!(parse_name(name), Ok(name.to_owned()));
        }
        for wrong in ["", "A", "a_b", "-a", "a-", &"a".repeat(MAX_JOB_NAME + 1)] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }
}
