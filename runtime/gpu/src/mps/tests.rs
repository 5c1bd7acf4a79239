use insta::assert_snapshot;
use jobc_schema::gpu::Vendor;

use super::*;
use crate::lease::{Sharing, Slice};

fn card(gpu: u32) -> DeviceId {
    DeviceId { vendor: Vendor::Nvidia, gpu, mig: None }
}

fn slots(cards: &[u32], memory_bytes: Option<u64>, cores_percent: Option<u32>) -> Vec<Slot> {
    let all: Vec<DeviceId> = cards.iter().map(|gpu| card(*gpu)).collect();
    let by = Sharing::Mps;
    let slice = Slice { memory_bytes, cores_percent, by, enforced_by: by.enforcer(), cards: all.clone() };
    let slot = |device: DeviceId| Slot { device, name: device.gpu.to_string(), slice: Some(slice.clone()) };
    all.into_iter().map(slot).collect()
}

#[test]
fn a_task_has_the_way_to_its_server_and_its_limits() {
    let dir = tempfile::tempdir().unwrap();
    let place = DaemonDirectories::create(dir.path(), "0").unwrap();
    let users = try_lock(&place.users_lock(), true).unwrap().unwrap();
    let client = Client { directories: place, _users: users };
    let given = |slots: &[Slot]| {
        let mut spec: Spec = serde_json::from_str(
            r#"{"ociVersion": "1.0.2", "process": {"cwd": "/", "user": {"uid": 0, "gid": 0}, "env": ["CUDA_MPS_PIPE_DIRECTORY=/x"]},
                "mounts": [{"destination": "/dev/shm", "type": "tmpfs", "source": "shm"}]}"#,
        )
        .unwrap();
        let output = client.configure(&mut spec, slots);
        let env = spec.process().as_ref().unwrap().env().clone().unwrap().join("\n");
        let mounts = spec.mounts().iter().flatten();
        let mounts = mounts.map(|mount| {
            let source = mount.source().as_ref().unwrap().display().to_string();
            format!("{source} at {}\n", mount.destination().display())
        });
        let text = format!("{env}\n{}{}", mounts.collect::<String>(), output.join("\n"));
        text.replace(&dir.path().display().to_string(), "MPS")
    };
    assert_snapshot!(given(&slots(&[3], Some(8 << 30), Some(30))), @r"
    CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps
    CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30
    MPS/0/pipe at /tmp/nvidia-mps
    MPS/0/shm at /dev/shm
    ");
    assert_snapshot!(given(&slots(&[0, 2], Some(3 << 19), None)), @r"
    CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps
    CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1M,1=1M
    MPS/0/pipe at /tmp/nvidia-mps
    MPS/0/shm at /dev/shm
    ");
}

#[test]
fn paths_too_long_for_sockets_are_refused() {
    let long = format!("/tmp/{}", "x".repeat(90));
    let error = DaemonDirectories::create(long.as_ref(), "0").unwrap_err();
    assert!(error.to_string().contains("too long for the sockets"), "{error}");
}

#[test]
fn unused_daemon_directories_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let place = DaemonDirectories::create(dir.path(), name).unwrap();
        place.create_directories().unwrap();
        place
    };
    let (used, held, left) = (place("0"), place("1"), place("2"));
    let _users = try_lock(&used.users_lock(), true).unwrap().unwrap();
    let _holder = try_lock(&held.holder_lock(), false).unwrap().unwrap();
    sweep(dir.path()).unwrap();
    assert!(used.directory().exists() && held.directory().exists() && !left.directory().exists());
    sweep(&dir.path().join("absent")).unwrap();
}
