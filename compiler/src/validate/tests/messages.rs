//! The messages for each kind of mistake.

use super::{check, check_job, check_role};

#[test]
fn unknown_keys() {
    insta::assert_snapshot!(check_role(&[
        "shm: 8GiB\nrun: x",
        "ron: x",
        "run: x\nresources: {memroy: 8GiB}",
        "run: x\nresources: {env: {A: b}}",
        "run: x\nresources: {gpu: {shm: 8GiB}}",
        "run: x\nresources: {gpu: {instances: 2}}",
        "run: x\nresources: {timeout: 1h, distributed: {}}",
        "run: x\ncores: 30",
        "run: x\nframework: torchrun",
        "run: x\nbackoff: 1s",
        "run: x\nxyzzy: 1",
        "run: x\nresources: {count: 1}",
        "run: x\nmemori: 8GiB",
        "run: x\nRun: y",
        "run: x\n名前: y",
    ]));
}

#[test]
fn unknown_keys_at_the_top() {
    insta::assert_snapshot!(check_job(&[
        "memory: 8GiB",
        "instances: 2",
        "gpu: 1",
        "rols: {}",
        "runn: x",
        "run: x",
        "max_parallel: 2",
        "version_: 1",
        "data: {d: {source: /d, mount: /d, read_only: true}}",
        "data: {d: {source: /d, path: /d}}",
        "image: {form: busybox}",
        "image: {from: busybox, pip: [torch]}",
        "x-note: anything\nx-more: {free: 1}",
    ]));
}

#[test]
fn foreign_spellings() {
    insta::assert_snapshot!(check_role(&[
        "command: python train.py\nreplicas: 4\nenvironment: {A: b}\nworking_dir: /w\ndepends_on: [a]",
        "run: x\nshmMB: 64\nmemoryMB: 32768\ncpuNumber: 8\ngpuNumber: 1\ntaskNumber: 2",
        "run: x\nnum_workers: 2",
        "run: x\nports: [8888]",
        "run: x\nvolumes: [/data:/data]",
        "run: x\nresources: {limits: {nvidia.com/gpu: 1}}",
        "run: x\nresources: {nvidia.com/gpu: 1, shm_size: 8g, cpus: 4, mem: 8GiB}",
        "run: x\nnode_selector: {a: b}\nrestartPolicy: Never",
        "run: x\npartition: gpu",
        "run: x\nresources: {gpu: {type: A100, number: 2}}",
        "run: y\ncommand: x",
    ]));
    insta::assert_snapshot!(check(&[
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n",
        "version: 1\nname: x\ncommand: python train.py\n",
        "{\"version\": 1, \"name\": \"x\", \"roles\": {\"a\": {\"command\": \"x\", \"resources\": {\"memory\": 8}}}}",
    ]));
}

#[test]
fn missing_keys() {
    insta::assert_snapshot!(check(&[
        "name: x\nroles: {a: {run: x}}\n",
        "roles: {a: {run: x}}\n",
        "{name: x, roles: {a: {run: x}}}",
        "version: 1\nname: x\n",
        "version: 1\nname: x\nroles: {}\n",
        "version: 1\nname: x\nrole: {a: {run: x}}\n",
        "version: 1\nname: x\nuses: std/torchrun\n",
        "- a\n- b\n",
        "just text",
    ]));
    insta::assert_snapshot!(check_job(&[
        "data: {d: {source: /d}}",
        "distributed: {roles: [train]}",
        "secrets: {s: {store: {name: x}}}",
        "registries: {r.example.com: {username: u}}",
        "retry: {backoff: 1s}",
    ]));
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(check_role(&[
        "run: 5",
        "run: {a: b}",
        "run: [python, 5, true]",
        "run: x\ninstances: four",
        "run: x\ninstances: '4'",
        "run: x\ninstances: 2.5",
        "run: x\ninstances: true",
        "run: x\ninstances: [4]",
        "run: x\ninstances: 4${{ params.n }}",
        "run: x\nimage: [busybox]",
        "run: x\nimage: 5",
        "run: x\nneeds: prepare",
        "run: x\nneeds: 3",
        "run: x\nneeds: {a: [ready]}",
        "run: x\nresources: {gpu: [0, 1]}",
        "run: x\nresources: {gpu: {cuda: 12.4, compute_capability: 8, driver: 550.54}}",
        "run: x\nresources: {ports: [8888]}",
        "run: x\nresources: {ports: {http: [8888]}}",
        "run: x\nsecurity: {privileged: yes}",
        "run: x\nsecurity: {privileged: 'true'}",
        "run: x\nenv: [A=1, B=x y]",
        "run: x\nenv: [{name: A, value: 1}]",
        "run: x\nlabels: {tier: 1}",
        "run: x\nfiles: {/etc/x: {content: x, mode: 644}}",
        "run: x\nresources: 8GiB",
        "- run: x",
    ]));
    insta::assert_snapshot!(check(&[
        "version: 1\nname: x\nroles:\n  train:\n  run: python train.py\n",
        "version: 1\nname: x\nroles: [{name: train, run: x}]\n",
        "version: '1'\nname: x\nroles: {a: {run: x}}\n",
        "version: 2\nname: x\nroles: {a: {run: x}}\n",
        "version: 1.0\nname: 5\nroles: {a: {run: x}}\n",
    ]));
    insta::assert_snapshot!(check_job(&[
        "image: {from: busybox, apt: git}",
        "image: {from: busybox, python: {version: 3.11, packages: torch}}",
        "image: {from: busybox, python: {packages: [torch, 5]}}",
        "image: {from: busybox, copy: {from: ., to: /w}}",
        "image: {from: busybox, steps: {run: x}}",
        "params: {lr: [1, 2]}",
        "gang: [4]",
        "matrix: {lr: 0.1}",
    ]));
}

