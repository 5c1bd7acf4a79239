//! `jobc run -- COMMAND`: the job file for a command.

mod hidden_paths;
mod unread_stdin;

use std::io::Write as _;
use std::path::Path;

use camino::Utf8Path;
use jobc_compiler::emit;
use jobc_job::host_environment::Caller;
use jobc_schema::Bytes;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::program_path;
use serde_json::{Map, Value, json};

use crate::args::SchemaArg;
use crate::commands::schema::modeline;
use crate::input::reason;
use crate::runtime::args::container::{ContainerArgs, Volume, docker_port};
use crate::runtime::args::run::RunArgs;
use crate::runtime::args::run_command::{CommandArgs, MAX_JOB_NAME, Variable};

/// The name of the job file in findings.
pub(super) const COMMAND: &str = "<command>";

/// The only role.
const ROLE: &str = "main";

/// Extensions of files that interpreters run, and the interpreters.
const INTERPRETERS: [(&str, &str); 8] = [
    ("bash", "bash"),
    ("jl", "julia"),
    ("js", "node"),
    ("lua", "lua"),
    ("pl", "perl"),
    ("py", "python3"),
    ("r", "Rscript"),
    ("sh", "bash"),
];

/// The text of the job file of a command.
///
/// # Errors
///
/// A published port is not TCP, or the network has none.
pub(super) fn job_file(args: &RunArgs, caller: &Caller) -> Result<String> {
    let command = &args.command;
    let container = &command.container;
    check_program(&command.command, container.image.is_none())?;
    let name = command.name.clone().unwrap_or_else(|| match (&command.command[..], &container.image) {
        ([], Some(image)) => job_name(&[image_name(image)]),
        (words, _) => job_name(words),
    });
    let mut job = json!({ "version": 1, "name": name });
    let mut role = Map::new();
    let mut env = Map::new();
    if let Some(image) = &container.image {
        job["image"] = json!(image_path(image));
        pass_variables(&command.env, caller, &mut job, &mut env)?;
    } else {
        let mut host = Map::from_iter([("cwd".to_owned(), json!(true))]);
        if caller.has_virtual_environment() {
            host.insert("venv".to_owned(), json!(true));
        }
        host.insert("env".to_owned(), json!(passed_variables(&command.env)));
        job["image"] = json!({ "host": host });
    }
    if let Some(timeout) = &command.timeout {
        job["timeout"] = json!(timeout);
    }
    let ports = published_ports(args)?;
    let network = container.network.clone().or_else(|| (!ports.is_empty()).then(|| "job".to_owned()));
    job_field(&mut job, "network", network.map(|network| json!(network)));
    let hosts = container.add_host.iter().map(|(name, address)| (name.clone(), json!(literal(address))));
    let hosts: Map<String, Value> = hosts.collect();
    job_field(&mut job, "extra_hosts", (!hosts.is_empty()).then_some(Value::Object(hosts)));
    job_field(&mut job, "dns", dns(container));
    let directories = container.tmpfs.iter().enumerate().map(directory_in_memory);
    let volumes: Map<String, Value> =
        container.volume.iter().enumerate().map(volume).chain(directories).collect();
    job_field(&mut job, "data", (!volumes.is_empty()).then_some(Value::Object(volumes)));
    let dev_shm = if container.image.is_some() { None } else { dev_shm_bytes() };
    let mut resources = resources(command, dev_shm);
    job_field(&mut resources, "ports", (!ports.is_empty()).then_some(Value::Object(ports)));
    let devices = (!container.device.is_empty()).then(|| json!(container.device));
    job_field(&mut resources, "devices", devices);
    let io = disk_traffic(container);
    job_field(&mut resources, "io", (!io.is_empty()).then_some(Value::Object(io)));
    let ulimits: Map<String, Value> = container.ulimit.iter().cloned().collect();
    job_field(&mut resources, "ulimits", (!ulimits.is_empty()).then_some(Value::Object(ulimits)));
    if container.image.is_none() || resources.as_object().is_some_and(|map| !map.is_empty()) {
        role.insert("resources".to_owned(), resources);
    }
    env.extend(command.env.iter().filter_map(|variable| match variable {
        Variable::Set(name, value) => Some((name.clone(), json!(literal(value)))),
        Variable::Passed(_) => None,
    }));
    let workdir = container.workdir.as_ref().map(|path| json!(literal(path)));
    let user = container.user.as_ref().map(|user| json!(user));
    let security = security(container);
    let env = (!env.is_empty()).then_some(Value::Object(env));
    for (field, value) in [("env", env), ("workdir", workdir), ("user", user), ("security", security)] {
        role.extend(value.map(|value| (field.to_owned(), value)));
    }
    role.extend(words(args));
    job["roles"] = json!({ ROLE: role });
    let first = modeline(SchemaArg::Job).map_or_else(String::new, |line| line + "\n");
    Ok(first + &emit::to_yaml(&job))
}

