//! Findings about failed instructions, by the output of their commands.

use camino::{Utf8Path, Utf8PathBuf};

use super::FailedStep;
use crate::compile::{Request, build, plan};
use crate::diagnostic::{Diagnostic, Sink};
use crate::files::MemoryFiles;
use crate::lock::Locking;
use crate::source::{Source, Sources};
use crate::why::source_map::{FILE, SourceMap};

const JOB: &str = "\
version: 1
name: example
image:
  from: registry.example.com/ml:1
  apt: [git, ffmpeg-nosuch, curl=1.0]
  python:
    packages: [numpy==1.26.4, nosuch-package>=1]
  run:
    - make all
    - pip install torch
roles:
  main: {run: python3 train.py}
";
const STEPS: &str = "\
version: 1
name: example
image:
  from: condaforge/miniforge3:24.9.0-0
  steps:
    - run: pip install torch
    - conda: {packages: [nosuch-lib=2.0]}
roles:
  main: {run: python3 train.py}
";
/// Its steps are in the order of the fields.
const ORDERED: &str = "\
version: 1
name: example
image:
  from: registry.example.com/ml:1
  steps:
    - apt: [git]
    - run: pip install torch
roles:
  main: {run: python3 train.py}
";
const EXTERNALLY_MANAGED: &str = "\
error: externally-managed-environment

× This environment is externally managed
hint: See PEP 668 for the detailed specification.";

/// Checks the place and the advice of the finding about the instruction that contains a text.
fn check(job: &str, instruction: &str, output: &str, place: (u32, u32), advice: &str) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", job));
    let files = MemoryFiles::default();
    let request = Request {
        only_targets: vec!["local".to_owned()],
        locking: Locking::Ignored,
        ..Request::new(id, &files, &|_| Utf8PathBuf::from("."))
    };
    let mut sink = Sink::new();
    let planned = plan(&mut sources, &request, &mut sink).expect("the job is sound");
    let outputs = build(&sources, planned, &request, &mut sink);
    let text = |path: &str| {
        let mut files = outputs.iter().flat_map(|output| &output.artifacts);
        let bytes = files.find(|file| file.path == Utf8Path::new(path)).map(|file| file.bytes.clone());
        String::from_utf8(bytes.expect("it was built")).unwrap()
    };
    let path = "dockerfile/main/Dockerfile";
    let dockerfile = text(path);
    let map = SourceMap::parse(&text(FILE)).unwrap();
    let inside = dockerfile.lines().position(|line| line.contains(instruction)).expect("an instruction");
    let before: Vec<&str> = dockerfile.lines().take(inside + 1).collect();
    let line = 1 + before.iter().rposition(|line| line.starts_with("RUN")).expect("a `RUN`");
    let step = FailedStep {
        path,
        text: &dockerfile,
        line: u32::try_from(line).unwrap(),
        message: "the command failed with exit code 1",
        help: None,
        output,
    };
    let finding: Diagnostic = step.finding(&map, &sources).expect("a cause in the job file");
    let start = finding.labels[0].place.span().expect("a place").start;
    let at = sources.get(id).line_column(start);
    assert_eq!((at.line, at.column), place, "{instruction}: {output}");
    assert_eq!(finding.notes[0], format!("the instruction is at {path}:{line}"));
    match &finding.notes[1..] {
        [] => assert_eq!("", advice, "{instruction}: {output}"),
        [note] => assert!(!advice.is_empty() && note.contains(advice), "{instruction}: {output}: {note}"),
        more => panic!("{more:?}"),
    }
}

#[test]
fn a_failed_step_is_at_its_line_of_the_job_file() {
    for (instruction, output, place, advice) in [
        ("make all", "make: *** No rule to make target 'all'.  Stop.", (9, 7), ""),
        (
            "apt-get install",
            "E: Unable to locate package ffmpeg-nosuch",
            (5, 14),
            "has no package `ffmpeg-nosuch`",
        ),
        ("apt-get install", "E: Package 'git' has no installation candidate", (5, 9), "{apt: [git]}]`"),
        (
            "apt-get install",
            "E: Version '1.0' for 'curl' was not found",
            (5, 29),
            "another version of `curl`",
        ),
        (
            "apt-get install",
            "W: Failed to fetch http://x\nE: Unable to locate package git",
            (5, 8),
            "could not be reached",
        ),
        (
            "pip install \\",
            EXTERNALLY_MANAGED,
            (7, 5),
            "`env: {PIP_BREAK_SYSTEM_PACKAGES: \"1\"}` in the image block",
        ),
        (
            "pip install \\",
            "ERROR: No matching distribution found for nosuch-package>=1",
            (7, 31),
            "no release of `nosuch-package`",
        ),
        (
            "pip install \\",
            "NewConnectionError\nERROR: No matching distribution found for numpy",
            (7, 5),
            "could not be reached",
        ),
        ("pip install torch", EXTERNALLY_MANAGED, (10, 7), "or list the packages in `python`"),
    ] {
        check(JOB, instruction, output, place, advice);
    }
    let unknown = "no channel in `conda.channels` has `nosuch-lib`";
    for (instruction, output, place, advice) in [
        (
            "pip install torch",
            EXTERNALLY_MANAGED,
            (6, 7),
            "add the step `env: {PIP_BREAK_SYSTEM_PACKAGES: \"1\"}` before",
        ),
        ("conda install", "PackagesNotFoundError: not available:\n\n  - nosuch-lib=2.0\n", (7, 26), unknown),
        ("conda install", "  - nothing provides requested nosuch-lib 2.0**", (7, 26), unknown),
        (
            "conda install",
            "  └─ nosuch-lib =2.0 * does not exist (perhaps a typo or a missing channel).",
            (7, 26),
            unknown,
        ),
    ] {
        check(STEPS, instruction, output, place, advice);
    }
    let allow = "add the step `env: {PIP_BREAK_SYSTEM_PACKAGES: \"1\"}` before";
    check(ORDERED, "pip install torch", EXTERNALLY_MANAGED, (7, 7), allow);
    check(ORDERED, "apt-get install", "E: Unable to locate package git", (6, 13), "no package `git`");
}
