use super::super::demand::pod_sets;
use super::*;
use crate::built::Manifest;
use serde_json::json;

fn job(parallelism: u32, gpus: u32) -> Vec<Manifest> {
    let spec = json!({"containers": [{"resources": {"limits": {"nvidia.com/gpu": gpus}}}]});
    let metadata = json!({"name": "train", "labels": {QUEUE: "team"}});
    let spec = json!({"parallelism": parallelism, "completions": parallelism, "template": {"spec": spec}});
    vec![Manifest::new("job", json!({"metadata": metadata, "spec": spec}))]
}

fn cluster(quotas: &[u32]) -> Value {
    let flavor = |(index, quota): (usize, &u32)| json!({"name": format!("f{index}"), "resources": [{"name": "nvidia.com/gpu", "nominalQuota": quota}]});
    let flavors: Vec<Value> = quotas.iter().enumerate().map(flavor).collect();
    json!({"spec": {"namespaceSelector": {}, "resourceGroups": [{"flavors": flavors}]}})
}

fn messages(manifests: &[Manifest], cluster: Option<&Value>) -> Vec<String> {
    let local = json!({"metadata": {"name": "team"}, "spec": {"clusterQueue": "all"}});
    let namespace = json!({"metadata": {"name": "ml", "labels": {"team": "vision"}}});
    let facts =
        QueueFacts { local: Some(&local), cluster, namespace: Some(&namespace), ..QueueFacts::default() };
    let found = check("team", &pod_sets(manifests), &Defaults::default(), &facts);
    found.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn what_never_fits_is_an_error() {
    assert!(messages(&job(2, 8), Some(&cluster(&[16]))).is_empty());
    assert_eq!(
        messages(&job(4, 8), Some(&cluster(&[16]))),
        [
            "the job asks for 32 `nvidia.com/gpu` at once, and the ClusterQueue `all` allows 16: it is never admitted"
        ]
    );
    assert_eq!(
        messages(&job(3, 8), Some(&cluster(&[16, 8]))),
        [
            "the pods of a role ask for 24 `nvidia.com/gpu`, and the largest flavor of the ClusterQueue `all`, `f0`, allows 16: the job is never admitted"
        ]
    );
    assert_eq!(
        messages(&job(1, 1), Some(&json!({"spec": {"namespaceSelector": {}}}))),
        ["the ClusterQueue `all` has no `nvidia.com/gpu`, which the job asks for: it is never admitted"]
    );
    assert!(messages(&job(4, 8), None).is_empty(), "it may not be read");
}

#[test]
fn a_cohort_lends() {
    let mut lent = cluster(&[16]);
    lent["spec"]["cohortName"] = "all".into();
    assert!(messages(&job(9, 8), Some(&lent)).is_empty(), "without a limit");
    lent["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "8".into();
    assert!(messages(&job(3, 8), Some(&lent)).is_empty());
    assert_eq!(messages(&job(4, 8), Some(&lent)).len(), 1);
}

#[test]
fn queues_choose_namespaces_and_stop() {
    let mut other = cluster(&[16]);
    other["spec"]["namespaceSelector"] = json!({"matchLabels": {"team": "speech"}});
    other["spec"]["stopPolicy"] = "Hold".into();
    assert_eq!(
        messages(&job(1, 1), Some(&other)),
        [
            "the ClusterQueue `all` is stopped: the job waits until it is resumed",
            "the ClusterQueue `all` does not admit jobs of the namespace `ml`",
        ]
    );
    other["spec"]["namespaceSelector"] =
        json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["vision"]}]});
    assert_eq!(messages(&job(1, 1), Some(&other)).len(), 1);
}

#[test]
fn an_unknown_queue_names_those_that_exist() {
    let known = [json!({"metadata": {"name": "team-a"}}), json!({"metadata": {"name": "team-b"}})];
    let manifests = job(1, 1);
    let facts = QueueFacts { known: &known, ..QueueFacts::default() };
    let found = check("team", &pod_sets(&manifests), &Defaults::default(), &facts);
    assert_eq!(found[0].message, "there is no Kueue queue `team` in the namespace");
    assert_eq!(found[0].help.as_deref(), Some("the namespace has `team-a`, `team-b`"));
}
