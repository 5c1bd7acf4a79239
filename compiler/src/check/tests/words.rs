//! How scripts are split into programs.

use crate::check::command::split;

/// The programs of a script, words between `|`, one a line, with `&` after background programs.
fn check(script: &str, expected: &[&str]) {
    let found: Vec<String> = split(script)
        .into_iter()
        .map(|command| command.words.join("|") + if command.background { " &" } else { "" })
        .collect();
    assert_eq!(found, expected, "{script}");
}

#[test]
fn a_script_is_split_as_a_shell_does() {
    check("torchrun train.py", &["torchrun|train.py"]);
    check("a 'b c' \"d \\\"e\\\"\" f\\ g", &["a|b c|d \"e\"|f g"]);
    check("torchrun \\\n  --nnodes=4 \\\n  train.py\n", &["torchrun|--nnodes=4|train.py"]);
    check("a && b || c; d | e\nf", &["a", "b", "c", "d", "e", "f"]);
    check("serve &\nwait", &["serve &", "wait"]);
    check("serve > log 2>&1 &", &["serve|>|log|2>1 &"]);
    check("# torchrun a\na # b\n", &["a"]);
    check("if true; then exec env A=1 B=2 torchrun x; fi", &["true", "torchrun|x"]);
    check("PET_NNODES=2 torchrun x", &["torchrun|x"]);
    check("cat <<EOF > f\ntorchrun &\nEOF\nb", &["cat|>|f", "b"]);
    check("cat <<-'EOF'\n\tsudo x\n\tEOF\nb", &["cat", "b"]);
    check("cat <<< text", &["cat|text"]);
    check("(cd x && make)", &["cd|x", "make"]);
    check("echo 訓練 &", &["echo|訓練 &"]);
    check("", &[]);
    check("'", &[""]);
    check("a\\", &["a"]);
    check("cat <<EOF\nnever closed", &["cat"]);
}

#[test]
fn programs_are_known_by_their_words() {
    let first = |script: &str| split(script).remove(0);
    for (script, is) in [
        ("torchrun x", true),
        ("/opt/conda/bin/torchrun x", true),
        ("python -m torch.distributed.run x", true),
        ("python3.11 -u -m torch.distributed.launch x", true),
        ("python -m torch.utils.collect_env", false),
        ("echo torchrun", false),
        ("pip install torchrun", false),
    ] {
        assert_eq!(first(script).is_torchrun(), is, "{script}");
    }
    let nproc = |script: &str| first(script).flag("--nproc-per-node").map(str::to_owned);
    assert_eq!(nproc("torchrun --nproc_per_node=8 x").as_deref(), Some("8"));
    assert_eq!(nproc("torchrun --nproc-per-node 8 x").as_deref(), Some("8"));
    assert_eq!(nproc("torchrun --nproc-per-node"), None);
}

#[test]
fn programs_that_start_another_are_looked_through() {
    let through = |script: &str, expected: &str| check(script, &[expected]);
    through("uv run --with rich -p 3.12 -- torchrun x", "torchrun|x");
    through("numactl -N 0 --membind=0 torchrun x", "torchrun|x");
    through("timeout -k 10 --signal=INT 1h torchrun x", "torchrun|x");
    through("nsys profile -o out -t cuda --stats=true torchrun x", "torchrun|x");
    through("srun -n 4 --gres=gpu:8 torchrun x", "torchrun|x");
    through("conda run -n torch --no-capture-output torchrun x", "torchrun|x");
    through("env -i -u A B=1 torchrun x", "torchrun|x");
    through("taskset -c 0-7 nice -n 5 torchrun x", "torchrun|x");
    through("A=1 bash -euo pipefail -c 'exec torchrun \"a b\"'", "torchrun|a b");
    through("eval torchrun x", "torchrun|x");
    through("uv pip install x", "uv|pip|install|x");
    through("timeout 5", "timeout|5");
    through("env", "env");
    check("L=\"torchrun --nnodes 2\"; $L 'a b'", &["torchrun|--nnodes|2|a b"]);
    check("export L=torchrun\n${L} x", &["export|L=torchrun", "torchrun|x"]);
    check("CMD=(torchrun --nnodes 2)\n\"${CMD[@]}\" x", &["torchrun|--nnodes|2", "${CMD[@]}|x"]);
    check("$L x; L=$L", &["$L|x"]);
    check("L='$L x'; $L", &["$L"]);
}

#[test]
fn what_a_command_is_surrounded_by_is_kept() {
    let first = |script: &str| split(script).remove(0);
    assert_eq!(first("A=1 B='2 3' torchrun x").env, [("A".into(), "1".into()), ("B".into(), "2 3".into())]);
    for (script, piped) in [("a | b", true), ("a |& b", true), ("a || b", false), ("a; b | c", false)] {
        assert_eq!(first(script).piped, piped, "{script}");
    }
    assert!(first("sh -c 'python x' | tee log").piped);
    assert!(first("timeout 1h sleep infinity").timed);
    assert!(!first("sleep infinity").timed);
}
