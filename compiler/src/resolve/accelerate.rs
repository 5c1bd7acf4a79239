//! `accelerate launch`, which reads flags and a file but no variables: its line is completed from the job.
//!
//! Flags take precedence over the file of `--config_file` (accelerate 16cb6eb8, `commands/launch.py`,
//! `_validate_launch_command`), so a file that was made for another number of machines does no harm. What the command says
//! itself stays as it is.

use jobc_schema::plan::{CommandPlan, DistributedPlan, MemberPlan, Piece, Text};

use super::rendezvous::{address, own_number, port};

/// How a script starts the launcher.
const STARTS: [&str; 3] = ["accelerate launch", "accelerate-launch", "accelerate.commands.launch"];

/// Flags that choose how processes are started; without one of them several machines with one GPU each would not meet.
const WAYS: [&str; 8] = [
    "config-file",
    "multi-gpu",
    "cpu",
    "tpu",
    "use-deepspeed",
    "use-fsdp",
    "use-megatron-lm",
    "use-parallelism-config",
];

/// The command of a member with the flags that it lacks.
pub(super) fn command(plan: &DistributedPlan, member: &MemberPlan, own: CommandPlan) -> CommandPlan {
    let flags = flags(plan, member);
    match own {
        CommandPlan::Script { shell, setup, script } => {
            CommandPlan::Script { shell, setup, script: in_script(&script, &flags) }
        }
        CommandPlan::Argv { argv, setup } => CommandPlan::Argv { argv: in_argv(argv, &flags), setup },
        other => other,
    }
}

/// The flags in the order in which they are written; those without a value are written alone.
fn flags(plan: &DistributedPlan, member: &MemberPlan) -> Vec<(&'static str, Option<Text>)> {
    let number = |number: u32| Some(Text::literal(number.to_string()));
    let mut list = vec![];
    if plan.world_size > 1 {
        list.push(("multi-gpu", None));
    }
    list.push(("num-machines", number(plan.instances)));
    list.push(("num-processes", number(plan.world_size)));
    let first = plan.members.iter().find(|member| member.first_rank == Some(0));
    if let (Some(first), Some(rank)) = (first, member.first_rank.filter(|_| plan.instances > 1)) {
        list.push(("machine-rank", Some(own_number(rank))));
        list.push(("main-process-ip", Some(address(first))));
        list.push(("main-process-port", Some(port(first))));
    }
    list
}

/// The flags that the rest of a command line, in words, does not have.
fn missing<'f>(
    words: &[&str],
    flags: &'f [(&'static str, Option<Text>)],
) -> impl Iterator<Item = (String, &'f Option<Text>)> {
    let written: Vec<String> = words
        .iter()
        .filter_map(|word| Some(word.strip_prefix("--")?.split('=').next()?.replace('_', "-")))
        .collect();
    let has = move |flag: &str| match flag {
        "multi-gpu" => WAYS.iter().any(|way| written.iter().any(|own| own == way)),
        _ => written.iter().any(|own| own == flag),
    };
    flags
        .iter()
        .filter(move |(flag, _)| !has(flag))
        .map(|(flag, value)| (format!("--{}", flag.replace('-', "_")), value))
}

