//! Admission: pods that could not be created, by the events of their Jobs.

use super::reason::{Field, Reason, from, sentence};

/// The reason of `FailedCreate`: a quota, Pod Security, or a webhook. `what` is what there is not, such as `no pods`.
pub(super) fn of_failed_create(what: &str, message: &str) -> Reason {
    let message = sentence(message);
    if let Some(quota) = from(&message, "exceeded quota:") {
        return Reason::of_job(format!("{what}: {quota}"), of_quota(quota));
    }
    if let Some(violation) = from(&message, "violates PodSecurity") {
        let (field, word) = of_violation(violation);
        let named = word.map(|word| format!("; change `{word}` of the job")).unwrap_or_default();
        return Reason::of_job(format!("{what}: the job {violation}{named}"), field);
    }
    if let Some(webhook) = from(&message, "admission webhook") {
        return Reason::of_job(format!("{what}: {webhook}"), Field::Role);
    }
    if let Some(limits) = from(&message, "must specify") {
        // `failed quota: q: must specify limits.cpu for: main; limits.memory for: main`
        return Reason::of_job(format!("{what}: the quota needs limits: {limits}"), Field::Role);
    }
    if let Some(account) = from(&message, "error looking up service account") {
        return Reason::of_job(format!("{what}: {account}"), Field::Security);
    }
    let message = message.strip_prefix("Error creating: ").unwrap_or(&message);
    Reason::of_job(format!("{what}: {message}"), Field::Role)
}

/// The resource whose quota is exceeded: `requested: requests.nvidia.com/gpu=8, used: …`.
fn of_quota(quota: &str) -> Field {
    let requested = from(quota, "requested: ").and_then(|rest| rest.strip_prefix("requested: "));
    let name = requested.and_then(|rest| rest.split(['=', ',']).next()).unwrap_or_default();
    let name = name.strip_prefix("requests.").or(name.strip_prefix("limits.")).unwrap_or(name);
    match name {
        "" | "pods" | "count/pods" => Field::Role,
        name => Field::Resource(name.to_owned()),
    }
}

/// The setting of the job that violates Pod Security, with the field of the job file if there is one.
fn of_violation(violation: &str) -> (Field, Option<&'static str>) {
    let has = |text: &str| violation.contains(text);
    if has("runAsNonRoot") || has("runAsUser=0") {
        (Field::Security, Some("user"))
    } else if has("unrestricted capabilities") || has("non-default capabilities") {
        (Field::Security, Some("capabilities"))
    } else if has("host namespaces") || has("hostNetwork") || has("hostPort") {
        (Field::Security, Some("network"))
    } else if has("volume types") || has("hostPath") {
        (Field::Volumes, Some("data"))
    } else if has("privileged") {
        (Field::Security, Some("privileged"))
    } else {
        (Field::Security, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_pods_from_being_created_is_quoted() {
        for (message, expected, field) in [
            (
                "Error creating: pods \"x-0\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=8",
                "no pods: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=8",
                Field::Resource("nvidia.com/gpu".to_owned()),
            ),
            (
                "Error creating: pods \"x-0\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=9, limited: pods=9",
                "no pods: exceeded quota: q, requested: pods=1, used: pods=9, limited: pods=9",
                Field::Role,
            ),
            (
                "Error creating: pods \"x-0\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true (pod or container \"main\" must set securityContext.runAsNonRoot=true)",
                "no pods: the job violates PodSecurity \"restricted:latest\": runAsNonRoot != true (pod or container \"main\" must set securityContext.runAsNonRoot=true); change `user` of the job",
                Field::Security,
            ),
            (
                "pods \"x-0\" is forbidden: violates PodSecurity \"baseline:v1.36\": hostPath volumes (volume \"d\")",
                "no pods: the job violates PodSecurity \"baseline:v1.36\": hostPath volumes (volume \"d\"); change `data` of the job",
                Field::Volumes,
            ),
            (
                "pods \"x-0\" is forbidden: violates PodSecurity \"baseline:v1.36\": host namespaces (hostNetwork=true)",
                "no pods: the job violates PodSecurity \"baseline:v1.36\": host namespaces (hostNetwork=true); change `network` of the job",
                Field::Security,
            ),
            (
                "pods \"x-0\" is forbidden: violates PodSecurity \"restricted:latest\": seccompProfile (pod must set it)",
                "no pods: the job violates PodSecurity \"restricted:latest\": seccompProfile (pod must set it)",
                Field::Security,
            ),
            (
                "Error creating: admission webhook \"w.example\" denied the request: no.",
                "no pods: admission webhook \"w.example\" denied the request: no",
                Field::Role,
            ),
            (
                "Error creating: pods \"x-0\" is forbidden: failed quota: q: must specify limits.cpu for: main",
                "no pods: the quota needs limits: must specify limits.cpu for: main",
                Field::Role,
            ),
            (
                "Error creating: pods \"x-0\" is forbidden: error looking up service account ml/t: serviceaccount \"t\" not found",
                "no pods: error looking up service account ml/t: serviceaccount \"t\" not found",
                Field::Security,
            ),
            ("Error creating: timeout", "no pods: timeout", Field::Role),
        ] {
            assert_eq!(
                of_failed_create("no pods", message),
                Reason::of_job(expected.to_owned(), field),
                "{message}"
            );
        }
    }
}
