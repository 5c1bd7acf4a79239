//! How many instances a job has, and what each has: from nodes, tasks and steps.

use crate::source::Span;

use super::super::amounts::amount;
use super::super::draft::Draft;
use super::super::nodes::{entry, map, number, string};
use super::steps::Step;

/// The only role.
pub(super) const ROLE: &str = "main";

/// A number and the option that gives it.
pub(super) type Amount = Option<(u64, Span)>;

/// What the options request.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    /// `--nodes`.
    pub(super) nodes: Amount,
    /// `--ntasks`.
    pub(super) tasks: Amount,
    /// `--ntasks-per-node`.
    pub(super) tasks_per_node: Amount,
    /// `--cpus-per-task`.
    pub(super) cpus_per_task: Amount,
    /// `--cpus-per-gpu`.
    pub(super) cpus_per_gpu: Amount,
    /// `--mem`, in KiB.
    pub(super) memory: Amount,
    /// `--mem-per-cpu`, in KiB.
    pub(super) memory_per_cpu: Amount,
    /// `--mem-per-gpu`, in KiB.
    pub(super) memory_per_gpu: Amount,
    /// `--gres=gpu` or `--gpus-per-node`.
    pub(super) gpus_per_node: Amount,
    /// `--gpus-per-task`.
    pub(super) gpus_per_task: Amount,
    /// `--gpus`.
    pub(super) gpus: Amount,
    /// The model of the GPUs.
    pub(super) model: Option<String>,
}

/// The shape of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Nodes.
    pub(super) nodes: u64,
    /// Tasks.
    pub(super) tasks: u64,
    /// Tasks on a node.
    pub(super) tasks_per_node: u64,
    /// Instances of the role.
    pub(super) instances: u64,
    /// Tasks of Slurm in an instance.
    pub(super) tasks_per_instance: u64,
    /// GPUs of an instance.
    pub(super) gpus: Option<u64>,
}

impl Request {
    /// Nodes, tasks and tasks on a node.
    pub(super) fn shape(&self) -> (u64, u64, u64) {
        let of = |given: Amount| given.map(|(number, _)| number.max(1));
        let nodes = of(self.nodes);
        let per_node = of(self.tasks_per_node);
        let tasks = of(self.tasks);
        let nodes = nodes.unwrap_or_else(|| match (tasks, per_node) {
            (Some(tasks), Some(per_node)) => tasks.div_ceil(per_node),
            _ => 1,
        });
        let tasks = tasks.unwrap_or_else(|| nodes.saturating_mul(per_node.unwrap_or(1)));
        // Slurm gives a node per task at most.
        let nodes = nodes.min(tasks.max(1)).max(1);
        (nodes, tasks, tasks.div_ceil(nodes))
    }

    /// The shape of the job, with a role of `steps` that `srun` starts.
    pub(super) fn layout(
        &self,
        steps: &[Step],
        count: impl Fn(&Step, &str) -> Option<u64>,
        draft: &mut Draft<'_>,
    ) -> Layout {
        let (nodes, tasks, per_node) = self.shape();
        let of_step = |step: &Step| -> u64 {
            let nodes = count(step, "nodes").unwrap_or(nodes);
            count(step, "ntasks")
                .or_else(|| count(step, "ntasks-per-node").map(|number| number.saturating_mul(nodes)))
                .unwrap_or_else(|| {
                    if step.option("nodes").is_some() {
                        nodes.max(tasks.min(nodes * per_node))
                    } else {
                        tasks
                    }
                })
        };
        let most = steps.iter().map(of_step).max().unwrap_or(1).max(1);
        let step_nodes =
            steps.iter().filter_map(|step| count(step, "nodes")).max().unwrap_or(nodes).max(nodes);
        let instances = most;
        let nodes = if steps.is_empty() { nodes } else { step_nodes.min(most.max(nodes)) };
        let per_node = if instances > 1 { instances.div_ceil(nodes) } else { per_node };
        let tasks_per_instance = if instances > 1 {
            1.max(tasks.div_ceil(nodes) / per_node.max(1))
        } else {
            tasks.div_ceil(nodes)
        };
        let gpus = self.gpus_of_instance(nodes, instances, per_node, tasks_per_instance, draft);
        Layout {
            nodes,
            tasks: tasks.max(most),
            tasks_per_node: per_node,
            instances,
            tasks_per_instance,
            gpus,
        }
    }

