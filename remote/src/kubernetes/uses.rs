//! The cluster features that a target's jobs use besides Jobs and JobSets.

use jobc_schema::target::{KubernetesKind, KubernetesTarget};

use super::kinds::{WORKLOADS, Workload};
use super::rule::Rule;

/// The features that a target's jobs use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    kind: KubernetesKind,
    has_own_runtime: bool,
    has_gangs: bool,
    has_code_claim: bool,
}

/// The verbs for the object of a job.
const OBJECT: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// The verbs for the objects it owns.
const DEPENDENT: &[&str] = &["create", "patch"];

impl Uses {
    /// The features that a target's settings use.
    pub fn of(settings: &KubernetesTarget) -> Self {
        Self {
            kind: settings.kind,
            has_own_runtime: settings.kind == KubernetesKind::Trainjob && settings.runtime.is_none(),
            has_gangs: settings.gang.is_some(),
            has_code_claim: settings.code_claim.is_some(),
        }
    }

    /// The kind that the target names, if it is not one that every target uses.
    pub(crate) fn workload(&self) -> Option<&'static Workload> {
        let plural = match self.kind {
            KubernetesKind::Pod => ("", "pods"),
            KubernetesKind::Trainjob => ("trainer.kubeflow.org", "trainjobs"),
            KubernetesKind::Volcano => ("batch.volcano.sh", "jobs"),
            KubernetesKind::Mpijob => ("kubeflow.org", "mpijobs"),
            KubernetesKind::Rayjob => ("ray.io", "rayjobs"),
            KubernetesKind::Leaderworkerset => ("leaderworkerset.x-k8s.io", "leaderworkersets"),
            KubernetesKind::Auto
            | KubernetesKind::Job
            | KubernetesKind::Jobset
            | KubernetesKind::Pytorchjob
            | KubernetesKind::Tfjob => return None,
        };
        WORKLOADS.iter().find(|known| (known.group, known.plural) == plural)
    }

    /// The rights that the target needs besides those of every target.
    pub(crate) fn rules(&self) -> Vec<Rule> {
        let jobs = "submit, ps, wait, stop of jobs of this target";
        let own = |workload: &'static Workload| {
            let (group, plural) = (&workload.group, &workload.plural);
            Rule::needed(std::slice::from_ref(group), std::slice::from_ref(plural), OBJECT, jobs)
        };
        let mut rules: Vec<Rule> = self.workload().map(own).into_iter().collect();
        if self.has_own_runtime {
            rules.push(Rule::needed(&["trainer.kubeflow.org"], &["trainingruntimes"], DEPENDENT, jobs));
        }
        if self.has_gangs {
            rules.push(Rule::needed(&["scheduling.k8s.io"], &["podgroups", "workloads"], DEPENDENT, jobs));
        }
        if self.has_code_claim {
            let upload = "submit of jobs with code for the claim";
            rules.push(Rule::needed(&[""], &["pods"], &["create", "delete"], upload));
            rules.push(Rule::needed(&[""], &["pods/exec"], &["get", "create"], upload));
        }
        rules
    }
}
