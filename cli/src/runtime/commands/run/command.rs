//! `jobc run -- COMMAND`: the job file that a command stands for.

use std::io::Write as _;
use std::path::Path;

use camino::Utf8Path;
use jobc_compiler::emit;
use jobc_job::host_environment::Caller;
use jobc_schema::Bytes;
use jobc_sys::error::{Error, Kind, Result};
use serde_json::{Map, Value, json};

use crate::args::SchemaArg;
use crate::commands::schema::modeline;
use crate::input::reason;
use crate::runtime::args::run_command::{CommandArgs, MAX_JOB_NAME, Variable};

/// The name of the job file in findings.
pub(super) const COMMAND: &str = "<command>";

/// The only role.
const ROLE: &str = "main";

/// Endings of files that interpreters run.
const SCRIPT_ENDINGS: [&str; 8] = ["bash", "jl", "js", "lua", "pl", "py", "r", "sh"];

/// The text of the job file of a command.
pub(super) fn job_file(args: &CommandArgs, caller: &Caller) -> String {
    let name = args.name.clone().unwrap_or_else(|| job_name(&args.command));
    let mut host = Map::from_iter([("cwd".to_owned(), json!(true))]);
    if caller.has_virtual_environment() {
        host.insert("venv".to_owned(), json!(true));
    }
    host.insert("env".to_owned(), json!(passed_variables(&args.env)));
    let mut job = json!({ "version": 1, "name": name, "image": { "host": host } });
    if let Some(timeout) = &args.timeout {
        job["timeout"] = json!(timeout);
    }
    let mut role = json!({ "resources": resources(args, dev_shm_bytes()) });
    let set = args.env.iter().filter_map(|variable| match variable {
        Variable::Set(name, value) => Some((name.clone(), json!(literal(value)))),
        Variable::Passed(_) => None,
    });
    let set: Map<String, Value> = set.collect();
    if !set.is_empty() {
        role["env"] = Value::Object(set);
    }
    role["run"] = args.command.iter().map(|word| literal(word)).collect();
    job["roles"] = json!({ ROLE: role });
    let first = modeline(SchemaArg::Job).map_or_else(String::new, |line| line + "\n");
    first + &emit::to_yaml(&job)
}

/// Writes the job file where no file is yet.
pub(super) fn save(text: &str, path: &Utf8Path) -> Result<()> {
    let file = std::fs::File::create_new(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "name another file for `--save`, or remove that one",
            _ => "name a file for `--save` that can be created",
        };
        Error::new(Kind::Config, format!("cannot write `{path}`: {}", reason(&error))).help(help)
    })
}

/// The variables to pass: those named, or all but those of the login session.
fn passed_variables(env: &[Variable]) -> Vec<&str> {
    let named = env.iter().filter_map(|variable| match variable {
        Variable::Passed(name) => Some(name.as_str()),
        Variable::Set(..) => None,
    });
    let named: Vec<&str> = named.collect();
    if named.is_empty() { vec!["*"] } else { named }
}

fn resources(args: &CommandArgs, dev_shm: Option<Bytes>) -> Value {
    let mut resources = Map::new();
    if let Some(cpus) = args.cpus {
        let amount = if cpus.millis.is_multiple_of(1000) {
            json!(cpus.millis / 1000)
        } else {
            json!(cpus.to_string())
        };
        resources.insert("cpu".to_owned(), amount);
    }
    let memory = args.memory.as_ref();
    resources.extend(memory.map(|memory| ("memory".to_owned(), json!(memory.text))));
    let shm = match (&args.shm, dev_shm, memory) {
        (Some(shm), _, _) => Some(shm.text.clone()),
        // It counts against `memory`.
        (None, Some(size), Some(memory)) if size > memory.bytes => Some(memory.text.clone()),
        (None, size, _) => size.map(|size| size.to_string()),
    };
    resources.extend(shm.map(|shm| ("shm".to_owned(), json!(shm))));
    resources.extend(args.gpus.as_ref().map(|gpus| ("gpu".to_owned(), gpus.request())));
    Value::Object(resources)
}

/// The size of /dev/shm on this host in whole MiB, which programs count on that run outside of containers.
fn dev_shm_bytes() -> Option<Bytes> {
    let size = rustix::fs::statvfs("/dev/shm").ok()?;
    let bytes = size.f_blocks.checked_mul(size.f_frsize)? >> 20 << 20;
    (bytes > 0).then_some(Bytes(bytes))
}

/// A word as a job file has it, where `${{` begins an expression.
fn literal(word: &str) -> String {
    word.replace("${{", "${{ '$' }}{{")
}

/// A job's name from a command: the script that an interpreter or launcher runs, or the program.
fn job_name(command: &[String]) -> String {
    let script = command.iter().find(|word| {
        let ending = Path::new(word).extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| SCRIPT_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
    });
    let word = script.or(command.first()).map_or("", String::as_str);
    let stem = Path::new(word).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = stem.chars().map(allowed).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").chars().take(MAX_JOB_NAME).collect();
    match name.trim_end_matches('-') {
        "" => "command".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
