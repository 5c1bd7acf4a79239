//! Completion items at a cursor.

use super::complete;
use crate::client::Settings;
use crate::tests::{Fixture, snapshot};

/// Only names, which the schema does not contain.
fn names(name: &str, text: &str) {
    let settings = Settings { schema_features: false, ..Settings::default() };
    shown(name, text, &Fixture::with(text, settings));
}

/// All items, at most twenty lines.
fn check(name: &str, text: &str) {
    shown(name, text, &Fixture::new(text));
}

fn shown(name: &str, text: &str, fixture: &Fixture) {
    let items = complete(&fixture.session, &fixture.uri, fixture.position());
    let line = |item: &lsp_types::CompletionItem| {
        let Some(lsp_types::CompletionItemTextEdit::TextEdit(edit)) = &item.text_edit else {
            panic!("no edit")
        };
        let replaced = edit.range.end.character - edit.range.start.character;
        let detail = item.detail.as_deref().map(|detail| format!("  ({detail})")).unwrap_or_default();
        format!("{} <- {replaced} {:?}{detail}", item.label, edit.new_text)
    };
    let mut sorted = items.clone();
    sorted.sort_by(|a, b| a.sort_text.cmp(&b.sort_text));
    let mut lines: Vec<String> = sorted.iter().take(20).map(line).collect();
    if sorted.len() > 20 {
        lines.push(format!("and {} more", sorted.len() - 20));
    }
    snapshot("complete", name, text, &lines.join("\n"));
}

const ROLES: &str =
    "version: 1\nname: x\nimage: python:3.12-slim\nroles:\n  prepare:\n    run: x\n  train:\n    run: y\n";

#[test]
fn roles_in_needs() {
    names("needs_list", &format!("{ROLES}  evaluate:\n    needs: [prepare, $0]\n"));
    names("needs_list_half_a_word", &format!("{ROLES}  evaluate:\n    needs: [pr$0\n    run: z\n"));
    names("needs_items", &format!("{ROLES}  evaluate:\n    needs:\n      - $0\n    run: z\n"));
    names("needs_map", &format!("{ROLES}  evaluate:\n    needs:\n      tr$0\n    run: z\n"));
    names("needs_value", &format!("{ROLES}  evaluate:\n    needs: $0\n    run: z\n"));
    names("distributed_roles", &format!("{ROLES}distributed:\n  framework: torchrun\n  roles: [$0]\n"));
    names(
        "distributed_launch",
        &format!("{ROLES}distributed:\n  framework: mpi\n  roles: [train]\n  launch: $0\n"),
    );
}

#[test]
fn plugins_in_backends() {
    let plugin = "==== [backends/desk/backend.yaml]\ncontract: 1\n";
    let targets = "==== targets.yaml\nversion: 1\ntargets:\n  a:\n    backends:";
    names("backends_list", &format!("{targets} [oci, $0]\n{plugin}"));
    names("backends_value", &format!("{targets} $0\n{plugin}"));
}

