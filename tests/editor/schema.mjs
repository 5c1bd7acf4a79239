// yaml-language-server with our schemas, as in editors without our extension: what it reports, jobc reports at the same line,
// and the other way round for what a schema can express; completion and hover work.

import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { Check, files, filesOfCases, JOBC, REPOSITORY, shown } from "./check.mjs";
import { Client } from "./client.mjs";
import { compilerFindings } from "./compiler.mjs";

const check = new Check("schema");
const jobc = check.program(JOBC);
const rpc = await check.module("vscode-jsonrpc/node");
const server = join(REPOSITORY, "tests", "editor", "node_modules", "yaml-language-server", "bin", "yaml-language-server");
if (!existsSync(server)) {
    check.needs("yaml-language-server");
}

const schema = (kind) => pathToFileURL(join(REPOSITORY, "schemas", `${kind}.v1.schema.json`)).href;
const isTargets = (path) => basename(path) === "targets.yaml";

const SETTINGS = { validate: true, hover: true, completion: true, schemaStore: { enable: false }, kubernetesCRDStore: { enable: false } };
const client = await Client.start(rpc, process.execPath, [server, "--stdio"], {
    root: REPOSITORY,
    answers: {
        "custom/schema/request": (uri) => schema(isTargets(uri) ? "targets" : "job"),
        "workspace/configuration": ({ items }) => items.map(({ section }) => (section === "yaml" ? SETTINGS : {})),
    },
});
await client.tell("yaml/registerCustomSchemaRequest");

/** Whether a document has another program's format, for which there is no schema. */
const isOpenPai = (text) => /^(taskRoles|protocolVersion|jobName)\s*:/m.test(text);

const documents = [];
const isOfExample = (path) => ["job.yaml", "targets.yaml"].includes(basename(path)) && !path.includes("/out/");
const isYaml = (path) => /\.ya?ml$/.test(path);
for (const path of [...files(join(REPOSITORY, "examples"), isOfExample), ...filesOfCases().filter(isYaml)]) {
    const text = readFileSync(path, "utf8");
    if (!isOpenPai(text)) {
        documents.push({ path, text, uri: await client.open(path, text) });
    }
}

/** Findings about the syntax: two parsers recover differently, so they are not compared. */
const OF_THE_TEXT = /^J00/;
/** Findings that the schema has a rule for. */
const OF_THE_SCHEMA = /^J01(0[1-9]|1[0-2])$/;
/** What no rule of the schema forbids, as the compiler's text says more: a command that is blank, a file without its key. */
const OF_THE_COMPILER = /^J0110: .* is blank$|^J0102: `key` is missing next to `file`$/;
/** A finding about the whole file, a Kubernetes manifest, instead of all findings of the schema. */
const FOR_THE_WHOLE = /^J0122$/;

let agreed = 0;
for (const { path, uri } of documents) {
    const reported = (await client.findings(uri)).map(({ range, message }) => ({ line: range.start.line + 1, message: message.split("\n")[0] }));
    const name = shown(path);
    // A directory of several jobs has a targets file and no job of its own.
    if (isTargets(path) && jobBeside(path) === undefined) {
        continue;
    }
    const found = compilerFindings(jobc, isTargets(path) ? jobBeside(path) : path);
    const here = found.filter(({ file }) => file !== undefined && basename(file) === basename(path));
    if (here.some(({ code }) => OF_THE_TEXT.test(code) || FOR_THE_WHOLE.test(code))) {
        continue;
    }
    const lines = new Set(here.flatMap(({ start, labels }) => [start, ...labels.map((label) => label.start)]).map((start) => start?.line));
    // What follows a key without a value belongs below it: one finding says so.
    const empty = here.find(({ code }) => code === "J0104")?.start?.line ?? Infinity;
    for (const { line, message } of reported) {
        agreed += check.expect(lines.has(line) || line > empty, `${name}:${line}: jobc does not report what the schema reports: ${message}`);
    }
    for (const { code, start, message } of here.filter(({ code }) => OF_THE_SCHEMA.test(code))) {
        if (OF_THE_COMPILER.test(`${code}: ${message}`)) {
            continue;
        }
        const seen = reported.some(({ line }) => line === start.line);
        check.expect(seen, `${name}:${start.line}: the schema does not report ${code}: ${message}`);
    }
    if (here.length === 0) {
        check.equal(reported, [], `${name} has no error`);
    }
}
check.note(`${documents.length} files, ${agreed} equal reports`);
check.expect(agreed > 25, `the schema reported only ${agreed} findings in all cases: is it in use?`);