fn in_argv(mut argv: Vec<Text>, flags: &[(&'static str, Option<Text>)]) -> Vec<Text> {
    let plain: Vec<String> = argv.iter().map(|word| word.render(|_| "$".to_owned())).collect();
    let words: Vec<&str> = plain.iter().map(String::as_str).collect();
    let ends = |word: &str, name: &str| word.rsplit('/').next() == Some(name);
    let after =
        words.iter().position(|word| STARTS[1..].iter().any(|start| ends(word, start))).or_else(|| {
            let pair = |pair: &[&str]| ends(pair[0], "accelerate") && pair[1] == "launch";
            Some(words.windows(2).position(pair)? + 1)
        });
    let Some(after) = after else { return argv };
    let added: Vec<Text> = missing(&words[after..], flags)
        .flat_map(|(flag, value)| [Some(Text::literal(flag)), value.clone()])
        .flatten()
        .collect();
    let rest = argv.split_off(after + 1);
    argv.extend(added.into_iter().chain(rest));
    argv
}

fn in_script(script: &Text, flags: &[(&'static str, Option<Text>)]) -> Text {
    // A placeholder is one byte, so that places in this text are those in the pieces.
    let plain = script.render(|_| "\u{1}".to_owned());
    let mut places: Vec<(usize, Text)> = starts(&plain).map(|at| (at, added(&plain[at..], flags))).collect();
    places.sort_by_key(|(at, _)| *at);
    let (mut out, mut from, mut places) = (Text::default(), 0, places.into_iter().peekable());
    for piece in script.pieces() {
        match piece {
            Piece::Reference(reference) => {
                out.push_reference(reference.clone());
                from += 1;
            }
            Piece::Literal(text) => {
                let mut rest = text.as_str();
                while let Some((at, more)) = places.next_if(|(at, _)| *at <= from + rest.len()) {
                    let (before, after) = rest.split_at(at - from);
                    out.push_str(before);
                    out.push_text(&more);
                    (from, rest) = (at, after);
                }
                out.push_str(rest);
                from += rest.len();
            }
        }
    }
    out
}

/// The bytes behind each start of the launcher, comments left out.
fn starts(plain: &str) -> impl Iterator<Item = usize> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    STARTS.iter().flat_map(move |start| plain.match_indices(start)).filter_map(move |(at, start)| {
        let (before, after) = (&plain[..at], &plain[at + start.len()..]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let is_start = !before.ends_with(is_word) && !after.starts_with(is_word) && !line.contains('#');
        is_start.then_some(at + start.len())
    })
}

/// The flags to add to a command, which begins with what follows the launcher.
fn added(rest: &str, flags: &[(&'static str, Option<Text>)]) -> Text {
    let joined = rest.replace("\\\n", " ");
    let line = joined.split(['\n', ';', '|', '&']).next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut text = Text::default();
    for (flag, value) in missing(&words, flags) {
        text.push_str(&format!(" {flag}"));
        if let Some(value) = value {
            text.push_str(" ");
            text.push_text(value);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use jobc_schema::plan::Reference;

    use super::*;

    fn flags() -> Vec<(&'static str, Option<Text>)> {
        let number = |text: &str| Some(Text::literal(text));
        let rank = Some(Text::reference(Reference::Index {}));
        vec![("multi-gpu", None), ("num-machines", number("2")), ("machine-rank", rank)]
    }

    #[test]
    fn a_line_gets_the_flags_that_it_lacks() {
        let check = |script: &str, expected: &str| {
            let text = in_script(&Text::literal(script), &flags());
            assert_eq!(text.render(|_| "RANK".to_owned()), expected, "{script}");
        };
        let all = "--multi_gpu --num_machines 2 --machine_rank RANK";
        check("accelerate launch a.py", &format!("accelerate launch {all} a.py"));
        check(
            "cd /x\n/opt/bin/accelerate-launch a.py",
            &format!("cd /x\n/opt/bin/accelerate-launch {all} a.py"),
        );
        check(
            "python -m accelerate.commands.launch --num-machines=2 \\\n  --use_fsdp a.py",
            "python -m accelerate.commands.launch --machine_rank RANK --num-machines=2 \\\n  --use_fsdp a.py",
        );
        check(
            "accelerate launch --config_file x.yaml a.py; accelerate launch b.py",
            &format!(
                "accelerate launch --num_machines 2 --machine_rank RANK --config_file x.yaml a.py; accelerate launch {all} b.py"
            ),
        );
        for other in [
            "# accelerate launch a.py\ntrue",
            "accelerate launcher",
            "my-accelerate-launch a.py",
            "accelerate config",
        ] {
            check(other, other);
        }
    }

    #[test]
    fn placeholders_keep_their_places() {
        let mut script = Text::literal("echo ");
        script.push_reference(Reference::Index {});
        script.push_str("\naccelerate launch --lr ");
        script.push_reference(Reference::Index {});
        script.push_str(" a.py");
        let text = in_script(&script, &[("num-machines", Some(Text::literal("2")))]);
        assert_eq!(text.render(|_| "X".to_owned()), "echo X\naccelerate launch --num_machines 2 --lr X a.py");
    }

    #[test]
    fn a_list_of_words_gets_them_too() {
        let argv = ["accelerate", "launch", "--machine_rank", "1", "a.py"].map(Text::literal);
        let words = in_argv(argv.to_vec(), &flags());
        let words: Vec<String> = words.iter().map(|word| word.render(|_| "RANK".to_owned())).collect();
        assert_eq!(words.join(" "), "accelerate launch --multi_gpu --num_machines 2 --machine_rank 1 a.py");
    }
}
