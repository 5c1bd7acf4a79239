//! Another kind is a row: nothing else knows it.

use super::super::selection::Selection;
use super::kinds::{KINDS, Kind, Name, PodGroups, Stands};
use super::read_kinds;
use super::rows::fact;
use crate::diagnostic::Sink;
use crate::parse::parse;
use crate::source::{Source, Sources};

static XGBOOSTJOB: Kind = Kind {
    name: "XGBoostJob",
    groups: &["kubeflow.org"],
    fields: &[("spec.runPolicy", &[fact("backoffLimit", super::facts::Fact::JobRetries)])],
    places: &[PodGroups {
        at: "spec.xgbReplicaSpecs.*",
        name: Name::Key,
        template: "template",
        fields: &[("", &[fact("replicas", super::facts::Fact::Replicas)])],
        metadata: &[],
    }],
    parts: &[("Master", "master", "chief"), ("Worker", "worker", "worker")],
    framework: Stands::None,
    hosts: &["{job}-{group}-{i}"],
    variables: &[],
    builds: None,
    becomes: "a JobSet",
};

const MANIFEST: &str = "apiVersion: kubeflow.org/v1
kind: XGBoostJob
metadata: {name: iris}
spec:
  runPolicy: {backoffLimit: 1}
  xgbReplicaSpecs:
    Worker:
      replicas: 3
      template:
        spec:
          containers:
          - {name: xgboost, image: iris:1, command: [sh, -c, 'python main.py --master iris-master-0:9991']}
    Master:
      replicas: 1
      template:
        spec:
          containers:
          - {name: xgboost, image: iris:1, command: [python, main.py]}
";

fn read(known: &[&'static Kind]) -> (Option<String>, String) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", MANIFEST));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).unwrap();
    let read = read_kinds(known, &document, &sources, &Selection::default(), &mut sink);
    let found = sink.finish();
    let messages = found.iter().map(|found| format!("{}\n", found.message)).collect();
    (read.document.map(|document| crate::emit::to_yaml(&document.to_json())), messages)
}

#[test]
fn another_kind_is_a_row_of_the_table() {
    let (job, messages) = read(KINDS);
    assert_eq!(job, None);
    assert!(messages.contains("`XGBoostJob` of `kubeflow.org/v1`"), "{messages}");
    let known: Vec<&'static Kind> = KINDS.iter().copied().chain([&XGBOOSTJOB]).collect();
    insta::assert_snapshot!(read(&known).0.unwrap(), @r"
    version: 1
    name: iris
    roles:
      master:
        run:
        - python
        - main.py
      worker:
        instances: 3
        shell:
        - sh
        - -c
        run: python main.py --master ${{ hosts.master[0] }}:9991
    retry:
      max: 1
      scope: job
    image: iris:1
    ");
}
