//! J0375: a job that can use more than its budget.

use jobc_schema::plan::{Estimate, JobPlan};
use jobc_schema::{Decimal, Pointer, Seconds};

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

/// Warns if the time limits let the job use more than its budget, so that it may be ended before its time.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let plan = view.plan;
    let Some(budget) = &plan.budget else { return };
    let most = |estimate: Option<Estimate>| estimate.and_then(|estimate| estimate.most);
    if let (Some(limit), Some(most)) = (budget.gpu_hours, most(plan.gpu_seconds())) {
        let hours = Decimal(u64::try_from(u128::from(most) * 1_000_000 / 3600).unwrap_or(u64::MAX));
        if hours > limit {
            report(plan, "gpu_hours", &format!("{hours} GPU-hours"), &limit.to_string(), sink);
        }
    }
    if let (Some(limit), Some(most)) = (budget.cost, most(plan.cost()))
        && most > limit.0
    {
        let currency = plan.target.settings.prices.as_ref().map_or("", |prices| &prices.currency);
        let uses = format!("{} {currency}", Decimal(most).rounded());
        report(plan, "cost", &uses, &limit.rounded(), sink);
    }
}

fn report(plan: &JobPlan, key: &str, most: &str, limit: &str, sink: &mut Sink) {
    let message = format!("job `{}` can use {most}, more than the {limit} of its budget", plan.name);
    let found = Diagnostic::warning(codes::OVER_BUDGET, message)
        .at(&Pointer::ROOT.keys(["budget", key]), "ends it before its time");
    let timeout = plan.timeout_seconds.map(|seconds| (seconds, Pointer::ROOT.key("timeout")));
    let of_role = || {
        let role = plan.roles.iter().find(|role| role.fixed_gpus() != Some(0))?;
        Some((role.timeout_seconds?, role.at().key("timeout")))
    };
    let found = match timeout.or_else(of_role) {
        Some((seconds, at)) => {
            found.at_place(Location::value(&at), format!("it may run for {}", Seconds(seconds)))
        }
        None => found,
    };
    sink.push(found.note("write a shorter `timeout`, or a larger budget"));
}
