// Another YAML extension in the same window. The Red Hat extension is in no registry that a test can use, so this is a stand-in
// with its name and its server, which gets our schema for the same files. A job must show the same as without it: no finding
// twice, no field offered twice.

import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { REPOSITORY, scratch, until } from "../check.mjs";
import { problemsBecome, wantedProblems } from "./problems.mjs";

const PACKAGES = join(REPOSITORY, "editors", "vscode", "node_modules");
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

/** Its server is the yaml-language-server in our packages, with validation. */
const CODE = `
const packages = require("node:module").createRequire(${JSON.stringify(join(PACKAGES, "..", "package.json"))});
const { LanguageClient, TransportKind } = packages("vscode-languageclient/node");
exports.activate = async () => {
    const module = ${JSON.stringify(join(PACKAGES, "yaml-language-server", "out", "server", "src", "server.js"))};
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
    const folder = scratch("other-extension");
    writeFileSync(join(folder, "package.json"), JSON.stringify(MANIFEST));
    writeFileSync(join(folder, "extension.js"), CODE);
    writeFileSync(join(folder, "LICENSE"), "MIT");
    const words = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out", "other-extension.vsix"];
    const { status, stdout, stderr } = spawnSync(join(PACKAGES, ".bin", "vsce"), words, { cwd: folder, encoding: "utf8" });
    if (status !== 0) {
        throw new Error(`the stand-in cannot be packaged: ${stdout}${stderr}`);
    }
    return join(folder, "other-extension.vsix");
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
    files(folder) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, "job.yaml"), MODELINE + INVALID_JOB);
        writeFileSync(join(folder, "train.yaml"), INVALID_JOB);
        writeFileSync(join(folder, "other.yaml"), "nonsense: 1\n");
    },
    async run(editor, check, folder) {
        // It is active, and reports findings in its own file.
        await editor.openFile("other.yaml", "YAML");
        await until("the stand-in reports nothing", async () => (await editor.problems()).some((row) => row.includes("nonsense")));
        await editor.command("View: Close All Editors");

        // One is a job by its name, the other by its content, which the stand-in has opened before.
        for (const name of ["train.yaml", "job.yaml"]) {
            await editor.openFile(name);
            const wanted = wantedProblems(join(folder, name));
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