#[test]
fn missing_values() {
    insta::assert_snapshot!(check_role(&[
        "run: x\nresources: {gpu: }",
        "run: x\nresources:\nimage: busybox",
        "run:",
        "run: [a, ~]",
        "run: x\nenv: {A: ~}",
        "run: x\nenv:",
        "run: x\nsecurity: {privileged: null}",
    ]));
    insta::assert_snapshot!(check(&[
        "version: 1\nname: x\nroles:\n  train:\n",
        "version: 1\nname: x\nroles:\n",
        "version:\nname:\nroles: {a: {run: x}}\n",
    ]));
    insta::assert_snapshot!(check_job(&["network:", "gang: ~", "params: {a: ~}", "image: {from: }"]));
}

#[test]
fn amounts() {
    insta::assert_snapshot!(check_role(&[
        "run: x\nresources: {memory: 8}",
        "run: x\nresources: {memory: 8G}",
        "run: x\nresources: {memory: 8gb}",
        "run: x\nresources: {memory: '8'}",
        "run: x\nresources: {memory: lots}",
        "run: x\nresources: {memory: 0.3KiB}",
        "run: x\nresources: {memory: .5GiB}",
        "run: x\nresources: {memory: 1_000MiB}",
        "run: x\nresources: {memory: [8GiB]}",
        "run: x\nresources: {memory: -1}",
        "run: x\nresources: {hugepages: {2MiB: 4}}",
        "run: x\nresources: {hugepages: {4MiB: 4GiB}}",
        "run: x\nresources: {cpu: half}",
        "run: x\nresources: {cpu: 0}",
        "run: x\nresources: {cpu: -2}",
        "run: x\nresources: {cpu: 0.0001}",
        "run: x\nresources: {cpu: 8.0}",
        "run: x\nresources: {cpu: true}",
        "run: x\ntimeout: 90",
        "run: x\ntimeout: 1h30m",
        "run: x\ntimeout: 2 hours",
        "run: x\ntimeout: 99999999d",
        "run: x\nresources: {gpu: {memory: 40, share: {memory: 8}}}",
        "run: x\nresources: {memory: '${{ params.m }}GiB', cpu: '${{ params.c }}'}\ntimeout: ${{ params.t }}",
    ]));
}

#[test]
fn words() {
    insta::assert_snapshot!(check_job(&[
        "network: hosts",
        "network: bridge",
        "network: 5",
        "network: ${{ params.net }}",
        "gang: requried",
        "gang: all",
        "distributed: {framework: pytorch, roles: [train]}",
        "distributed: {framework: torch-run, roles: {train: master}}",
        "compat: [pai]",
        "retry: {max: 1, scope: tasks}",
        "params: {a: {type: int}}",
    ]));
    insta::assert_snapshot!(check_role(&[
        "run: x\nshell: zsh",
        "run: x\ncompletion: {min_succeeded: al, min_failed: all}",
        "run: x\nresources: {ports: {http: free}}",
        "run: x\nresources: {ulimits: {memlock: infinity}}",
        "run: x\nresources: {ulimits: {nofiles: 5}}",
        "run: x\nresources: {gpu: {vendor: NVIDIA, capabilities: [cuda]}}",
        "run: x\nneeds: {a: done}",
    ]));
}

