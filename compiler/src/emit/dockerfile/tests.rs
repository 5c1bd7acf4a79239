//! A third-party parser must read the output back as the same instructions.

use parse_dockerfile as read;
use proptest::prelude::*;

use super::*;

fn dockerfile(kinds: impl IntoIterator<Item = Kind>) -> Dockerfile {
    let mut file = Dockerfile::default();
    for kind in kinds {
        file.push(kind);
    }
    file
}

fn from(image: &str) -> Kind {
    Kind::From { platform: None, image: image.into(), alias: None }
}

fn run(script: &str) -> Kind {
    Kind::Run { mounts: vec![], command: Command::Script(script.into()) }
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|&s| s.to_owned()).collect()
}

fn sample() -> Dockerfile {
    let mut file =
        Dockerfile { head: strings(&["Made by jobc.", "", "docker build ."]), instructions: vec![] };
    file.push(Kind::From {
        platform: Some("linux/amd64".into()),
        image: "debian:12".into(),
        alias: Some("base".into()),
    });
    file.push(Kind::Arg { name: "A".into(), default: Some("1 $x \"y\"".into()) });
    file.push(Kind::Arg { name: "B".into(), default: None });
    file.push(Kind::Env(vec![
        ("PATH".into(), "/opt/bin:$PATH".into()),
        ("PRICE".into(), r"5 \$ C:\dir".into()),
    ]));
    file.push(Kind::Label(vec![
        ("a.b".into(), "costs $5".into()),
        ("two words".into(), "名前 \"quoted\"".into()),
    ]));
    file.push(Kind::Shell(strings(&["/bin/bash", "-euo", "pipefail", "-c"])));
    file.push_with(
        Kind::Run {
            mounts: vec![
                Mount::Cache { target: "/var/cache/apt".into(), locked: true },
                Mount::Secret { id: "pypi".into() },
            ],
            command: Command::Lines(strings(&["apt-get update", "&& apt-get install -y git"])),
        },
        ["Packages.", "hadolint ignore=DL3008"],
    );
    file.push(run("pip install x\n"));
    file.push(Kind::Run {
        mounts: vec![Mount::Secret { id: "s".into() }],
        command: Command::Script("for i in 1 2; do\n  echo \"$i\" \\\n    EOF\ndone\nEOF\n".into()),
    });
    file.push(Kind::Run { mounts: vec![], command: Command::Exec(strings(&["a", "b \"c\""])) });
    file.push(Kind::Workdir("/work space".into()));
    file.push(Kind::Copy {
        from: None,
        chown: Some("1000:1000".into()),
        chmod: Some("0755".into()),
        sources: strings(&[".", "b c"]),
        to: "/w/".into(),
    });
    file.push(Kind::Copy {
        from: Some("busybox:1.36".into()),
        chown: None,
        chmod: None,
        sources: strings(&["/bin/$x"]),
        to: "/bin/".into(),
    });
    file.push(Kind::Expose(strings(&["8080", "53/udp"])));
    file.push(Kind::User("app".into()));
    file.push(Kind::Entrypoint(strings(&["tini", "--"])));
    file.push(Kind::Cmd(strings(&["sleep", "1"])));
    file
}

#[test]
fn layout() {
    insta::assert_snapshot!(sample().to_string());
}

#[test]
fn line_numbers_match_the_text() {
    let (text, lines) = sample().render();
    let keywords: Vec<&str> = lines
        .iter()
        .map(|&line| text.lines().nth(line as usize - 1).and_then(|l| l.split(' ').next()).unwrap())
        .collect();
    let expected =
        "FROM ARG ARG ENV LABEL SHELL RUN RUN RUN RUN WORKDIR COPY COPY EXPOSE USER ENTRYPOINT CMD";
    assert_eq!(keywords.join(" "), expected);
}

#[test]
fn a_sample_is_read_back_unchanged() {
    let text = sample().to_string();
    let parsed = read::parse(&text).unwrap();
    assert_eq!(parsed.instructions.len(), sample().instructions.len());
    let read::Instruction::Run(heredoc) = &parsed.instructions[8] else { panic!("not a RUN") };
    assert_eq!(heredoc.here_docs[0].value, "for i in 1 2; do\n  echo \"$i\" \\\n    EOF\ndone\nEOF\n");
    let read::Instruction::Copy(copy) = &parsed.instructions[11] else { panic!("not a COPY") };
    assert_eq!(copy.options.len(), 2);
    assert_eq!(copy.dest.value, "/w/");
}

#[test]
fn a_command_that_would_change_on_one_line_is_a_here_document() {
    for script in ["[\"a\"]", "--mount=x", "echo $(( 1 <<2 ))", "echo a \\", "# only this", "a\nb", ""] {
        let text = dockerfile([from("a"), run(script)]).to_string();
        assert!(text.contains("RUN <<EOF\n"), "{script:?} became {text:?}");
    }
    assert!(dockerfile([from("a"), run(" make install \n")]).to_string().ends_with("RUN make install\n"));
}

#[test]
fn comments_remain_comments() {
    let mut file = Dockerfile { head: vec!["x\nRUN evil".into()], instructions: vec![] };
    file.push_with(from("a"), ["b\r\nRUN evil"]);
    let text = file.to_string();
    assert_eq!(read::parse(&text).unwrap().instructions.len(), 1, "{text}");
}

proptest! {
    /// Any script is read back unchanged, from a line or a here-document.
    #[test]
    fn scripts_are_read_back(script in "[ -~\n\u{e9}\u{540d}]{0,60}") {
        let text = dockerfile([from("a"), run(&script), Kind::User("end".into())]).to_string();
        let parsed = read::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
        prop_assert_eq!(parsed.instructions.len(), 3, "{}", text);
        let read::Instruction::Run(found) = &parsed.instructions[1] else { return Err(TestCaseError::fail(text.clone())) };
        let back = match (&found.here_docs[..], &found.arguments) {
            ([document], _) => document.value.clone().into_owned(),
            (_, read::Command::Shell(line)) => line.value.to_owned(),
            (_, _) => return Err(TestCaseError::fail(text.clone())),
        };
        let kept = if found.here_docs.is_empty() { script.trim() } else { script.trim_end() };
        prop_assert_eq!(back.trim_end_matches('\n'), kept);
    }

    /// The number of paths is the same when read back, whatever they contain.
    #[test]
    fn paths_are_read_back(source in "[!-~ \u{540d}]{1,20}", to in "/[!-~ ]{0,20}") {
        let copy = Kind::Copy { from: None, chown: None, chmod: None, sources: vec![source], to };
        let text = dockerfile([from("a"), copy]).to_string();
        let parsed = read::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
        let read::Instruction::Copy(found) = &parsed.instructions[1] else { return Err(TestCaseError::fail(text.clone())) };
        prop_assert_eq!(found.src.len(), 1, "{}", text);
        prop_assert!(found.options.is_empty(), "{}", text);
    }

    /// Each value is one line that begins and ends with its quotes.
    #[test]
    fn values_are_read_back(value in "[ -~\u{540d}]{0,30}") {
        let text = dockerfile([
            from("a"),
            Kind::Label(vec![("k".into(), value.clone())]),
            Kind::Env(vec![("K".into(), value)]),
            Kind::User("end".into()),
        ]).to_string();
        let parsed = read::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
        prop_assert_eq!(parsed.instructions.len(), 4, "{}", text);
    }
}
