// `jobc lsp` with a scripted editor: its findings are those of `jobc check`, its quick fixes fix, its answers about positions are
// correct, and its texts are those of the command line.

import { readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";

import { Check, files, filesOfCases, JOBC, REPOSITORY, shown } from "./check.mjs";
import { Client } from "./client.mjs";
import { compilerFindings, positions, printed } from "./compiler.mjs";

const check = new Check("server");
const jobc = check.program(JOBC);
const rpc = await check.module("vscode-jsonrpc/node");
// Lenses are only for clients that know their commands.
const client = await Client.start(rpc, jobc, ["lsp"], { root: REPOSITORY, options: { codeLens: true, whyLens: true } });

// --- findings and quick fixes

const isJob = (path) => /\.(yaml|json)$/.test(path) && basename(path) !== "targets.yaml" && !path.includes("/out/");
const cases = [
    ...files(join(REPOSITORY, "examples"), (path) => /\/job\.(yaml|json)$/.test(path) && isJob(path)),
    ...filesOfCases().filter(isJob),
];

/** The fields of a finding that are compared. */
const fieldsOf = ({ code, message, range }) => ({ code, message, range });
const order = (a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

let compared = 0;
let repaired = 0;
for (const path of cases) {
    const name = shown(path);
    const bytes = readFileSync(path);
    const at = positions(bytes);
    // An editor cannot show a text that is not UTF-8.
    if (Buffer.compare(Buffer.from(bytes.toString("utf8")), bytes) !== 0) {
        continue;
    }
    const wanted = compilerFindings(jobc, path)
        .filter(({ file }) => file === undefined || basename(file) === basename(path))
        .map(({ code, message, start, end }) => ({ code, message, range: start && { start: at(start), end: at(end) } }));
    // The server does not know the environment that a command line has.
    if (wanted.some(({ code }) => code === "J0260")) {
        continue;
    }
    // In the mode of a job and under no name of one: an invalid text may look like a file of another program.
    const mode = extname(path) === ".json" ? "jobc-json" : "jobc";
    const uri = await client.open(join(dirname(path), `case${extname(path)}`), bytes.toString("utf8"), mode);
    const found = await client.findings(uri, 1);
    compared += found.length;
    check.equal(found.map(fieldsOf).sort(order), wanted.map(fieldsOf).sort(order), `${name}: the server's findings are not the compiler's`);
    repaired += await tryQuickFixes(name, uri, bytes.toString("utf8"), found);
    await client.tell("textDocument/didClose", { textDocument: { uri } });
}
check.note(`${cases.length} files, ${compared} findings, ${repaired} quick fixes applied`);
check.expect(repaired > 50, `only ${repaired} quick fixes were offered`);

/** Applies each quick fix of a file separately; the finding must be gone. */
async function tryQuickFixes(name, uri, text, found) {
    let version = 1;
    let tried = 0;
    for (const diagnostic of found) {
        const context = { diagnostics: [diagnostic], only: ["quickfix"] };
        const actions = (await client.ask("textDocument/codeAction", { textDocument: { uri }, range: diagnostic.range, context })) ?? [];
        const same = (other) => JSON.stringify(fieldsOf(other)) === JSON.stringify(fieldsOf(diagnostic));
        for (const action of actions.filter(({ diagnostics }) => diagnostics?.some(same))) {
            const edit = action.edit ?? (await client.ask("codeAction/resolve", action)).edit;
            const edits = editsOf(edit).filter((one) => one.uri === uri);
            await client.change(uri, (version += 1), apply(text, edits.flatMap(({ edits }) => edits)));
            const left = await client.findings(uri, version);
            check.expect(!left.some(same), `${name}: \`${action.title}\` leaves ${diagnostic.code}: ${diagnostic.message}`);
            tried += 1;
            await client.change(uri, (version += 1), text);
            await client.findings(uri, version);
        }
    }
    return tried;
}

/** The edits of a workspace edit, in either form. */
function editsOf({ changes, documentChanges } = {}) {
    const plain = Object.entries(changes ?? {}).map(([uri, edits]) => ({ uri, edits }));
    return [...plain, ...(documentChanges ?? []).map(({ textDocument, edits }) => ({ uri: textDocument.uri, edits }))];
}

/** Applies edits to a text, last first. */
function apply(text, edits) {
    const lines = text.split("\n");
    const offset = ({ line, character }) => lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0) + character;
    return [...edits]
        .sort((a, b) => offset(b.range.start) - offset(a.range.start))
        .reduce((whole, { range, newText }) => whole.slice(0, offset(range.start)) + newText + whole.slice(offset(range.end)), text);
}

// --- names and positions

const JOB = `version: 1
name: demo
image: python:3.12-slim
params: {rate: 0.1}
data: {corpus: {source: "pvc:corpus", mount: /data}}
roles:
  prepare:
    run: echo \${{ params.rate }} \${{ data.corpus.mount }}
  train:
    needs: [prepare]
    instances: 2
    resources: {cpu: 4, memory: 16GiB, gpu: 2}
    run: train
`;
const directory = join(REPOSITORY, "target", "editor");
const uri = await client.open(join(directory, "names", "job.yaml"), JOB);
check.equal((await client.findings(uri)).filter(({ severity }) => severity === 1), [], "the sample job");

/** The position of a text in the sample job, plus \`by\` characters. */
function place(text, by = 0) {
    const lines = JOB.split("\n");
    const line = lines.findIndex((line) => line.includes(text));
    return [line, lines[line].indexOf(text) + by];
}
const spans = (locations) => [locations].flat().map(({ range, targetSelectionRange }) => (targetSelectionRange ?? range).start.line);

const hover = await client.at("textDocument/hover", uri, ...place("16GiB", 1));
check.expect(/17179869184/.test(JSON.stringify(hover)), `the hover of 16GiB has no bytes: ${JSON.stringify(hover)}`);
check.equal(spans(await client.at("textDocument/definition", uri, ...place("params.rate", 8))), [3], "the definition of params.rate");
check.equal(spans(await client.at("textDocument/definition", uri, ...place("[prepare]", 2))), [6], "the definition of a role in `needs`");
const references = await client.at("textDocument/references", uri, ...place("  prepare:", 3), { context: { includeDeclaration: true } });
check.equal(spans(references).sort(), [6, 9], "references to the role");

const renamed = await client.at("textDocument/rename", uri, ...place("corpus:", 1), { newName: "texts" });
const after = apply(JOB, editsOf(renamed).flatMap(({ edits }) => edits));
check.expect(/texts: \{source: "pvc:corpus"/.test(after) && /data\.texts\.mount/.test(after) && !/data\.corpus/.test(after), `the rename gives ${after}`);

const symbols = await client.ask("textDocument/documentSymbol", { textDocument: { uri } });
check.expect(/"prepare"/.test(JSON.stringify(symbols)) && /"train"/.test(JSON.stringify(symbols)), "the roles are not symbols");
const folds = await client.ask("textDocument/foldingRange", { textDocument: { uri } });
check.expect(folds.some(({ startLine }) => startLine === place("roles:")[0]), "`roles` does not fold");
const whole = { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } };
const hints = await client.ask("textDocument/inlayHint", { textDocument: { uri }, range: whole });
check.expect(/4 GPUs/.test(JSON.stringify(hints)) && /32/.test(JSON.stringify(hints)), `the hints do not show the total of train: ${JSON.stringify(hints)}`);
const lenses = await client.ask("textDocument/codeLens", { textDocument: { uri } });
check.equal([...new Set(lenses.map(({ command }) => command?.command))].sort(), ["jobc.build", "jobc.run", "jobc.showPlan", "jobc.why"], "code lenses");
const manifest = JSON.parse(readFileSync(join(REPOSITORY, "editors", "vscode", "package.json"), "utf8"));
const registered = manifest.contributes.commands.map(({ command }) => command);
check.equal(lenses.map(({ command }) => command.command).filter((name) => !registered.includes(name)), [], "lenses that VS Code has no command for");
check.expect(lenses.every(({ command }) => command.arguments?.[0] === uri), "a lens does not name its file");
const ofTrain = lenses.find(({ command, range }) => command.command === "jobc.why" && range.start.line === place("  train:")[0]);
check.expect(/^\d+ files?, \d+ lines?$/.test(ofTrain?.command.title), `the lens of the role: ${JSON.stringify(ofTrain)}`);
const { lines: caused } = await client.ask("jobc/why", { uri, line: ofTrain.command.arguments[1] });
check.expect(caused.length > 0, "the role causes nothing");
const built = new Map((await client.ask("jobc/build", { uri })).files.map((file) => [`${file.job}/${file.target}/${file.path}`, file.text.split("\n")]));
check.equal(caused.filter(({ job, target, path, line, text }) => built.get(`${job}/${target}/${path}`)?.[line]?.trim() !== text), [], "caused lines that are not in the built files");
const { job: ofJob, target: ofTarget, path: ofPath, line: ofLine } = caused.at(-1);
const { causes } = await client.ask("jobc/why", { uri, line: ofLine, file: { job: ofJob, target: ofTarget, path: ofPath } });
check.expect(causes.some(({ text }) => text.startsWith("roles.train")), `from the built file back to the role: ${JSON.stringify(causes)}`);
const untidy = JOB.replace("    run: train\n", "    run: train   # last  \n\n\n");
await client.change(uri, 2, untidy);
const formatted = apply(untidy, (await client.ask("textDocument/formatting", { textDocument: { uri }, options: { tabSize: 2, insertSpaces: true } })) ?? []);
const canonical = JOB.replace("run: train\n", "run: train   # last\n")
    .replace("image: python:3.12-slim\nparams: {rate: 0.1}\n", "params: {rate: 0.1}\nimage: python:3.12-slim\n")
    .replace("    needs: [prepare]\n    instances: 2\n", "    instances: 2\n    needs: [prepare]\n");
check.equal(formatted, canonical, "formatting");

// --- completion in an incomplete line

const COMPLETIONS = [
    ["    needs: [|]\n", ["prepare"]],
    ["    needs: [pre|\n", ["prepare"]],
    ["    run: echo ${{ | }}\n", ["params", "data"]],
    ["    run: echo ${{ params.|\n", ["rate"]],
    ["    run: echo ${{ data.| }}\n", ["corpus"]],
    ["    resources: {gpu: {share: {profile: |}}}\n", ["1g.10gb"]],
    ["    |\n", ["instances", "needs", "resources"]],
];
for (const [i, [added, wanted]] of COMPLETIONS.entries()) {
    const text = JOB.replace(/  train:\n[^]*/, `  train:\n${added}`);
    const [line, character] = [text.slice(0, text.indexOf("|")).split("\n").length - 1, added.indexOf("|")];
    await client.change(uri, i + 10, text.replace("|", ""));
    const answer = await client.at("textDocument/completion", uri, line, character);
    const labels = (answer?.items ?? answer ?? []).map(({ label }) => label);
    check.equal(wanted.filter((label) => !labels.includes(label)), [], `not offered in ${JSON.stringify(added)}, offered: ${labels}`);
    check.equal(labels.filter((label, i) => labels.indexOf(label) !== i), [], `offered twice in ${JSON.stringify(added)}`);
}

// --- completion in JSON: with its quotes and commas, the result parses

const JSON_PLACES = ['"run": "x",\n|', '"run": "x"\n|', '|\n"run": "x"', '"|",\n"run": "x"'];
for (const [i, place] of JSON_PLACES.entries()) {
    const text = `{"version": 1, "name": "x", "image": "a:1", "roles": {"train": {${place}}}}`;
    const [above] = text.split("|");
    const path = join(directory, "json", `${i}.job.json`);
    const jsonUri = await client.open(path, text.replace("|", ""));
    const answer = await client.at("textDocument/completion", jsonUri, above.split("\n").length - 1, above.split("\n").at(-1).length);
    const labels = (answer?.items ?? answer ?? []).map(({ label }) => label);
    check.expect(labels.includes("instances"), `not offered in ${JSON.stringify(place)}, offered: ${labels}`);
    check.equal(labels.filter((label, i) => labels.indexOf(label) !== i), [], `offered twice in ${JSON.stringify(place)}`);
    const item = (answer?.items ?? answer ?? []).find(({ label }) => label === "instances");
    const written = item && apply(text.replace("|", ""), [item.textEdit, ...(item.additionalTextEdits ?? [])]).replace(/"?(\$\{\d[^}]*\}|\$\d)"?/, "2");
    check.expect(isJson(written), () => `\`instances\` in ${JSON.stringify(place)} gives ${written}`);
}

function isJson(text) {
    try {
        return JSON.parse(text) !== null;
    } catch {
        return false;
    }
}

// --- our own requests, which return the text of the command line

const example = join(REPOSITORY, "examples", "torchrun-4x8", "job.yaml");
const exampleUri = await client.open(example, readFileSync(example, "utf8"));
const plan = await client.ask("jobc/plan", { uri: exampleUri });
check.equal(plan.text, printed(jobc, "plan", "--format", "yaml", example), "jobc/plan");
const lab = await client.ask("jobc/plan", { uri: exampleUri, target: "lab", format: "json" });
check.equal([JSON.parse(lab.text).jobs.length > 0, lab.languageId, lab.targets], [true, "json", ["local", "lab", "pai"]], "jobc/plan for a target");
const artifact = await client.ask("jobc/artifact", { uri: exampleUri, backend: "kubernetes" });
check.equal(artifact.text, printed(jobc, "build", "--stdout", "--backend", "kubernetes", example), "jobc/artifact");
const page = await client.ask("jobc/explain", { code: "j0101" });
check.equal([page.code, page.markdown.trim()], ["J0101", printed(jobc, "explain", "J0101").trim()], "jobc/explain");

// --- the target that is shown

const known = await client.ask("jobc/targets", { uri: exampleUri });
check.equal([known.targets.map(({ name }) => name), known.shown], [["local", "lab", "pai"], ["local", "lab", "pai"]], "jobc/targets");
check.equal(known.file, exampleUri.replace("job.yaml", "targets.yaml"), "the targets file");
await client.tell("workspace/didChangeConfiguration", { settings: { jobc: { target: "pai" } } });
check.equal((await client.ask("jobc/targets", { uri: exampleUri })).shown, ["pai"], "the target of the settings");
const pai = await client.ask("jobc/plan", { uri: exampleUri });
check.equal(pai.text, printed(jobc, "plan", "--format", "yaml", "--target", "pai", example), "jobc/plan for the target of the settings");
await client.tell("workspace/didChangeConfiguration", { settings: { jobc: { target: "" } } });

const refused = await client.ask("jobc/plan", { uri: exampleUri, target: "nowhere" }).catch((error) => error);
check.equal(refused.code, -32803, "the error about an unknown target");
check.expect(/nowhere/.test(refused.message), `the message does not name the target: ${refused.message}`);

// --- a YAML file of another program

const other = await client.open(join(directory, "pod.yaml"), "apiVersion: v1\nkind: Pod\n");
const nothing = await client.at("textDocument/completion", other, 1, 0);
check.equal((nothing?.items ?? nothing ?? []).length, 0, "completions in a Kubernetes manifest");
check.equal(client.diagnostics.get(other) ?? [], [], "findings in a Kubernetes manifest");

check.equal(await client.stop(), 0, "the exit code");
check.equal(/panicked/.test(client.log), false, `the server's log: ${client.log.slice(-500)}`);
check.end();
