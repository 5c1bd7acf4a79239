//! `jobc init`: writes a starter job from an example.

use std::fs;

use camino::Utf8Path;
use jobc_compiler::suggest;
use jobc_schema::shell::quote;

use super::schema::modeline;
use crate::args::{InitArgs, SchemaArg};
use crate::examples::{EXAMPLES, Example, Next, templates};
use crate::input::reason;
use crate::outcome::Outcome;
use crate::platform::RUNS_JOBS;
use crate::terminal;

/// An example that runs in the host's own files.
const WITHOUT_IMAGE: &str = "local-dag";

/// The example that is written if none is named.
const DEFAULT: &str = "hello-cpu";

/// Writes an example; `gpu_count` gives the number of GPUs of this host.
pub(crate) fn run(init: &InitArgs, gpu_count: fn() -> usize) -> Outcome {
    if init.list {
        let lines: String =
            EXAMPLES.iter().map(|Example { name, about, .. }| format!("{name:18} {about}\n")).collect();
        let templates = templates().map(|template| {
            format!("{:18} {}\n", format!("std/{}", template.name), template.describe().description)
        });
        terminal::print(&(lines + &templates.collect::<String>()));
        return Outcome::Success;
    }
    let directory = &init.directory;
    let example_of_name =
        [directory.to_string(), format!("std/{directory}")].into_iter().find(|name| files(name).is_some());
    if let (None, Some(name)) = (&init.example, example_of_name) {
        terminal::eprint(&format!(
            "jobc: `{directory}` is the name of an example; write `jobc init -e {name}`, or `./{directory}` for a directory\n"
        ));
        return Outcome::UsageError;
    }
    let example = init.example.as_deref().unwrap_or(DEFAULT);
    let Some((next, files)) = files(example) else {
        let templates: Vec<String> = templates().map(|template| format!("std/{}", template.name)).collect();
        let names = EXAMPLES.iter().map(|example| example.name).chain(templates.iter().map(String::as_str));
        let near = suggest::nearest(example, names)
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        terminal::eprint(&format!(
            "jobc: unknown example `{example}`{near} (`jobc init --list` lists the examples)\n"
        ));
        return Outcome::UsageError;
    };
    // All or nothing: a starter job mixed with the user's own files would not work.
    let present: Vec<&str> =
        files.iter().map(|(file, _)| *file).filter(|file| init.directory.join(file).exists()).collect();
    if !present.is_empty() && !init.force {
        let list = suggest::list(present);
        terminal::eprint(&format!(
            "jobc: {list} in `{}` would be overwritten; use `--force` to overwrite\n",
            init.directory
        ));
        return Outcome::UsageError;
    }
    for (file, text) in &files {
        let path = init.directory.join(file);
        if let Err(error) = write(&path, &with_modeline(text)) {
            terminal::eprint(&format!("jobc: cannot write `{path}`: {}\n", reason(&error)));
            return Outcome::SystemError;
        }
        terminal::print(&format!("wrote {path}\n"));
    }
    let job = files.first().map_or("job.yaml", |(file, _)| file);
    terminal::print(&format!(
        "from the example `{}`; next: {}\n",
        example,
        next_step(next, directory, job, gpu_count)
    ));
    Outcome::Success
}

/// The command after this one, and what it needs.
fn next_step(next: Next, directory: &Utf8Path, job: &str, gpu_count: fn() -> usize) -> String {
    let path = quote(directory.join(job).as_str());
    let targets = quote(directory.join("targets.yaml").as_str());
    let (build, run) = (format!("jobc build {path}"), format!("jobc run {path}"));
    let cluster = format!("edit {targets}, then {build}");
    let without_network = format!("start with `jobc init {WITHOUT_IMAGE} --example {WITHOUT_IMAGE}`");
    match next {
        Next::Template(_) if !RUNS_JOBS => cluster,
        _ if !RUNS_JOBS => build,
        Next::Template(template) => {
            let variables: String = template.variables().map(|name| format!("{name}=VALUE ")).collect();
            let option = if template.gpus > gpu_count() { "--no-gpu " } else { "" };
            format!(
                "{variables}jobc run {option}{path}\nit pulls its images; without a network, {without_network}\nfor a cluster: {cluster}"
            )
        }
        Next::Build => build,
        Next::Run => run,
        Next::Base(name) => {
            let base = quote(directory.join("base.sh").as_str());
            format!("sh {base} | jobc image import - --tag {name}, then {run}")
        }
        Next::Pull(image) => format!("{run}\nit pulls `{image}`; without a network, {without_network}"),
    }
}

/// The files of an example, or of the example of a built-in template; nothing for an unknown name.
fn files(name: &str) -> Option<(Next, Vec<(&'static str, &'static str)>)> {
    if let Some(wanted) = name.strip_prefix("std/") {
        let template = templates().find(|template| template.name == wanted)?;
        return Some((Next::Template(template), template.files()));
    }
    let example = EXAMPLES.iter().find(|example| example.name == name);
    example.map(|example| (example.next, example.files.to_vec()))
}

/// The text of an example with a modeline for its new place.
fn with_modeline(text: &str) -> String {
    let prefix = "# yaml-language-server: $schema=../../";
    let Some((first, rest)) = text.split_once('\n').filter(|(first, _)| first.starts_with(prefix)) else {
        return text.to_owned();
    };
    let schema = if first.ends_with("/targets.v1.schema.json") { SchemaArg::Targets } else { SchemaArg::Job };
    modeline(schema).map_or_else(|| rest.to_owned(), |line| format!("{line}\n{rest}"))
}

fn write(path: &Utf8Path, text: &str) -> std::io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)
}