#[test]
fn forms() {
    insta::assert_snapshot!(check(&[
        "version: 1\nname: ResNet_50\nroles: {a: {run: x}}\n",
        "version: 1\nname: 训练\nroles: {a: {run: x}}\n",
        "version: 1\nname: a-very-long-name-that-goes-on-and-on-and-on-forever\nroles: {a: {run: x}}\n",
        "version: 1\nname: ''\nroles: {Train_1: {run: x}, 训练: {run: y}, 1st: {run: z}}\n",
    ]));
    insta::assert_snapshot!(check_job(&[
        "data: {d: {source: /d, mount: data}}",
        "data: {d: {source: /d, mount: ./data}}",
        "data: {d: {source: '', mount: '${{ params.m }}'}}",
        "env: {MY-VAR: x, 2X: y}",
        "params: {batch-size: 1}",
        "secrets: {a b: {env: A}, t: {env: MY-TOKEN}}",
        "image: {from: busybox, platform: amd64}",
        "image: {from: busybox, python: {version: '>=3.11'}}",
        "image: {from: busybox, user: 'a b'}",
        "matrix: {learning-rate: [1]}",
    ]));
    insta::assert_snapshot!(check_role(&[
        "run: x\nuser: ${{ params.user }}",
        "run: x\nfiles: {etc/x: {content: x, mode: '9'}}",
        "run: x\nresources: {ports: {HTTP_Port: 80}}",
        "run: x\nresources: {gpu: {compute_capability: '8', cuda: twelve, driver: new}}",
    ]));
}

#[test]
fn bounds() {
    insta::assert_snapshot!(check_role(&[
        "run: x\ninstances: 0",
        "run: x\ninstances: 99999999999",
        "run: x\nresources: {gpu: -1}",
        "run: x\nresources: {ports: {http: 70000}}",
        "run: x\ncompletion: {min_failed: -1, min_succeeded: 0}",
        "run: x\nretry: {max: -1, on_exit_codes: [0, 256]}",
        "run: []",
        "run: x\nresources: {gpu: {model: []}}",
        "run: x\nready: {exec: []}",
    ]));
    insta::assert_snapshot!(check_job(&[
        "distributed: {framework: mpi, roles: []}",
        "distributed: {framework: mpi, roles: {}}"
    ]));
}

#[test]
fn booleans_in_env() {
    insta::assert_snapshot!(check_role(&[
        "run: x\nenv: {DEBUG: true, PLAIN: 3.10, GONE: ~, LIST: [a]}",
        "run: x\nimage: {from: busybox, env: {DEBUG: false}}",
    ]));
}

#[test]
fn keys_that_depend_on_each_other() {
    insta::assert_snapshot!(check_role(&[
        "run: x\nargs: [y]",
        "shell: sh",
        "shell: sh\nrun: [a]",
        "setup: a",
        "setup: a\nrun: [b]\nshell: sh",
        "uses: std/x\nshell: sh\nsetup: a",
        "run: x\nready: {port: http, log: y}",
        "run: x\nready: {every: 1s}",
        "run: x\nfiles: {/a: {content: x, from: y, secret: z}, /b: {}}",
        "run: x\nresources: {gpu: {share: {profile: 1g.10gb, memory: 8GiB, cores: 30}}}",
        "run: x\nneeds: [a, b, a]\ndata: [d, d]",
    ]));
    insta::assert_snapshot!(check_job(&[
        "secrets: {a: {}, b: {env: B, file: b}, c: {env: C}}",
        "image: {}",
        "image: {apt: [git]}",
        "image: {from: busybox, use: tools}",
        "image: {use: tools, env: {A: b}, apt: [git]}",
        "image: {dockerfile: Dockerfile, context: ., target: t, args: {A: 1}}",
        "image: {dockerfile: Dockerfile, apt: [git]}",
        "image: {from: busybox, target: t}",
        "image: {from: busybox, apt: [git], run: [x], steps: [{run: x}, {run: x, apt: [y]}, {}]}",
        "images: {tools: {}}",
        "matrix: {axes: {lr: [1]}, model: [a]}",
        "matrix: {lr: [1], max_parallel: 2}",
        "matrix: {max_parallel: 2}",
        "data: {d: {mount: /a}}\noutputs: {d: {mount: /b}}",
        "retry: {max: 1, on_exit_codes: [1, 1]}",
        "retry: {max: 1, on_exit_codes: [1], never_on_exit_codes: 42}",
    ]));
}
