//! Facts about a job or a group of its pods, which several fields make together.

use std::collections::BTreeMap;

use crate::document::{Entry, Node};
use crate::source::Span;

use super::super::draft::Draft;

macro_rules! facts {
    ($($name:ident $words:literal;)*) => {
        /// What a field says about a job or a group of pods.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Fact {
            $(#[doc = $words] $name,)*
        }

        impl Fact {
            /// What it becomes, in words for the documentation.
            pub(super) fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

facts! {
    Replicas "`instances`";
    Completions "`instances`";
    Parallelism "`parallel`, if it is less than `completions`; else `instances`";
    CompletionMode "nothing: every instance has its number";
    Hosts "`instances`, times `replicas`";
    Size "`instances`: one is the leader";
    Groups "`kubernetes.replicas` of a target";
    Retries "`retry.max` of the role";
    RetriesPerIndex "`retry.max` of the role";
    FailedIndexes "`completion.min_failed`";
    JobRetries "`retry` of the job";
    Restart "`retry` for `OnFailure`; a job ends otherwise";
    Suspend "`kubernetes.suspend` of a target; nothing with a queue of Kueue";
    JobTimeout "`timeout`";
    Schedule "`schedule.cron` of a job with one pod; a job starts once otherwise";
    TimeZone "`schedule.zone`";
    Overlap "`schedule.overlap`";
    Ttl "`kubernetes.ttl` of a target";
    Processes "`distributed.processes_per_instance`";
    Needs "`needs`";
    Order "`needs` for `InOrder`";
    PodFailures "`retry.on_exit_codes`, `never_on_exit_codes` and `disruptions`";
    JobFailures "`retry` of the roles that the rules name; other rules are an error";
    Success "`completion.min_succeeded`";
    SuccessRoles "`completion.min_succeeded` of these roles";
    SuccessRules "`completion.min_succeeded` for `succeededCount`; other rules are an error";
    WorkersSucceed "`completion.min_succeeded` for `AllWorkers`";
    Policies "`retry` for restarts, `completion` for `CompleteJob`";
    MaxRetry "`retry.max`, where a policy restarts";
    MinAvailable "`gang` where it is less than all instances";
    ElasticMin "`distributed.elastic.min`";
    ElasticMax "`distributed.elastic.max`";
    ElasticRestarts "`distributed.elastic.max_restarts`";
    ElasticBackend "`distributed.elastic.backend`";
    ElasticHost "`distributed.elastic.endpoint` for `etcd`";
    ElasticPort "`distributed.elastic.endpoint` for `etcd`";
    Entrypoint "`run` of the head";
    Submitter "`run` of the head, where `entrypoint` is absent";
    Packages "`setup` of the head for `pip`; `env` for `env_vars`; others are an error";
    LauncherWorks "`distributed.launch: first`";
    Runtime "the roles of the runtime in the same file, else `kubernetes.runtime` of a target";
}

/// The facts of a job or of a group of pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts(BTreeMap<Fact, (Node, Span)>);

impl Facts {
    /// Keeps a fact.
    pub(super) fn put(&mut self, fact: Fact, entry: &Entry) {
        self.0.insert(fact, (entry.value.clone(), entry.key_span));
    }

    /// Takes a fact: who takes it accounts for it.
    pub(super) fn take(&mut self, fact: Fact) -> Option<(Node, Span)> {
        self.0.remove(&fact)
    }

    /// A number that is there, without taking it.
    pub(super) fn number(&self, fact: Fact) -> Option<u64> {
        self.0.get(&fact).and_then(|(node, _)| number_of(node))
    }

    /// A text that is there, without taking it.
    pub(super) fn text(&self, fact: Fact) -> Option<String> {
        self.0.get(&fact).and_then(|(node, _)| super::super::values::scalar(node))
    }

    /// The text of a field of a map that is there, without taking it.
    pub(super) fn field(&self, fact: Fact, key: &str) -> Option<String> {
        self.0.get(&fact).and_then(|(node, _)| super::super::values::text_at(node, key))
    }

    /// Takes a number; another value is an error.
    pub(super) fn take_number(&mut self, fact: Fact, draft: &mut Draft<'_>) -> Option<(u64, Span)> {
        let (node, part) = self.take(fact)?;
        let number = number_of(&node);
        if number.is_none() {
            draft.invalid(part, "the value is not a number", "");
        }
        number.map(|number| (number, part))
    }

    /// Accounts for what was not read.
    pub(super) fn finish(self, draft: &mut Draft<'_>) {
        for (_, part) in self.0.into_values() {
            draft.note(part, "the default");
        }
    }
}

/// A number of a manifest; some tools write it as a text.
pub(super) fn number_of(node: &Node) -> Option<u64> {
    node.to_scalar().and_then(|scalar| scalar.text.parse().ok())
}
