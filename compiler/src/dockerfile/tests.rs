//! Dockerfiles, with their findings and facts.

use std::fmt::Write as _;

use camino::Utf8Path;
use indexmap::IndexMap;
use jobc_schema::Pointer;

use super::*;
use crate::diagnostic::{Diagnostic, Location};
use crate::files::MemoryFiles;
use crate::lock::Lock;
use crate::source::{Source, Sources};

fn inspect_with(text: &str, target: Option<&str>, args: &[(&str, &str)]) -> (Option<Facts>, String) {
    let mut sources = Sources::new();
    let source = sources.add(Source::new("Dockerfile", text));
    let args: IndexMap<String, String> = args.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect();
    let files = MemoryFiles::default().with("app/src/main.py", "").with("app/a b.txt", "");
    let lock = Lock::default();
    let request = Request {
        source,
        bytes: text.as_bytes(),
        context: Utf8Path::new("./app"),
        target,
        args: &args,
        declared_at: &Pointer::new("/image"),
        files: &files,
        lock: &lock,
    };
    let mut sink = Sink::new();
    let facts = inspect(&request, &mut sink);
    let mut shown = String::new();
    for found in sink.diagnostics() {
        let place = match &found.labels[0].place {
            Location::Span(span) => {
                let at = sources.get(source).line_column(span.start);
                format!("{}:{} {:?}", at.line, at.column, sources.slice(*span))
            }
            Location::Path { pointer, .. }
            | Location::Inside { pointer, .. }
            | Location::Entry { pointer, .. }
            | Location::Moved { to: pointer, .. }
            | Location::Shaped { pointer, .. }
            | Location::Words { pointer, .. } => pointer.to_string(),
        };
        let _ = writeln!(shown, "{:?} {} {place}\n  {}", found.severity, found.code, found.message);
        for note in &found.notes {
            let _ = writeln!(shown, "  = {note}");
        }
    }
    (facts, shown)
}

/// The file, its findings and its facts.
fn check(text: &str, target: Option<&str>, args: &[(&str, &str)]) -> String {
    let (facts, shown) = inspect_with(text, target, args);
    let facts = facts.map_or("nothing\n".to_owned(), |facts| format!("{facts:#?}\n"));
    format!("{text}---- target {target:?}, args {args:?}\n{shown}---- {facts}")
}

#[test]
fn facts_of_a_file() {
    insta::assert_snapshot!(check(
        "# syntax=docker/dockerfile:1\n\
         ARG CUDA=12.4.1\n\
         ARG OS=ubuntu22.04\n\
         FROM nvidia/cuda:${CUDA}-devel-$OS AS build\n\
         ARG CUDA\n\
         ENV CUDA_VERSION=${CUDA} PATH=/opt/bin:$PATH\n\
         WORKDIR /src\n\
         CMD [\"make\", \"all\"]\n\
         FROM build AS runtime\n\
         ARG GREETING=\"hello world\"\n\
         env nvidia_old style value\n\
         ENV MESSAGE=\"$GREETING \\$5\" \\\n    SECOND=${CUDA_VERSION%.*}\n\
         WORKDIR sub\n\
         EXPOSE 8080 53/udp\n\
         USER app:app\n\
         ENTRYPOINT exec python \"main.py\"\n\
         FROM runtime AS last\n\
         CMD [\"--help\"]\n",
        None,
        &[("OS", "ubuntu24.04")],
    ));
}

#[test]
fn facts_of_the_requested_stage() {
    let text = "FROM debian:12 AS first\nENV A=1\nFROM alpine:3.20\nENV B=2\nFROM first AS Third\n";
    let base = |target| inspect_with(text, target, &[]).0.unwrap().base.unwrap();
    assert_eq!(base(None), "debian:12");
    assert_eq!(base(Some("first")), "debian:12");
    assert_eq!(base(Some("1")), "alpine:3.20");
    assert_eq!(base(Some("third")), "debian:12");
    assert_eq!(inspect_with(text, Some("3"), &[]).0, None);
    insta::assert_snapshot!(check(text, Some("frist"), &[]));
}

