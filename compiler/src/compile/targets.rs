//! The choice of the targets to compile for.

use jobc_schema::plan::TargetPlan;
use jobc_schema::target::Target;
use jobc_schema::{BackendName, Pointer, Targets};

use super::{DefaultTarget, Request};
use crate::built_in_targets::{DEFAULT_TARGET, built_in_targets};
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::lower::OnRefusal;
use crate::suggest;

/// No built-in target has Slurm.
const WRITE_SLURM: &str =
    "a target for Slurm is written in `targets.yaml`, under `targets`: `slurm: {backends: [oci, slurm]}`";

/// The targets to build for: those requested, else the file's defaults, else all of the file. Without a file the others
/// than [`DEFAULT_TARGET`] are chosen by name or by backend.
pub(super) fn choose_targets(
    targets: Option<&Targets>,
    request: &Request<'_>,
    sink: &mut Sink,
) -> Option<(Vec<TargetPlan>, OnRefusal)> {
    let built_in = built_in_targets();
    if request.targets.is_some() && targets.is_none() {
        // Which targets the file has is not known; its mistakes are reported.
        let [(name, local), ..] = &built_in;
        let place = TargetPlan { name: (*name).to_owned(), built_in: true, settings: local.clone() };
        return Some((vec![place], OnRefusal::Skip));
    }
    let known: Vec<(&str, &Target, bool)> = match targets {
        Some(file) => file.targets.iter().map(|(name, target)| (name.as_str(), target, false)).collect(),
        None => built_in.iter().map(|(name, target)| (*name, target, true)).collect(),
    };
    let default = targets.map_or(&[][..], |file| &file.default[..]);
    let own = request.default_target.as_ref().filter(|own| own.overrides_file || default.is_empty());
    let own = own.filter(|_| request.only_targets.is_empty());
    let is_known = |own: &&DefaultTarget| known.iter().any(|(name, ..)| *name == own.name);
    if let Some(own) = own.filter(|own| own.overrides_file && !is_known(own)) {
        let diagnostic = unknown_target(&own.name, &known, targets.is_some());
        sink.push(diagnostic.note(format!("set by {}", own.origin)));
        return None;
    }
    // A job that runs on this host prefers it to others that fit.
    let fits = |target: &Target| !request.run_here || target.is_host();
    let own = own.filter(|own| known.iter().any(|(name, target, _)| *name == own.name && fits(target)));
    let own: Option<Vec<String>> = own.map(|own| vec![own.name.clone()]);
    let default = own.as_deref().unwrap_or(default);
    if request.run_here && request.only_targets.is_empty() {
        return choose_one_to_run(&known, default, sink).map(|place| (vec![place], OnRefusal::Fail));
    }
    let requested = if request.only_targets.is_empty() { default } else { &request.only_targets[..] };
    let chosen = !request.only_targets.is_empty() || !request.only_backends.is_empty() || !default.is_empty();
    let mut places = Vec::new();
    for name in requested {
        match known.iter().find(|(known, ..)| known == name) {
            Some(&(name, settings, built_in)) => {
                places.push(TargetPlan { name: name.to_owned(), built_in, settings: settings.clone() });
            }
            None => sink.push(unknown_target(name, &known, targets.is_some())),
        }
    }
    if requested.is_empty() {
        let is_meant = |name: &str| chosen || targets.is_some() || name == DEFAULT_TARGET;
        let all = known.iter().filter(|(name, ..)| is_meant(name));
        places.extend(all.map(|&(name, settings, built_in)| TargetPlan {
            name: name.to_owned(),
            built_in,
            settings: settings.clone(),
        }));
    }
    let of_interest = |place: &TargetPlan| {
        request.only_backends.is_empty()
            || place.settings.backends.iter().any(|b| request.only_backends.contains(b))
    };
    places.retain(of_interest);
    if let [name, ..] = &request.only_targets[..]
        && places.is_empty()
        && request.run_here
        && !sink.has_errors()
    {
        let message = format!("`jobc run` runs jobs on this host, and the target `{name}` is elsewhere");
        let found = Diagnostic::error(codes::NO_SUCH_TARGET, message);
        sink.push(found.note(format!("`jobc submit --target {name}` sends a job there")));
    }
    if places.is_empty() && !sink.has_errors() {
        let wanted = request.only_backends.iter().map(|b| b.as_str());
        let message = format!("no target has the requested backends: {}", suggest::list(wanted));
        let diagnostic =
            Diagnostic::error(codes::NO_SUCH_TARGET, message).note("`jobc backends` lists the backends");
        let needs_file = request.only_backends.contains(&BackendName::Slurm);
        sink.push(if needs_file { diagnostic.note(WRITE_SLURM) } else { diagnostic });
    }
    let on_refusal = if chosen || targets.is_some() { OnRefusal::Fail } else { OnRefusal::Skip };
    (!sink.has_errors() || !places.is_empty()).then_some((places, on_refusal))
}

/// The target of a job that is run on this host, if none was requested.
fn choose_one_to_run(
    known: &[(&str, &Target, bool)],
    default: &[String],
    sink: &mut Sink,
) -> Option<TargetPlan> {
    let is_default = |name: &str| default.is_empty() || default.iter().any(|known| known == name);
    let mut fit = known.iter().filter(|(name, settings, _)| is_default(name) && settings.is_host());
    let place = |name: &str, settings: &Target, built_in| TargetPlan {
        name: name.to_owned(),
        built_in,
        settings: settings.clone(),
    };
    match (fit.next(), fit.next()) {
        (Some(&(name, settings, built_in)), None) => Some(place(name, settings, built_in)),
        (Some((first, ..)), Some((second, ..))) => {
            let names = [*first, *second].into_iter().chain(fit.map(|(name, ..)| *name));
            let message = format!("several targets are possible: {}", suggest::list(names));
            sink.push(
                Diagnostic::error(codes::NO_SUCH_TARGET, message).note("select one with `--target NAME`"),
            );
            None
        }
        (None, _) => {
            let [local, ..] = built_in_targets();
            Some(place(local.0, &local.1, true))
        }
    }
}

fn unknown_target(name: &str, known: &[(&str, &Target, bool)], from_file: bool) -> Diagnostic {
    let names = || known.iter().map(|(name, ..)| *name);
    let mut diagnostic = Diagnostic::error(codes::NO_SUCH_TARGET, format!("unknown target `{name}`"));
    if from_file {
        diagnostic = diagnostic.at_place(Location::target(&Pointer::ROOT.key("targets")), "");
    }
    let meant = if name == "k8s" { "kubernetes" } else { name };
    if let Some(near) = names().find(|known| *known == meant).or_else(|| suggest::nearest(name, names())) {
        diagnostic = diagnostic.note(format!("did you mean `{near}`?"));
    }
    let diagnostic = diagnostic.note(format!("known: {}", suggest::list(names())));
    match name {
        "local" | "kubernetes" | "openpai" if from_file => diagnostic.note(format!(
            "a targets file replaces the built-in targets; to keep this one, write `{name}: {{backends: [{}]}}` in it",
            built_in_backends(name)
        )),
        "slurm" => diagnostic.note(WRITE_SLURM),
        _ => diagnostic,
    }
}

fn built_in_backends(name: &str) -> String {
    let built_in = built_in_targets();
    let of = built_in.iter().find(|(known, _)| *known == name);
    let backends = of.iter().flat_map(|(_, target)| &target.backends).map(|backend| backend.as_str());
    backends.collect::<Vec<_>>().join(", ")
}
