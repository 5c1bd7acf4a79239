//! Snapshots of expanded documents and findings.

use std::fmt::Write as _;

use jobc_schema::Pointer;

use super::*;
use crate::diagnostic::render::{Format, TextStyle, render};
use crate::parse::parse;
use crate::source::Source;

/// Expands a job file and prints the variants' documents, or the findings.
fn expanded(text: &str, set: &[(&str, &str)], files: &[&str]) -> (Vec<Variant>, String) {
    let mut sources = Sources::new();
    let id = sources.add(Source::new("job.yaml", text));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).unwrap();
    let mut overrides = Overrides::default();
    for (number, file) in files.iter().enumerate() {
        let id = sources.add(Source::new(format!("params-{number}.yaml"), *file));
        let document = parse(&sources, id, &mut sink).unwrap();
        overrides.params.push((id, document));
    }
    overrides.set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let variants = expand(&document, &sources, &overrides, &mut sink);
    let found = sink.finish();
    (variants, render(Format::Text, &sources, &found, &TextStyle::default()))
}

fn check(text: &str, set: &[(&str, &str)], files: &[&str]) -> String {
    let (variants, findings) = expanded(text, set, files);
    let mut out = format!("{text}\n");
    for (name, value) in set {
        let _ = writeln!(out, "--set {name}={value}");
    }
    for file in files {
        let _ = writeln!(out, "--params: {file}");
    }
    out.push_str("=> \n");
    if findings.is_empty() {
        for variant in &variants {
            let mut json = variant.document.to_json();
            for hidden in ["params", "matrix"] {
                json.as_object_mut().unwrap().remove(hidden);
            }
            let _ = writeln!(out, "{json}");
        }
    }
    out + &findings
}