/// Prints a note about a path that the command names and does not see.
pub(super) fn print_hidden_path(args: &RunArgs, caller: &Caller) {
    if args.quiet || !hidden_paths::has_own_tmp() {
        return;
    }
    if let Some(note) = hidden_paths::note(args, caller, Path::exists) {
        crate::terminal::eprint(&note);
    }
}

/// Prints a note if the command reads stdin and did not get it.
pub(super) fn print_unread_stdin(args: &RunArgs) {
    let is_passed = args.passes_stdin() || args.terminal.is_some();
    if let Some(note) = unread_stdin::note(&args.command.command).filter(|_| !is_passed) {
        crate::terminal::eprint(&note);
    }
}

/// Sets a field of an object if there is a value.
fn job_field(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[field] = value;
    }
}

/// The field with the words of the command. As in `docker run`, an image's ENTRYPOINT stays; a root file system has none.
fn words(args: &RunArgs) -> Option<(String, Value)> {
    let command = &args.command;
    let words = || command.command.iter().map(|word| literal(word));
    let container = &command.container;
    let has_settings = container.image.as_deref().is_some_and(|image| {
        image != "host" && args.root.is_empty() && (!Path::new(image).is_dir() || is_layout(image))
    });
    match container.entrypoint.as_deref().filter(|program| !program.is_empty()) {
        Some(program) => Some(("run".to_owned(), std::iter::once(literal(program)).chain(words()).collect())),
        None if command.command.is_empty() => None,
        None if has_settings && container.entrypoint.is_none() => {
            Some(("args".to_owned(), words().collect()))
        }
        None => Some(("run".to_owned(), words().collect())),
    }
}

fn is_layout(image: &str) -> bool {
    Path::new(image).join("oci-layout").is_file()
}

/// An image as a job file names it: the path of an existing file starts with `./`.
fn image_path(image: &str) -> String {
    let is_archive = !image.starts_with(['/', '.']) && image != "host" && Path::new(image).is_file();
    if is_archive { format!("./{image}") } else { image.to_owned() }
}

/// The last part of an image's name, without tag and digest.
fn image_name(image: &str) -> String {
    let last = image.split('@').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default().to_owned()
}

/// Variables of this shell for a container of an image. Values of secrets are not written to any file.
fn pass_variables(
    env: &[Variable],
    caller: &Caller,
    job: &mut Value,
    set: &mut Map<String, Value>,
) -> Result<()> {
    for variable in env {
        let Variable::Passed(pattern) = variable else { continue };
        for (name, value) in caller.matching(pattern)? {
            if caller.is_secret(name) {
                let secret = name.to_ascii_lowercase();
                job["secrets"][&secret] = json!({ "env": name });
                set.insert(name.to_owned(), json!(format!("${{{{ secrets.{secret} }}}}")));
            } else {
                set.insert(name.to_owned(), json!(literal(value)));
            }
        }
    }
    Ok(())
}

fn volume((number, volume): (usize, &Volume)) -> (String, Value) {
    let Volume { source, mount, writable } = volume;
    let mut data = json!({ "source": literal(source), "mount": literal(mount) });
    if *writable {
        data["writable"] = json!(true);
    }
    (format!("v{}", number + 1), data)
}

fn directory_in_memory((number, (mount, size)): (usize, &(String, String))) -> (String, Value) {
    let data = json!({ "source": format!("memory:{size}"), "mount": literal(mount), "writable": true });
    (format!("t{}", number + 1), data)
}

