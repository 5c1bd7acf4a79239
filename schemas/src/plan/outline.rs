//! What is kept of a plan beside a job that runs elsewhere, so that reports compare it with the other jobs of its matrix.

use indexmap::IndexMap;

use super::{CommandPlan, JobPlan, ResourcesPlan, RolePlan, TargetPlan, Totals};

impl JobPlan {
    /// The plan without what only running needs: its combination, and its roles with their metrics.
    #[must_use]
    pub fn outline(&self) -> Self {
        Self {
            name: self.name.clone(),
            description: None,
            matrix: self.matrix.clone(),
            max_parallel: None,
            params: IndexMap::new(),
            target: TargetPlan::default(),
            images: IndexMap::new(),
            volumes: IndexMap::new(),
            secrets: IndexMap::new(),
            registries: IndexMap::new(),
            roles: self.roles.iter().map(RolePlan::outline).collect(),
            stages: vec![],
            distributed: None,
            gang: self.gang,
            network: self.network,
            extra_hosts: IndexMap::new(),
            dns: None,
            timeout_seconds: None,
            priority: None,
            after: None,
            schedule: None,
            notify: vec![],
            idle: None,
            preemption: None,
            budget: None,
            compat: vec![],
            totals: Totals::default(),
        }
    }
}

impl RolePlan {
    fn outline(&self) -> Self {
        Self {
            name: self.name.clone(),
            matrix: self.matrix.clone(),
            instances: self.instances,
            parallel: None,
            image: self.image.clone(),
            command: CommandPlan::Image {},
            launch: self.launch,
            env: IndexMap::new(),
            provided_env: IndexMap::new(),
            workdir: None,
            user: None,
            labels: IndexMap::new(),
            resources: ResourcesPlan::default(),
            ports: vec![],
            needs: vec![],
            ready: None,
            completion: self.completion,
            retry: self.retry.clone(),
            preflight: Vec::new(),
            stall: None,
            timeout_seconds: None,
            grace_period_seconds: self.grace_period_seconds,
            stop_signal: None,
            init: true,
            mounts: vec![],
            metrics: self.metrics.clone(),
            files: vec![],
            provided_files: vec![],
            security: self.security.clone(),
        }
    }
}
