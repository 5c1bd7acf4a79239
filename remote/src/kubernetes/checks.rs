//! Checks of the cluster before anything is created.
//!
//! The modules below are pure functions over answers; this one asks, and puts them together.

mod claims;
mod demand;
mod dropped;
mod dry_run;
mod limits;
mod named;
mod nodes;
pub(super) mod quantity;
mod queue;
mod quota;

use std::collections::{BTreeMap, BTreeSet};

use jobc_schema::percent::encode_segment;
use jobc_schema::plan::GangPlan;
use serde_json::Value;

use super::answers::{Answer, Answers};
use super::client::Client;
use super::discovery::{Served, discover};
use super::kinds::Workload;
use super::release;
use super::secrets;
use super::state::{name, text};
use super::status::ApiError;
use crate::built::Manifest;
use crate::place::{Problem, Submission};
use demand::{Amounts, Defaults, PodSet};
use named::NamedKind;
use queue::QueueFacts;
use quota::Demand;

/// Nodes that are looked at.
const MAX_NODES: usize = 500;

/// A submission, and the cluster that answers questions about it.
struct CheckContext<'a> {
    client: &'a Client,
    answers: &'a Answers,
    submission: &'a Submission<'a>,
    sets: Vec<PodSet<'a>>,
}

impl CheckContext<'_> {
    fn namespace(&self) -> &str {
        &self.client.config().namespace
    }
}

/// Checks a submission without creating anything. What could not be checked for lack of rights is noted once.
pub(crate) fn check(
    client: &Client,
    answers: &Answers,
    workload: &Workload,
    submission: &Submission<'_>,
) -> Result<Vec<Problem>, ApiError> {
    let manifests = &submission.built.manifests;
    let context = CheckContext { client, answers, submission, sets: demand::pod_sets(manifests) };
    let namespace = context.namespace();
    let mut problems = Vec::new();
    if answers.object(client, "namespaces", &format!("/api/v1/namespaces/{namespace}"))?.is_absent() {
        return Ok(vec![
            Problem::error(format!("the cluster has no namespace `{namespace}`"))
                .help("set `kubernetes.namespace` of the target"),
        ]);
    }
    let settings = submission.built.plan.target.settings.kubernetes.as_ref();
    let setting = settings.and_then(|settings| settings.release.as_deref());
    let version = answers.object(client, "version", "/version")?;
    problems.extend(version.found().and_then(|version| release::check(version, setting)));
    let served = discover(client, answers, manifests, &mut problems)?;
    rights(client, answers, workload, submission, &served, &mut problems)?;
    if problems.iter().any(|problem| !problem.is_warning) {
        return Ok(problems);
    }
    let created = secrets::objects(submission);
    named(&context, &|name| created.contains_key(name), &mut problems)?;
    let path = format!("/api/v1/namespaces/{namespace}/limitranges");
    let ranges = answers.list(client, "limitranges", &path, "")?;
    let defaults = Defaults::of(ranges.items());
    claims(&context, ranges.items(), &mut problems)?;
    problems.extend(limits::check(&context.sets, ranges.items()));
    queue(&context, &defaults, &mut problems)?;
    quotas(&context, &served, &defaults, &mut problems)?;
    nodes(&context, &defaults, &mut problems)?;
    dry_run::objects(client, &served, manifests, &mut problems)?;
    if !problems.iter().any(|problem| !problem.is_warning) {
        dry_run::pods(client, answers, manifests, &mut problems)?;
    }
    let denied = answers.take_denied();
    if !denied.is_empty() {
        let shown: Vec<String> = denied.iter().map(|resource| format!("`{resource}`")).collect();
        client.notice(&format!(
            "not checked, because you lack the rights: {}; `jobc targets role` prints them",
            shown.join(", ")
        ));
    }
    Ok(problems)
}

