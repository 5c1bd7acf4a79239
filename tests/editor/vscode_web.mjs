// The web extension in VS Code (code-server, in Chromium): it runs in the browser alone, with the compiler as WebAssembly. What it
// shows is compared with the command line. The package has no program and no code for Node.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Check, JOBC, REPOSITORY, scratch, shown, until } from "./check.mjs";
import { printed } from "./compiler.mjs";
import { Editor } from "./vscode/editor.mjs";
import { problemsBecome, wantedProblems } from "./vscode/problems.mjs";
import { installed, startCodeServer } from "./vscode/server.mjs";

const check = new Check("vscode-web");
const jobc = check.program(JOBC);
const chromium = check.program("chromium");
const { default: playwright } = await check.module("playwright-core");
if (!installed()) {
    check.needs("code-server");
}
const vsix = join(REPOSITORY, "editors", "vscode", "dist", "jobc-web.vsix");
if (!existsSync(vsix)) {
    check.needs("the package of the web extension", "`tests/editor/run -k web_extension`");
}

const JOB = `version: 1
name: demo
roles:
  train:
    intances: 2
    image: {dockerfile: Dockerfile}
    resources: {cpu: 1, memory: 8GiB}
    run: python train.py
`;

const place = scratch("vscode-web");
const directory = join(place, "work");
mkdirSync(join(directory, "jobs"), { recursive: true });
mkdirSync(join(directory, ".git"));
const path = join(directory, "jobs", "job.yaml");
writeFileSync(path, JOB);
writeFileSync(join(directory, "jobs", "Dockerfile"), "FROM python:3.12-slim\nCOPY train.py /train.py\n");
writeFileSync(join(directory, "targets.yaml"), "version: 1\ntargets:\n  lab: {backends: [kubernetes]}\n  box: {backends: [oci]}\n");

const server = await startCodeServer({ place, directory, extensions: [vsix], settings: {} });
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
let editor;
try {
    editor = await Editor.open(browser, server.address, directory, place);
    await editor.openFile("jobs/job.yaml");
    // The file beside the job, and the targets above it, are read through the window's file system.
    const wanted = wantedProblems(path);
    check.expect(wanted.length > 0, "the sample has no errors");
    await problemsBecome(editor, wanted);
    await editor.targetIs("all targets");
    await editor.picture("problems");

    await editor.focusEditor();
    await editor.goTo(5, 6);
    const fixes = await editor.quickFixes();
    check.expect(fixes.includes("write `instances`"), `quick fixes: ${fixes}`);
    await editor.takeFix("write `instances`");
    await editor.save();
    check.expect(/^ {4}instances: 2$/m.test(readFileSync(path, "utf8")), () => readFileSync(path, "utf8"));
    await problemsBecome(editor, wantedProblems(path));

    await editor.focusEditor();
    await editor.goTo(7, 8);
    await editor.hover("2 instances, each 1 CPU, 8GiB");
    await editor.goTo(5, 17);
    await editor.press("End", "Enter");
    const suggestions = await editor.suggestions();
    check.expect(suggestions.includes("needs"), `suggestions: ${suggestions}`);
    await editor.press("Escape", "Control+z");
    await editor.save();

    await editor.command("jobc: Show Kubernetes Manifest Beside");
    const manifest = printed(jobc, "build", "--stdout", "--backend", "kubernetes", path).trimEnd();
    const first = (text) => text.split("\n").slice(0, 12).join("\n");
    await until(async () => `the manifest is ${await editor.textOf("job.kubernetes.yaml")}\n\ninstead of\n\n${manifest}`,
        async () => first(await editor.textOf("job.kubernetes.yaml")) === first(manifest));
    check.expect(true, "the manifest");
    await editor.picture("manifest");

    // A file that changes on disk, without an editor.
    await editor.focusEditor();
    writeFileSync(join(directory, "jobs", "Dockerfile"), "FRM python:3.12-slim\n");
    await problemsBecome(editor, wantedProblems(path));
} catch (error) {
    check.expect(false, error.message);
    await editor?.picture("failed");
} finally {
    await editor?.close();
    await browser.close();
    server.stop();
}
check.note(`screenshots in ${shown(place)}`);
check.end();
