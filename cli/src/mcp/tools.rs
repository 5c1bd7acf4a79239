//! The tools of the server, one table.

use std::time::Duration;

use serde_json::{Value, json};

use super::command::{Command, OutputKind};
use super::parameter::{Kind, Parameter};
use super::tool::{Effect, Tool};

/// For tools that query this host or a target.
const OBSERVE_TIMEOUT: Duration = Duration::from_mins(2);
/// For tools that may build, pull or push an image first.
const RUN_TIMEOUT: Duration = Duration::from_hours(1);

const fn parameter(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, kind, about }
}

const JOB: Parameter = parameter(
    "job",
    Kind::Path,
    "Job file, or a directory with a job.yaml [default: job.yaml in the root directory]",
);
const TEXT: Parameter = parameter("text", Kind::Text, "Text of a job file, instead of `job`");
const DIRECTORY: Parameter = parameter(
    "directory",
    Kind::Path,
    "Directory that the files named in `text` are relative to [default: the root directory]",
);
const TARGETS: Parameter =
    parameter("targets", Kind::Path, "Targets file [default: targets.yaml next to the job file or above it]");
const TARGET: Parameter = parameter(
    "target",
    Kind::Words,
    "Names of targets to compile for [default: `default` of the targets file, all in it, or `local`]",
);
const SET: Parameter = parameter("set", Kind::Pairs, "Parameters of the job, by name");
const ALLOW_LOSSY: Parameter = parameter(
    "allow_lossy",
    Kind::Flag,
    "Accept what a backend cannot express exactly, with a warning instead of an error",
);
const ONE_TARGET: Parameter = parameter("target", Kind::Word, "Name of the target");
const JOB_ID: &str =
    "Job ID such as `train.2`, a job name for its newest run, or a handle such as `lab/train`";

/// The parameters of tools for a job file: what names its targets, and others.
macro_rules! of_job {
    ($target:expr $(, $other:expr)* $(,)?) => {
        &[JOB, TEXT, DIRECTORY, TARGETS, $target, SET, ALLOW_LOSSY $(, $other)*]
    };
}

