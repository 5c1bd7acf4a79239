//! Whole files: the parsed content, or the errors.

mod lints;
mod made_up;
mod reference;
mod releases;
mod show;

use super::*;
use show::show;

/// Prints files parsed for linux/amd64, with words expanded as if the base image set `BASE=base`.
fn check(texts: &[&str]) -> String {
    texts.iter().map(|text| show(text, &options(None)) + "\n").collect()
}

/// How the files are parsed.
fn options(target: Option<&str>) -> Options<'_> {
    Options { args: &[], target, platform: "linux/amd64", build_platform: "linux/amd64" }
}

#[test]
fn instructions_are_parsed() {
    insta::assert_snapshot!(check(&[
        "FROM a\nRUN echo $BASE \\\n  # not this\n  \"b c\"\nRUN [\"echo\", \"$BASE\"]\nrun x\n",
        "FROM a\nENV A=1 B=\"b $BASE\" C=c\\ d 'D'=$A\nENV E e  $BASE 'f'\nLABEL \"k.x\"=v l='$BASE' m=\"a\\\nb\"\n",
        "FROM a\nCMD [\"a\", \"b\"]\nCMD a b\nCMD\nENTRYPOINT []\nENTRYPOINT exec a --flag\nSHELL [\"/bin/bash\", \"-c\"]\n",
        "FROM a\nWORKDIR /w/$BASE\nUSER u:$BASE\nEXPOSE 80 81-82/udp $BASE\nVOLUME /v $BASE\nVOLUME [\"/a b\"]\nSTOPSIGNAL SIGINT\n",
        "FROM a\nHEALTHCHECK --interval=1m30s --timeout=500ms --retries=2 CMD curl x || exit 1\nHEALTHCHECK NONE\nHEALTHCHECK cmd [\"x\"]\n",
        "FROM a\nONBUILD COPY . /app\nONBUILD RUN make \\\n  all\nMAINTAINER me <me@x>\n",
        "FROM a\nCMD ['a']\nRUN [ -f x ] && y\n",
        "# escape=`\nFROM a\nRUN dir C:\\ `\n  b\nENV A=C:\\x`$BASE\n",
        "\u{feff}# syntax=docker/dockerfile:1.7-labs\r\nFROM a\r\nRUN b \\\r\n  c\r\n",
    ]));
}

#[test]
fn omitted_text() {
    insta::assert_snapshot!(check(&["FROM a\n...\nRUN b\n", "FROM a\n…\n", "FROM a\n[...]\n.\n"]));
}

#[test]
fn copies() {
    insta::assert_snapshot!(check(&[
        "FROM a\nCOPY a b*.txt /to/\nCOPY [\"a b\", \"/to\"]\nCOPY --chown=u:$BASE --chmod=0755 --link x y\n",
        "FROM a\nCOPY --exclude=*.o --exclude=t/** --parents src/./a /b/\nADD --unpack=false x.tar /\nADD x.tar.gz /\n",
        "FROM a AS one\nFROM b\nCOPY --from=one /x /y\nCOPY --from=0 /x /y\nCOPY --from=busybox:1 /x /y\nCOPY --from=ONE /x /y\n",
        "FROM a\nCOPY <<EOF /f\nhello $BASE\nEOF\n",
        "FROM a\nCOPY <<-'A' <<\"B\" <<C x /d/\n\t$BASE\n\tA\nb\nB\n\\$BASE 'c'\nC\n",
    ]));
}

#[test]
fn runs() {
    insta::assert_snapshot!(check(&[
        "FROM a\nRUN <<EOF\nset -e\necho $X\nEOF\n",
        "FROM a\nRUN <<-EOF\n\t#!/usr/bin/python3\n\tprint(1)\n\tEOF\n",
        "FROM a\nRUN cat <<A 3<<-B > /x && y\na\nA\n\tb\n\tB\nRUN echo \"<<EOF\" $((1<<3)) <<<x\n",
        "FROM a\nRUN --mount=type=cache,target=/root/.cache,id=pip,sharing=locked,mode=0700,uid=1 --network=none pip\n",
        "FROM a AS b\nFROM c\nRUN --mount=from=b,source=/x,target=/y --mount=type=bind,dst=z,rw --mount=type=tmpfs,target=/t,size=64m x\n",
        "FROM a\nARG U=7\nRUN --mount=type=cache,target=/c,uid=$U,sharing=${S:-locked},mode=${M:-700} --mount=type=tmpfs,target=/t,size=1.5g x\n",
        "FROM a\nRUN --mount='type=bind,\"source=a,b\",target=/x,\"dst=\"\"c\"' x\n",
        "FROM a\nRUN --mount=type=secret,id=k --mount=type=secret,src=n,env=N,required --mount=type=secret,target=/a/t,mode=0440 x\n",
        "FROM a\nARG D\nRUN --mount=\"type=cache,target=/$D x\" --security=sandbox x\n",
        "FROM a AS b\nFROM c\nWORKDIR /w\nRUN --mount=from=b,source=/x,rw --mount=type=tmpfs x\n",
        "FROM a\nONBUILD RUN <<EOF\nx\nEOF\n",
    ]));
}