#[test]
fn parameters_are_typed_and_the_last_value_wins() {
    let job = "
name: a
params:
  n: 4
  lr: 1e-4
  tag: {default: 3.10, type: string}
  debug: false
  model: {choices: [a, b], default: a}
roles:
  train:
    instances: ${{ params.n }}
    run: t --n=${{ params.n }} --lr ${{ params.lr }} ${{ params.tag }} ${{ params.debug }} ${{params.model}}
    args: [\"${{ params.n }}\"]
    labels: {n: \"${{ params.n }}\"}
    security: {privileged: \"${{ params.debug }}\"}
";
    insta::assert_snapshot!(
        [
            check(job, &[], &[]),
            check(job, &[("n", "8"), ("lr", "0.10"), ("n", "16"), ("debug", "true")], &["n: 2\nmodel: b\n"]),
        ]
        .join("----\n")
    );
}

#[test]
fn invalid_parameters_are_reported_once() {
    let job = "
name: a
params:
  batch_size: 256
  model: {choices: [resnet18, resnet50]}
  lr: {default: 0.5, max: 0.1}
  n: {type: integer, min: 1}
  s: {default: x, min: 2}
  k: {default: 1, min: 3, max: 2}
roles:
  train: {instances: \"${{ params.n }}\", run: \"${{ params.model }} ${{ params.batch_size }}\"}
";
    let set = [("batchsize", "1"), ("batch_size", "2.5"), ("model", "resnet5")];
    insta::assert_snapshot!(check(job, &set, &["batch_size: many\nmodl: a\nn: [1]\n"]));
}

#[test]
fn expressions_keep_the_text_of_numbers() {
    let job = "
name: a
params: {n: 3, lr: 3.10, path: \"it's\", big: 1e-4}
roles:
  train:
    run: |
      echo ${#a[@]} {% if %} {{ x }} $VAR ${{ params.n }}
      a=${{ params.path | sh }} b=${{ params.lr | sh }} c=${{ 'lr-' ~ params.big }}

      d=${{ params.n * 2 }} e=${{ 'many' if params.n > 2 else 'few' }} f=${{ params.n / 2 }}
    instances: ${{ (params.n + 1) / 2 }}
    workdir: /x/${{ job.name }}
";
    insta::assert_snapshot!(check(job, &[], &[]));
}

#[test]
fn late_expressions_are_kept() {
    let (variants, findings) = expanded(
        "
name: a
params: {n: 3}
roles:
  data-server: {run: x}
  train:
    run: t ${{ hosts.data-server[0] }} ${{ params.n }}
    env: {A: \"${{ secrets.x }}\", B: \"${{ params.n }}\"}
    setup: >-
      a
      ${{ instance.index }}
",
        &[],
        &[],
    );
    assert_eq!(findings, "");
    let [variant] = &variants[..] else { panic!("one variant") };
    let at = Pointer::ROOT.keys(["roles", "train", "run"]);
    let run = variant.document.at(&at).unwrap().as_str().unwrap();
    assert_eq!(run, "t ${{ hosts.data-server[0] }} ${{ params.n }}");
    let spans: Vec<_> =
        variant.late.iter().map(|(at, spans)| (at.as_str(), spans.len(), spans[0].exact)).collect();
    assert_eq!(
        spans,
        [("/roles/train/env/A", 1, true), ("/roles/train/run", 2, true), ("/roles/train/setup", 1, true)]
    );
}

#[test]
fn invalid_expressions_are_reported_at_the_name() {
    insta::assert_snapshot!(check(
        "
name: a
params: {batch: 3}
secrets: {k: {env: K}}
roles:
  train:
    run: |
      t ${{ params.bacth }}
      u ${{ parms.batch }} ${{ params.batch * }}
      ${{ secrets.k }}
    setup: ${{ params.batch
    instances: ${{ hosts.train | length }}
    env:
      A: x${{ secrets.k }}
      B: ${{ env.HOME }}
      ${{ params.batch }}: c
    workdir: ${{ instance.index }}
    args: [\"${{ 1 / 0 }}\", '${{ params }}', '${{}}', \"${{ \\\"a\\\" ~ params.x }}\", '${{ params.batch | shh }}']
    user: ${{ params.batch.x }}
matrix: {lr: [\"${{ params.batch }}\"]}
",
        &[],
        &[]
    ));
}

#[test]
fn a_value_is_never_evaluated_as_an_expression() {
    let job = "
name: a
params: {x: a}
roles:
  t: {run: \"echo ${{ params.x }}\", user: \"${{ params.x }}\"}
";
    insta::assert_snapshot!(check(job, &[("x", "${{ secrets.k }}")], &[]));
}

#[test]
fn a_matrix_expands_to_jobs() {
    insta::assert_snapshot!(
        [
            "
name: a
matrix: {lr: [0.10, 1e-2], model: [u, v]}
outputs: {o: {source: \"./${{ job.name }}\", mount: /o}}
roles: {t: {run: \"t ${{ matrix.lr }} ${{ matrix.model }}\"}}
",
            "
name: a
matrix:
  axes: {lr: [0.1, 0.2], n: [1, 2]}
  exclude: [{lr: 0.10, n: 2}]
  include: [{lr: 5, n: 3}]
  max_parallel: 2
roles: {t: {instances: \"${{ matrix.n }}\", run: \"t ${{ matrix.lr }}\"}}
",
        ]
        .map(|job| check(job, &[], &[]))
        .join("----\n")
    );
}

#[test]
fn invalid_matrices() {
    insta::assert_snapshot!(
        [
            "
name: a
matrix: {lr: []}
roles: {t: {run: \"${{ matrix.lr }}\"}}
",
            "
name: a
matrix: {axes: {lr: [1]}, exclude: [{lr: 1}, {rl: 1}, {lr: 3}], include: [{lr: 2, x: 1}, {}]}
",
            "
name: a
matrix: {lr: [1], max_parallel: 2}
",
            "
name: a
matrix: {lr: [1, 2, 3]}
outputs: {o: {source: ./out, mount: /o}, p: {mount: /p}}
roles: {t: {run: \"${{ matrix.lr }} ${{ matrix.x }}\"}}
",
            "
name: a
matrix: {lr: [1, 2, 3]}
outputs: {o: {source: ./out, mount: /o}, p: {mount: /p}}
",
        ]
        .map(|job| check(job, &[], &[]))
        .join("----\n")
    );
}

#[test]
fn directories_in_an_output_are_separate_places() {
    let findings = |outputs: &str| {
        let job = format!(
            "name: a\nmatrix: {{lr: [1, 2]}}\noutputs: {{o: {{source: ./out, mount: /o}}}}\nroles:\n  a: {{outputs: {outputs}, run: x}}\n  b: {{outputs: [], run: x}}\n"
        );
        expanded(&job, &[], &[]).1
    };
    assert_eq!(findings("{o: {subpath: \"${{ job.name }}\"}}"), "");
    for outputs in ["[o]", "{o: {}}", "{o: {subpath: same}}"] {
        assert!(findings(outputs).contains("J0209"), "{outputs}");
    }
}

#[test]
fn a_matrix_of_a_role_expands_to_groups_of_tasks() {
    let job = "
name: a
params: {epochs: 3}
matrix: {seed: [1, 2]}
roles:
  prepare: {run: x}
  train:
    matrix: {axes: {lr: [0.1, 1e-2], model: [小, 大]}, exclude: [{lr: 0.1, model: 大}], include: [{lr: 5, model: 中}], max_parallel: 2}
    needs: [prepare]
    resources: {memory: \"${{ params.epochs * 2 }}GiB\"}
    run: t --lr ${{ matrix.lr }} --model ${{ matrix.model }} --seed ${{ matrix.seed }} of ${{ roles.prepare.instances }}
  evaluate: {needs: {train: succeeded}, run: \"e ${{ matrix.seed }}\"}
";
    insta::assert_snapshot!(check(job, &[], &[]));
    let (variants, _) = expanded(job, &[], &[]);
    let groups = &variants[1].groups;
    assert_eq!(groups.of_role("train").map(<[String]>::len), Some(4));
    assert_eq!((groups.declared("train-m3"), groups.declared("prepare")), ("train", "prepare"));
    assert_eq!(groups.get("train-m3").map(|group| (group.number, group.max_parallel)), Some((3, Some(2))));
    assert!(groups.of_role("prepare").is_none());
}

#[test]
fn known_combinations_keep_their_numbers() {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(
        "job.yaml",
        "name: a\nmatrix: {lr: [3, 1, 2]}\nroles: {t: {run: \"${{ job.name }}\"}}\n",
    ));
    let mut sink = Sink::new();
    let document = parse(&sources, id, &mut sink).unwrap();
    let known =
        |value: &str| IndexMap::from([("lr".to_owned(), serde_json::from_str::<Scalar>(value).unwrap())]);
    let numbers = [(known("1.0"), 0), (known("2"), 1), (known("9"), 4)];
    let overrides = Overrides { numbers: &numbers, ..Overrides::default() };
    let variants = expand(&document, &sources, &overrides, &mut sink);
    let names: Vec<String> = variants.iter().map(|variant| variant.job_name("a")).collect();
    assert_eq!(names, ["a-5", "a-0", "a-1"]);
}