/** A job that uses a targets file. */
function jobBeside(targets) {
    const directory = dirname(targets);
    return ["job.yaml", "job.json"].map((name) => join(directory, name)).find(existsSync);
}

/** Opens a text with the cursor at `|`, and returns the position. */
let opened = 0;
async function cursor(text, kind) {
    const offset = text.indexOf("|");
    const before = text.slice(0, offset).split("\n");
    const directory = join(REPOSITORY, "target", "editor", `${(opened += 1)}`);
    const uri = await client.open(join(directory, kind === "targets" ? "targets.yaml" : "job.yaml"), text.replace("|", ""));
    return [uri, before.length - 1, before.at(-1).length];
}

const JOB = "version: 1\nname: demo\nimage: python:3.12-slim\n";
const COMPLETIONS = [
    ["|", ["version", "name", "roles", "distributed", "matrix"]],
    [`${JOB}roles:\n  train:\n    |`, ["run", "resources", "needs", "instances", "retry"]],
    [`${JOB}roles:\n  train:\n    resources:\n      |`, ["cpu", "memory", "shm", "gpu", "ports"]],
    [`${JOB}roles:\n  train:\n    resources:\n      gpu:\n        |`, ["count", "model", "share"]],
    [`${JOB}network: |`, ["auto", "host", "job", "none"]],
    [`${JOB}distributed:\n  framework: |`, ["torchrun", "mpi", "horovod", "deepspeed", "jax"]],
    ["version: 1\ntargets:\n  lab:\n    |", ["backends", "kubernetes", "openpai"], "targets"],
    ["version: 1\ntargets:\n  lab:\n    kubernetes:\n      kind: |", ["jobset", "volcano", "pytorchjob"], "targets"],
];
for (const [text, wanted, kind = "job"] of COMPLETIONS) {
    const [uri, line, character] = await cursor(text, kind);
    const { items } = await client.at("textDocument/completion", uri, line, character);
    const labels = items.map(({ label }) => label);
    const missing = wanted.filter((label) => !labels.includes(label));
    check.equal(missing, [], `not offered in ${JSON.stringify(text)}, where ${labels.length} are`);
    check.equal(labels.filter((label, i) => labels.indexOf(label) !== i), [], `offered twice in ${JSON.stringify(text)}`);
    const bare = items.filter(({ label, documentation }) => wanted.includes(label) && !documentation);
    check.equal(bare.map(({ label }) => label), [], `offered without documentation in ${JSON.stringify(text)}`);
}

/** The names of all fields in a schema. */
function fieldsOf(value, into = new Set()) {
    if (value !== null && typeof value === "object") {
        Object.keys(value.properties ?? {}).forEach((name) => into.add(name));
        Object.values(value).forEach((inner) => fieldsOf(inner, into));
    }
    return into;
}

let hovers = 0;
for (const { path, text, uri } of documents.filter(({ path }) => shown(path).startsWith("examples/"))) {
    const fields = fieldsOf(JSON.parse(readFileSync(fileURLToPath(schema(isTargets(path) ? "targets" : "job")))));
    for (const [line, written] of text.split("\n").entries()) {
        const [, indent, key] = /^(\s*)([a-z_]+):/.exec(written) ?? [];
        // Keys of the second level are names that the user chooses, which no schema knows.
        if (key !== undefined && indent.length !== 2 && fields.has(key)) {
            const answer = await client.at("textDocument/hover", uri, line, indent.length + 1);
            hovers += 1;
            check.expect(answer?.contents?.value?.length > 20, `${shown(path)}:${line + 1}: no hover for \`${key}\`: ${JSON.stringify(answer)}`);
        }
    }
}
check.note(`${hovers} hovers`);
check.expect(hovers > 100, `only ${hovers} fields were found in the examples`);

await client.stop();
check.end();