/// All tools.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "check",
        title: "Check a job file",
        about: "Reports the errors and warnings of a job file, or of all job files below a directory: each with its code, \
                its place and its fixes as edits. Nothing is written.",
        effect: Effect::None,
        parameters: of_job!(TARGET),
        output: Some(findings),
        command: |arguments, root| {
            let command = Command::new(root, "check").word("--format=json").output(OutputKind::Findings);
            Command { success: &[1], ..command }.with_job(arguments, root, None)
        },
    },
    Tool {
        name: "plan",
        title: "Show the plan of a job",
        about: "Shows what a job file resolves to: a summary of roles, images and resources, or with `full` all values with \
                all defaults, as plan.json has them.",
        effect: Effect::None,
        parameters: of_job!(TARGET, parameter("full", Kind::Flag, "Return the whole plan as JSON"),),
        output: None,
        command: |arguments, root| {
            let command = Command::new(root, "plan");
            let command = if arguments.flag("full") {
                command.word("--format=json").output(OutputKind::Object)
            } else {
                command
            };
            command.with_job(arguments, root, None)
        },
    },
    Tool {
        name: "explain",
        title: "Explain a code or a field",
        about: "Prints the page of a diagnostic code such as `J0101`, or of a field such as `roles.train.retry` or \
                `resources.gpu`: type, default, examples. Without a topic, lists all codes.",
        effect: Effect::None,
        parameters: &[parameter("topic", Kind::Word, "Diagnostic code or field")],
        output: None,
        command: |arguments, root| {
            let command = Command::new(root, "explain");
            Ok(match arguments.text("topic") {
                Some(topic) => command.word(topic),
                None => command,
            })
        },
    },
    Tool {
        name: "diff",
        title: "Compare with a revision",
        about: "Compares the plan and every built file of a job with those of a Git revision, a built directory or another \
                job file, by meaning: the changed fields of the job, then place, old value, new value and cause in each file.",
        effect: Effect::None,
        parameters: of_job!(
            TARGET,
            parameter(
                "base",
                Kind::Word,
                "Git revision, job file or directory to compare with [default: HEAD]",
            ),
        ),
        output: Some(|| {
            let (text, objects) = (|| of("string"), || list(&of("object")));
            let field =
                json!({"field": text(), "roles": list(&text()), "jobs": objects(), "causes": objects()});
            let states = json!({"enum": ["added", "removed", "changed"]});
            let file = json!({
                "job": text(), "target": text(), "file": text(), "state": states, "changes": objects()
            });
            whole(&json!({"fields": list(&whole(&field)), "files": list(&whole(&file))}))
        }),
        command: |arguments, root| {
            let command = Command::new(root, "diff").word("--format=json").output(OutputKind::Object);
            let command = Command { success: &[1], ..command }.with_job(arguments, root, Some("--job"))?;
            Ok(match arguments.text("base") {
                // Files come before revisions of the same name.
                Some(base) if command.directory.join(base).exists() => command.word(root.existing(base)?),
                Some(base) => command.word(base),
                None => command,
            })
        },
    },
    Tool {
        name: "why",
        title: "Explain a line",
        about: "For a line of a file that `jobc build` has written: the field of the job, the setting of the target or the \
                default that causes it. For a line of a job file: the lines of the built files that it causes.",
        effect: Effect::None,
        parameters: &[
            parameter("file", Kind::RequiredPath, "Built file or job file"),
            parameter("line", Kind::Count { min: 1, max: 10_000_000, default: None }, "Line, from 1"),
            TARGETS,
            TARGET,
            SET,
            ALLOW_LOSSY,
        ],
        output: Some(|| {
            let (text, objects) = (of("string"), || list(&of("object")));
            let properties = json!({
                "file": text, "line": of("integer"), "causes": objects(), "fields": list(&of("string")), "effects": objects()
            });
            object(&properties, &["file", "line"])
        }),
        command: |arguments, root| {
            let file = root.existing(arguments.text("file").unwrap_or_default())?;
            let line = arguments.count("line").unwrap_or_default();
            let command = Command::new(root, "why").word("--format=json").output(OutputKind::Object);
            Ok(command.with_settings(arguments, root)?.word(format!("{file}:{line}")))
        },
    },
    Tool {
        name: "status",
        title: "Show jobs",
        about: "Lists the user's running jobs on this host, or with `target` those on a cluster; with `job` the details of \
                one: state, tasks, exit codes, reasons.",
        effect: Effect::Observes,
        parameters: &[
            parameter("job", Kind::Word, JOB_ID),
            ONE_TARGET,
            parameter("all", Kind::Flag, "List ended jobs too"),
        ],
        output: Some(
            || json!({"type": "object", "properties": {"jobs": list(&of("object")), "job": of("object")}}),
        ),
        command: |arguments, root| match (arguments.text("job"), arguments.text("target")) {
            (Some(_), Some(_)) => {
                Err("give either `job` or `target`; a handle has the target: `TARGET/NAME`".to_owned())
            }
            (Some(job), None) => {
                let command = Command::unconfined(root, "inspect", OBSERVE_TIMEOUT).word("--format=json");
                Ok(command.word(job).output(OutputKind::Job))
            }
            (None, target) => {
                let command = Command::unconfined(root, "ps", OBSERVE_TIMEOUT).word("--format=json");
                let command = command.option("--target", target).flag("--all", arguments.flag("all"));
                Ok(command.output(OutputKind::Value("jobs")))
            }
        },
    },
    Tool {
        name: "logs",
        title: "Show output of tasks",
        about: "Shows the end of the output of a job's tasks, on this host or on a target.",
        effect: Effect::Observes,
        parameters: &[
            parameter("job", Kind::RequiredWord, JOB_ID),
            parameter(
                "tasks",
                Kind::Words,
                "Tasks such as `train-0`, or roles for all their tasks [default: all tasks]",
            ),
            parameter(
                "tail",
                Kind::Count { min: 1, max: 2000, default: Some(DEFAULT_TAIL) },
                "Number of lines of each task",
            ),
            parameter("since", Kind::Word, "Show only lines newer than a duration (`10m`) or a time"),
        ],
        output: None,
        command: |arguments, root| {
            let tail = arguments.count("tail").unwrap_or(DEFAULT_TAIL);
            let command = Command::unconfined(root, "logs", OBSERVE_TIMEOUT)
                .option("--tail", Some(tail.to_string()))
                .option("--since", arguments.text("since"))
                .output(OutputKind::Tail);
            let command = command.word(arguments.text("job").unwrap_or_default());
            Ok(arguments.words("tasks").fold(command, Command::word))
        },
    },
    Tool {
        name: "fix",
        title: "Fix a job file",
        about: "Applies the safe fixes of findings to a job file, with `unsafe` also guesses, and returns what is left.",
        effect: Effect::Writes,
        parameters: &[
            JOB,
            TARGETS,
            TARGET,
            SET,
            ALLOW_LOSSY,
            parameter("unsafe", Kind::Flag, "Also apply fixes that are guesses"),
        ],
        output: Some(findings),
        command: |arguments, root| {
            let command = Command::new(root, "check").word("--format=json").word("--fix");
            let command =
                command.flag("--unsafe-fixes", arguments.flag("unsafe")).output(OutputKind::Findings);
            Command { success: &[1], ..command }.with_job(arguments, root, None)
        },
    },
    Tool {
        name: "fmt",
        title: "Format job files",
        about: "Formats a job file or targets file, or all below a directory; returns the names of changed files.",
        effect: Effect::Writes,
        parameters: &[parameter("file", Kind::RequiredPath, "File or directory")],
        output: None,
        command: |arguments, root| {
            let file = root.existing(arguments.text("file").unwrap_or_default())?;
            Ok(Command::new(root, "fmt").word(file))
        },
    },
    Tool {
        name: "run",
        title: "Run a job on this host",
        about: "Starts a job on this host in the background and returns its ID, for `status` and `logs`.",
        effect: Effect::Starts,
        parameters: of_job!(
            ONE_TARGET,
            parameter(
                "allow_unenforced",
                Kind::Flag,
                "Run even if the job file or the user's settings refuse limits that this host cannot enforce",
            ),
        ),
        output: None,
        command: |arguments, root| {
            let command = Command::unconfined(root, "run", RUN_TIMEOUT).word("--detach");
            let command = command.flag("--allow-unenforced", arguments.flag("allow_unenforced"));
            command.option("--target", arguments.text("target")).with_job(arguments, root, None)
        },
    },
    Tool {
        name: "submit",
        title: "Submit a job to a cluster",
        about: "Builds a job for a target with a cluster, creates it there and returns its handle, for `status` and `logs`.",
        effect: Effect::Starts,
        parameters: of_job!(
            ONE_TARGET,
            parameter(
                "dry_run",
                Kind::Flag,
                "Check the job with the cluster; build, push and create nothing",
            ),
        ),
        output: None,
        command: |arguments, root| {
            let command = Command::unconfined(root, "submit", RUN_TIMEOUT);
            let command = command.flag("--dry-run", arguments.flag("dry_run"));
            command.option("--target", arguments.text("target")).with_job(arguments, root, None)
        },
    },
    Tool {
        name: "stop",
        title: "Stop a job",
        about: "Stops a job on this host, or deletes one on a cluster.",
        effect: Effect::Ends,
        parameters: &[parameter("job", Kind::RequiredWord, JOB_ID)],
        output: None,
        command: |arguments, root| {
            let command = Command::unconfined(root, "stop", OBSERVE_TIMEOUT);
            Ok(command.word(arguments.text("job").unwrap_or_default()))
        },
    },
];

