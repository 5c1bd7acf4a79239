//! `targets.yaml`.

use std::fmt::Write as _;

use crate::diagnostic::{DocumentId, Sink};

use super::{describe, read};

/// Prints each file with its findings.
fn check(texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        let (sources, document) = read("targets.yaml", text);
        let mut sink = Sink::new();
        let targets = crate::validate::targets(&document, &mut sink);
        assert_eq!(targets.is_some(), !sink.has_errors(), "{text}");
        sink.locate(DocumentId::Targets, &document, &sources);
        let _ = writeln!(out, "{}\n----", text.trim_end());
        for diagnostic in &sink.finish() {
            describe(&mut out, &sources, diagnostic);
        }
        if let Some(targets) = targets {
            let _ = writeln!(out, "=> {}", serde_json::to_string(&targets).unwrap());
        }
        out.push('\n');
    }
    out
}

#[test]
fn settings_of_places() {
    insta::assert_snapshot!(check(&[
        "version: 1\ndefault: [lab]\ntargets:\n  lab:\n    backends: [kubernetes]\n    kubernetes: {namespace: ml, queue: {kueue: q}}\n",
        "version: 1\ntargets: {}\n",
        "version: 1\ndefault: [lba, x, x]\ntargets: {lab: {backends: [kubernetes]}}\n",
        "version: 1\ntargets: {lab: {backends: [k8s]}}\n",
        "version: 1\ntargets: {lab: {backends: []}, Lab2: {}}\n",
        "version: 1\ntargets: {lab: {backends: [oci], kubernetes: {namespace: ml}}}\n",
        "version: 1\ntargets: {lab: {backends: [kubernetes], kubernetes: {queue: {kueue: a, volcano: b}}}}\n",
        "version: 1\ntargets: {lab: {backends: [kubernetes], kubernetes: {storage: {a: {pvc: x, nfs: 'h:/y'}, b: {}, c: {sub_path: x}, d: {ephemeral: true}}}}}\n",
        "version: 1\ntargets: {lab: {backends: [kubernetes], kubernetes: {nodeSelector: {a: b}, release: 1.34, kind: jobSet, ttl: 99999999d}}}\n",
        "version: 1\ntargets: {lab: {backends: [kubernetes], namespace: ml}}\n",
        "version: 1\ntargets: {lab: {backends: [kubernetes], kubernetes: {roles: {train: {node_selector: {a: 1}}}}}}\n",
        "version: 1\ntargets: {lab: {backends: [openpai], openpai: {roles: {train: {sku_type: V100, pinned_cell: c, sku_num: 2.0}}}}}\n",
        "version: 1\ntargets: {pai: {backends: [openpai], openpai: {virtual_clustr: d}}}\n",
        "version: 1\ntargets: {lab: {backends: [slurm], slurm: {container: docker, partition: 'a b', gpu: per_node, release: 1.34, directory: tmp, modules: ['a;b'], extra: {Mail: x}}}}\n",
        "version: 1\ntargets: {lab: {backends: [slurm], slurm: {container: none, extra: {mail-type: END, exclusive-user: true}, switches: 1@60}}}\n",
        "version: 1\ntargets: {lab: {slurm: {partition: gpu}}}\n",
        "version: 1\ntargets: {lab: {kubernetes: {namespace: ml}}}\n",
        "version: 1\ntargets: {lab: {backends: [slurm], time: 12h, nodes: 2, slurm: {gres: 'gpu:8'}}}\n",
        "version: 1\ntargets: {box: {backends: [oci], ssh: {host: box}}}\n",
        "version: 1\ntargets: {box: {backends: [kubernetes], ssh: {host: -oProxyCommand=x, jump: 'a b', directory: '', jobc: -c, user: ann}}}\n",
        "version: 1\ntargets: {box: {backends: [kubernetes], ssh: {host: ann@box, jump: gate, directory: /scratch/ann, jobc: /opt/jobc}}}\n",
        "version: 1\nx-mine: 1\ntargets: {lab: {backends: [kubernetes], kubernetes: {patches: [{kind: Job, patch: {a: 1.0}}]}}}\n",
    ]));
}
