//! A plan on one screen: roles, resources, order, images, data and environment.

use jobc_schema::plan::{CODE, EnvPlan, Estimate, GangPlan, GpuAmount, JobPlan, RolePlan, VolumeKind};
use jobc_schema::{Bytes, Decimal};

use super::acts::acts;
use crate::plan_text::{command, cpus, image, source, text};
use crate::report;
use crate::table::Table;

/// Maximum number of names in a list.
const MAX_NAMES: usize = 6;
/// Maximum number of characters of a value.
const MAX_VALUE: usize = 60;

/// The summary of a job; `targets` are the names of all targets it is the same for.
pub(super) fn of_job(job: &JobPlan, targets: &[&str], columns: Option<usize>) -> String {
    let mut out = format!("{} for {}\n", job.name, targets.join(", "));
    if let Some(description) = &job.description {
        out += &format!("{description}\n");
    }
    out += "\n";
    out += &facts(job);
    out += "\n";
    out += &roles(job, columns);
    for (heading, lines) in
        [("images", images(job)), ("data and outputs", volumes(job)), ("environment", environment(job))]
    {
        if !lines.is_empty() {
            let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
            out += &format!("\n{heading}\n{lines}");
        }
    }
    out
}

fn facts(job: &JobPlan) -> String {
    let mut facts: Vec<(&str, String)> = Vec::new();
    let pairs = |map: &indexmap::IndexMap<String, jobc_schema::Scalar>| {
        map.iter().map(|(name, value)| format!("{name}={}", value.text)).collect::<Vec<_>>().join(" ")
    };
    if !job.matrix.is_empty() {
        facts.push(("matrix", pairs(&job.matrix)));
    }
    if !job.params.is_empty() {
        let params = job.params.iter().map(|(name, value)| format!("{name}={value}"));
        facts.push(("params", params.collect::<Vec<_>>().join(" ")));
    }
    facts.push(("total", report::total(job)));
    let order = job.stages.iter().map(|stage| some(stage)).collect::<Vec<_>>().join(", then ");
    facts.push(("order", order));
    if let Some(distributed) = &job.distributed {
        let word = serde_json::to_value(distributed.framework).unwrap_or_default();
        let ssh = if distributed.ssh.is_some() { ", ssh" } else { "" };
        facts.push((
            "distributed",
            format!(
                "{}: {} processes in {} instances, port {}{ssh}",
                word.as_str().unwrap_or_default(),
                distributed.world_size,
                distributed.instances,
                distributed.port
            ),
        ));
    }
    match job.gang {
        GangPlan::Required => facts.push(("gang", "all instances start together".to_owned())),
        GangPlan::Min(min) => facts.push(("gang", format!("at least {min} instances start together"))),
        GangPlan::Auto | GangPlan::None => {}
    }
    if let Some(seconds) = job.timeout_seconds {
        facts.push(("timeout", jobc_schema::Seconds(seconds).to_string()));
    }
    facts.extend(acts(job));
    facts.extend(bounds(job));
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    facts.iter().map(|(name, text)| format!("{name:width$}  {text}\n")).collect()
}

/// GPU-hours and cost: at most, or in an hour where nothing limits them.
fn bounds(job: &JobPlan) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let budget = job.budget.unwrap_or_default();
    let text = |estimate: Estimate, limit: Option<u64>, words: &dyn Fn(u64) -> String| {
        let hourly = words(estimate.hourly);
        match (estimate.most, limit) {
            (Some(most), Some(limit)) if limit < most => {
                format!("at most {} by the budget, {} by the time limits", words(limit), words(most))
            }
            (Some(most), _) => format!("at most {}, {hourly} in an hour", words(most)),
            (None, Some(limit)) => format!("at most {} by the budget, {hourly} in an hour", words(limit)),
            (None, None) => format!("{hourly} in an hour, without a limit"),
        }
    };
    if let Some(estimate) = job.gpu_seconds() {
        let limit = budget.gpu_hours.map(|hours| hours.0.saturating_mul(3600) / 1_000_000);
        let hours = |seconds: u64| Decimal(seconds.saturating_mul(1_000_000) / 3600).short();
        facts.push(("gpu hours", text(estimate, limit, &hours)));
    }
    if let (Some(prices), Some(estimate)) = (&job.target.settings.prices, job.cost()) {
        let money = |micros: u64| format!("{} {}", Decimal(micros).rounded(), prices.currency);
        let energy = if prices.energy.is_some() { "; energy comes on top" } else { "" };
        facts.push(("cost", text(estimate, budget.cost.map(|cost| cost.0), &money) + energy));
    }
    facts
}

