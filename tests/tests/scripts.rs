//! Batch scripts that jobc wrote: each comes back as a job that builds the same script, or is refused with its reason.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use camino::Utf8Path;
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::diagnostic::render::{Format, TextStyle, render};
use jobc_compiler::import::Selection;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::{Source, Sources};
use jobc_tests::compile::{Arguments, Case, Compilation};
use jobc_tests::disk::DiskFiles;
use jobc_tests::{examples, job_file};

/// Why a script does not come back: the bundles of containers, and what jobc itself runs on the nodes, are other files.
const IN_FILES: &str = "what its tasks run is in files beside it";

/// Parts of lines that may differ, with the reason.
const CHANGES: &[(&str, &str)] = &[
    ("#SBATCH --export=", "the variables of the caller that the script names"),
    ("#SBATCH --output=", "the depth of the directory"),
    ("export ", "the variables are in another order, or on other lines: their names are compared"),
    ("# Job ", "the number of scripts of the job"),
    ("cd \"$SLURM_SUBMIT_DIR\"", "without a container a script starts where it is submitted"),
    ("mkdir -p ", "an output is data that is written"),
    ("  --container-mounts=", "paths are relative to the job file"),
];

/// Examples whose scripts have more than a script says, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

fn compile(job: &str, targets: &str, directory: &Utf8Path) -> Compilation {
    let files = DiskFiles(directory.to_owned());
    let variables = [("HOME", "/root"), ("PWD", "/work")];
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Case {
        job: Source::new("job.yaml", job),
        targets: Some(Source::new("targets.yaml", targets)),
        params: vec![],
        arguments: Arguments {
            targets: vec!["cluster".to_owned()],
            environment: BTreeMap::from(environment),
            ..Arguments::default()
        },
        files: &files,
    }
    .compile()
}

/// The batch scripts of the first job.
fn scripts(compiled: &Compilation) -> Vec<(String, String)> {
    let files = compiled.outputs.iter().take(1).flat_map(|output| &output.artifacts);
    let scripts = files.filter(|file| file.path.extension() == Some("sbatch"));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("a script is text");
    scripts.map(|file| (file.path.file_stem().unwrap_or_default().to_owned(), text(&file.bytes))).collect()
}

fn lines(script: &str) -> Vec<&str> {
    let may_differ = |line: &&str| CHANGES.iter().any(|(part, _)| line.starts_with(part));
    script.lines().filter(|line| !may_differ(line)).collect()
}

/// What a script comes back as: a job and its targets file, or the findings.
fn import(stem: &str, script: &str, directory: &Utf8Path) -> Result<(String, String), String> {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(format!("{stem}.sbatch"), script));
    let mut sink = Sink::new();
    let files = DiskFiles(directory.to_owned());
    match rewrite(&mut sources, id, &files, &Selection::default(), &mut sink).0 {
        RewriteResult::Job(job, targets) => Ok((job, targets.unwrap_or_default())),
        _ => Err(render(Format::Short, &sources, &sink.finish(), &TextStyle::default())),
    }
}

/// The variables that a script sets; a task that has no image sees the GPUs of its node.
fn variables(script: &str) -> std::collections::BTreeSet<&str> {
    let exports = script.lines().filter_map(|line| line.strip_prefix("export "));
    let names = exports.flat_map(str::split_whitespace).filter_map(|word| word.split_once('='));
    names.map(|(name, _)| name).filter(|name| !name.ends_with("VISIBLE_DEVICES")).collect()
}

#[test]
fn scripts_of_jobc_come_back() {
    let (mut same, mut refused, mut differing) = (Vec::new(), 0, Vec::new());
    for directory in examples() {
        let name = directory.file_name().unwrap();
        let job = std::fs::read_to_string(job_file(&directory).unwrap()).unwrap();
        for container in ["pyxis", "none"] {
            let given = format!(
                "version: 1\ntargets:\n  cluster:\n    backends: [slurm]\n    slurm: {{container: {container}, partition: gpu}}\n"
            );
            for (stem, script) in scripts(&compile(&job, &given, &directory)) {
                let title = format!("{name}/{stem} ({container})");
                let (imported, targets) = match import(&stem, &script, &directory) {
                    Ok(job) => job,
                    Err(findings) => {
                        assert!(findings.contains(IN_FILES), "{title}:\n{findings}");
                        refused += 1;
                        continue;
                    }
                };
                let again = compile(&imported, &targets, &directory);
                let built = scripts(&again).into_iter().next().map(|(_, script)| script).unwrap_or_default();
                if lines(&script) == lines(&built) && variables(&script) == variables(&built) {
                    same.push(title);
                } else if !EXCEPTIONS.iter().any(|(known, _)| title.starts_with(known)) {
                    let text = again.text();
                    differing
                        .push(format!("{title}\n{imported}\n--- was\n{script}\n--- is\n{built}\n{text}"));
                }
            }
        }
    }
    eprintln!("{} scripts come back, {refused} are refused: {}", same.len(), same.join(", "));
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
    assert!(same.len() > 5 && refused > 5, "{} the same, {refused} refused", same.len());
}

/// Scripts that run containers by jobc are refused at the line that says so.
#[test]
fn scripts_with_bundles_are_refused() {
    let directory = jobc_tests::workspace().join("examples/dag/out/pipeline/slurm/slurm");
    for name in ["evaluate", "prepare", "train"] {
        let script = std::fs::read_to_string(directory.join(format!("{name}.sbatch"))).unwrap();
        let findings = import(name, &script, &directory).expect_err("a refusal");
        let line = script.lines().position(|line| line.starts_with("# Job ")).unwrap() + 1;
        let place = format!("{name}.sbatch:{line}:1: error[J0630]");
        assert!(findings.contains(&place) && findings.contains(IN_FILES), "{findings}");
    }
}
