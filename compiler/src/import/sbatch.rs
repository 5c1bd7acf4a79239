//! Batch scripts of Slurm.
//!
//! A script without a container becomes a job on the files of the host (`image: host`), since that is where it ran. One
//! task that `srun` starts is one instance. What no `srun` starts runs in each instance, so the lines before it do too.

mod body;
mod directives;
mod image;
mod layout;
mod options;
mod scan;
mod script;
mod settings;
mod steps;
mod values;
mod variables;

use crate::source::{SourceId, Sources, Span};

use super::draft::Draft;
use super::nodes::{entry, map, number, sequence, string};
use super::read::{Comments, Read};
use body::Body;
use layout::{Layout, ROLE};
use settings::Settings;
use steps::Step;
use variables::Facts;

pub(super) use options::OPTIONS;

/// Whether a text is a batch script of Slurm.
pub(super) fn is_script(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let is_option = |line: &str| line.starts_with("#SBATCH ") || line.starts_with("#SBATCH\t");
    text.starts_with("#!") && text.lines().any(is_option)
}

/// Reads a batch script.
pub(super) fn read(sources: &Sources, id: SourceId, sink: &mut crate::diagnostic::Sink) -> Read {
    let source = sources.get(id);
    let text = source.text();
    let whole = Span::new(id, 0, text.len());
    let first = Span::new(id, 0, text.find('\n').unwrap_or(text.len()));
    let errors = sink.error_count();
    let mut draft = Draft::new(first, sink);
    if text.contains("\r\n") {
        draft.invalid(
            first,
            "the lines end as on Windows (CRLF), which sbatch refuses",
            "save the script with Unix line ends",
        );
    }
    let head = directives::read(text, id, &mut draft);
    let mut settings = Settings::default();
    for directive in &head.directives {
        settings.take(directive, &mut draft);
    }
    script::name(&settings, source.path(), first, &mut draft);

    let mut body = Body::new(&text[head.body..], head.body, id);
    for line in directives::late(text, head.body, id, &mut draft) {
        body.remove(line.start - head.body..line.end - head.body);
    }
    let shell = script::shell(text, first, &mut draft);
    let steps = if shell.is_some() {
        steps::read(&text[head.body..], &body.classes, head.body, id, &mut draft)
    } else {
        vec![]
    };
    let is_mpi = steps.iter().any(Step::is_mpi);
    let layout = shape(&settings, &steps, &text[head.body..], (whole, head.body), &mut draft);
    let ranked = script::distributed(&text[head.body..], &steps, &layout, whole, &mut draft);
    image::write(&settings, &steps, (&text[head.body..], &body.classes), first, &mut draft);
    if shell.is_some() {
        body.without_srun(&steps, if is_mpi { Some(layout) } else { None }, &mut draft);
        let facts = facts(&settings, layout, ranked);
        body.replace_variables(&facts, &mut draft);
        body.read_commands(&mut draft);
        body.replace_arguments(&mut draft);
    }
    settings.request.write(&layout, ROLE, &mut draft);
    array(&settings, &text[head.body..], &mut draft);
    let run = body.finish();
    let at = Span::new(id, head.body, text.trim_end().len().max(head.body));
    if run.is_empty() {
        draft.invalid(first, "the script has no commands", "");
    }
    script::write(&run, shell, at, &mut draft);
    let has_errors = draft.sink.error_count() > errors;
    let comments: Comments =
        head.comments.into_iter().map(|(line, text, alone)| (line, (text, alone))).collect();
    let (document, targets, account) = draft.finish();
    Read { document: (!has_errors).then_some(document), targets, account, comments: vec![(id, comments)] }
}