/// The rights that this submission needs.
fn rights(
    client: &Client,
    answers: &Answers,
    workload: &Workload,
    submission: &Submission<'_>,
    served: &Served,
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let namespace = &client.config().namespace;
    let mut needed: BTreeMap<(String, String), &[&'static str]> = BTreeMap::new();
    for manifest in &submission.built.manifests {
        let version = manifest.text("/apiVersion");
        let group = version.split_once('/').map_or("", |(group, _)| group);
        if let Some(resource) = served.get(&(version.to_owned(), manifest.text("/kind").to_owned())) {
            needed.insert((group.to_owned(), resource.plural.clone()), &["create", "patch"]);
        }
    }
    needed
        .insert((workload.group.to_owned(), workload.plural.to_owned()), &["get", "list", "create", "patch"]);
    if !secrets::objects(submission).is_empty() {
        needed.insert((String::new(), "secrets".to_owned()), &["create"]);
    }
    for ((group, resource), verbs) in &needed {
        let key = format!("{} {resource}.{group}", verbs.join(","));
        let missing = answers
            .verbs(&key, || answers.rights(client)?.missing(client, namespace, (group, resource), verbs))?;
        if !missing.is_empty() {
            let shown = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
            problems.push(
                Problem::error(format!(
                    "you may not {} `{shown}` in the namespace `{namespace}`",
                    missing.join(" or ")
                ))
                .help("ask an administrator for the rights of `jobc targets role`"),
            );
        }
    }
    Ok(())
}

/// Checks that what the pods name exists: Secrets with their keys, accounts, classes.
fn named(
    context: &CheckContext<'_>,
    created: &dyn Fn(&str) -> bool,
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let mut known = BTreeSet::new();
    for named in context.sets.iter().flat_map(named::named) {
        let kind = named.kind;
        let is_ours = kind == NamedKind::Secret && created(&named.name);
        let identity = (kind, named.name.clone(), named.key.clone());
        if is_ours || kind.is_built_in(&named.name) || !known.insert(identity) {
            continue;
        }
        let collection = kind.collection(context.namespace());
        let path = format!("{collection}/{}", named.name);
        let answer = match kind {
            NamedKind::Secret => context.answers.keys(context.client, &path)?,
            _ => context.answers.object(context.client, kind.plural(), &path)?,
        };
        match answer {
            Answer::Found(secret) if kind == NamedKind::Secret => problems.extend(named.lacks_key(&secret)),
            Answer::Absent if named.key.is_none() || !known.contains(&(kind, named.name.clone(), None)) => {
                known.insert((kind, named.name.clone(), None));
                let list = if kind.is_class() {
                    context.answers.list(context.client, kind.plural(), &collection, "")?
                } else {
                    Answer::Absent
                };
                problems.push(named.absent(context.namespace(), list.items()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks the PersistentVolumeClaims that the pods mount, and those that the job creates.
fn claims(context: &CheckContext<'_>, ranges: &[Value], problems: &mut Vec<Problem>) -> Result<(), ApiError> {
    let namespace = context.namespace();
    let own = |manifest: &&Manifest| manifest.text("/kind") == "PersistentVolumeClaim";
    let own: Vec<&Manifest> = context.submission.built.manifests.iter().filter(own).collect();
    for claim in &own {
        let place = claim.origin("/spec");
        if let Some(why) = limits::check_claim(&claim.object, ranges) {
            let message = format!("the cluster rejects the claim `{}`: {why}", name(&claim.object));
            problems.push(Problem::error(message).at(place));
        }
    }
    for (claim, used) in claims::uses(&context.sets) {
        if own.iter().any(|own| name(&own.object) == claim) {
            continue;
        }
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}");
        match context.answers.object(context.client, "persistentvolumeclaims", &path)? {
            Answer::Found(found) => {
                let class = text(&found, "/spec/storageClassName");
                // Some volumes are made when the first pod that wants them is placed.
                let is_pending = text(&found, "/status/phase") == "Pending" && !class.is_empty();
                let waits_for_pod = is_pending && {
                    let path = format!("{}/{class}", NamedKind::StorageClass.collection(namespace));
                    let class = context.answers.object(context.client, "storageclasses", &path)?;
                    class
                        .found()
                        .is_none_or(|class| text(class, "/volumeBindingMode") == "WaitForFirstConsumer")
                };
                problems.extend(claims::check(&claim, &found, &used, waits_for_pod));
            }
            Answer::Absent => problems.push(
                Problem::error(format!(
                    "there is no PersistentVolumeClaim `{claim}` in the namespace `{namespace}`"
                ))
                .at(used.place)
                .help("create it, or name another with `storage` of the target"),
            ),
            Answer::Denied => {}
        }
    }
    Ok(())
}

/// Compares the job with its Kueue queue.
fn queue(
    context: &CheckContext<'_>,
    defaults: &Defaults,
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let manifests = &context.submission.built.manifests;
    let Some(queue) = manifests.iter().find_map(|manifest| queue::queue_of(&manifest.object)) else {
        return Ok(());
    };
    let (client, answers, namespace) = (context.client, context.answers, context.namespace());
    let group = "/apis/kueue.x-k8s.io";
    let mut version = "v1beta2";
    let path = |version: &str| format!("{group}/{version}/namespaces/{namespace}/localqueues");
    let mut local = answers.object(client, "localqueues", &format!("{}/{queue}", path(version)))?;
    if local.is_absent() {
        // Before Kueue 0.15.
        let older = answers.object(client, "localqueues", &format!("{}/{queue}", path("v1beta1")))?;
        if older.found().is_some() {
            (version, local) = ("v1beta1", older);
        }
    }
    let known = match local {
        Answer::Denied => return Ok(()),
        Answer::Absent => answers.list(client, "localqueues", &path(version), "")?,
        Answer::Found(_) => Answer::Absent,
    };
    let behind = local.found().map(|local| text(local, "/spec/clusterQueue").to_owned());
    let cluster = match behind.filter(|name| !name.is_empty()) {
        Some(name) => {
            answers.object(client, "clusterqueues", &format!("{group}/{version}/clusterqueues/{name}"))?
        }
        None => Answer::Denied,
    };
    let of_namespace = answers.object(client, "namespaces", &format!("/api/v1/namespaces/{namespace}"))?;
    let facts = QueueFacts {
        local: local.found(),
        cluster: cluster.found(),
        is_cluster_absent: cluster.is_absent(),
        known: known.items(),
        namespace: of_namespace.found(),
    };
    problems.extend(queue::check(queue, &context.sets, defaults, &facts));
    Ok(())
}

/// Compares the job with the quotas of its namespace.
fn quotas(
    context: &CheckContext<'_>,
    served: &Served,
    defaults: &Defaults,
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    let path = format!("/api/v1/namespaces/{}/resourcequotas", context.namespace());
    let quotas = context.answers.list(context.client, "resourcequotas", &path, "")?;
    let mut objects = Amounts::new();
    for manifest in &context.submission.built.manifests {
        let version = manifest.text("/apiVersion");
        let Some(resource) = served.get(&(version.to_owned(), manifest.text("/kind").to_owned())) else {
            continue;
        };
        let group = version.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
        *objects.entry(format!("count/{}{group}", resource.plural)).or_default() += 1000;
        if group.is_empty() {
            *objects.entry(resource.plural.clone()).or_default() += 1000;
        }
    }
    let is_gang = matches!(context.submission.built.plan.gang, GangPlan::Required | GangPlan::Min(_));
    let demand = Demand { sets: &context.sets, defaults, is_gang, objects: &objects };
    problems.extend(quota::check(&demand, quotas.items()));
    Ok(())
}

/// Compares pods that choose nodes, or want more than CPU and memory, with the nodes, where those may be listed.
fn nodes(
    context: &CheckContext<'_>,
    defaults: &Defaults,
    problems: &mut Vec<Problem>,
) -> Result<(), ApiError> {
    for set in &context.sets {
        let (requests, _) = set.of_pod(defaults);
        let selector = nodes::selector(set.spec);
        if selector.is_empty() && !requests.keys().any(|resource| resource.contains('/')) {
            continue;
        }
        // In a large cluster only one page of nodes is read, which cannot prove that no node has a resource.
        let query = format!("limit={MAX_NODES}&labelSelector={}", encode_segment(&selector));
        let page = context.answers.object(context.client, "nodes", &format!("/api/v1/nodes?{query}"))?;
        let Some(page) = page.found() else { return Ok(()) };
        let is_whole = text(page, "/metadata/continue").is_empty();
        let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        problems.extend(nodes::check(set, defaults, &selector, items).filter(|_| is_whole));
    }
    Ok(())
}
