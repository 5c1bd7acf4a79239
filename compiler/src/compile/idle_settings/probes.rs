//! Small jobs that use together what settings of a target can change.

use std::sync::OnceLock;

use camino::Utf8PathBuf;
use jobc_schema::plan::TargetPlan;
use jobc_schema::target::Target;
use jobc_schema::{BackendName, Job};

use crate::backend::{Context, Losses};
use crate::diagnostic::Sink;
use crate::expand::{Overrides, Variant, expand};
use crate::files::MemoryFiles;
use crate::lock::Lock;
use crate::lower::{self, BackendOutput, OnRefusal};
use crate::source::{Source, Sources};
use crate::{check, parse, resolve, validate};

/// How many there are.
pub(super) const COUNT: usize = 14;

/// The jobs, without their heads.
const JOBS: [&str; COUNT] = [
    // A gang by torchrun, with data, an output and RDMA.
    "
image: python:3.12
data: {in: {source: /data, mount: /in}, own: {source: 'instance:1GiB', mount: /own, writable: true}}
outputs: {out: {source: /out, mount: /out}}
distributed: {framework: torchrun, roles: [main]}
roles: {main: {instances: 2, resources: {cpu: 1, memory: 1GiB, shm: 1GiB, gpu: 1, rdma: 1}, run: torchrun a.py}}",
    "
image: {from: python:3.12, python: {packages: [numpy==2.0.0]}}
timeout: 1h
grace_period: 2m
roles: {main: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, share: {memory: 8GiB, cores: 30}}}, run: python a.py}}",
    "
image: python:3.12
roles: {main: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, share: {cores: 50}}}, run: python a.py}}",
    "
image: python:3.12
roles: {main: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, share: {memory: 8GiB}}}, run: python a.py}}",
    "
image: python:3.12
roles: {main: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, share: {profile: 1g.10gb}}}, run: python a.py}}",
    "
image: python:3.12
roles: {main: {resources: {cpu: 1, memory: 1GiB, gpu: 2}, run: python a.py}}",
    // More than any host has.
    "
image: python:3.12
roles: {main: {resources: {cpu: 1, memory: 1GiB, gpu: {count: 64, model: A100-80GB, memory: 9TiB, cuda: '99.9', driver: '9999', compute_capability: '99.9'}}, env: {NVIDIA_REQUIRE_CUDA: 'cuda>=99.0'}, run: python a.py}}",
    // A server.
    "
image: python:3.12
roles:
  main:
    resources: {cpu: 1, memory: 1GiB, ports: {http: {port: 8080, publish: service}}}
    ready: {http: {port: http, path: /}}
    run: python -m http.server 8080",
    // Roles after each other, retries, and a user.
    "
image: python:3.12
retry: {max: 2}
roles:
  a: {resources: {cpu: 1, memory: 1GiB}, run: python a.py}
  b: {needs: {a: succeeded}, resources: {cpu: 1, memory: 1GiB}, run: python b.py}",
    "
image: python:3.12
matrix: {x: [1, 2]}
roles: {main: {resources: {cpu: 1, memory: 1GiB}, run: 'python a.py ${{ matrix.x }}'}}",
    "
image: python:3.12
distributed: {framework: mpi, roles: [main]}
roles: {main: {instances: 2, resources: {cpu: 1, memory: 1GiB, gpu: 1}, run: mpirun python a.py}}",
    "
image: rayproject/ray:2.40.0
distributed: {framework: ray, roles: [head, worker]}
roles:
  head: {resources: {cpu: 1, memory: 1GiB}, run: python a.py}
  worker: {instances: 2, resources: {cpu: 1, memory: 1GiB, gpu: 1}}",
    "
image: host
roles: {main: {resources: {cpu: 1, memory: 1GiB}, run: hostname}}",
    "
image: python:3.12
distributed: {framework: tensorflow, roles: [worker]}
roles: {worker: {instances: 2, resources: {cpu: 1, memory: 1GiB, gpu: {count: 1, vendor: amd}}, run: python a.py}}",
];

/// A job, ready for any target.
pub(super) struct Probe {
    job: Job,
    variant: Variant,
}

/// What a job becomes for a target.
#[derive(PartialEq)]
pub(super) struct Result {
    outputs: Vec<BackendOutput>,
    findings: Vec<String>,
    refused: bool,
}

impl Result {
    /// Whether there was an error.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }
}

impl Probe {
    /// The jobs of one of the texts; parsed once.
    pub(super) fn of(number: usize) -> &'static [Self] {
        static ALL: [OnceLock<Vec<Probe>>; COUNT] = [const { OnceLock::new() }; COUNT];
        ALL[number].get_or_init(|| Self::parse(JOBS[number]))
    }

    /// The jobs of a text: those of its matrix.
    fn parse(text: &str) -> Vec<Self> {
        let (mut sources, mut sink) = (Sources::new(), Sink::new());
        let id = sources.add(Source::new("job.yaml", format!("version: 1\nname: probe{text}\n")));
        let Some(document) = parse::parse(&sources, id, &mut sink) else { return vec![] };
        let overrides = Overrides { set: vec![], params: vec![], environment: None, numbers: &[] };
        let variants = expand(&document, &sources, &overrides, &mut sink);
        let probe = |variant: Variant| {
            Some(Self { job: validate::job(&variant.document, &mut Sink::new())?, variant })
        };
        variants.into_iter().filter_map(probe).collect()
    }

    /// What the job becomes on a target by some of its backends.
    pub(super) fn lower(&self, settings: &Target, backends: &[BackendName]) -> Result {
        let (mut sink, files) = (Sink::new(), MemoryFiles::default());
        let target = TargetPlan { name: "target".to_owned(), built_in: false, settings: settings.clone() };
        let plan = resolve::resolve(&self.job, &self.variant, &target, &files, &Lock::default(), &mut sink);
        let mut outputs = vec![];
        if let Some(plan) = plan {
            check::check(&self.job, &plan, &files, &mut sink);
            let context = Context {
                files: &files,
                to_job: Utf8PathBuf::from("../../.."),
                gpu_injection: None,
                losses: Losses::Drop,
                plugins: None,
                all_jobs: std::slice::from_ref(&plan),
            };
            outputs = lower::lower(&plan, backends, OnRefusal::Fail, &context, &mut sink);
        }
        let refused = sink.has_errors();
        let findings = sink.diagnostics().iter();
        let findings =
            findings.map(|found| format!("{} {} {:?}", found.code, found.message, found.notes)).collect();
        Result { outputs, findings, refused }
    }
}
