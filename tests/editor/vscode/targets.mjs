// The target in the status bar: its list, and that findings, plan and builds follow it.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { JOBC, until } from "../check.mjs";
import { compilerFindings } from "../compiler.mjs";
import { problemsBecome, wantedProblems } from "./problems.mjs";

/** OpenPAI builds no images, so one target cannot run this job. */
const JOB = `version: 1
name: demo
image: {from: "python:3.12-slim", env: {A: b}}
roles:
  train:
    run: python train.py
    resources: {cpu: 1, memory: 1GiB}
`;

const TARGETS_FILE = `version: 1
default: [here]
targets:
  here: {description: this machine, backends: [oci]}
  lab: {backends: [kubernetes], registry: registry.example.com/ml}
  pai: {backends: [openpai]}
`;

/** The panel's rows for a job that is compiled for these targets. */
function rowsFor(path, ...targets) {
    const found = targets.flatMap((target) => compilerFindings(JOBC, path, "--target", target));
    return found.map(({ message, code, start }) => `${message} jobc ${code} [Ln ${start.line}, Col ${start.column}]`).sort();
}

export const TARGETS = {
    files(directory) {
        writeFileSync(join(directory, "job.yaml"), JOB);
        writeFileSync(join(directory, "targets.yaml"), TARGETS_FILE);
        writeFileSync(join(directory, "notes.md"), "");
    },
    async run(editor, check, directory) {
        const path = join(directory, "job.yaml");
        await editor.openFile("job.yaml");
        await editor.targetIs("default targets");
        await problemsBecome(editor, wantedProblems(path));

        await editor.focusEditor();
        const labels = await editor.pickTarget("pai");
        check.equal(labels, ["default", "all", "here", "lab", "pai"], "the list of targets");
        await editor.targetIs("pai");
        const refused = rowsFor(path, "pai");
        check.expect(refused.some((row) => /J040[12]/.test(row)), `findings for pai: ${refused}`);
        await problemsBecome(editor, refused);
        await editor.picture("target");
        check.equal(JSON.parse(readFileSync(join(directory, ".vscode", "settings.json"), "utf8")), { "jobc.target": "pai" }, "the settings of the workspace");

        // The plan next to the job and a build follow the target.
        await editor.focusEditor();
        await editor.pickTarget("lab");
        await editor.targetIs("lab");
        await problemsBecome(editor, rowsFor(path, "lab"));
        await editor.focusEditor();
        await editor.command("jobc: Show Plan Beside");
        await until("the plan is not the one of the target", async () => /name: lab/.test(await editor.textOf("job.plan.yaml")));
        await editor.focusEditor();
        await editor.pickTarget("here");
        await until("the plan does not follow the target", async () => /name: here/.test(await editor.textOf("job.plan.yaml")));
        await editor.focusEditor();
        await editor.command("jobc: Build");
        await until("nothing is built", () => existsSync(join(directory, "out", "demo", "here", "plan.json")), 60);
        check.equal(existsSync(join(directory, "out", "demo", "lab")), false, "built for another target");

        await editor.focusEditor();
        await editor.pickTarget("default");
        await editor.targetIs("default targets");
        await problemsBecome(editor, wantedProblems(path));

        // The target is shown only for a job.
        await editor.openFile("notes.md", "Markdown");
        await until("the target is shown for Markdown", async () => (await editor.target()) === undefined);
        check.expect(true, "hidden");
        check.equal(await editor.notifications(), [], "messages in the corner");
    },
};
