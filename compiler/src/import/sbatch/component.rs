//! One component of a script: a role, and what the job has for it. Most scripts have one.

use crate::source::Span;

use super::super::draft::Draft;
use super::super::nodes::{entry, map, number, sequence, string};
use super::Script;
use super::body::Body;
use super::directives::Directive;
use super::het::Part;
use super::layout::{Layout, ROLE, Request};
use super::settings::Settings;
use super::steps::{self, Step};
use super::variables::Facts;
use super::{image, outside, own, script, unused};

/// Reads a component, and returns its shape; `part` says which one of a heterogeneous job it is.
pub(super) fn read(
    script: &Script<'_>,
    directives: &[Directive],
    part: Option<&Part<'_>>,
    draft: &mut Draft<'_>,
) -> Layout {
    let Script { text, id, start, first, .. } = *script;
    let whole = Span::new(id, 0, text.len());
    let mut settings = Settings::default();
    for directive in directives {
        settings.take(directive, draft);
    }
    script::name(&settings, script.path, first, draft);
    let mut body = Body::new(&text[start..], start, id);
    for line in &script.late {
        body.remove(line.start - start..line.end - start);
    }
    let own = own::role(text).map(|_| own::take(&mut body, &text[start..], draft));
    let shell = script::shell(text, first, draft);
    let mut steps = if shell.is_some() {
        steps::read(&text[start..], &body.classes, (start, id), part.is_some(), draft)
    } else {
        vec![]
    };
    if let Some(part) = part {
        steps = part.take(steps, &mut body, &text[start..], draft);
    }
    if let Some(head) = steps.iter().find(|step| step.command.starts_with("ray start --head")) {
        draft.refuse(
            body.span(head.range.start..head.end),
            "the script starts Ray on its nodes",
            "write two roles, `head` with the command that follows and `worker` with the other `instances`, and `distributed: {framework: ray, roles: [head, worker]}`",
        );
    }
    let (asking, steps): (Vec<Step>, Vec<Step>) =
        steps.into_iter().partition(|step| outside::asks_hosts(step, &text[start..]));
    for option in asking.iter().flat_map(|step| &step.options) {
        draft.note(option.span, "an option of a step that asks for hosts, which jobc knows");
    }
    let is_mpi = steps.iter().any(Step::is_mpi);
    let (layout, request) = shape(&settings, &steps, &text[start..], (whole, start), draft);
    let ranked = match own {
        Some(sets) => {
            let command: String = steps.iter().map(|step| step.command.as_str()).collect();
            own::distributed(sets, &command, first, draft)
        }
        None => script::distributed(&text[start..], &steps, &layout, whole, draft),
    };
    image::write(&settings, &steps, (&text[start..], &body.classes), first, draft);
    if shell.is_some() {
        body.without_srun(&steps, if is_mpi { Some(layout) } else { None }, draft);
        unused::remove(&steps, &mut body);
        let mut facts = facts(&settings, layout, ranked, part);
        if let Some(role) = own::role(text) {
            role.clone_into(&mut facts.role);
        }
        body.answer_hosts(&asking, &facts, draft);
        body.read_modules(draft);
        if own.is_none() {
            body.repeat(&steps, &facts, draft);
            body.replace_requeue(draft);
        }
        body.replace_variables(&facts, draft);
        body.read_commands(draft);
        body.replace_arguments(draft);
    }
    request.write(&layout, ROLE, draft);
    array(&settings, &text[start..], draft);
    let run = body.finish();
    let at = Span::new(id, start, text.trim_end().len().max(start));
    if run.is_empty() {
        draft.invalid(first, "the script has no commands", "");
    }
    match own {
        Some(_) => own::write(&run, at, draft),
        None => script::write(&run, shell, at, draft),
    }
    layout
}

/// How many instances there are, and what they request.
fn shape(
    settings: &Settings,
    steps: &[Step],
    body: &str,
    (whole, start): (Span, usize),
    draft: &mut Draft<'_>,
) -> (Layout, Request) {
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
                // CPUs of the script are those of the allocation.
                if given.is_none() || name != "cpus-per-task" {
                    *given = Some((number, option.span));
                }
            }
        }
    }
    let layout = request.layout(counted, count, draft);
    for option in steps.iter().flat_map(|step| &step.options) {
        match option.name {
            "nodes" | "ntasks" | "ntasks-per-node" => {
                draft.account.field(option.span, "roles.main.instances");
            }
            "cpus-per-task" if counted.len() == 1 => {
                draft.account.field(option.span, "roles.main.resources.cpu");
            }
            "gpus-per-task" | "gpus-per-node" if counted.len() == 1 => {
                draft.account.field(option.span, "roles.main.resources.gpu");
            }
            "het-group" => draft.account.field(option.span, "roles"),
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
    (layout, request)
}

fn facts(settings: &Settings, layout: Layout, ranked: bool, part: Option<&Part<'_>>) -> Facts {
    Facts {
        role: part.map_or(ROLE, |part| part.role()).to_owned(),
        components: part.map(|part| part.components.to_vec()).unwrap_or_default(),
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
