//! Puts an archive with code into a claim: a pod that lives for moments mounts the claim and writes what it gets by `exec`.
//!
//! The pod has the image, user and nodes of the init container that unpacks the code, because those are known to work.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::time::{Duration, Instant};

use jobc_sys::error::{Error, Kind, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Map, Value, json};

use super::super::client::Client;
use super::super::exec;
use super::super::pods::{MAIN, Pod};
use super::super::state::{MANAGED, items, name, owner_reference, text};
use super::{DIGEST, NAME};
use crate::built::{BuiltDirectory, Manifest, pod_specs};
use crate::place::{ExecRequest, ExecStreams};

/// The name of the pod begins with this; its container is that of a task, so that `exec` finds it.
const PREFIX: &str = "jobc-code-upload-";
/// A pod that a killed submission leaves behind ends after this.
const MAX_SECONDS: u64 = 1200;
/// How long the pod may take to start.
const START_TIMEOUT: Duration = Duration::from_mins(10);
const INTERVAL: Duration = Duration::from_millis(200);
/// The wait from which on a user is told what is waited for.
const NOTICE_DELAY: Duration = Duration::from_secs(3);
/// Reasons of a container that waiting does not end.
const HOPELESS: [&str; 5] = [
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
];
/// Writes stdin to the claim, unless it has the file already. Arguments: DIGEST, bytes, the name of the pod.
///
/// The directory is for all users of the claim, as /tmp is. `head` ends by itself: clusters before 1.30 cannot close stdin.
const WRITE: &str = r#"
umask 022
d=/jobc-code/jobc-code f=/jobc-code/jobc-code/$1.tar.gz t=/jobc-code/jobc-code/.$3
if [ -s "$f" ]; then
  if ! command -v sha256sum >/dev/null || echo "$1  $f" | sha256sum -c - >/dev/null 2>&1; then exit 0; fi
fi
[ -d "$d" ] || { mkdir -p "$d" && chmod 1777 "$d"; }
trap 'rm -f "$t"' EXIT
head -c "$2" >"$t"
if [ "$(wc -c <"$t")" -ne "$2" ]; then echo 'the archive was cut off' >&2; exit 1; fi
mv "$t" "$f"
"#;

/// Uploads the code that a marker stands for.
pub(super) fn upload(
    client: &Client,
    built: &BuiltDirectory,
    marker: &Manifest,
    owner: Option<&Value>,
) -> Result<()> {
    let claim = marker.text("/data/claim");
    let what = format!("upload the code to the claim `{claim}`");
    let Some(archive) = built.code.as_deref() else {
        let message = format!("cannot {what}: the built directory has no `kubernetes/code.tar.gz`");
        return Err(Error::new(Kind::Config, message).help("build it again"));
    };
    let pod = built
        .manifests
        .iter()
        .flat_map(|manifest| pod_specs(&manifest.object))
        .find_map(|(_, spec)| pod(spec, owner));
    let Some(pod) = pod else {
        let message = format!("cannot {what}: no pod of the job has an init container `{NAME}`");
        return Err(Error::new(Kind::Config, message));
    };
    let pods = format!("/api/v1/namespaces/{}/pods", client.config().namespace);
    let created = client
        .create(&format!("{pods}?fieldManager=jobc"), &pod)
        .map_err(|error| error.into_error(&format!("create a pod to {what}")))?;
    let path = format!("{pods}/{}", name(&created));
    let sent = wait_until_running(client, &path, &what).and_then(|pod| {
        let digest = marker.text(&format!("/metadata/annotations/{}", DIGEST.replace('/', "~1")));
        send(client, &pod, archive, digest, &what)
    });
    // It holds the claim, and its end is not waited for.
    let removed = client.delete(&path, &json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"}));
    if let Err(error) = removed.as_ref()
        && sent.is_ok()
        && !error.is(404)
    {
        client.notice(&format!("the pod `{}` could not be removed; it ends by itself", name(&created)));
    }
    sent
}

/// The pod, from the spec of one that unpacks the code.
fn pod(spec: &Value, owner: Option<&Value>) -> Option<Value> {
    let unpacker = items(spec, "/initContainers").find(|container| text(container, "/name") == NAME)?;
    let mounts = unpacker.get("volumeMounts")?.as_array()?;
    let mut mount = mounts.iter().find(|mount| text(mount, "/mountPath") == "/jobc-code")?.clone();
    let mut volume = items(spec, "/volumes").find(|volume| volume["name"] == mount["name"])?.clone();
    mount.as_object_mut()?.remove("readOnly");
    volume.pointer_mut("/persistentVolumeClaim")?.as_object_mut()?.remove("readOnly");
    let mut own = Map::new();
    for key in [
        "imagePullSecrets",
        "nodeSelector",
        "priorityClassName",
        "runtimeClassName",
        "securityContext",
        "serviceAccountName",
        "tolerations",
    ] {
        own.extend(spec.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    // Rules about other pods of the job do not hold for this one.
    if let Some(nodes) = spec.pointer("/affinity/nodeAffinity") {
        own.insert("affinity".to_owned(), json!({"nodeAffinity": nodes}));
    }
    let mut container = json!({
        "name": MAIN,
        "image": unpacker["image"],
        "command": ["/bin/sh", "-c", format!("exec sleep {MAX_SECONDS}")],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
        "volumeMounts": [mount],
    });
    for key in ["imagePullPolicy", "securityContext"] {
        if let Some(value) = unpacker.get(key) {
            container[key] = value.clone();
        }
    }
    own.insert("containers".to_owned(), json!([container]));
    own.insert("volumes".to_owned(), json!([volume]));
    own.insert("restartPolicy".to_owned(), "Never".into());
    own.insert("activeDeadlineSeconds".to_owned(), MAX_SECONDS.into());
    own.insert("terminationGracePeriodSeconds".to_owned(), 0.into());
    own.insert("enableServiceLinks".to_owned(), false.into());
    Some(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": PREFIX,
            "labels": {MANAGED: "jobc"},
            "ownerReferences": owner.map_or_else(|| json!([]), owner_reference),
        },
        "spec": own,
    }))
}