#[test]
fn names_in_expressions() {
    let head = "version: 1\nname: x\nimage: python:3.12-slim\nparams:\n  batch_size: {default: 32, description: images a step}\n  lr: 0.1\nsecrets:\n  wandb: {env: WANDB}\ndata:\n  my-data: {source: /d, mount: /data}\nroles:\n  data-server:\n    resources: {ports: {http: 80}}\n    run: x\n";
    names("scopes_in_run", &format!("{head}  train:\n    run: echo ${{{{ $0\n"));
    names("scopes_in_env", &format!("{head}  train:\n    run: x\n    env: {{A: \"${{{{ $0 }}}}\"}}\n"));
    names("params", &format!("{head}  train:\n    run: python ${{{{ params.$0 }}}}\n"));
    names(
        "params_not_closed",
        &format!("{head}  train:\n    run: |\n      python a ${{{{ params.b$0\n      echo\n"),
    );
    names("hosts", &format!("{head}  train:\n    run: x ${{{{ hosts.data-$0 }}}}\n"));
    names("data_fields", &format!("{head}  train:\n    run: x ${{{{ data.my-data.$0\n"));
    names("secrets_in_env", &format!("{head}  train:\n    run: x\n    env:\n      KEY: ${{{{ secrets.$0\n"));
    names("ports_of_the_role", &head.replace("    run: x\n", "    run: x ${{ ports.$0 }}\n"));
    names("ports_of_another_role", &format!("{head}  train:\n    run: x ${{{{ ports.$0 }}}}\n"));
    names(
        "port_of_another_role",
        &format!(
            "{}  train:\n    run: x ${{{{ ports.data-server.$0\n",
            head.replace("  data-server:\n", "  data-server:\n    instances: 2\n")
        ),
    );
    let matrix = head.replace("name: x\n", "name: x\nmatrix: {seed: [1]}\n");
    let train = "  train:\n    matrix: {lr: [0.1]}\n    run: x ${{ matrix.$0 }}\n";
    names("axes_of_job_and_role", &format!("{matrix}{train}"));
    names(
        "axes_of_the_job",
        &format!("{matrix}{}  other:\n    run: x ${{{{ matrix.$0 }}}}\n", train.replace("$0", "lr")),
    );
    names(
        "hosts_without_those_of_a_matrix",
        &format!("{matrix}{}  other:\n    run: x ${{{{ hosts.$0 }}}}\n", train.replace("$0", "lr")),
    );
    check("keys_of_a_metric", &format!("{head}  train:\n    metrics:\n      loss:\n        $0\n"));
    names("filters", &format!("{head}  train:\n    run: x ${{{{ params.lr | $0 }}}}\n"));
    names(
        "image_arguments",
        &head.replace(
            "image: python:3.12-slim\n",
            "image:\n  from: a:1\n  args: {V: 1}\n  run: [\"x ${{ args.$0 }}\"]\n",
        ),
    );
    names("not_in_an_expression", &format!("{head}  train:\n    run: ${{{{ params.lr }}}} $0\n"));
}

#[test]
fn names_of_data_secrets_and_images() {
    let head = "version: 1\nname: x\nsecrets:\n  bucket: {env: B}\nimages:\n  tools: python:3.12-slim\n  torch: {from: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime}\ndata:\n  imagenet: {source: /d, mount: /data}\noutputs:\n  model: {source: ./m, mount: /m}\nroles:\n  train:\n    run: x\n";
    names("data_list", &format!("{head}    data: [$0]\n"));
    names("outputs_map", &format!("{head}    outputs:\n      $0\n"));
    names("secret_of_data", &head.replace("mount: /data}", "mount: /data, secret: $0}"));
    names("named_image", &format!("{head}    image: {{use: t$0}}\n"));
    names("image_reference", &format!("{head}    image: pytorch/$0\n"));
    names("base_image", &head.replace("{from: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime}", "{from: $0}"));
}

