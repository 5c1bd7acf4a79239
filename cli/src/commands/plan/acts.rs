//! What acts on a job beside its commands, a line each: checks, retries, stalls, preemption, budget, notices.

use jobc_schema::idle::IdleAction;
use jobc_schema::plan::{CheckPlan, JobPlan, RolePlan};
use jobc_schema::role::UNLIMITED_RETRIES;
use jobc_schema::{Bytes, Seconds};
use serde::Serialize;

use super::summary::some;
use crate::table::{escape_control, truncate};

/// Maximum number of characters of a command line or an address.
const MAX_WORDS: usize = 40;

/// The lines, those that come first in time first.
pub(super) fn acts(job: &JobPlan) -> Vec<(&'static str, String)> {
    let preemption = job.preemption.as_ref().and_then(|_| of_roles(job, |role| Some(leaves(job, role))));
    let lines = [
        ("schedule", schedule(job)),
        ("preflight", of_roles(job, preflight)),
        ("retry", of_roles(job, retry)),
        ("stall", of_roles(job, stall)),
        ("idle", idle(job)),
        ("preemption", preemption),
        ("budget", budget(job)),
        ("notify", notify(job)),
    ];
    lines.into_iter().filter_map(|(name, text)| Some((name, escape_control(&text?)))).collect()
}

/// What holds for roles, once for those with the same.
fn of_roles(job: &JobPlan, text: impl Fn(&RolePlan) -> Option<String>) -> Option<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for role in &job.roles {
        let Some(text) = text(role) else { continue };
        match found.iter_mut().find(|(known, _)| *known == text) {
            Some((_, roles)) => roles.push(role.name.clone()),
            None => found.push((text, vec![role.name.clone()])),
        }
    }
    let one = |(text, roles): &(String, Vec<String>)| {
        if roles.len() == job.roles.len() { text.clone() } else { format!("{text} in {}", some(roles)) }
    };
    let parts: Vec<String> = found.iter().map(one).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn schedule(job: &JobPlan) -> Option<String> {
    let schedule = job.schedule.as_ref()?;
    let zone = schedule.zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
    Some(format!("{}{zone}, overlap: {}", schedule.cron, word(schedule.overlap)))
}

fn preflight(role: &RolePlan) -> Option<String> {
    let check = |check: &CheckPlan| match check {
        CheckPlan::Gpus {} => "gpus".to_owned(),
        CheckPlan::Driver { oldest: None, .. } => "driver".to_owned(),
        CheckPlan::Driver { oldest: Some(oldest), .. } => format!("driver {oldest}"),
        CheckPlan::Matmul {} => "matmul".to_owned(),
        CheckPlan::Data { .. } => "data".to_owned(),
        CheckPlan::Disk { bytes, .. } => format!("disk {}", Bytes(*bytes)),
        CheckPlan::Network { .. } => "network".to_owned(),
        CheckPlan::Clock { seconds } => format!("clock {}", Seconds(*seconds)),
        CheckPlan::Allreduce { bytes_per_second: None } => "allreduce".to_owned(),
        CheckPlan::Allreduce { bytes_per_second: Some(bytes) } => format!("allreduce {}/s", Bytes(*bytes)),
        CheckPlan::Run { command, .. } => format!("`{}`", words(command)),
    };
    let checks: Vec<String> = role.preflight.iter().map(check).collect();
    (!checks.is_empty()).then(|| checks.join(", "))
}

fn retry(role: &RolePlan) -> Option<String> {
    let retry = &role.retry;
    let times = match retry.max {
        0 => return None,
        1 => "once".to_owned(),
        UNLIMITED_RETRIES => "without a limit".to_owned(),
        max => format!("{max} times"),
    };
    let codes = |codes: &[u8]| codes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let kinds: Vec<String> = retry.on.iter().map(word).collect();
    let mut text = format!("the {} {times}", word(retry.scope));
    for (name, list) in [
        ("on", kinds.join(", ")),
        ("on exit code", codes(&retry.on_exit_codes)),
        ("not on exit code", codes(&retry.never_on_exit_codes)),
    ] {
        if !list.is_empty() {
            text += &format!(", {name} {list}");
        }
    }
    if let Some(most) = retry.memory_bytes.iter().max() {
        text += &format!(", with up to {} of memory", Bytes(*most));
    }
    Some(text)
}

fn stall(role: &RolePlan) -> Option<String> {
    let stall = role.stall.as_ref()?;
    Some(format!("{} after {}", word(stall.action), Seconds(stall.after_seconds)))
}

fn idle(job: &JobPlan) -> Option<String> {
    let idle = job.idle.as_ref()?;
    let does = if idle.action == IdleAction::Stop { "stop" } else { "report" };
    Some(format!("{does} after {} with GPUs below {}%", idle.after, idle.gpu))
}

fn leaves(job: &JobPlan, role: &RolePlan) -> String {
    let preemption = job.preemption.clone().unwrap_or_default();
    let signal = role.stop_signal.as_deref().unwrap_or("SIGTERM");
    let mut text = format!("{signal}, {} to leave", Seconds(role.grace_period_seconds));
    if !preemption.exit_codes.is_empty() {
        let codes: Vec<String> = preemption.exit_codes.iter().map(u8::to_string).collect();
        text += &format!(", resumed on exit code {}", codes.join(", "));
    }
    if let Some(output) = &preemption.checkpoint {
        text += &format!(", from {output}");
    }
    text
}

fn budget(job: &JobPlan) -> Option<String> {
    let budget = job.budget?;
    let currency = job.target.settings.prices.as_ref().map(|prices| format!(" {}", prices.currency));
    let cost = |cost: jobc_schema::Decimal| format!("{}{}", cost.short(), currency.unwrap_or_default());
    let limits: Vec<String> = [
        budget.gpu_hours.map(|hours| format!("{} GPU-hours", hours.short())),
        budget.energy.map(|energy| energy.to_string()),
        budget.cost.map(cost),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!limits.is_empty()).then(|| format!("ends the job at {}", limits.join(" or ")))
}

fn notify(job: &JobPlan) -> Option<String> {
    let one = |notice: &jobc_schema::notice::Notice| {
        let on: Vec<&str> = notice.on.iter().map(|on| on.as_str()).collect();
        let to = match (&notice.webhook, &notice.email, &notice.run) {
            (Some(secret), ..) => format!("webhook {secret}"),
            (_, Some(address), _) => words(address),
            (.., run) => format!("`{}`", words(run.as_deref().unwrap_or_default())),
        };
        format!("{}: {to}", on.join(", "))
    };
    let notices: Vec<String> = job.notify.iter().map(one).collect();
    (!notices.is_empty()).then(|| notices.join("; "))
}

/// A value's word in job files.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}

/// The first line of a text, if it is short enough.
fn words(text: &str) -> String {
    truncate(text.trim().lines().next().unwrap_or_default(), MAX_WORDS)
}
