//! `budget`: whether what it limits can be counted.

use jobc_schema::Pointer;
use jobc_schema::plan::JobPlan;

use crate::diagnostic::{Diagnostic, Location, Sink, codes};

/// Reports limits of things that the job does not have, or that have no price.
pub(super) fn check_budget(plan: &JobPlan, sink: &mut Sink) {
    let Some(budget) = &plan.budget else { return };
    let at = Pointer::ROOT.key("budget");
    let target = &plan.target.name;
    if budget.gpu_hours.is_none() && budget.energy.is_none() && budget.cost.is_none() {
        sink.push(
            Diagnostic::error(codes::BUDGET, "`budget` limits nothing")
                .at(&at, "")
                .note("name a limit, as in `gpu_hours: 96`, `energy: 10kWh` or `cost: 50`"),
        );
    }
    if budget.gpu_hours.is_some() && plan.roles.iter().all(|role| role.fixed_gpus() == Some(0)) {
        sink.push(
            Diagnostic::error(codes::BUDGET, "`gpu_hours` of a job without GPUs")
                .at_key(&at.key("gpu_hours"), "")
                .note("give a role GPUs, as in `resources: {gpu: 1}`, or leave `gpu_hours` out"),
        );
    }
    if budget.cost.is_none() {
        return;
    }
    let cost = at.key("cost");
    if plan.target.settings.prices.is_none() {
        let message = format!("target `{target}` has no prices, by which `cost` is counted");
        sink.push(
            Diagnostic::error(codes::BUDGET, message)
                .at_key(&cost, "")
                .note("add them to the target, as in `prices: {currency: EUR, gpu: 2.4}`"),
        );
        return;
    }
    for role in plan.roles.iter().filter(|role| plan.hourly_cost(role).is_none()) {
        let gpu = role.at().keys(["resources", "gpu"]);
        let (message, note) = if role.fixed_gpus().is_none() {
            (
                format!(
                    "the number of GPUs of `{}` is that of the host, so its cost is not known",
                    role.name
                ),
                "write a number of GPUs, or leave `cost` out",
            )
        } else {
            let models = role.gpus().map(|gpu| gpu.models.join("`, `")).unwrap_or_default();
            (
                format!("target `{target}` has no price for `{models}`"),
                "add the model to `prices.gpu` of the target, or write one price for all: `gpu: 2.4`",
            )
        };
        sink.push(
            Diagnostic::error(codes::BUDGET, message)
                .at(&gpu, "")
                .at_place(Location::key(&cost), "is counted by prices")
                .note(note),
        );
    }
}
