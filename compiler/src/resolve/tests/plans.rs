//! Whole jobs and their plans.

use super::{check, check_against};

#[test]
fn a_job_on_one_host() {
    insta::assert_snapshot!(check_against(
        "
version: 1
name: hello
image: python:3.12-slim
roles:
  main:
    run: python -c 'print(1)'
    resources: {cpu: 500m, memory: 1.5GiB, gpu: 0}
",
        None
    ));
}

#[test]
fn the_example_of_the_specification() {
    insta::assert_snapshot!(check(
        "
version: 1
name: resnet50
description: ResNet-50 on ImageNet, data parallel
params:
  batch_size: 256
  model: {default: resnet50, choices: [resnet18, resnet50], description: torchvision model name}
secrets:
  wandb: {env: WANDB_API_KEY}
image:
  from: nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
  args: {PYTHON_VERSION: \"3.11\"}
  apt: [git, openssh-client]
  python: {version: \"${{ args.PYTHON_VERSION }}\", packages: [\"torch==2.4.0\"], requirements: requirements.txt}
  copy: [{from: ., to: /workspace}]
  run: [\"python -c 'import torch'\"]
  env: {OMP_NUM_THREADS: \"8\"}
  workdir: /workspace
data:
  imagenet: {source: /tmp/data, mount: /data}
outputs:
  checkpoints: {source: /tmp/output, mount: /output}
roles:
  prepare:
    resources: {cpu: 4, memory: 8GiB}
    run: python prepare.py /data
  train:
    needs: {prepare: succeeded}
    instances: 4
    resources: {cpu: 8, memory: 32GiB, shm: 8GiB, gpu: {count: 1, memory: 40GiB}}
    env:
      WANDB_API_KEY: ${{ secrets.wandb }}
    run: |
      torchrun train.py --batch_size=${{ params.batch_size }} --model_name=${{ params.model }}
distributed: {framework: torchrun, roles: [train]}
retry: {max: 2, backoff: 10s}
timeout: 12h
"
    ));
}

#[test]
fn late_expressions_become_placeholders() {
    insta::assert_snapshot!(check(
        "
version: 1
name: late
image: python:3.12-slim
params: {lr: 1e-4}
data: {set: {source: ./set, mount: /set}}
roles:
  data-server:
    instances: 3
    resources: {ports: {grpc: auto, http: {port: 8080, count: 2, publish: service}}}
    ready: {exec: [probe, \"${{ ports.grpc }}\"]}
    run: [serve, \"--port=${{ ports.grpc }}\", \"${{ instance.index }}\"]
  train:
    needs: {data-server: {state: ready, min: 2}}
    data: {set: {mount: /mnt//set/, writable: true}}
    workdir: ${{ data.set.mount }}/x
    env:
      HOSTS: ${{ hosts.data-server | join(\":80,\") }}
      LR: ${{ params.lr }}
      N: ${{ roles.data-server.instances * role.instances }}
      NAME: ${{ role.name ~ '-' ~ instance.index }}
    files:
      /etc/app.conf: {content: \"first = ${{ hosts.data-server[0] }}\\nlr = ${{ params.lr }}\\n\", mode: \"0600\"}
      /etc/other.conf: {from: app.conf}
    shell: sh
    setup: echo ${{ hosts['data-server'][1:] | join(' ') | sh }}
    run: |
      echo ${#a[@]} {{ x }} $HOME ${{ data.set.source }} ${{ '${{' }} x }}
"
    ));
}

#[test]
fn environment_files_and_images_are_merged_by_their_rules() {
    insta::assert_snapshot!(check(
        "
version: 1
name: merge
secrets: {key: {file: ~/key}, hub: {store: {name: s, key: k}}}
registries: {registry.example.com: {username: robot, password: {secret: hub}}}
images:
  tools: python:3.12-slim
  unused: busybox:1.36
image: {from: python:3.12-slim, args: {V: 3.10}, steps: [{apt: [git]}, {run: \"echo ${{ args.V }}\"}, {env: {A: 3.10}}]}
env: {A: 3.10, B: b, C: c}
roles:
  one: {env: {B: null, D: 1e3, C: \"\"}, files: {/run/key: {secret: key}, /run/hub: {content: \"${{ secrets.hub }}\"}}}
  two: {image: {use: tools}, args: [--x]}
  three: {image: {use: tools}}
  main: {image: host, run: hostname}
  four: {image: {dockerfile: Dockerfile, args: {A: 1}}, run: [a]}
"
    ));
}

#[test]
fn resources_are_exact() {
    insta::assert_snapshot!(check(
        "
version: 1
name: exact
image: python:3.12-slim
retry: {max: 1, on_exit_codes: [143, 137]}
grace_period: 1m
gang: required
network: job
roles:
  all:
    instances: 2
    parallel: 1
    resources:
      cpu: 2.5
      memory: 500MB
      shm: 64MiB
      disk: 10GB
      pids: 100
      hugepages: {2MiB: 4MiB}
      rdma: 1
      ulimits: {memlock: unlimited, nofile: 65536}
      gpu: {count: 2, vendor: amd, model: [MI300X], memory: 64GiB, driver: \"6.0\", share: {cores: 30, same_card: true}}
    completion: {min_succeeded: all, min_failed: none}
    retry: {max: 3, scope: role, backoff: 5s}
    timeout: 2h
    grace_period: 5s
    run: x
  other: {run: x, security: {privileged: true}, user: \"1000:1000\", labels: {team: vision}, resources: {gpu: 1}}
"
    ));
}

#[test]
fn concurrent_tasks_have_different_gpus() {
    let numbers = |roles: &str| {
        let text = format!("version: 1\nname: gpus\nimage: a:1\nroles:\n{roles}");
        let plan = super::plan(&text);
        let first = |role: &jobc_schema::plan::RolePlan| role.resources.gpu.as_ref().map(|gpu| gpu.first);
        plan.roles
            .iter()
            .filter_map(|role| Some(format!("{}={}", role.name, first(role)?)))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let gpus = |name: &str, rest: &str| format!("  {name}: {{run: x, resources: {{gpu: 2}}{rest}}}\n");
    let roles = [
        gpus("a", ", instances: 2"),
        gpus("b", ""),
        gpus("c", ", needs: [a]"),
        gpus("d", ", needs: {b: started}"),
    ];
    assert_eq!(numbers(&roles.concat()), "a=0 b=4 c=0 d=6");
    // Also through a role without GPUs; but not if only some instances have ended.
    let roles = [
        gpus("a", ", instances: 2"),
        "  m: {run: x, needs: [a]}\n".to_owned(),
        gpus("b", ", needs: [m]"),
        gpus("c", ", needs: {a: {min: 1}}"),
    ];
    assert_eq!(numbers(&roles.concat()), "a=0 b=0 c=4");
    // Slices and GPUs of other vendors are numbered separately.
    let roles = "  a: {run: x, resources: {gpu: 1}}\n  b: {run: x, resources: {gpu: {share: {cores: 10}}}}\n  c: {run: x, resources: {gpu: {vendor: amd}}}\n";
    assert_eq!(numbers(roles), "a=0 b=0 c=0");
}

#[test]
fn openpai_variables() {
    insta::assert_snapshot!(check(
        "
version: 1
name: pai
image: a:1
compat: [openpai]
roles:
  ps-server: {instances: 2, resources: {cpu: 1.5, memory: 1GB, ports: {grpc: 2222}}, run: x}
  worker: {run: x, completion: {min_succeeded: 1}}
"
    ));
}

#[test]
fn ports_of_other_roles() {
    insta::assert_snapshot!(check(
        "
version: 1
name: other-ports
image: python:3.12-slim
roles:
  data-server:
    instances: 2
    resources: {ports: {grpc-web: auto, http: {port: 8080, count: 2}}}
    run: serve
  store: {resources: {ports: {web: 6379}}, run: store}
  store-client:
    resources: {ports: {store: 7000}}
    run: x ${{ ports.store }} ${{ ports.store.web }} ${{ 'p' ~ ports.store ~ ports.store.web | sh }}
  client:
    needs: {data-server: started}
    env: {URL: \"http://${{ hosts.data-server[1] }}:${{ ports.data-server.grpc-web[1] }}\"}
    run: x ${{ ports.store.web }} ${{ ports.store.web[0] | sh }} ${{ ports['data-server']['http'][0] }} ${{ ports.data-server.http | length }}
"
    ));
}

#[test]
fn a_sweep_between_two_roles() {
    insta::assert_snapshot!(check(
        "
version: 1
name: sweep
image: python:3.12-slim
metrics:
  loss: {log: \"loss=([0-9.]+)\", better: lower}
outputs:
  runs: {source: ./runs, mount: /output}
roles:
  prepare:
    outputs: []
    run: prepare
  train:
    matrix: {axes: {lr: [0.1, 1e-2]}, max_parallel: 1}
    needs: [prepare]
    image: {from: \"nvidia/cuda:12.4.1-runtime-ubuntu22.04\", run: [make]}
    outputs: {runs: {subpath: \"./lr-${{ matrix.lr }}/\"}}
    metrics:
      accuracy: {file: /output//a/result.json, key: eval.accuracy, better: higher}
    run: train --lr ${{ matrix.lr }} --name ${{ role.name }} --after ${{ hosts.prepare[0] }}
  evaluate:
    needs: {train: succeeded}
    outputs: {runs: {writable: false}}
    metrics:
      loss: {log: \"best loss: ([0-9.]+)\"}
    run: evaluate /output
"
    ));
}

#[test]
fn code_is_mounted_where_commands_start() {
    insta::assert_snapshot!(check(
        "
version: 1
name: train
image: {from: python:3.12-slim, python: {packages: [numpy==2.0.0]}, workdir: /app}
code: {from: src, roles: [usual, own, other]}
roles:
  usual: {run: python train.py}
  own: {workdir: /home/me/, run: python train.py}
  other: {image: python:3.12-slim, run: python train.py}
  board: {image: python:3.12-slim, run: tensorboard}
"
    ));
}