#[test]
fn files_that_cannot_be_read() {
    let cases = [
        "FROM a:1\nRUNN pip install x\n",
        "RUN x\n",
        "",
        "# only a comment\n",
        "ARG A\n",
        "FROM a:1\nRUN pip install \\\n  numpy\n  scipy\n",
        "FROM a:1\nCOPY x\n",
        "FROM a:1 AS x\nFROM b:1 AS x\n",
        "FROM a:1\nRUN <<EOF\nnever ends\n",
        "FROM a:1\nSHELL bash\n",
        "# escape=x\nFROM a:1\n",
        "FROM\n",
        "version: 1\nname: not a Dockerfile\n",
    ];
    let shown: Vec<String> = cases.into_iter().map(|text| check(text, None, &[])).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn mistakes_in_a_file() {
    insta::assert_snapshot!(check(
        "ARG TAG\n\
         ARG GLOBAL_TOKEN=abc\n\
         ARG BASE=python\n\
         FROM --platform=$BUILDPLATFORM golang AS build\n\
         COPY --from=later /x /x\n\
         COPY --from=0 /x /x\n\
         COPY --from=biuld /x /x\n\
         FROM $BASE:latest\n\
         COPY --from=biuld /x /x\n\
         COPY --from=busybox:1.36 /x /x\n\
         COPY --from=$BASE /x /x\n\
         RUN --mount=type=bind,from=nope,target=/y true\n\
         RUN [\"pip install x\"]\n\
         COPY src srcs *.txt \"a b.txt\" /app/\n\
         COPY [\"a b.txt\", \"c d.txt\", \"/app/\"]\n\
         COPY /src/main.py ../up.txt src/../../x /app/\n\
         COPY <<EOF /etc/x\nhello\nEOF\n\
         ADD https://example.com/x.bin https://example.com/r.git /x/\n\
         ADD --checksum=sha256:00 https://example.com/x.bin /x/\n\
         ENV API_TOKEN=abc TOKEN_FILE=/run/x MY_KEY=$OTHER EMPTY_PASSWORD= SSH_PUBLIC_KEY=abc MONKEY=1\n\
         ARG DB_PASSWORD=hunter2\n\
         ARG DB_SECRET\n\
         FROM x/$TAG AS later\n\
         FROM x/$TAGG\n\
         FROM scratch\n\
         FROM a@sha256:00\n",
        None,
        &[("TAGS", "1"), ("http_proxy", "http://proxy"), ("DB_SECRET", "x")],
    ));
}

#[test]
fn a_file_that_builders_accept_has_no_findings() {
    let text = "\u{feff}# escape=`\r\n\
                FROM a:1 AS x\r\n\
                RUN echo one `\r\n  # a comment inside\r\n  && echo two\r\n\
                RUN python3 <<EOF\r\nimport os\r\nFROMM nowhere\r\nEOF\r\n\
                RUN --mount=type=cache,target=/a --mount=type=secret,id=b <<A cat - <<B\r\n1\r\nA\r\n2 $X\r\nB\r\n\
                HEALTHCHECK --interval=5s CMD curl localhost\r\n\
                ONBUILD RUN make\r\n\
                STOPSIGNAL SIGTERM\r\n\
                VOLUME [\"/data\"]\r\n\
                LABEL a=b \"c d\"='e'\r\n\
                COPY --link --chmod=755 src /src\r\n\
                USER last";
    let (facts, shown) = inspect_with(text, None, &[]);
    assert_eq!(shown, "");
    let facts = facts.unwrap();
    assert_eq!((facts.base.as_deref(), facts.user.as_deref()), (Some("a:1"), Some("last")));
}

#[test]
fn places_are_correct_after_a_byte_order_mark() {
    let (_, shown) = inspect_with("\u{feff}FROM python\n", None, &[]);
    assert!(shown.contains(r#"1:7 "python""#), "{shown}");
}

proptest::proptest! {
    /// No text panics the parser, and every place is within the text.
    #[test]
    fn any_text_is_parsed_without_a_panic(text in r#"(FROM a|RUN |COPY |ENV |ARG |<<EOF|EOF|[ \\\n"'$\{\}:=<\[\]a-c名\t-]){0,40}"#) {
        let _ = inspect_with(&text, Some("x"), &[("A", "1")]);
    }
}

/// Codes that only the compiler reports, because it knows the context and the job.
const LINTS: &[&str] = &["J0606", "J0607", "J0609", "J0611"];

/// Codes and lines of the parser's findings for a builder, and of those of `inspect` for the same file.
#[test]
fn compiler_and_builder_report_the_same_findings() {
    let cases = [
        "FROM a:1\nRUN --network=foo x\n",
        "FROM a:1\nHEALTHCHECK --interval=banana CMD x\n",
        "FROM a:1\nSTOPSIGNAL FOO\n",
        "FROM a:1\nEXPOSE x/y\n",
        "FROM a:1\nENV X\n",
        "FROM a:1\nRUNN x\nEXPOSE 70000\nSTOPSIGNAL FOO\nENV =1\n",
        "FROM A:1\nCOPY --from=b//c:1 /x /y\nRUN --mount=from=x@sha256:0,target=/m y\n",
        "FROM a:1\nADD https://example.com/x /\nRUN --mount=type=ssh x\n",
        "FROM x/$TAG\nFROM a:1$B\nCOPY ../x /\nMAINTAINER me\nRUN x \\\n\n  y\n",
        "FROM a:1\nFROM b:1 AS c\nFROM c AS c\nCOPY --from=3 x y\nCOPY --from=later x y\nFROM d:1 AS later\n",
        "# escape=x\n# syntax=ghcr.io/other/frontend\nFROM a:1\nRUN <<EOF\nnever ends\n",
        "",
        "ARG A\n",
    ];
    for text in cases {
        let args = [("GIVEN".to_owned(), "1".to_owned())];
        let platform = "linux/arm64";
        let options = Options { args: &args, target: None, platform, build_platform: platform };
        let read = jobc_dockerfile::inspect(text.as_bytes(), &options);
        let mut sources = Sources::new();
        let source = sources.add(Source::new("Dockerfile", text));
        let line = |found: &Diagnostic| {
            let span = found.labels.first().and_then(|label| label.place.span());
            span.map_or(1, |span| sources.get(source).line_column(span.start).line)
        };
        let mut built: Vec<String> = read
            .refusals
            .iter()
            .chain(&read.remarks)
            .map(|refusal| diagnostic(refusal, Severity::Error, source, text.as_bytes()))
            .map(|found| format!("{} {} {}", line(&found), found.code, found.message))
            .collect();
        let (_, shown) = inspect_with(text, None, &[("GIVEN", "1")]);
        let mut checked = Vec::new();
        let mut lines = shown.lines().filter(|line| !line.starts_with("  = "));
        while let (Some(head), Some(message)) = (lines.next(), lines.next()) {
            let mut words = head.split_whitespace().skip(1);
            let (code, place) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let line = place.split_once(':').map_or("1", |(line, _)| line);
            if !LINTS.contains(&code) {
                checked.push(format!("{line} {code} {}", message.trim()));
            }
        }
        built.sort();
        checked.sort();
        assert_eq!(checked, built, "{text}");
        assert!(!built.is_empty(), "{text}");
    }
}
