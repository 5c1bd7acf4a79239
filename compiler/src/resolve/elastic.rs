//! Elastic torchrun: the possible numbers of instances, and their rendezvous.

use jobc_schema::Pointer;
use jobc_schema::distributed::{Distributed, Elastic, ElasticBackend, Framework};
use jobc_schema::plan::{ElasticPlan, MemberPlan};

use super::context::Context;
use super::framework::framework_name;
use crate::diagnostic::{Diagnostic, Sink, codes};

/// Default number of restarts of the workers. Without any, the loss of one instance would end all of them:
/// torchrun counts the failures of workers that communicate with it.
const RESTARTS: u32 = 3;

/// Resolves the elastic rendezvous of a job, if it has one.
pub(super) fn resolve_elastic(
    context: &Context<'_>,
    spec: &Distributed,
    members: &[MemberPlan],
    sink: &mut Sink,
) -> Option<ElasticPlan> {
    let elastic = spec.elastic.as_ref()?;
    let at = Pointer::ROOT.keys(["distributed", "elastic"]);
    if spec.framework != Framework::Torchrun {
        let name = framework_name(spec.framework);
        sink.push(
            Diagnostic::error(codes::ELASTIC, format!("`{name}` has no elastic rendezvous"))
                .at_key(&at, "")
                .at(&Pointer::ROOT.keys(["distributed", "framework"]), "the framework")
                .note("only `framework: torchrun` has one: remove `elastic`")
                .remove(&at),
        );
        return None;
    }
    check_instances(context, elastic, members, &at, sink);
    check_store(elastic, &at, sink);
    Some(ElasticPlan {
        min: elastic.min,
        max: elastic.max,
        max_restarts: elastic.max_restarts.unwrap_or(RESTARTS),
        backend: elastic.backend,
        endpoint: elastic.endpoint.clone(),
        id: context.name.clone(),
    })
}

fn check_instances(
    context: &Context<'_>,
    elastic: &Elastic,
    members: &[MemberPlan],
    at: &Pointer,
    sink: &mut Sink,
) {
    let Elastic { min, max, .. } = *elastic;
    if min > max {
        sink.push(
            Diagnostic::error(codes::ELASTIC, format!("`min` {min} is greater than `max` {max}"))
                .at(&at.key("min"), "")
                .at(&at.key("max"), "")
                .note("write a `min` of at most `max`")
                .set(&at.key("min"), max)
                .also(&at.key("max"), min),
        );
        return;
    }
    let [member] = members else {
        sink.push(
            Diagnostic::error(codes::ELASTIC, "an elastic rendezvous has one role")
                .at(&Pointer::ROOT.keys(["distributed", "roles"]), format!("there are {}", members.len()))
                .note("instances come and go, so their ranks cannot follow from roles; write one role with all instances"),
        );
        return;
    };
    let Some((_, facts)) = context.role(&member.role) else { return };
    if !(min..=max).contains(&facts.instances) {
        let what = if facts.instances < min { "fewer than `min`" } else { "more than `max`" };
        sink.push(
            Diagnostic::error(
                codes::ELASTIC,
                format!("role `{}` starts {} instances, {what}", member.role, facts.instances),
            )
            .at(&at.key(if facts.instances < min { "min" } else { "max" }), "")
            .at(&Pointer::ROOT.keys(["roles", &member.role, "instances"]), "what is started")
            .note(format!("write `instances` from {min} to {max}"))
            .set(&Pointer::ROOT.keys(["roles", &member.role, "instances"]), facts.instances.clamp(min, max)),
        );
    }
}

fn check_store(elastic: &Elastic, at: &Pointer, sink: &mut Sink) {
    let name = elastic.backend.as_str();
    match (&elastic.endpoint, elastic.backend) {
        (Some(_), ElasticBackend::C10d) => sink.push(
            Diagnostic::error(codes::ELASTIC, "`endpoint` does not go with `backend: c10d`")
                .at_key(&at.key("endpoint"), "")
                .note("the store is on the first instance; remove `endpoint`, or write `backend: etcd-v2`")
                .remove(&at.key("endpoint"))
                .set(&at.key("backend"), "etcd-v2"),
        ),
        (None, ElasticBackend::EtcdV2 | ElasticBackend::Etcd) => sink.push(
            Diagnostic::error(codes::ELASTIC, format!("`backend: {name}` needs an `endpoint`"))
                .at(&at.key("backend"), "")
                .note("write the server, as in `endpoint: etcd.example.com:2379`, or `backend: c10d`")
                .set(&at.key("backend"), "c10d"),
        ),
        _ => {}
    }
}
