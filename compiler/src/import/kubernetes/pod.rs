//! Pods: `spec` of a pod template, the same for all kinds.

use serde_json::json;

use crate::document::{Entry, Node, Value};
use crate::source::Span;

use super::super::container::{Mounted, Role};
use super::super::draft::Draft;
use super::super::nodes::{json, sequence, string};
use super::super::values::{scalar, text_at};
use super::container::Container;
use super::containers::program;
use super::context::Context;
use super::reader::Pod;
use super::rows::{Fields, Row, changed, field, note, refused};
use super::settings::Settings;
use super::{initial, security};

const DEFAULT: &str = "the default";
const KUBELET: &str = "a setting of the kubelet";

/// The fields of `spec` of a pod.
pub(super) const POD_SPEC: &[Row] = &[
    field("activeDeadlineSeconds", "`timeout` of the role"),
    field("affinity", "`kubernetes.affinity` of a target"),
    note("automountServiceAccountToken", KUBELET),
    field("containers", "the role, and a role for each further one"),
    field("dnsConfig", "`dns`"),
    note("dnsPolicy", "jobc chooses it by `network` and `dns`"),
    note("enableServiceLinks", KUBELET),
    refused("ephemeralContainers", "a container for debugging", "leave it out; `jobc exec` enters a task"),
    field("hostAliases", "`extra_hosts`"),
    changed(
        "hostIPC",
        "the memory of the host is not shared",
        "write the size that the program needs: `resources: {shm: 8GiB}`",
    ),
    field("hostNetwork", "`network: host`"),
    changed(
        "hostPID",
        "the program does not see processes of others",
        "`jobc top` and `jobc stats` measure the tasks of a job",
    ),
    note("hostUsers", "a job's namespaces are its own"),
    note("hostname", "an instance is called ROLE-INDEX"),
    note("hostnameOverride", "an instance is called ROLE-INDEX"),
    field("imagePullSecrets", "`kubernetes.image_pull_secrets` of a target"),
    field(
        "initContainers",
        "`setup`, where they are like the program; else roles that it needs; sidecars are roles beside it",
    ),
    field("nodeName", "`kubernetes.node_selector` of a target"),
    field("nodeSelector", "`kubernetes.node_selector` of a target"),
    note("os", "Linux"),
    note("overhead", "written by the cluster"),
    note("preemptionPolicy", "that of the priority class"),
    note("priority", "that of the priority class"),
    field("priorityClassName", "`kubernetes.priority_class` of a target"),
    note("readinessGates", "`ready` is the check"),
    field("resourceClaims", "`resources.gpu` for devices that are GPUs"),
    field("resources", "`resources`"),
    field("restartPolicy", "`retry` for `OnFailure` of a Pod; a job ends otherwise"),
    field("runtimeClassName", "`kubernetes.runtime_class` of a target"),
    field("schedulerName", "`kubernetes.scheduler` of a target"),
    note("schedulingGates", "a setting of the scheduler"),
    note("schedulingGroup", "jobc writes it for `gang`"),
    field("securityContext", "`user`, `security`"),
    field("serviceAccount", "`kubernetes.service_account` of a target"),
    field("serviceAccountName", "`kubernetes.service_account` of a target"),
    note("setHostnameAsFQDN", "an instance is called ROLE-INDEX"),
    note("shareProcessNamespace", "a role has one container"),
    note("subdomain", "instances find each other by name: `${{ hosts.ROLE[0] }}`"),
    field("terminationGracePeriodSeconds", "`grace_period`"),
    field("tolerations", "`kubernetes.tolerations` of a target"),
    changed(
        "topologySpreadConstraints",
        "how pods spread over nodes is not kept",
        "write it as a patch of a target: `kubernetes: {patches: [{kind: Job, patch: …}]}`",
    ),
    field("volumes", "`data` and `outputs`, where the container mounts them"),
    note("workloadRef", "jobc writes it for `gang`"),
];

