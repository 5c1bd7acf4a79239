//! Errors are reported at their places, all in one run.

use super::check;

#[test]
fn undefined_names() {
    insta::assert_snapshot!(check(
        "
version: 1
name: names
image: {from: a:1, secrets: [pip], python: {requirements: requirement.txt}, copy: [{from: ../x, to: /x}, {from: srcs, to: /y}]}
data: {set: {source: ./set, mount: /set}}
env: {JOBC_X: 1, TOKEN: \"${{ secrets.tokn }}\"}
secrets: {token: {env: TOKEN}}
roles:
  trainer:
    data: [sets]
    outputs: {logs: {mount: /x}}
    needs: [prepare, trainer]
    run: echo ${{ data.set.mount }} ${{ hosts.trainr[0] }} ${{ hosts.trainer[7] }} ${{ ports.http }} ${{ roles.trainer.gpus }}
    resources: {ports: {https: 443}}
    ready: {port: http}
    files: {/a: {from: missing.conf}, /b: {secret: nope}}
    image: {use: tols}
  client: {run: \"x ${{ hosts.trainer }} ${{ instance.index + 1 }} ${{ hosts.trainer.trainer }}\", needs: {trainr: ready}}
images: {tools: Tools:1}
distributed: {framework: torchrun, roles: [tranier]}
"
    ));
}

#[test]
fn cycles_are_printed() {
    insta::assert_snapshot!(check(
        "
version: 1
name: cycles
image: a:1
roles:
  a: {needs: [c], run: x}
  b: {needs: [a], run: x}
  c: {needs: {b: started}, run: x}
  d: {needs: [a], run: x}
  e: {needs: [f], run: x}
  f: {needs: [e], run: x}
"
    ));
}

#[test]
fn deadlocks() {
    insta::assert_snapshot!(
        [
            "
version: 1
name: by-way-of-others
image: a:1
roles:
  a: {run: x}
  between: {needs: [a], run: x}
  b: {needs: {between: started}, run: x, instances: 4, parallel: 2}
distributed: {framework: torchrun, roles: [a, b]}
",
            "
version: 1
name: gang
image: a:1
gang: required
roles:
  launcher: {needs: {worker: started}, run: mpirun x}
  worker: {instances: 2}
distributed: {framework: mpi, roles: [launcher, worker]}
",
        ]
        .map(check)
        .join("----\n")
    );
}

#[test]
fn mounts_and_sources() {
    insta::assert_snapshot!(check(
        "
version: 1
name: mounts
image: a:1
data:
  a: {source: \"http://x/y\", mount: /a}
  b: {source: ~/b, mount: /b/../c}
  c: {source: ./c, mount: /dev/shm}
  d: {mount: /, unpack: true}
  e: {source: \"filer:/x\", mount: /a/}
  f: {source: \"git+https://x/y\", ref: v1, mount: /etc/jobc/x, secret: none}
outputs:
  o: {source: \"https://x\", mount: /proc/x}
roles:
  r: {run: x}
"
    ));
}

#[test]
fn members_and_launchers() {
    insta::assert_snapshot!(
        [
            "
version: 1
name: parts
image: a:1
roles: {a: {run: x, instances: 2}, b: {run: x}, c: {run: x}}
distributed: {framework: tensorflow, roles: {a: chief, b: chief, c: launcher}, launch: first}
",
            "
version: 1
name: nobody
image: a:1
roles: {a: {run: x}}
distributed: {framework: tensorflow, roles: {a: ps}}
",
            "
version: 1
name: launch
image: a:1
roles: {a: {run: x}, b: {instances: 2, run: x, setup: z}, c: {args: [x]}}
distributed: {framework: mpi, roles: [a, b, c], launch: c}
",
            "
version: 1
name: launch
image: a:1
roles: {a: {run: x, instances: 2}}
distributed: {framework: mpi, roles: [a], launch: frist}
",
        ]
        .map(check)
        .join("----\n")
    );
}