fn roles(job: &JobPlan, columns: Option<usize>) -> String {
    let mut table = Table::new([
        "role",
        "instances",
        "cpu",
        "memory",
        "shm",
        "gpu",
        "image",
        "ports",
        "waits for",
        "command",
    ]);
    let bytes = |bytes: Option<u64>| bytes.map_or("-".to_owned(), |bytes| Bytes(bytes).to_string());
    for role in &job.roles {
        let resources = &role.resources;
        let needs: Vec<String> = role.needs.iter().map(|need| need.role.clone()).collect();
        let ports: Vec<String> = role
            .ports
            .iter()
            .map(
                |port| if port.auto { port.label.clone() } else { format!("{}:{}", port.label, port.number) },
            )
            .collect();
        table.row([
            role.name.clone(),
            role.instances.to_string(),
            resources.cpu_millis.map_or("-".to_owned(), cpus),
            bytes(resources.memory_bytes),
            bytes(resources.shm_bytes),
            gpus(role),
            role.image.clone(),
            if ports.is_empty() { "-".to_owned() } else { some(&ports) },
            if needs.is_empty() { "-".to_owned() } else { some(&needs) },
            first_line(&command(&role.command)),
        ]);
    }
    table.render(columns)
}

fn gpus(role: &RolePlan) -> String {
    let Some(gpu) = &role.resources.gpu else { return "-".to_owned() };
    let mut text = match gpu.amount() {
        GpuAmount::Hidden => "0".to_owned(),
        GpuAmount::Count(count) => count.to_string(),
        GpuAmount::All => "all".to_owned(),
        GpuAmount::AllOf(count) => format!("all ({count})"),
    };
    if let Some(most) = gpu.grow {
        text += &format!(" to {most}");
    }
    if !gpu.models.is_empty() {
        text += &format!(" {}", gpu.models.join("/"));
    }
    if let Some(share) = &gpu.share {
        let memory = share.memory_bytes.map(|bytes| Bytes(bytes).to_string());
        let cores = share.cores_percent.map(|percent| format!("{percent}%"));
        let turns = share.time.then(|| "in turns".to_owned());
        let parts: Vec<String> =
            share.profile.iter().cloned().chain(memory).chain(cores).chain(turns).collect();
        text += &format!(" × {}", parts.join(" "));
    }
    text
}

fn first_line(whole: &str) -> String {
    let mut lines = whole.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    if lines.next().is_some() { first + " …" } else { first }
}

fn images(job: &JobPlan) -> Vec<String> {
    job.images.iter().map(|(name, plan)| format!("{name}: {}", image(plan))).collect()
}

fn volumes(job: &JobPlan) -> Vec<String> {
    let one = |(name, volume): (&String, &jobc_schema::plan::VolumePlan)| {
        let source = source(&volume.source);
        let kind = if volume.kind == VolumeKind::Data { "data" } else { "output" };
        let name = if name == CODE { "code" } else { &format!("{name} ({kind})") };
        let mounts = job.roles.iter().flat_map(|role| role.mounts.iter().map(move |mount| (role, mount)));
        let mut places: Vec<(String, Vec<String>)> = Vec::new();
        for (role, mount) in mounts.filter(|(_, mount)| mount.volume == *name) {
            let place = format!("{}{}", mount.path, if mount.writable { "" } else { " read-only" });
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, roles)) => roles.push(role.name.clone()),
                None => places.push((place, vec![role.name.clone()])),
            }
        }
        let places: Vec<String> =
            places.iter().map(|(place, roles)| format!("{place} in {}", some(roles))).collect();
        let places = if places.is_empty() { "in no role".to_owned() } else { places.join("; ") };
        format!("{name}: {source} at {places}")
    };
    job.volumes.iter().map(one).collect()
}

/// The variables that the job sets, with equal ones of all roles once, and the number that jobc adds.
fn environment(job: &JobPlan) -> Vec<String> {
    let value = |value: &EnvPlan| match value {
        EnvPlan::Secret { secret } => format!("(secret {secret})"),
        EnvPlan::Text(value) => {
            crate::table::truncate(&crate::table::escape_control(&text(value)), MAX_VALUE)
        }
    };
    let mut variables: Vec<(String, Vec<String>)> = Vec::new();
    for role in &job.roles {
        for (name, plan) in &role.env {
            let line = format!("{name}={}", value(plan));
            match variables.iter_mut().find(|(known, _)| *known == line) {
                Some((_, roles)) => roles.push(role.name.clone()),
                None => variables.push((line, vec![role.name.clone()])),
            }
        }
    }
    let everywhere = |roles: &[String]| roles.len() == job.roles.len();
    let mut lines: Vec<String> = variables
        .iter()
        .map(
            |(line, roles)| {
                if everywhere(roles) { line.clone() } else { format!("{line} in {}", some(roles)) }
            },
        )
        .collect();
    let provided = job.roles.iter().map(|role| role.provided_env.len()).max().unwrap_or_default();
    if provided > 0 {
        lines.push(format!(
            "and up to {provided} variables that jobc sets in each role (`--format yaml` shows them)"
        ));
    }
    lines
}

/// Several names, cut off if there are many.
pub(super) fn some(names: &[String]) -> String {
    match names.len().checked_sub(MAX_NAMES).filter(|more| *more > 0) {
        Some(more) => format!("{}, and {more} more", names[..MAX_NAMES].join(", ")),
        None => names.join(", "),
    }
}