fn dns(container: &ContainerArgs) -> Option<Value> {
    let settings =
        [("servers", &container.dns), ("search", &container.dns_search), ("options", &container.dns_option)];
    let given = settings.into_iter().filter(|(_, values)| !values.is_empty());
    let given: Map<String, Value> = given.map(|(key, values)| (key.to_owned(), json!(values))).collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

fn security(container: &ContainerArgs) -> Option<Value> {
    let mut security = json!({});
    let names = |names: &[String]| -> Vec<String> {
        names.iter().map(|name| name.to_ascii_uppercase().trim_start_matches("CAP_").to_owned()).collect()
    };
    if container.read_only {
        security["read_only_root"] = json!(true);
    }
    if container.privileged {
        security["privileged"] = json!(true);
    }
    for (field, given) in [("add", &container.cap_add), ("drop", &container.cap_drop)] {
        if !given.is_empty() {
            security["capabilities"][field] = json!(names(given));
        }
    }
    (security != json!({})).then_some(security)
}

/// The ports that `--publish` names by number, by their labels.
fn published_ports(args: &RunArgs) -> Result<Map<String, Value>> {
    let wrong = |message: String, help: &str| Err(Error::new(Kind::Config, message).help(help));
    let mut ports = Map::new();
    for word in &args.publish {
        let Some((_, port)) = docker_port(word) else {
            return wrong(
                format!("`--publish {word}`: a command has no named ports"),
                "write [ADDRESS:]PORT:CONTAINER-PORT, such as `8888:8888`; only TCP ports are published",
            );
        };
        ports.insert(format!("p{port}"), json!(port));
    }
    match &args.command.container.network {
        Some(network) if !ports.is_empty() && network != "job" => wrong(
            format!("`--publish` does not apply to `--network {network}`"),
            "leave out one of them: with `--network host` the command's ports are those of the host",
        ),
        _ => Ok(ports),
    }
}

/// Writes the job file where no file is yet.
pub(super) fn save(text: &str, path: &Utf8Path) -> Result<()> {
    if path.extension() == Some("json") {
        let error = Error::new(Kind::Config, format!("cannot write `{path}`: `--save` writes YAML"));
        return Err(error.help(format!("name a YAML file: `--save {}`", path.with_extension("yaml"))));
    }
    let file = std::fs::File::create_new(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "name another file for `--save`, or remove that one",
            _ => "name a file for `--save` that can be created",
        };
        Error::new(Kind::Config, format!("cannot write `{path}`: {}", reason(&error))).help(help)
    })
}

/// Rejects a command that surely starts no program: words in one pair of quotes, or a file of this directory that is not
/// found by its name alone.
fn check_program(words: &[String], on_host: bool) -> Result<()> {
    let [first, rest @ ..] = words else { return Ok(()) };
    let (file, quoted) = (Path::new(first), jobc_schema::shell::quote(first));
    if rest.is_empty() && first.trim().contains(char::is_whitespace) && !file.exists() {
        let message = format!("`{first}` is one word, and so the name of one program");
        return Err(Error::new(Kind::Config, message).help(format!(
            "write it without the quotes, `jobc run -- {first}`, or give it to a shell, `jobc run -- sh -c {quoted}`"
        )));
    }
    if on_host && !first.contains('/') && file.is_file() && program_path::find(first).is_none() {
        let command = interpreter_of(file)
            .map_or_else(|| format!("./{quoted}"), |interpreter| format!("{interpreter} {quoted}"));
        let message = format!("`{first}` is in this directory, and in no directory of `PATH`");
        return Err(Error::new(Kind::Config, message).help(format!("write `jobc run -- {command}`")));
    }
    Ok(())
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

/// Limits of disk traffic by device.
fn disk_traffic(container: &ContainerArgs) -> Map<String, Value> {
    let mut io = Map::new();
    let options = [
        ("read", &container.device_read_bps),
        ("write", &container.device_write_bps),
        ("read_ops", &container.device_read_iops),
        ("write_ops", &container.device_write_iops),
    ];
    for (key, limits) in options {
        for (device, rate) in limits {
            io.entry(device).or_insert_with(|| json!({}))[key] = rate.clone();
        }
    }
    io
}

/// The size of /dev/shm on this host in whole MiB, which programs outside of containers rely on.
fn dev_shm_bytes() -> Option<Bytes> {
    let size = rustix::fs::statvfs("/dev/shm").ok()?;
    let bytes = size.f_blocks.checked_mul(size.f_frsize)? >> 20 << 20;
    (bytes > 0).then_some(Bytes(bytes))
}

/// A word for a job file, where `${{` starts an expression.
fn literal(word: &str) -> String {
    word.replace("${{", "${{ '$' }}{{")
}

/// The program that runs a script, by the extension of its name.
pub(super) fn interpreter_of(script: &Path) -> Option<&'static str> {
    let ending = script.extension()?.to_str()?;
    INTERPRETERS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known)).map(|(_, program)| *program)
}

/// A job's name from a command: the script that an interpreter or launcher runs, or the program.
fn job_name(command: &[String]) -> String {
    let script = command.iter().find(|word| interpreter_of(Path::new(word)).is_some());
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