#[test]
fn values_that_jobc_knows() {
    let head = "version: 1\nname: x\nroles:\n  train:\n    run: x\n    resources:\n";
    names("gpu_model", &format!("{head}      gpu: {{model: A1$0}}\n"));
    names(
        "mig_profile_of_a_card",
        &format!("{head}      gpu: {{model: A100-80GB, share: {{profile: $0}}}}\n"),
    );
    names(
        "mig_profile_of_any_card",
        &format!("{head}      gpu:\n        share:\n          profile: 1g.$0\n"),
    );
    names("number_of_gpus", &format!("{head}      gpu: $0\n"));
    let matrix = "version: 1\nname: x\nimage: a:1\nmatrix:\n  axes: {lr: [0.1, 0.01], model: [small, \"1.0\"]}\n  exclude:\n    - $0\nroles: {a: {run: x}}\n";
    names("axes_of_an_exception", matrix);
    names("value_of_an_axis", &matrix.replace("$0", "{lr: 0.1, model: $0}"));
    names(
        "codes_to_allow",
        "version: 1\nname: x\nimage: ubuntu\nx-jobc-allow: [J033$0]\nroles: {a: {run: x}}\n",
    );
    names("tags_of_an_image", "version: 1\nname: x\nimage: python:$0\nroles: {a: {run: x}}\n");
    names(
        "templates_beside_the_job",
        "==== job.yaml\nversion: 1\nname: x\nroles: {a: {uses: ./$0}}\n==== [board.yaml]\ntemplate: 1\nkind: role\ndescription: a board\nbody: {run: x}\n==== [parts/template.yaml]\ntemplate: 1\nkind: role\nbody: {run: x}\n==== [other.yaml]\nversion: 1\n",
    );
    names("template_of_a_job", "version: 1\nname: x\nuses: $0\n");
    names("template_of_a_role", "version: 1\nname: x\nroles:\n  board:\n    uses: std/$0\n");
    names(
        "parameters_of_a_template",
        "version: 1\nname: x\nuses: std/torchrun\nwith:\n  script: train.py\n  $0\n",
    );
    names(
        "parameters_of_a_file",
        "==== job.yaml\nversion: 1\nname: x\nroles:\n  a:\n    uses: ./t.yaml\n    with: {$0}\n==== [t.yaml]\ntemplate: 1\nkind: role\nparams:\n  speed: {default: 3, description: how fast}\nbody: {run: x}\n",
    );
    let board = "==== job.yaml\nversion: 1\nname: x\nsecrets: {key: {env: K}}\nroles:\n  a:\n    uses: ./parts\n    with:\n      WITH\n==== [parts/template.yaml]\ntemplate: 1\nkind: role\nparams:\n  mode: {default: fast, choices: [fast, exact], description: how}\n  quiet: false\n  port: {default: 80, min: 1}\n  key: {type: string, description: a secret}\n  path: {type: string}\nbody: {run: x}\n";
    for (name, with) in [
        ("value_of_choices", "mode: $0"),
        ("value_of_a_bool", "quiet: $0"),
        ("value_with_a_default", "port: $0"),
        ("value_of_a_secret", "key: $0"),
        ("value_without_a_default", "path: $0"),
        ("parameters_of_a_directory", "$0"),
    ] {
        names(name, &board.replace("WITH", with));
    }
    names(
        "parameters_of_an_unlocked_template",
        "version: 1\nname: x\nuses: git+https://h/r@v1\nwith:\n  $0\n",
    );
    names("ready_port", &format!("{head}      ports: {{http: 80, rpc: 81}}\n    ready: {{port: $0}}\n"));
}

#[test]
fn names_in_a_targets_file() {
    let job = "==== job.yaml\nversion: 1\nname: x\nimage: a:1\ndata: {imagenet: {mount: /data}}\nroles: {train: {run: x}, serve: {run: y}}\n";
    let check = |name, text| names(name, &format!("{job}==== targets.yaml\nversion: 1\n{text}"));
    check("card_of_a_target", "targets:\n  lab: {backends: [oci], gpu: {cards: [{model: A10$0}]}}\n");
    check("target_default", "default: [$0]\ntargets:\n  lab: {backends: [oci]}\n");
    check(
        "target_provider",
        "targets:\n  lab:\n    backends: [kubernetes]\n    kubernetes:\n      gpu: {provider: nvidia-$0}\n",
    );
    check(
        "target_storage",
        "targets:\n  lab:\n    backends: [kubernetes]\n    kubernetes:\n      storage:\n        $0\n",
    );
    check(
        "target_roles",
        "targets:\n  lab:\n    backends: [kubernetes]\n    kubernetes:\n      roles:\n        tr$0\n",
    );
}

