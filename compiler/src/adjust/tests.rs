use std::fmt::Write as _;

use camino::Utf8PathBuf;
use insta::assert_snapshot;
use jobc_schema::target::{TargetCard, TargetGpus};

use super::*;
use crate::backend::Losses;
use crate::compile::{Request, plan};
use crate::diagnostic::render::{Format, TextStyle, render};
use crate::files::MemoryFiles;
use crate::lock::Locking;
use crate::source::{Source, SourceId, Sources};

/// The request to plan a job for the target `local`; on a host with these GPUs, if any are given.
fn request<'a>(
    job: SourceId,
    files: &'a MemoryFiles,
    adjustments: Adjustments,
    gpus_here: Option<&'a dyn Fn() -> TargetGpus>,
) -> Request<'a> {
    Request {
        job,
        targets: None,
        set: vec![],
        params: vec![],
        selection: crate::import::Selection::default(),
        only_targets: vec!["local".to_owned()],
        default_target: None,
        only_backends: vec![],
        run_here: gpus_here.is_some(),
        gpus_here,
        environment: None,
        losses: Losses::Refuse,
        gpu_injection: None,
        plugins: None,
        locking: Locking::Ignored,
        adjustments,
        files,
        to_job: &|_| Utf8PathBuf::from("."),
    }
}

/// Plans a job and shows its roles and the findings.
fn check(text: &str, scale: &[(&str, u32)], no_gpu: bool) -> String {
    let mut sources = Sources::new();
    let job = sources.add(Source::new("job.yaml", text));
    let files = MemoryFiles::default();
    let adjustments = Adjustments {
        scale: scale.iter().map(|(role, number)| ((*role).to_owned(), *number)).collect(),
        no_gpu,
        numbers: vec![],
    };
    let request = request(job, &files, adjustments, None);
    let mut sink = Sink::new();
    let planned = plan(&mut sources, &request, &mut sink);
    let mut out = format!("{text}\n--scale {scale:?} --no-gpu {no_gpu}\n=>\n");
    for job in planned.iter().flat_map(|planned| &planned.jobs) {
        for role in &job.roles {
            let gpu = role.resources.gpu.as_ref().map(|gpu| gpu.count);
            let needs: Vec<_> = role.needs.iter().map(|need| (&need.role, need.min)).collect();
            let _ = writeln!(
                out,
                "{} {}: {} instances, gpu {gpu:?}, {:?}, needs {needs:?}, env {}",
                job.name,
                role.name,
                role.instances,
                role.completion,
                serde_json::to_string(&role.env).unwrap()
            );
        }
        let world = job.distributed.as_ref().map(|plan| plan.world_size);
        let _ = writeln!(out, "{}: world {world:?}, gang {:?}", job.name, job.gang);
    }
    if let Some(planned) = &planned {
        let _ = writeln!(out, "scaled: {:?}", planned.scaled);
    }
    out + &render(Format::Text, &sources, &sink.finish(), &TextStyle::default())
}

const TRAINING: &str = "\
version: 1
name: train
image: nvcr.io/nvidia/pytorch:24.05-py3
x-jobc-allow: [J0311, J0315]
params: {n: 4}
roles:
  data: {instances: 3, run: ./serve.sh, resources: {cpu: 1}}
  train:
    instances: ${{ params.n }}
    needs: {data: {state: started, min: 3}}
    completion: {min_succeeded: 4, min_failed: 2}
    resources: {gpu: {count: 8, memory: 40GiB}}
    env: {ALL: '${{ roles.train.instances }} of ${{ distributed.world_size }}'}
    run: torchrun train.py --data ${{ hosts.data[0] }}
gang: {min: 6}
distributed: {framework: torchrun, roles: [train]}
";

#[test]
fn scaling_down_changes_dependent_values() {
    assert_snapshot!(check(TRAINING, &[("train", 1), ("data", 2)], false));
}

#[test]
fn without_gpus_everything_that_counts_them_changes() {
    assert_snapshot!(check(TRAINING, &[], true));
}

#[test]
fn a_number_is_from_one_to_what_the_file_says() {
    let job = "version: 1\nname: a\nimage: host\nroles:\n  w: {run: [a], instances: 2}\n  one: {run: [a]}\n";
    assert_snapshot!(check(job, &[("w", 3), ("one", 2), ("W", 1), ("other", 1), ("w", 0)], false));
    // A value equal to the one in the file changes nothing.
    assert!(check(job, &[("w", 2), ("one", 1)], false).contains("scaled: {}"));
}

#[test]
fn every_job_of_a_matrix_is_smaller() {
    let job = "version: 1\nname: a\nimage: host\nmatrix: {n: [2, 3]}\nroles:\n  w: {run: [a], instances: '${{ matrix.n }}'}\n";
    assert_snapshot!(check(job, &[("w", 1)], false));
    assert_snapshot!(check(job, &[("w", 3)], false));
}

#[test]
fn every_combination_of_a_role_is_smaller() {
    let job = "version: 1\nname: a\nimage: host\nroles:\n  w: {matrix: {n: [2, 3]}, run: [a], instances: '${{ matrix.n }}'}\n  e: {needs: {w: {state: started, min: 2}}, run: [b]}\n";
    assert_snapshot!(check(job, &[("w", 1)], false));
    assert_snapshot!(check(job, &[("w", 3)], false));
    assert_snapshot!(check(job, &[("w", 4)], false));
}

#[test]
fn all_gpus_are_those_of_the_host() {
    use jobc_schema::gpu::Vendor;
    let card = |model: &str, vendor, count| TargetCard {
        model: model.to_owned(),
        vendor,
        count: Some(count),
        mig: Some(indexmap::IndexMap::new()),
        ..TargetCard::default()
    };
    let counted = |text: &str, cards: Vec<TargetCard>| {
        let mut sources = Sources::new();
        let job = sources.add(Source::new("job.yaml", text));
        let look = || TargetGpus { cards: Some(cards.clone()), found: true, ..TargetGpus::default() };
        let files = MemoryFiles::default();
        let request = request(job, &files, Adjustments::default(), Some(&look));
        let mut sink = Sink::new();
        let planned = plan(&mut sources, &request, &mut sink);
        let line = |role: &jobc_schema::plan::RolePlan| {
            format!("{} {}\n", role.name, serde_json::to_string(&role.resources.gpu).unwrap())
        };
        let roles: String =
            planned.iter().flat_map(|planned| &planned.jobs).flat_map(|job| &job.roles).map(line).collect();
        let world = planned.iter().flat_map(|planned| &planned.jobs).find_map(|job| job.distributed.as_ref());
        let found = render(Format::Short, &sources, &sink.finish(), &TextStyle::default());
        format!("{roles}world {:?}\n{found}", world.map(|plan| plan.world_size))
    };
    let text = "
version: 1
name: all
image: registry.example.com/train:1
roles:
  train: {resources: {cpu: 1, memory: 8GiB, shm: 1GiB, gpu: all}, run: torchrun train.py}
  judge: {needs: [train], resources: {cpu: 1, gpu: 0}, run: python judge.py}
distributed: {framework: torchrun, roles: [train]}
";
    let nvidia = vec![card("A100-80GB", Vendor::Nvidia, 2), card("H100", Vendor::Nvidia, 1)];
    insta::assert_snapshot!(
        [counted(text, nvidia), counted(text, vec![card("MI300X", Vendor::Amd, 8)]), counted(text, vec![]),]
            .join("----\n")
    );
}
