// Accepting the first suggestion with Enter, without another language server, never causes an error.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { JOBC } from "../check.mjs";
import { compilerFindings } from "../compiler.mjs";
import { problemsBecome, wantedProblems } from "./problems.mjs";

const HEAD = `version: 1
name: demo
image: python:3.12-slim
roles:
  prepare:
    run: python prepare.py
    resources: {cpu: 1, memory: 1GiB}
`;
const TRAIN = `${HEAD}  train:
    run: torchrun train.py
    resources: {cpu: 1, memory: 1GiB}
`;

/** The text of each file, and a label that must be suggested at its end. */
const PLACES = {
    "empty.job.yaml": ["", "a new job"],
    "needs.job.yaml": [`${TRAIN}    needs: [`, "prepare"],
    "shell.job.yaml": [`${TRAIN}    shell: `, "bash"],
    "framework.job.yaml": [`${TRAIN}distributed:\n  roles: [train]\n  framework: `, "torchrun"],
    "expression.job.yaml": [`params: {lr: 0.1}\n${TRAIN}    env: {LR: "\${{ params.`, "lr"],
};

export const TYPING = {
    files(directory) {
        for (const [name, [text]] of Object.entries(PLACES)) {
            writeFileSync(join(directory, name), text);
        }
        writeFileSync(join(directory, "default.job.yaml"), HEAD.replace("python:3.12-slim", '{from: "python:3.12-slim", env: {A: b}}'));
    },
    async run(editor, check, directory) {
        for (const [name, [text, wanted]] of Object.entries(PLACES)) {
            await editor.openFile(name);
            await editor.press("Control+End");
            const offered = await editor.suggestions();
            check.expect(offered.includes(wanted), `${name}: offered: ${offered}`);
            check.equal(offered.filter((label, i) => offered.indexOf(label) !== i), [], `${name}: offered twice`);
            check.equal(offered.includes("property"), false, `${name}: a field called \`property\` is offered`);
            await editor.picture(`typing-${name}`);
            await editor.press("Enter", "Escape", "Escape");
            await editor.press("Control+End");
            await editor.type(closing(text));
            await editor.save();
            const path = join(directory, name);
            const errors = compilerFindings(JOBC, path).filter(({ severity }) => severity === "error");
            check.equal(errors.map(({ message }) => message), [], `${name}: errors in\n${readFileSync(path, "utf8")}`);
            await editor.command("View: Close All Editors");
        }

        // Without a targets file nothing is found about places that the user has not chosen: OpenPAI builds no images.
        const path = join(directory, "default.job.yaml");
        check.expect(compilerFindings(JOBC, path, "--target", "openpai").some(({ severity }) => severity === "error"), "OpenPAI accepts the sample");
        check.equal(wantedProblems(path), [], "findings of the default target");
        await editor.openFile("default.job.yaml");
        await problemsBecome(editor, []);
        await editor.picture("typing-default");
    },
};

/** The text that closes the last line. */
function closing(text) {
    return text.endsWith("[") ? "]" : text.endsWith("params.") ? ` }}"}` : "";
}