#[test]
fn arguments() {
    let given = [("GIVEN".to_owned(), "given".to_owned())];
    let given = Options { args: &given, ..options(None) };
    let check = |texts: &[&str]| texts.iter().map(|text| show(text, &given) + "\n").collect::<String>();
    insta::assert_snapshot!(check(&[
        "ARG V=12\nARG I=debian:$V\nFROM $I AS x-${V}\n",
        "ARG V=12\nFROM debian:${V%?}\nARG V\nARG W=w$V GIVEN=d U\nENV X=$V-$W-$GIVEN-$U-$BASE\n",
        "FROM --platform=$BUILDPLATFORM a\nARG TARGETARCH TARGETVARIANT BUILDPLATFORM\nENV X=$TARGETARCH/$TARGETVARIANT $BUILDPLATFORM=y\n",
        "ARG GIVEN=not\nFROM a:$GIVEN\nENV X=$GIVEN\n",
        "FROM a\nENV A=env\nARG A=arg\nENV X=$A\nARG B=arg\nENV B=env\nENV Y=$B\n",
        "ARG GIVEN\nFROM a\nENV A=1\nENV A=2 B=$A\n",
        "ARG E=\nFROM a${E:-b}\n",
    ]));
}

#[test]
fn stages_that_the_target_needs() {
    let text = "FROM a AS one\nRUN 1\nFROM b AS two\nCOPY --from=one x y\nRUN --security=insecure 2\nFROM one AS three\nRUN 3\nFROM scratch\n\
                COPY --from=three x y\nRUN --mount=from=0,target=/m 4\n";
    let mut all = show(text, &options(None));
    for target in ["one", "TWO", "2", "three", "nowhere", "7"] {
        all += &format!("\n--target {target}\n{}", show(text, &options(Some(target))));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn invalid_files_are_rejected() {
    insta::assert_snapshot!(check(&[
        "",
        "# only\n",
        "ARG A\n",
        "RUN x\nFROM a\n",
        "FROM a\nRUNN x\nCOPY x\nENV\nWORKDIR\nlable x=y\nFRMO a\nCM d\nINSTALL z\n",
        "FROM\nFROM a b\nFROM a AS\nFROM a AS 1x\nFROM --platfrom=x a\nFROM Debian\nFROM ${X}\nFROM '\n",
        "FROM a\nRUN\nRUN []\nRUN [1]\nRUN --mont=x y\nRUN --network=all x\nCMD [1]\nSHELL /bin/sh\n",
        "FROM a\nRUN --mount x\nRUN --mount=type=cash,target=/x y\nRUN --mount=type=cache, target=/x y\nRUN --mount=type=bind,id=x,target=/y z\n",
        "FROM a\nRUN --mount=type=ssh y\nRUN --mount=type=cache,target=/x,sharing=some,mode=9 y\nRUN --mount=type=cache,target=/x,mode=9 y\nRUN --mount=type=tmpfs,target=/x,size=much y\n",
        "FROM a\nRUN --mount=type=secret,id=a,source=b x\nRUN --mount=type=secret x\nRUN --mount=from=$X,target=/y x\nRUN --mount=type=cache,target=/x,ro=maybe y\n",
        "FROM a\nRUN --security=insecure x\nRUN --device=gpu x\nADD https://x/y.tar /\nADD --checksum=sha256:0 http://x/y /\nADD git@x:y.git /\nADD https://x/y.git#main /\n",
        "FROM a AS one\nCOPY --from=one x y\nCOPY --from=two x y\nCOPY --from=1 x y\nCOPY --from=9 x y\nCOPY --from=A:b:c x y\nFROM b AS two\n",
        "FROM a\nCOPY ../x /\nCOPY a/../../x /\nCOPY a b c\nCOPY --chmod x y\nCOPY --chmod=u+q x y\nCOPY --chmod=0o755 x y\nCOPY --chown=a --chown=b x y\nCOPY --link=perhaps x y\nCOPY --keep-git-dir x y\nCOPY a <<EOF\nx\nEOF\n",
        "FROM a\nCOPY <<EOF /x\nnever ends\n",
        "FROM a\nENV A=1 B\nENV =1\nENV A\nLABEL a=b c\nARG =x\n",
        "FROM a\nEXPOSE 70000 x 80/sctp 81/icmp 9-8\nSTOPSIGNAL SIGNOTHING\nVOLUME [\"\"]\nUSER --x\n",
        "FROM a\nHEALTHCHECK\nHEALTHCHECK x\nHEALTHCHECK CMD\nHEALTHCHECK NONE x\nHEALTHCHECK --interval=5 CMD x\nHEALTHCHECK --interval=1us CMD x\nHEALTHCHECK --retries=x CMD x\nHEALTHCHECK --every=1s CMD x\n",
        "FROM a\nONBUILD\nONBUILD FROM x\nONBUILD ONBUILD RUN x\nONBUILD RUNN x\n",
        "# escape=x\n# syntax=ghcr.io/other/frontend\nFROM a\n",
        "FROM b AS c\nFROM a AS c\nRUN x \\\n\n  y\nFROM d\nFROM c\n",
    ]));
}

#[test]
fn invalid_utf_8() {
    for (bytes, span, message) in [
        (&b"FROM a\nRUN \xff\xfe"[..], 11..12, "this is not UTF-8"),
        (&b"FROM a\nRUN \xc3"[..], 11..12, "this is not UTF-8"),
        (&b"FROM a\nRUN \0"[..], 11..12, "there is a NUL byte"),
    ] {
        let Refusals(found) = read(bytes, &options(None)).unwrap_err();
        assert_eq!((found[0].span.clone(), found[0].message.as_str()), (span, message));
    }
}

/// Words are expanded with what was set before their line; errors of expansion have a place.
#[test]
fn errors_of_expansion() {
    let text = "FROM a\nWORKDIR /${X:?must be set}\nCOPY --chmod=u+q$MODE \"a b\" /\n";
    let build = read(text.as_bytes(), &options(None)).unwrap();
    let variables = Variables::new(&build, indexmap::IndexMap::new());
    let [Instruction { kind: Kind::Workdir(word), .. }, Instruction { kind: Kind::Copy(copy), .. }] =
        build.stages[0].instructions.as_slice()
    else {
        panic!("{build:?}")
    };
    let refused = |refusal: Refusal| (text[refusal.span].to_owned(), refusal.message);
    assert_eq!(
        refused(variables.expand(word).unwrap_err()),
        ("/${X:?must be set}".to_owned(), "`X`: must be set".to_owned())
    );
    let mode = variables.mode(copy.chmod.as_ref().unwrap()).unwrap_err();
    assert_eq!(refused(mode), ("u+q$MODE".to_owned(), "invalid mode `--chmod=u+q`".to_owned()));
    let Source::Path(path) = &copy.sources[0] else { panic!("{copy:?}") };
    assert_eq!(
        refused(variables.expand(path).unwrap_err()),
        ("\"a".to_owned(), "a double quote is not closed".to_owned())
    );
}

#[test]
fn triggers_of_a_base_are_parsed_for_the_stage_based_on_it() {
    let build = read(b"FROM a AS one\nFROM b\nCOPY --from=one x y\n", &options(None)).unwrap();
    let read = |text: &str| trigger(text, &build, 1);
    let copied = read("COPY --from=one /x /y").unwrap();
    assert_eq!((copied.sources(), copied.span.clone()), (vec![&ImageOrStage::Stage(0)], 14..20));
    let heredoc = read("RUN cat <<A\nx\nA").unwrap();
    assert_eq!(heredoc.text, "RUN cat <<A");
    let wrong = read("RUNN x").unwrap_err();
    assert_eq!(wrong.message, "the base image has `ONBUILD RUNN x`: unknown instruction `RUNN`");
    assert!(read("RUN a\nRUN b").is_err() && read("").is_err() && read("ADD ftp://x /").is_err());
}

#[test]
fn a_command_sees_proxies_then_arguments_then_the_environment() {
    let args = [("HTTP_PROXY".to_owned(), "p".to_owned()), ("A".to_owned(), "given".to_owned())];
    let text = "FROM a\nARG A=1 B=2 C\nENV B=env\n";
    let build = read(text.as_bytes(), &Options { args: &args, ..options(None) }).unwrap();
    let mut variables = Variables::new(&build, [("PATH".to_owned(), "/bin".to_owned())].into());
    for instruction in &build.stages[0].instructions {
        match &instruction.kind {
            Kind::Arg(args) => variables.declare(args).unwrap(),
            Kind::Env(pairs) => {
                assert_eq!(variables.set(pairs).unwrap(), [("B".to_owned(), "env".to_owned())]);
            }
            other => panic!("{other:?}"),
        }
    }
    let all: Vec<String> =
        variables.of_command().iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(all, ["HTTP_PROXY=p", "A=given", "B=env", "PATH=/bin"]);
    assert_eq!(variables.env().keys().collect::<Vec<_>>(), ["PATH", "B"]);
    assert_eq!(build.remarks, []);
}