/// How many instances there are.
fn shape(
    settings: &Settings,
    steps: &[Step],
    body: &str,
    (whole, start): (Span, usize),
    draft: &mut Draft<'_>,
) -> Layout {
    let (nodes, tasks, _) = settings.request.shape();
    let count = |step: &Step, name: &str| {
        let value = step.option(name)?.value.text();
        let variable = value.trim_start_matches(['$', '{']).split([':', '-', '}']).next().unwrap_or_default();
        match variable {
            "SLURM_NNODES" | "SLURM_JOB_NUM_NODES" => Some(nodes),
            "SLURM_NTASKS" | "SLURM_NPROCS" => Some(tasks),
            _ => value.parse().ok().or_else(|| {
                let text = steps::assigned(body, variable)?;
                text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            }),
        }
    };
    let mut request = settings.request.clone();
    // What `srun` starts as a program of MPI, `mpirun` starts here: on each node one instance.
    let is_mpi = steps.iter().any(Step::is_mpi) && tasks > 1;
    let counted = if is_mpi { &[] } else { steps };
    // Options of a single step come before those of the script.
    if let [step] = counted {
        for (name, given) in [
            ("cpus-per-task", &mut request.cpus_per_task),
            ("gpus-per-task", &mut request.gpus_per_task),
            ("gpus-per-node", &mut request.gpus_per_node),
        ] {
            if let (Some(option), Some(number)) = (step.option(name), count(step, name)) {
                *given = Some((number, option.span));
            }
        }
    }
    let layout = request.layout(counted, count, draft);
    for option in steps.iter().flat_map(|step| &step.options) {
        match option.name {
            "nodes" | "ntasks" | "ntasks-per-node" => {
                draft.account.field(option.span, "roles.main.instances");
            }
            "container-image" | "container-mounts" | "container-workdir" | "image" => {}
            "mpi" if is_mpi => draft.changed(
                option.span,
                "`srun` starts the program as one of MPI: `mpirun` does so here",
                "the image needs the `mpirun` of the MPI that the program is built with",
            ),
            "multi-prog" => draft.refuse(
                option.span,
                "each task runs another program",
                "write a role for each in a job file",
            ),
            _ => draft.note(option.span, "an option of the step: jobc starts the tasks"),
        }
    }
    let starts = ["mpirun", "mpiexec", "horovodrun", "deepspeed "].iter().any(|name| body.contains(name));
    if nodes > 1 && layout.instances == 1 && !starts && !is_mpi {
        let span = settings.request.nodes.map_or(whole, |(_, span)| span);
        let message = format!("nothing in the script starts processes on {} of the {nodes} nodes", nodes - 1);
        if ["ssh ", "pdsh ", "clush "].iter().any(|name| body.contains(name)) {
            draft.refuse(span, message, "start the command with `srun` instead of ssh, or request one node");
        } else {
            let note = "the job has one instance; where a script that it calls starts them, import that one";
            draft.changed(span, message, note);
        }
    }
    if layout.instances > 1 && steps.len() > 1 {
        let at = start + steps[1].range.start;
        let span = Span::new(whole.source, at, at + "srun".len());
        draft.changed(
            span,
            format!("the {} steps follow one another in each of the {} instances", steps.len(), layout.instances),
            "no instance waits for the others between them; a step that must run alone, or end first, is a role of its own, with `needs`",
        );
    }
    layout
}

fn facts(settings: &Settings, layout: Layout, ranked: bool) -> Facts {
    Facts {
        role: ROLE.to_owned(),
        layout,
        cpus: settings.request.cpus_per_task.map(|(number, _)| number),
        memory_mib: settings.request.memory.map(|(kib, _)| kib / 1024),
        array: settings.array.as_ref().map(|(numbers, ..)| numbers.clone()),
        ranked,
    }
}

/// Writes the matrix of an array, and the variable that programs read themselves.
fn array(settings: &Settings, body: &str, draft: &mut Draft<'_>) {
    let Some((numbers, parallel, span)) = &settings.array else { return };
    let span = *span;
    let tasks = sequence(span, numbers.iter().map(|task| number(span, *task)).collect());
    let axes = map(span, vec![entry("task", span, tasks)]);
    match parallel {
        Some(parallel) => {
            draft.set(&["matrix", "axes"], span, axes);
            draft.set(&["matrix", "max_parallel"], span, number(span, *parallel));
        }
        None => draft.set(&["matrix"], span, axes),
    }
    if !body.contains("SLURM_ARRAY_TASK_ID") {
        draft.set(&["env", "SLURM_ARRAY_TASK_ID"], span, string(span, "${{ matrix.task }}"));
    }
}
