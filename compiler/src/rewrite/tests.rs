//! What a file is rewritten to.

use crate::diagnostic::Sink;
use crate::files::MemoryFiles;
use crate::import::Selection;
use crate::source::{Source, Sources};

use super::{RewriteResult, rewrite};

fn run(name: &str, text: &str) -> RewriteResult {
    let mut sources = Sources::new();
    let id = sources.add(Source::new(name, text));
    let mut sink = Sink::new();
    rewrite(&mut sources, id, &MemoryFiles::default(), &Selection::default(), &mut sink).0
}

#[test]
fn a_job_with_its_comments() {
    let text = r#"# The benchmark of the group.
# Runs on any node.
protocolVersion: 2
name: Bench_mark
type: job
prerequisites:
  - {name: tools, type: dockerimage, uri: "python:3.12-slim"}
parameters:
  # of images
  batch: 32 # fits 16 GB
  "odd#key": "a # b" # not a comment inside
taskRoles:
  # the only one
  main:
    dockerImage: tools
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0} # small
    commands:
      # first
      - cd /work
      - |
        # a comment of the shell's
        python bench.py --batch <% $parameters.batch %> # so
      # last
      - echo '#done'
extras: {gangAllocation: true}
"#;
    let RewriteResult::Job(job, _) = run("pai.yaml", text) else { panic!("no job") };
    insta::assert_snapshot!(format!("{text}----\n{job}"));
}

#[test]
fn a_job_in_json_with_its_comments() {
    let text = r#"{
  // who pays
  "jobName": "count", // words
  "image": "python:3.12-slim",
  "taskRoles": [{"cpuNumber": 1, "memoryMB": 1024, /* of two */ "command": "wget https://example.com//x\npython count.py"}]
}
"#;
    let RewriteResult::Job(job, _) = run("pai.json", text) else { panic!("no job") };
    insta::assert_snapshot!(format!("{text}----\n{job}"));
}

#[test]
fn no_comment_is_lost() {
    let text = r#"# 1 the head

protocolVersion: 2 # 2 behind a field that is gone
name: bench
type: job
# 3 above a list that is gone
prerequisites:
  # 4 in it
  - {name: tools, type: dockerimage, uri: "python:3.12-slim"} # 5 behind its item
taskRoles:
  main:
    dockerImage: tools # 6 behind a reference
    resourcePerInstance: # 7 behind a map
      cpu: 1
      # 8 above a number
      memoryMB: 1024
      gpu: 0
    commands: [python bench.py] # 9 behind a list
# 10 the end
"#;
    let RewriteResult::Job(job, _) = run("pai.yaml", text) else { panic!("no job") };
    for number in 1..=10 {
        assert!(job.contains(&format!("# {number} ")), "{number} is lost:\n{job}");
    }
    let text = r#"{
  /* 1 the
   * 2 head */
  "jobName": "count", /* 3 a name */ "image": "python:3.12-slim",
  "taskRoles": [{"cpuNumber": 1, "memoryMB": 1024, /* 4 of two */ "command": "python count.py"}]
  // 5 the end
}
"#;
    let RewriteResult::Job(job, _) = run("pai.json", text) else { panic!("no job") };
    for number in 1..=5 {
        assert!(job.contains(&format!("# {number} ")), "{number} is lost:\n{job}");
    }
}

#[test]
fn other_files_are_not_rewritten() {
    assert_eq!(run("job.yaml", "version: 1\nname: x\nroles: {a: {run: x}}\n"), RewriteResult::Own);
    assert_eq!(run("job.yaml", "protocolVersion: 2\nname: x\n"), RewriteResult::Refused);
    assert_eq!(run("job.yaml", "a: [\n"), RewriteResult::Refused);
}
