//! `priority`, `after`, `schedule` and `idle`: which jobs a job comes before, when it starts, and when it should make room.

use jobc_schema::cron::Cron;
use jobc_schema::plan::{JobPlan, TargetPlan};
use jobc_schema::queueing::{Priority, PriorityEntry, PriorityPlan, StartTime};
use jobc_schema::target::Target;
use jobc_schema::{BackendName, Job, Pointer};

use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::suggest;

/// The priority, with what the target calls it.
pub(super) fn resolve_priority(job: &Job, target: &TargetPlan, sink: &mut Sink) -> Option<PriorityPlan> {
    let table = &target.settings.priorities;
    let name = match job.priority.as_ref()? {
        Priority::Name(name) => name,
        Priority::Number(number) => {
            let entry = table.values().find(|entry| entry.value == Some(*number)).cloned();
            let entry = entry.unwrap_or(PriorityEntry { value: Some(*number), ..PriorityEntry::default() });
            return Some(PriorityPlan { name: None, entry });
        }
    };
    if let Some(entry) = table.get(name) {
        return Some(PriorityPlan { name: Some(name.clone()), entry: entry.clone() });
    }
    let names = table.keys().map(String::as_str);
    let note = if let Some(near) = suggest::nearest(name, names.clone()) {
        format!("did you mean `{near}`?")
    } else if table.is_empty() {
        "write a number from -100 to 100, or add the name to `priorities` of the target".to_owned()
    } else {
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        format!("the target has {}; a number from -100 to 100 needs no name", names.join(", "))
    };
    let message = format!("target `{}` has no priority `{name}`", target.name);
    let at = Pointer::ROOT.key("priority");
    let found = Diagnostic::error(codes::UNKNOWN_PRIORITY, message).at(&at, "").note(note);
    sink.push(match suggest::nearest(name, table.keys().map(String::as_str)) {
        Some(near) => found.write(Location::value(&at), near),
        None => found,
    });
    None
}

/// Puts the names of a priority where the backends read them.
pub(super) fn apply(PriorityPlan { entry, .. }: &PriorityPlan, settings: &mut Target) {
    if settings.backends.contains(&BackendName::Kubernetes) {
        let kubernetes = settings.kubernetes.get_or_insert_default();
        if entry.class.is_some() {
            kubernetes.pod.priority_class.clone_from(&entry.class);
        }
        if let Some(queue) = kubernetes.queue.as_mut().filter(|_| entry.kueue.is_some()) {
            queue.priority.clone_from(&entry.kueue);
        }
    }
    if settings.backends.contains(&BackendName::Slurm) && entry.qos.is_some() {
        settings.slurm.get_or_insert_default().qos.clone_from(&entry.qos);
    }
}

/// The earliest start, which has a form that [`StartTime`] reads.
pub(super) fn resolve_start(job: &Job, sink: &mut Sink) -> Option<String> {
    let text = job.after.as_ref()?;
    if let Err(error) = StartTime::parse(text) {
        sink.push(
            Diagnostic::error(codes::START_TIME, format!("`after`: {error}"))
                .at(&Pointer::ROOT.key("after"), ""),
        );
    }
    Some(text.clone())
}

/// Reports `idle` of a job without GPUs, where it would never be true.
pub(super) fn check_idle(plan: &JobPlan, sink: &mut Sink) {
    if plan.idle.is_some() && plan.roles.iter().all(|role| role.gpus().is_none()) {
        sink.push(
            Diagnostic::error(codes::IDLE_WITHOUT_GPUS, "`idle` is about GPUs, and no role has one")
                .at_key(&Pointer::ROOT.key("idle"), "")
                .note("give a role GPUs, as in `resources: {gpu: 1}`, or leave `idle` out"),
        );
    }
}

/// Checks the times of a schedule.
pub(super) fn check_schedule(job: &Job, sink: &mut Sink) {
    let Some(schedule) = &job.schedule else { return };
    if let Err(error) = Cron::parse(&schedule.cron) {
        sink.push(
            Diagnostic::error(codes::SCHEDULE, error.to_string())
                .at(&Pointer::ROOT.keys(["schedule", "cron"]), ""),
        );
    }
}