fn wait_until_running(client: &Client, path: &str, what: &str) -> Result<Pod> {
    let begun = Instant::now();
    let mut is_noticed = false;
    loop {
        let found: Value = client.get(path).map_err(|error| error.into_error(what))?;
        let phase = text(&found, "/status/phase");
        if phase == "Running" {
            let read = |error| Error::new(Kind::System, format!("cannot {what}: {error}"));
            return serde_json::from_value(found).map_err(read);
        }
        let waiting = "/status/containerStatuses/0/state/waiting";
        let reason = text(&found, &format!("{waiting}/reason"));
        let message = text(&found, &format!("{waiting}/message"));
        let unscheduled = items(&found, "/status/conditions").find(|condition| {
            text(condition, "/type") == "PodScheduled" && text(condition, "/status") == "False"
        });
        let why = match (unscheduled, reason) {
            (Some(condition), _) => format!("no node: {}", text(condition, "/message")),
            (None, "" | "ContainerCreating") => text(&found, "/status/message").to_owned(),
            (None, reason) => format!("{reason}: {message}"),
        };
        let is_over = matches!(phase, "Failed" | "Succeeded") || HOPELESS.contains(&reason);
        if is_over || begun.elapsed() > START_TIMEOUT {
            let why = if why.is_empty() { "it does not start".to_owned() } else { why };
            let message = format!("cannot {what}: the pod `{}` for it: {why}", name(&found));
            return Err(Error::new(Kind::State, message).help(
                "it has the image, nodes and user of the job's pods; `jobc submit` again tries again",
            ));
        }
        if !is_noticed && begun.elapsed() > NOTICE_DELAY {
            is_noticed = true;
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            client.notice(&format!("waiting for the pod `{}` to {what}{why}", name(&found)));
        }
        std::thread::sleep(INTERVAL);
    }
}

fn send(client: &Client, pod: &Pod, archive: &[u8], digest: &str, what: &str) -> Result<()> {
    let failed = |error: std::io::Error| Error::new(Kind::System, format!("cannot {what}: {error}"));
    let memory = |name: &str| memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
    let mut input = memory("code").map_err(|errno| failed(errno.into()))?;
    input.write_all(archive).and_then(|()| input.rewind()).map_err(failed)?;
    let mut errors = memory("errors").map_err(|errno| failed(errno.into()))?;
    let streams = ExecStreams {
        stdin: Some(input.into()),
        stdout: memory("output").map_err(|errno| failed(errno.into()))?.into(),
        stderr: errors.try_clone().map_err(failed)?.into(),
        signals: None,
        started: None,
    };
    let size = archive.len().to_string();
    let words = ["/bin/sh", "-euc", WRITE, "sh", digest, &size, &pod.metadata.name];
    let request = ExecRequest { command: words.map(str::to_owned).to_vec(), ..ExecRequest::default() };
    let code = exec::exec(client, pod, &request, streams)?;
    if code == 0 {
        return Ok(());
    }
    let mut told = String::new();
    let _ = errors.rewind().and_then(|()| errors.read_to_string(&mut told));
    let told = told.trim().lines().last().unwrap_or("no reason given").to_owned();
    Err(Error::new(Kind::System, format!("cannot {what}: exit code {code}: {told}"))
        .help("the user of the job must be able to write to the claim"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_is_like_those_of_the_job_and_small() {
        let spec = json!({
            "tolerations": [{"key": "gpu"}],
            "affinity": {"podAffinity": {}, "nodeAffinity": {"x": 1}},
            "securityContext": {"fsGroup": 7},
            "schedulerName": "kai",
            "initContainers": [{
                "name": "jobc-code", "image": "torch", "securityContext": {"runAsUser": 7}, "resources": {"limits": {"cpu": "64"}},
                "volumeMounts": [{"name": "code", "mountPath": "/work"}, {"name": "a", "mountPath": "/jobc-code", "readOnly": true}],
            }],
            "containers": [{"name": "main"}],
            "volumes": [{"name": "x"}, {"name": "a", "persistentVolumeClaim": {"claimName": "team", "readOnly": true}}],
        });
        let pod = pod(&spec, None).unwrap();
        let at = |path: &str| pod.pointer(path).cloned().unwrap_or_default();
        assert_eq!(
            at("/spec/volumes"),
            json!([{"name": "a", "persistentVolumeClaim": {"claimName": "team"}}])
        );
        assert_eq!(at("/spec/containers/0/volumeMounts"), json!([{"name": "a", "mountPath": "/jobc-code"}]));
        assert_eq!(at("/spec/containers/0/image"), "torch");
        assert_eq!(at("/spec/containers/0/securityContext/runAsUser"), 7);
        assert_eq!(at("/spec/containers/0/resources/limits/cpu"), "1");
        assert_eq!(at("/spec/affinity"), json!({"nodeAffinity": {"x": 1}}));
        assert_eq!((at("/spec/schedulerName"), at("/spec/tolerations/0/key")), (Value::Null, json!("gpu")));
    }
}
