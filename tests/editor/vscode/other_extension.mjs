// Another YAML extension in the same window. The Red Hat extension is in no registry that a test can use, so this is a stand-in
// with its name and its server, which gets our schema for the same files. A job must show the same as without it: no finding
// twice, no field offered twice.

import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { REPOSITORY, scratch, until } from "../check.mjs";
import { problemsBecome, wantedProblems } from "./problems.mjs";

const PACKAGES = join(REPOSITORY, "editors", "vscode", "node_modules");
const SERVER = join(REPOSITORY, "tests", "editor", "node_modules", "yaml-language-server", "out", "server", "src", "server.js");
const SCHEMA = join(REPOSITORY, "schemas", "job.v1.schema.json");

const MANIFEST = {
    name: "vscode-yaml",
    publisher: "redhat",
    version: "1.0.0",
    engines: { vscode: "^1.91.0" },
    main: "./extension.js",
    activationEvents: ["onLanguage:yaml"],
    contributes: { configuration: { properties: { "yaml.validate": { type: "boolean", default: true } } } },
};

/** Its server is the yaml-language-server in the packages of the tests, with validation. */
const CODE = `
const packages = require("node:module").createRequire(${JSON.stringify(join(PACKAGES, "..", "package.json"))});
const { LanguageClient, TransportKind } = packages("vscode-languageclient/node");
exports.activate = async () => {
    const module = ${JSON.stringify(SERVER)};
    const settings = { validate: true, hover: true, completion: true, format: { enable: true }, schemaStore: { enable: false } };
    const client = new LanguageClient("yaml", "YAML", { module, transport: TransportKind.ipc }, {
        documentSelector: [{ language: "yaml" }, { pattern: "*.y(a)ml" }],
        middleware: { workspace: { configuration: ({ items }) => items.map(({ section }) => (section === "yaml" ? settings : null)) } },
    });
    // Slow, like a schema from the network, so that findings arrive after the file has changed to another mode.
    client.onRequest("custom/schema/request", async () => {
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return ${JSON.stringify(`file://${SCHEMA}`)};
    });
    await client.start();
    await client.sendNotification("yaml/registerCustomSchemaRequest");
    return { registerContributor: () => true };
};
`;

/** Packages the stand-in, and returns the path of the package. */
function packageStandIn() {
    const directory = scratch("other-extension");
    writeFileSync(join(directory, "package.json"), JSON.stringify(MANIFEST));
    writeFileSync(join(directory, "extension.js"), CODE);
    writeFileSync(join(directory, "LICENSE"), "MIT");
    const words = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", "other-extension.vsix"];
    const { status, stdout, stderr } = spawnSync(join(PACKAGES, ".bin", "vsce"), words, { cwd: directory, encoding: "utf8" });
    if (status !== 0) {
        throw new Error(`the stand-in cannot be packaged: ${stdout}${stderr}`);
    }
    return join(directory, "other-extension.vsix");
}

const MODELINE = `# yaml-language-server: $schema=${SCHEMA}\n`;
const INVALID_JOB = `version: 1
name: demo
image: python:3.12-slim
roles:
  train:
    intances: 2
    run: python train.py
`;

export const OTHER_EXTENSION = {
    extensions: () => [packageStandIn()],
    files(directory) {
        mkdirSync(directory, { recursive: true });
        writeFileSync(join(directory, "job.yaml"), MODELINE + INVALID_JOB);
        writeFileSync(join(directory, "train.yaml"), INVALID_JOB);
        writeFileSync(join(directory, "other.yaml"), "nonsense: 1\n");
    },
    async run(editor, check, directory) {
        // It is active, and reports findings in its own file.
        await editor.openFile("other.yaml", "YAML");
        await until("the stand-in reports nothing", async () => (await editor.problems()).some((row) => row.includes("nonsense")));
        await editor.command("View: Close All Editors");

        // One is a job by its name, the other by its content, which the stand-in has opened before.
        for (const name of ["train.yaml", "job.yaml"]) {
            await editor.openFile(name);
            const wanted = wantedProblems(join(directory, name));
            check.equal(wanted.length, 1, "mistakes in the sample");
            await editor.page.waitForTimeout(3000);
            await problemsBecome(editor, wanted);
            await editor.picture(`other-extension-${name}`);
            if (name === "train.yaml") {
                await editor.command("View: Close All Editors");
            }
        }
        await editor.focusEditor();
        await editor.goTo(8, 25);
        await editor.press("Enter");
        const offered = await editor.suggestions();
        check.equal(offered.filter((label, i) => offered.indexOf(label) !== i), [], "offered twice");
        check.expect(offered.includes("env"), `offered in a role: ${offered}`);
        check.equal(await editor.notifications(), [], "messages in the corner");
        await editor.picture("other-extension");
    },
};