    fn gpus_of_instance(
        &self,
        nodes: u64,
        instances: u64,
        per_node: u64,
        tasks: u64,
        draft: &mut Draft<'_>,
    ) -> Option<u64> {
        let mut divided = |number: u64, by: u64, span: Span, what: &str| -> Option<u64> {
            if by > 1 && !number.is_multiple_of(by) {
                draft.refuse(
                    span,
                    format!("{} cannot be divided by {by} {what}", if number == 1 { "1 GPU".to_owned() } else { format!("{number} GPUs") }),
                    "in a job file each instance has GPUs of its own: request as many as there are tasks, or a share of one with `gpu: {count: 1, share: {memory: 8GiB}}`",
                );
                return None;
            }
            Some(number / by.max(1))
        };
        if let Some((number, _)) = self.gpus_per_task {
            return Some(number.saturating_mul(tasks));
        }
        if let Some((number, span)) = self.gpus_per_node {
            let per_node = if instances > 1 { per_node } else { 1 };
            return divided(number, per_node, span, "tasks of a node");
        }
        let (number, span) = self.gpus?;
        divided(number, if instances > 1 { instances } else { nodes }, span, "instances")
    }

    /// Writes `instances` and `resources` of the role.
    pub(super) fn write(&self, layout: &Layout, role: &str, draft: &mut Draft<'_>) {
        let path = |field: &'static str| ["roles", role, "resources", field];
        if layout.instances > 1 {
            let span = [self.tasks, self.tasks_per_node, self.nodes]
                .into_iter()
                .flatten()
                .next()
                .map(|(_, span)| span);
            if let Some(span) = span.or_else(|| draft.get(&["roles"]).map(|node| node.span)) {
                draft.set(&["roles", role, "instances"], span, number(span, layout.instances));
            }
        }
        let tasks = layout.tasks_per_instance;
        let cpus = match (self.cpus_per_task, self.cpus_per_gpu) {
            (Some((number, span)), _) => Some((number.saturating_mul(tasks), span)),
            (None, Some((number, span))) => Some((number.saturating_mul(layout.gpus.unwrap_or(1)), span)),
            (None, None) if tasks > 1 => {
                [self.tasks, self.tasks_per_node].into_iter().flatten().next().map(|(_, span)| (tasks, span))
            }
            _ => None,
        };
        if let Some((cpus, span)) = cpus {
            draft.set(&path("cpu"), span, number(span, cpus));
        }
        let share = if layout.instances > 1 { layout.tasks_per_node } else { 1 };
        let memory = if let Some((kib, span)) = self.memory {
            Some((kib / share.max(1), span))
        } else if let Some((kib, span)) = self.memory_per_cpu {
            Some((kib.saturating_mul(cpus.map_or(1, |(cpus, _)| cpus)), span))
        } else {
            self.memory_per_gpu.map(|(kib, span)| (kib.saturating_mul(layout.gpus.unwrap_or(1)), span))
        };
        if let Some((kib, span)) = memory.filter(|(kib, _)| *kib > 0) {
            draft.set(&path("memory"), span, string(span, amount(kib)));
        }
        let gpus = [self.gpus_per_task, self.gpus_per_node, self.gpus].into_iter().flatten().next();
        if let (Some(count), Some((_, span))) = (layout.gpus, gpus) {
            let value = match &self.model {
                Some(model) if count > 0 => map(
                    span,
                    vec![
                        entry("count", span, number(span, count)),
                        entry("model", span, string(span, model)),
                    ],
                ),
                _ => number(span, count),
            };
            if let Some(model) = self.model.as_deref().filter(|_| count > 0) {
                draft.need_of_target(&["slurm", "gpu_types", model], span, string(span, model));
            }
            draft.set(&path("gpu"), span, value);
        }
    }
}