#[test]
fn keys_words_and_blocks_of_the_schema() {
    check("an_empty_file", "$0");
    check("keys_of_a_role", &format!("{ROLES}  evaluate:\n    $0\n"));
    check("keys_half_typed", &format!("{ROLES}  evaluate:\n    reso$0\n    run: x\n"));
    check("keys_in_braces", &format!("{ROLES}  evaluate:\n    resources: {{cpu: 1, $0}}\n"));
    check("words", &format!("{ROLES}distributed:\n  framework: $0\n"));
    check("bools", &format!("{ROLES}  a:\n    security: {{privileged: $0}}\n"));
    check("gpu", &format!("{ROLES}  a:\n    resources:\n      gpu: $0\n"));
    check("a_key_with_its_colon", &format!("{ROLES}  a:\n    na$0: x\n"));
    check("roles", "version: 1\nname: x\nroles:\n  $0\n");
    check("ulimits", &format!("{ROLES}  a:\n    resources: {{ulimits: {{no$0}}}}\n"));
    check(
        "list_of_maps",
        "version: 1\nname: x\nimage:\n  from: a:1\n  copy:\n    - from: .\n      $0\nroles: {a: {run: x}}\n",
    );
}

#[test]
fn names_in_json_are_inside_quotes() {
    let head =
        "==== job.json\n{\"version\": 1, \"name\": \"x\", \"roles\": {\"prepare\": {\"run\": \"x\"},\n";
    names("json_needs", &format!("{head}\"train\": {{\"run\": \"y\", \"needs\": [\"pr$0\"]}}}}}}\n"));
    names("json_needs_not_closed", &format!("{head}\"train\": {{\"run\": \"y\", \"needs\": [\"pr$0\n"));
}

#[test]
fn a_text_with_an_error_elsewhere() {
    names("broken_below", &format!("{ROLES}  evaluate:\n    needs: [$0]\n  broken: [1, 2\n    x: {{\n"));
    check("broken_above", &format!("{}  evaluate:\n    shell: $0\n", ROLES.replace("name: x", "name: [x")));
    check(
        "broken_above_keys",
        &format!("{}  evaluate:\n    resources:\n      me$0\n", ROLES.replace("name: x", "name: [x")),
    );
}

#[test]
fn names_of_a_text_that_was_valid_before() {
    let text = format!("{ROLES}  evaluate:\n    needs: [$0]\n");
    let mut fixture = Fixture::with(&text, Settings { schema_features: false, ..Settings::default() });
    let broken = text.replace("name: x", "name: [x").replace("  prepare:", "  {");
    fixture.becomes(&broken);
    shown("broken_names", &broken, &fixture);
}

#[test]
fn a_client_without_snippets_gets_plain_text() {
    let plain = super::snippet::plain;
    assert_eq!(plain("${1:a}: ${2|b,c|}$0"), "a: b");
    assert_eq!(plain("${1:a, b}"), "a, b");
    assert_eq!(plain("a\\$b\\}$1"), "a$b}");
    assert_eq!(super::snippet::escaped("${x}"), "\\${x\\}");
}

#[test]
fn fields_of_json_have_quotes() {
    let job = "==== job.json\n{\"version\": 1, \"name\": \"x\", \"roles\": {\"a\": {\"run\": \"x\"},\n";
    check("json_key_in_quotes", &format!("{job}\"train\": {{\"$0\"}}}}}}\n"));
    check("json_key_half_typed", &format!("{job}\"train\": {{\"run\": \"x\", \"res$0}}}}}}\n"));
    check("json_key_without_quotes", &format!("{job}\"train\": {{\"run\": \"x\", $0}}}}}}\n"));
    check("json_word", &format!("{job}\"b\": {{}}}}, \"distributed\": {{\"framework\": \"$0\"}}}}\n"));
    check("json_bool", &format!("{job}\"b\": {{\"security\": {{\"privileged\": $0}}}}}}}}\n"));
}

#[test]
fn fields_have_tab_stops() {
    check("fields_of_a_job", "version: 1\nname: x\n$0");
    check("fields_below_the_roles", &format!("{ROLES}dist$0\nenv:\n  A: b\n"));
    check("fields_of_resources", &format!("{ROLES}  a:\n    resources:\n      $0\n"));
    check("fields_of_an_image", "version: 1\nname: x\nimage:\n  $0\n");
}
