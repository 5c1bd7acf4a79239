//! `--format`: what people and programs get for the same mistakes.

use serde_json::Value;
use snapbox::assert_data_eq;
use snapbox::str;

use crate::directory::{Directory, HELLO};

/// Two mistakes next to text that some formats must escape.
fn wrong() -> Directory {
    let job = HELLO.replace("cpu: 1,", "cpus: 1,").replace("64MiB", "64").replace("echo", "echo 世界 100%");
    Directory::with_job(&job)
}

#[test]
fn text_format_shows_excerpts() {
    let run = wrong().jobc(&["check"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r"
error[J0101]: unknown key `cpus` in `resources` of role `main`; write `cpu`
 --> job.yaml:8:17
  |
8 |     resources: {cpus: 1, memory: 64, gpu: 0}
  |                 ^^^^
  |
help: write `cpu`
  |
8 -     resources: {cpus: 1, memory: 64, gpu: 0}
8 +     resources: {cpu: 1, memory: 64, gpu: 0}
  |

error[J0105]: `memory`: `64` has no unit
 --> job.yaml:8:34
  |
8 |     resources: {cpus: 1, memory: 64, gpu: 0}
  |                                  ^^
  |
  = note: write `64GiB` or `64MiB`
help: write `64GiB`
  |
8 |     resources: {cpus: 1, memory: 64GiB, gpu: 0}
  |                                    +++
help: write `64MiB`
  |
8 |     resources: {cpus: 1, memory: 64MiB, gpu: 0}
  |                                    +++

for more about an error, run `jobc explain J0101`
2 errors

"]]
    );
    assert_eq!(run.out, "");
}

#[test]
fn short_format_prints_one_line_per_finding() {
    let run = wrong().jobc(&["check", "--format", "short"]).exits(1);
    assert_data_eq!(
        run.err,
        str![[r"
job.yaml:8:17: error[J0101]: unknown key `cpus` in `resources` of role `main`; write `cpu`
job.yaml:8:34: error[J0105]: `memory`: `64` has no unit

"]]
    );
    assert_eq!(run.out, "");
}

#[test]
fn json_format_is_machine_readable() {
    let run = wrong().jobc(&["check", "--format", "json"]).exits(1);
    assert_eq!(run.err, "", "programs read standard output alone");
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_data_eq!(
        serde_json::to_string_pretty(&report).unwrap(),
        str![[r#"
{
  "version": 1,
  "errors": 2,
  "warnings": 0,
  "diagnostics": [
    {
      "code": "J0101",
      "severity": "error",
      "message": "unknown key `cpus` in `resources` of role `main`; write `cpu`",
      "file": "job.yaml",
      "start": {
        "line": 8,
        "column": 17,
        "offset": 145
      },
      "end": {
        "line": 8,
        "column": 21,
        "offset": 149
      },
      "labels": [
        {
          "file": "job.yaml",
          "start": {
            "line": 8,
            "column": 17,
            "offset": 145
          },
          "end": {
            "line": 8,
            "column": 21,
            "offset": 149
          },
          "text": ""
        }
      ],
      "notes": [],
      "fixes": [
        {
          "message": "write `cpu`",
          "safety": "safe",
          "edits": [
            {
              "file": "job.yaml",
              "start": {
                "line": 8,
                "column": 17,
                "offset": 145
              },
              "end": {
                "line": 8,
                "column": 21,
                "offset": 149
              },
              "text": "cpu"
            }
          ]
        }
      ]
    },
    {
      "code": "J0105",
      "severity": "error",
      "message": "`memory`: `64` has no unit",
      "file": "job.yaml",
      "start": {
        "line": 8,
        "column": 34,
        "offset": 162
      },
      "end": {
        "line": 8,
        "column": 36,
        "offset": 164
      },
      "labels": [
        {
          "file": "job.yaml",
          "start": {
            "line": 8,
            "column": 34,
            "offset": 162
          },
          "end": {
            "line": 8,
            "column": 36,
            "offset": 164
          },
          "text": ""
        }
      ],
      "notes": [
        "write `64GiB` or `64MiB`"
      ],
      "fixes": [
        {
          "message": "write `64GiB`",
          "safety": "unsafe",
          "edits": [
            {
              "file": "job.yaml",
              "start": {
                "line": 8,
                "column": 34,
                "offset": 162
              },
              "end": {
                "line": 8,
                "column": 36,
                "offset": 164
              },
              "text": "64GiB"
            }
          ]
        },
        {
          "message": "write `64MiB`",
          "safety": "unsafe",
          "edits": [
            {
              "file": "job.yaml",
              "start": {
                "line": 8,
                "column": 34,
                "offset": 162
              },
              "end": {
                "line": 8,
                "column": 36,
                "offset": 164
              },
              "text": "64MiB"
            }
          ]
        }
      ]
    }
  ]
}
"#]]
    );
    let fine = Directory::with_job(HELLO).jobc(&["check", "--format", "json"]).exits(0);
    serde_json::from_str::<Value>(&fine.out).unwrap();
}

#[test]
fn github_format_prints_one_command_per_finding() {
    let run = wrong().jobc(&["check", "--format", "github"]).exits(1);
    assert_data_eq!(
        run.out.clone(),
        str![[r"
::error file=job.yaml,line=8,endLine=8,col=17,endColumn=21,title=J0101::unknown key `cpus` in `resources` of role `main`; write `cpu`%0Ahelp: write `cpu`
::error file=job.yaml,line=8,endLine=8,col=34,endColumn=36,title=J0105::`memory`: `64` has no unit%0Anote: write `64GiB` or `64MiB`%0Ahelp: write `64GiB`%0Ahelp: write `64MiB`

"]]
    );
    for line in run.out.lines() {
        assert!(
            line.starts_with("::error ") || line.starts_with("::warning ") || line.starts_with("::notice "),
            "{line}"
        );
    }
}

/// The members that SARIF 2.1.0 requires and code hosts look at.
#[test]
fn sarif_is_complete() {
    let run = wrong().jobc(&["check", "--format", "sarif"]).exits(1);
    assert_eq!(run.err, "");
    let log: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().contains("sarif"));
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "jobc");
    assert!(driver["informationUri"].is_string() || driver["version"].is_string());
    let rules = driver["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 2, "{results:?}");
    for result in results {
        let id = result["ruleId"].as_str().unwrap();
        let rule = match result["ruleIndex"].as_u64() {
            Some(index) => &rules[usize::try_from(index).unwrap()],
            None => rules.iter().find(|rule| rule["id"] == id).unwrap(),
        };
        assert_eq!(rule["id"], id);
        assert!(!rule["shortDescription"]["text"].as_str().unwrap().is_empty());
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "job.yaml");
        let region = &place["region"];
        assert!(region["startLine"].as_u64().unwrap() >= 1 && region["startColumn"].as_u64().unwrap() >= 1);
        assert!(region["endLine"].as_u64().unwrap_or(u64::MAX) >= region["startLine"].as_u64().unwrap());
    }
}

/// `uri` in SARIF is a URI reference: blanks and other letters are escaped.
#[test]
fn sarif_paths_are_uris() {
    let directory = Directory::new();
    directory.write("训练 任务/job.yaml", "version: 2\n");
    let run = directory.jobc(&["check", "训练 任务/job.yaml", "--format", "sarif"]).exits(1);
    let log: Value = serde_json::from_str(&run.out).unwrap();
    let uri = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    let uri = uri.as_str().unwrap();
    assert!(uri.is_ascii() && !uri.contains(' ') && uri.ends_with("/job.yaml"), "{uri}");
}

/// A build says the same as a check, and programs still find nothing else on standard output.
#[test]
fn build_and_check_report_the_same_findings() {
    let directory = wrong();
    for format in ["text", "short", "json", "sarif", "github"] {
        let check = directory.jobc(&["check", "--format", format]).exits(1);
        let build = directory.jobc(&["build", "--format", format]).exits(1);
        assert_eq!((check.out, check.err), (build.out, build.err), "{format}");
    }
}
