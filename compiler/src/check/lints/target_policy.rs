//! J0503: what the policy of the target forbids.

use jobc_schema::Pointer;
use jobc_schema::duration::Seconds;
use jobc_schema::plan::order::RoleOrder;
use jobc_schema::plan::{BuildStep, ImagePlan, ImageSource, RolePlan};
use jobc_schema::reference::{Parts, Reference};
use jobc_schema::target::Policy;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};

/// Rejects a job that violates the policy of its target.
pub(super) fn check(view: &View<'_>, sink: &mut Sink) {
    let Some(policy) = &view.plan.target.settings.policy else { return };
    for image in view.plan.images.values() {
        for (reference, at) in references(view, image) {
            check_image(view, policy, &reference, &at, sink);
        }
    }
    gpus(view, policy, sink);
    time(view, policy, sink);
}

/// The images that an image is or is built from, and their places in the job file. A built image has no digest before
/// the build.
fn references(view: &View<'_>, image: &ImagePlan) -> Vec<(String, Pointer)> {
    let base = view.base(image).map(|(reference, at)| (reference.to_owned(), at));
    let copied = match &image.source {
        ImageSource::Build { steps, .. } => steps
            .iter()
            .filter_map(|step| match step {
                BuildStep::Copy(copy) => copy.image.clone(),
                _ => None,
            })
            .collect(),
        _ => vec![],
    };
    let copied = copied.into_iter().map(|reference| (reference, image.declared_at.clone()));
    base.into_iter().chain(copied).filter(|(reference, _)| reference != "scratch").collect()
}

fn check_image(view: &View<'_>, policy: &Policy, reference: &str, at: &Pointer, sink: &mut Sink) {
    if policy.require_digest && Parts::of(reference).digest.is_none() {
        sink.push(
            refusal(
                view,
                "require_digest",
                &format!("the image `{reference}` has no digest"),
                Location::value(at),
                "",
            )
            .note("run `jobc lock`, or write `NAME:TAG@sha256:…`"),
        );
    }
    let Some(allowed) = &policy.allowed_registries else { return };
    let Ok(parsed) = reference.parse::<Reference>() else { return };
    let name = format!("{}/{}", parsed.registry, parsed.repository);
    let is_below = |prefix: &String| {
        let prefix = prefix.trim_end_matches('/');
        name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if !allowed.iter().any(is_below) {
        let list: Vec<String> = allowed.iter().map(|registry| format!("`{registry}`")).collect();
        sink.push(
            refusal(
                view,
                "allowed_registries",
                &format!("the image `{reference}` comes from `{}`", parsed.registry),
                Location::value(at),
                "",
            )
            .note(format!("images may come from {}", list.join(", "))),
        );
    }
}

fn gpus(view: &View<'_>, policy: &Policy, sink: &mut Sink) {
    let Some(limit) = policy.max_gpus else { return };
    let weights: Vec<u64> = view.plan.roles.iter().map(RolePlan::gpus_at_once).collect();
    let peak = RoleOrder::of(view.plan).heaviest(&weights);
    let Some(largest) = view.plan.roles.iter().max_by_key(|role| role.gpus_at_once()) else { return };
    if peak > u64::from(limit) {
        let what = format!("job `{}` uses {peak} GPUs at the same time, more than {limit}", view.plan.name);
        sink.push(
            refusal(
                view,
                "max_gpus",
                &what,
                Location::value(&largest.at().keys(["resources", "gpu"])),
                "is the largest part",
            )
            .note("request less"),
        );
    }
}

fn time(view: &View<'_>, policy: &Policy, sink: &mut Sink) {
    let Some(limit) = policy.max_time else { return };
    let limit_text = limit.to_string();
    let is_long = |seconds: u64| seconds > limit.0;
    if let Some(seconds) = view.plan.timeout_seconds {
        if is_long(seconds) {
            let what = format!(
                "job `{}` may run for {}, longer than {limit_text}",
                view.plan.name,
                Seconds(seconds)
            );
            let at = Location::value(&Pointer::ROOT.key("timeout"));
            sink.push(refusal(view, "max_time", &what, at, ""));
        }
        return;
    }
    for role in &view.plan.roles {
        let found = match role.timeout_seconds {
            Some(seconds) if is_long(seconds) => {
                let what = format!(
                    "role `{}` may run for {}, longer than {limit_text}",
                    role.name,
                    Seconds(seconds)
                );
                refusal(view, "max_time", &what, Location::value(&role.at().key("timeout")), "")
            }
            Some(_) => continue,
            None => refusal(
                view,
                "max_time",
                &format!("role `{}` has no `timeout`", role.name),
                Location::key(&role.at()),
                "",
            )
            .note(format!("write `timeout: {limit_text}` or less, in the role or for the job"))
            .set(&role.at().key("timeout"), limit_text.as_str()),
        };
        sink.push(found);
    }
}

/// An error that names the setting which forbids something.
fn refusal(view: &View<'_>, key: &str, what: &str, at: Location, label: &str) -> Diagnostic {
    let target = &view.plan.target.name;
    Diagnostic::error(codes::TARGET_POLICY, format!("{what}; the policy of target `{target}` forbids it"))
        .at_place(at, label)
        .at_place(Location::target(&view.target_at(&["policy", key])), "the policy")
}
