//! `ready` as probes.
//!
//! "Has once been ready" is what a startup probe means: it is tried until it succeeds, and a pod that takes too long
//! has failed. Only `keep: true` also needs a readiness probe.

use jobc_schema::plan::{ProbePlan, ReadyPlan, RolePlan};
use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Probe, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::cluster::Cluster;
use super::command::probe_command;
use super::origins::Origins;

/// Adds the probes of a role to its container.
pub(super) fn probes(
    cluster: &Cluster<'_>,
    role: &RolePlan,
    container: &mut Container,
    origins: &mut Origins,
) {
    let Some(ready) = &role.ready else { return };
    let Some(probe) = probe(cluster, role, ready) else { return };
    let at = role.at().key("ready");
    if ready.keep {
        let keeping = Probe { initial_delay_seconds: None, failure_threshold: None, ..probe.clone() };
        container.readiness_probe = Some(keeping);
        origins.spec(["containers", "0", "readinessProbe"], &at);
    }
    container.startup_probe = Some(probe);
    origins.spec(["containers", "0", "startupProbe"], &at);
}

fn probe(cluster: &Cluster<'_>, role: &RolePlan, ready: &ReadyPlan) -> Option<Probe> {
    let number = |label: &str| role.port(label).map(|port| IntOrString::Int(i32::from(port.number)));
    let mut probe = Probe::default();
    match &ready.probe {
        ProbePlan::Port(label) => {
            probe.tcp_socket = Some(TCPSocketAction { port: number(label)?, host: None });
        }
        ProbePlan::Http { port, path } => {
            let get =
                HTTPGetAction { path: Some(path.clone()), port: number(port)?, ..HTTPGetAction::default() };
            probe.http_get = Some(get);
        }
        ProbePlan::Exec(argv) => {
            probe.exec = Some(ExecAction { command: Some(probe_command(cluster, role, argv)) });
        }
        // No probe reads a log; `support` refuses it.
        ProbePlan::Log(_) => return None,
    }
    let every = ready.every_seconds.max(1);
    let tries = ready.timeout_seconds.saturating_sub(ready.delay_seconds).div_ceil(every).max(1);
    let seconds = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    probe.initial_delay_seconds = (ready.delay_seconds > 0).then(|| seconds(ready.delay_seconds));
    // 10 s and 1 s are the defaults of a probe.
    probe.period_seconds = Some(seconds(every)).filter(|every| *every != 10);
    probe.timeout_seconds = Some(seconds(ready.try_timeout_seconds.max(1))).filter(|timeout| *timeout != 1);
    probe.failure_threshold = Some(seconds(tries));
    Some(probe)
}
