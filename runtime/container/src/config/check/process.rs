//! `process`, the host name and the domain name.

use oci_spec::runtime::{LinuxNamespaceType, Process, Spec};

use super::findings::Findings;
use crate::capabilities::CapabilitySets;
use crate::config::namespace_ownership::check_own_namespace;
use crate::config::scheduling;
use crate::config::user::User;
use crate::rlimits;

/// Maximum length of a host name or a NIS domain name (`__NEW_UTS_LEN`).
const MAX_NAME_LEN: usize = 64;

pub(super) fn check(spec: &Spec, findings: &mut Findings) {
    let names = [("/hostname", spec.hostname()), ("/domainname", spec.domainname())];
    for (place, name) in names {
        let Some(name) = name.as_deref().filter(|name| !name.is_empty()) else { continue };
        findings.check_text(place, name);
        if name.len() > MAX_NAME_LEN {
            let message =
                format!("a name of {} bytes, but the kernel allows at most {MAX_NAME_LEN}", name.len());
            findings.error(place, message, "write a shorter name");
        }
        if let Err(because) = check_own_namespace(spec.linux().as_ref(), LinuxNamespaceType::Uts) {
            findings.error(
                place,
                format!("setting the name would change the host's: {because}"),
                "write `{\"type\": \"uts\"}` in `linux.namespaces`, or remove the name",
            );
        }
    }
    match spec.process() {
        Some(process) => check_process(process, findings),
        None => findings.error(
            "/process",
            "`process` is missing, so no program can be started",
            "write the program to start",
        ),
    }
}

/// Whether the container has its own namespace of a type, new or joined.
pub(super) fn has_own_namespace(spec: &Spec, kind: LinuxNamespaceType) -> bool {
    let namespaces = spec.linux().as_ref().and_then(|linux| linux.namespaces().as_ref());
    namespaces.is_some_and(|list| list.iter().any(|namespace| namespace.typ() == kind))
}

fn check_process(process: &Process, findings: &mut Findings) {
    let arguments = process.args().as_deref().unwrap_or_default();
    if arguments.first().is_none_or(String::is_empty) {
        let message = "no program to start";
        findings.error(
            "/process/args",
            message,
            "write the program and its arguments, such as `[\"/bin/sh\"]`",
        );
    }
    for (index, argument) in arguments.iter().enumerate() {
        findings.check_argument(format!("/process/args/{index}"), argument, "an argument");
    }
    findings.check_environment("/process/env", process.env().as_deref().unwrap_or_default());
    findings.check_container_path("/process/cwd", process.cwd());
    findings.check_text("/process/cwd", &process.cwd().to_string_lossy());
    if let Some(size) = process.console_size()
        && [size.height(), size.width()].iter().any(|side| *side > u64::from(u16::MAX))
    {
        findings.error(
            "/process/consoleSize",
            "a side of more than 65535 characters",
            "write the terminal's size",
        );
    }
    findings.push_result(User::of(process.user()));
    findings.push_result(rlimits::from_config(process.rlimits().as_deref().unwrap_or_default()));
    if let Some(score) = process.oom_score_adj().filter(|score| !(-1000..=1000).contains(score)) {
        findings.error(
            "/process/oomScoreAdj",
            format!("{score} is out of range"),
            "write a number from -1000 to 1000",
        );
    }
    if let Some(scheduler) = process.scheduler() {
        findings.push_result(scheduling::scheduler(scheduler));
    }
    if let Some(affinity) = process.exec_cpu_affinity() {
        findings.push_result(scheduling::affinity(affinity));
    }
    if let Some(priority) = process.io_priority() {
        findings.push_result(scheduling::io_priority(*priority));
    }
    if let Some(capabilities) = process.capabilities() {
        findings.push_result(CapabilitySets::of(capabilities));
    }
}