/// How many lines of each task are shown.
const DEFAULT_TAIL: u64 = 200;

/// The schema of a type.
fn of(kind: &str) -> Value {
    json!({"type": kind})
}

/// The schema of a list.
fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// The schema of an object.
fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// The schema of an object that has all of its properties.
fn whole(properties: &Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|all| all.keys()).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// The schema of findings.
fn findings() -> Value {
    let (text, number) = (|| of("string"), || of("integer"));
    let place = whole(&json!({"line": number(), "column": number(), "offset": number()}));
    let edit = whole(&json!({"file": text(), "start": place, "end": place, "text": text()}));
    let fix = json!({"message": text(), "safety": {"enum": ["safe", "unsafe"]}, "edits": list(&edit)});
    let or_none = json!({"anyOf": [place, of("null")]});
    let finding = json!({
        "code": text(),
        "severity": {"enum": ["error", "warning", "note"]},
        "message": text(),
        "file": {"type": ["string", "null"]},
        "start": or_none,
        "end": or_none,
        "notes": list(&text()),
        "fixes": list(&whole(&fix))
    });
    let properties = json!({
        "version": number(),
        "errors": number(),
        "warnings": number(),
        "omitted": {"type": "integer", "description": "Number of findings that are left out"},
        "diagnostics": list(&object(&finding, &["code", "severity", "message"]))
    });
    object(&properties, &["version", "errors", "warnings", "diagnostics", "omitted"])
}
