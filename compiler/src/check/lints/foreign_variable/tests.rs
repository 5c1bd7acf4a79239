use super::{Fact, SYSTEMS, assigns};
use crate::diagnostic::codes;

/// A row for each system and fact.
fn table() -> String {
    let mut table = "| Elsewhere | Set by | In a job |\n|---|---|---|\n".to_owned();
    for system in SYSTEMS {
        let mut facts: Vec<(String, Vec<String>)> = vec![];
        for (name, fact) in system.facts {
            let own = own(*fact).to_owned();
            match facts.iter_mut().find(|(known, _)| *known == own) {
                Some((_, names)) => names.push(format!("`{name}`")),
                None => facts.push((own, vec![format!("`{name}`")])),
            }
        }
        for (own, names) in facts {
            table += &format!("| {} | {} | {own} |\n", names.join(", "), system.name);
        }
    }
    table
}

fn own(fact: Fact) -> &'static str {
    match fact {
        Fact::Instance => "`JOBC_RANK` or `JOBC_INDEX`",
        Fact::Instances => "`JOBC_INSTANCES`",
        Fact::Gpus => "the number itself",
        Fact::World => "`JOBC_WORLD_SIZE`",
        Fact::Address => "`${{ hosts.ROLE[0] }}`",
        Fact::Port => "`JOBC_PORT_RENDEZVOUS`",
        Fact::Process => "`framework: ddp`",
        Fact::Directory => "`workdir`, `cwd: true`",
        Fact::HostFile => "`JOBC_HOSTFILE`",
        Fact::Ray => "`framework: ray`",
    }
}

#[test]
fn the_page_lists_the_variables_of_every_system() {
    let table = table();
    let page = codes::FOREIGN_VARIABLE.page();
    assert!(page.contains(&table), "the page does not have this table:\n{table}");
}

#[test]
fn a_script_may_set_a_variable_itself() {
    for text in ["RANK=1 x", "export RANK=$1", "read -r RANK", "for RANK in 1 2; do x; done", "RANK+=1"] {
        assert!(assigns(text, "RANK"), "{text}");
    }
    for text in ["x $RANK", "MY_RANK=1", "x --RANK-2", "x ${RANK}=3", "read X; x $RANK"] {
        assert!(!assigns(text, "RANK"), "{text}");
    }
}