/// Reads `spec` of a pod, and returns the names of `data` and `outputs` that the role mounts, with subpaths.
pub(super) fn read(
    spec: &Node,
    role: &str,
    context: &Context<'_>,
    settings: &mut Settings,
    draft: &mut Draft<'_>,
) -> Vec<Mounted> {
    let mut pod = Pod { role: Role { draft, name: role }, context, settings, spec, mounted: vec![] };
    let mut entries: Vec<(&'static Row, Entry)> = Vec::new();
    let fields = Fields { of: "a Pod", tables: &[("", POD_SPEC)], elsewhere: &[] };
    fields.read(spec, pod.role.draft, &mut |_, row, entry| entries.push((row, entry.clone())));
    for (row, entry) in entries {
        pod.field(row.path, &entry);
    }
    pod.mounted
}

impl Pod<'_, '_, '_> {
    fn setting(&mut self, path: &str, part: Span, value: Node) {
        self.settings.role(self.role.name, &[path], part, value);
    }

    fn field(&mut self, name: &str, entry: &Entry) {
        let (node, part) = (&entry.value, entry.key_span);
        let is_empty = node.entries().is_empty() && node.items().is_empty();
        let is_list = matches!(node.value, Value::Mapping(_) | Value::Sequence(_));
        if is_list && is_empty {
            return self.role.draft.note(part, "empty: the default");
        }
        match name {
            "activeDeadlineSeconds" => self.seconds(&["timeout"], node, part),
            "affinity" => self.setting("affinity", part, node.clone()),
            "containers" => {
                if let Some(program) = program(self.spec) {
                    Container::read(self, program);
                }
            }
            "dnsConfig" => self.dns(node),
            "hostAliases" => self.aliases(node),
            "hostNetwork" if node.value == Value::Bool(true) => {
                self.role.draft.field(&["network"], part, string(part, "host"));
            }
            "imagePullSecrets" => {
                for item in node.items() {
                    let name = text_at(item, "name").unwrap_or_default();
                    let value = string(item.span, name);
                    self.settings.role_item(self.role.name, "image_pull_secrets", item.span, value);
                }
            }
            "initContainers" => initial::read(self, node),
            "nodeName" => {
                let name = scalar(node).unwrap_or_default();
                let path = ["node_selector", "kubernetes.io/hostname"];
                self.settings.role(self.role.name, &path, part, string(part, name));
            }
            "nodeSelector" => {
                for label in node.entries() {
                    let value = scalar(&label.value).unwrap_or_default();
                    let value = string(label.value.span, value);
                    let path = ["node_selector", label.key.as_str()];
                    self.settings.role(self.role.name, &path, label.key_span, value);
                }
            }
            "priorityClassName" => self.setting("priority_class", part, node.clone()),
            // Read where the container names them.
            "resourceClaims" | "volumes" => self.referred(name, node),
            "resources" => super::resources::read(self, node),
            "restartPolicy" => self.restart(node, part),
            "runtimeClassName" => self.setting("runtime_class", part, node.clone()),
            "schedulerName" => self.scheduler(node, part),
            "securityContext" => security::of_pod(self, node),
            "serviceAccount" | "serviceAccountName" => {
                self.setting("service_account", part, node.clone());
            }
            "terminationGracePeriodSeconds" => self.seconds(&["grace_period"], node, part),
            "tolerations" => {
                for item in node.items() {
                    self.toleration(item);
                }
            }
            _ => self.role.draft.note(part, DEFAULT),
        }
    }

    /// Accounts for volumes and claims that the program does not refer to.
    fn referred(&mut self, name: &str, node: &Node) {
        let keys: &[&str] =
            if name == "volumes" { &["volumeMounts", "volumeDevices"] } else { &["resources"] };
        let lists = program(self.spec).into_iter().flat_map(|program| {
            keys.iter()
                .filter_map(|key| program.get(key))
                .flat_map(|list| list.get("claims").unwrap_or(list).items())
        });
        let names: Vec<String> = lists.filter_map(|item| text_at(item, "name")).collect();
        for item in node.items() {
            if !text_at(item, "name").is_some_and(|name| names.contains(&name)) {
                self.role.draft.note(item.span, "the program does not refer to it");
            }
        }
    }

    fn restart(&mut self, node: &Node, part: Span) {
        let policy = scalar(node).unwrap_or_default();
        if self.context.kind.name != "Pod" {
            let why = if policy == "Never" { DEFAULT } else { "a failed task is started again by `retry`" };
            return self.role.draft.note(part, why);
        }
        match policy.as_str() {
            "OnFailure" => self.role.field(&["retry"], part, json(part, &json!({"max": "unlimited"}))),
            "Never" => self.role.draft.note(part, DEFAULT),
            _ => self.role.draft.note(part, "a job ends when its command does; `retry` repeats failures"),
        }
    }

    fn scheduler(&mut self, node: &Node, part: Span) {
        match scalar(node).as_deref() {
            Some("default-scheduler") => self.role.draft.note(part, DEFAULT),
            Some("volcano") if self.context.kind.is_of_volcano() => {
                self.role.draft.note(part, "it comes with `kubernetes.kind: volcano`");
            }
            _ => self.setting("scheduler", part, node.clone()),
        }
    }

    fn toleration(&mut self, item: &Node) {
        let is_gpu = text_at(item, "key").as_deref() == Some("nvidia.com/gpu")
            && item.get("operator").and_then(Node::as_str) == Some("Exists")
            && item.get("effect").and_then(Node::as_str) == Some("NoSchedule")
            && item.entries().len() == 3;
        if is_gpu && super::resources::requests(self.spec, "nvidia.com/gpu") {
            return self.role.draft.note(item.span, "jobc writes it for GPUs");
        }
        self.settings.role_item(self.role.name, "tolerations", item.span, item.clone());
    }

    fn aliases(&mut self, node: &Node) {
        for item in node.items() {
            let address = text_at(item, "ip").unwrap_or_default();
            for name in item.get("hostnames").map_or(&[][..], Node::items) {
                let path = ["extra_hosts", name.as_str().unwrap_or_default()];
                self.role.draft.field(&path, name.span, string(name.span, &address));
            }
            self.role.draft.account.field(item.span, "extra_hosts");
        }
    }

    fn dns(&mut self, node: &Node) {
        for entry in node.entries() {
            let part = entry.key_span;
            let texts: Vec<Node> = entry
                .value
                .items()
                .iter()
                .map(|item| match (text_at(item, "name"), text_at(item, "value")) {
                    (Some(name), Some(value)) => string(item.span, format!("{name}:{value}")),
                    (Some(name), None) => string(item.span, name),
                    _ => item.clone(),
                })
                .collect();
            let key = match entry.key.as_str() {
                "nameservers" => "servers",
                "searches" => "search",
                "options" => "options",
                _ => {
                    self.role.draft.invalid(
                        part,
                        format!("unknown field `{}` of `dnsConfig`", entry.key),
                        "",
                    );
                    continue;
                }
            };
            self.role.draft.field(&["dns", key], part, sequence(part, texts));
        }
    }
}
