// Scenarios of using the extension.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { JOBC, REPOSITORY, until } from "../check.mjs";
import { printed } from "../compiler.mjs";
import { OTHER_EXTENSION } from "./other_extension.mjs";
import { NEWCOMER } from "./newcomer.mjs";
import { problemsBecome, wantedProblems } from "./problems.mjs";
import { README } from "./readme.mjs";
import { TARGETS } from "./targets.mjs";
import { TYPING } from "./typing.mjs";

const EXAMPLE = join(REPOSITORY, "examples", "torchrun-4x8");

/** A job with four errors, each found by another pass of the compiler. */
const INVALID_JOB = `version: 1
name: demo
image: python:3.12-slim
roles:
  prepare:
    resources: {cpu: 1, memory: 8}
    run: python prepare.py
  train:
    intances: 2
    needs: [prepre]
    run: python train.py --lr \${{ params.lr }}
`;

const write = (name, text) => (directory) => {
    mkdirSync(join(directory, name, ".."), { recursive: true });
    writeFileSync(join(directory, name), text);
};
const all = (...writers) => (directory) => writers.forEach((one) => one(directory));

const FILES = {
    files: all(
        write("job.yaml", ""),
        write("train.yaml", "version: 1\nname: x\nroles:\n  a: {run: x}\n"),
        write("k8s/job.yaml", "apiVersion: batch/v1\nkind: Job\n"),
        write("values.yaml", "replicas: 2\n"),
        write("targets.yaml", ""),
        write("job.json", "{}\n"),
        write("package.json", "{}\n"),
    ),
    async run(editor, check) {
        for (const [name, mode] of [
            ["job.yaml", "jobc job"], ["train.yaml", "jobc job"], ["targets.yaml", "jobc job"], ["job.json", "jobc job (JSON)"],
            ["k8s/job.yaml", "YAML"], ["values.yaml", "YAML"], ["package.json", "JSON"],
        ]) {
            await editor.openFile(name, mode);
            check.expect(true, name);
        }
        // A mode chosen by hand is kept, and an empty job.yaml that becomes a Kubernetes manifest gets the mode YAML.
        await editor.openFile("job.yaml");
        await editor.type("apiVersion: batch/v1\n");
        await editor.modeIs("YAML");
        await editor.openFile("train.yaml");
        await editor.pick("Change Language Mode", "YAML");
        await editor.modeIs("YAML");
        await editor.save();
        await editor.page.waitForTimeout(500);
        check.equal(await editor.mode(), "YAML", "the mode that was chosen by hand");
        // A text without a file becomes a job with its content.
        await editor.command("File: New Untitled Text File");
        await editor.pick("Change Language Mode", "YAML");
        await editor.modeIs("YAML");
        await editor.textFocused();
        await editor.insert("version: 1\nname: x\nroles:\n  a:\n    run: |\n      if true; then echo; fi\n    timeout: 1h\n");
        await editor.modeIs("jobc job");
        await editor.picture("untitled");
        check.expect(true, "an untitled job");
        // The mode of a job that was chosen by hand is kept too, whatever its name and content.
        await editor.openFile("values.yaml", "YAML");
        await editor.pick("Change Language Mode", "jobc job");
        await editor.modeIs("jobc job");
        await editor.press("Control+Home");
        await editor.type("kind: values\n");
        await editor.save();
        await editor.page.waitForTimeout(500);
        check.equal(await editor.mode(), "jobc job", "the mode of a job that was chosen by hand");
        await editor.pick("Change Language Mode", "YAML");
        await editor.modeIs("YAML");
        const rows = await editor.problems();
        check.equal(rows.filter((row) => !/ jobc J\d{4} /.test(row)), [], "findings that are not jobc's");
        check.equal(rows.filter((row) => row.includes("J0122")), [], "findings about a Kubernetes manifest");
    },
};

const MISTAKES = {
    files: write("job.yaml", INVALID_JOB),
    async run(editor, check, directory) {
        await editor.openFile("job.yaml");
        const path = join(directory, "job.yaml");
        check.equal(wantedProblems(path).length, 4, "errors in the sample");
        await problemsBecome(editor, wantedProblems(path));
        await editor.picture("problems");

        await editor.focusEditor();
        await editor.goTo(9, 6);
        const fixes = await editor.quickFixes();
        check.expect(fixes.includes("write `instances`") && fixes.includes("Explain J0101"), `quick fixes: ${fixes}`);
        await editor.picture("fix");
        await editor.takeFix("write `instances`");
        await editor.goTo(6, 35);
        const units = await editor.quickFixes();
        check.expect(units.includes("write `8GiB`"), `quick fixes of an amount: ${units}`);
        await editor.takeFix("write `8GiB`");
        await editor.save();
        check.expect(/instances: 2/.test(readFileSync(path, "utf8")) && /memory: 8GiB/.test(readFileSync(path, "utf8")), () => readFileSync(path, "utf8"));
        const left = wantedProblems(path);
        await problemsBecome(editor, left);
        check.equal(left.length, 2, "the findings that are left");

        await editor.focusEditor();
        await editor.goTo(10, 14);
        await editor.command("jobc: Explain This Error");
        const page = await until("no page is shown", () => editor.webview("J0250"));
        check.expect(page.includes(printed(JOBC, "explain", "J0250").split("\n")[0].replace(/^# |`/g, "")), `the page of J0250: ${page.slice(0, 200)}`);
        await editor.picture("explain");
    },
};

/** JSON with a comment, which VS Code's own JSON mode reports as an error. */
const JSON_JOB = `// a job
{
  "version": 1,
  "name": "demo",
  "image": "python:3.12-slim",
  "roles": {
    "train": {
      "run": "python train.py",
      "resources": {"cpu": 1, "memory": "1GiB"},
      
    }
  }
}
`;

const IN_JSON = {
    files: all(write("job.json", JSON_JOB), write("valid/job.json", JSON_JOB.replace("},\n      \n", "}\n"))),
    async run(editor, check, directory) {
        await editor.openFile("valid/job.json", "jobc job (JSON)");
        const expected = wantedProblems(join(directory, "valid", "job.json"));
        await problemsBecome(editor, expected);
        await editor.focusEditor();
        await editor.goTo(9, 10);
        await editor.hover("Resources of each instance");
        await editor.press("Escape");
        await editor.command("View: Close All Editors");

        await editor.openFile("job.json", "jobc job (JSON)");
        await problemsBecome(editor, wantedProblems(join(directory, "job.json")));
        await editor.focusEditor();
        await editor.goTo(10, 7);
        const offered = await editor.suggestions();
        check.expect(offered.includes("env") && offered.includes("instances"), `offered in a role: ${offered}`);
        check.equal(offered.filter((label, i) => offered.indexOf(label) !== i), [], "offered twice");
        await editor.accept("instances");
        await editor.type("2");
        await editor.save();
        const text = readFileSync(join(directory, "job.json"), "utf8");
        check.equal(/"instances": 2\n/.test(text), true, `what completion has written:\n${text}`);
        await problemsBecome(editor, expected);
    },
};

const PLAN = {
    files(directory) {
        cpSync(EXAMPLE, directory, { recursive: true, filter: (path) => !path.includes("/out") });
    },
    async run(editor, check, directory) {
        await editor.openFile("job.yaml");
        const path = join(directory, "job.yaml");
        // Those of the fields, such as "3 files, 8 lines", come later.
        check.equal((await editor.lenses()).slice(0, 3), ["Build", "Run", "Show plan"], "the lenses");
        await editor.goTo(24, 7);
        // The documentation and the amounts, in one hover.
        const hover = await editor.hover("Resources of each instance", "32 GPUs");
        check.equal(hover.length, 1, `the hover of \`resources\`: ${hover}`);
        await editor.picture("hover");
        await editor.press("Escape");

        await editor.goTo(1);
        await editor.takeLens("Show plan");
        const plan = printed(JOBC, "plan", "--format", "yaml", path).split("\n");
        await until("the plan is not shown", async () => (await editor.textOf("job.plan.yaml")).includes(plan[1]));
        const seen = (await editor.textOf("job.plan.yaml")).split("\n").filter((line) => line.trim() !== "");
        check.equal(seen, plan.filter((line) => line.trim() !== "").slice(0, seen.length), "the plan beside");
        await editor.picture("plan");

        // The plan follows the text; while the text is invalid, the last plan is kept, with the reason.
        await editor.focusEditor();
        await editor.goTo(3, 7);
        await editor.press("Shift+End");
        await editor.type("gpt-large");
        await until("the plan does not follow", async () => /name: gpt-large/.test(await editor.textOf("job.plan.yaml")));
        await editor.type(": x");
        await until("the plan does not say that the job is invalid", async () => /^# .*\n# what follows is from before/.test(await editor.textOf("job.plan.yaml")));
        check.expect(/name: gpt-large/.test(await editor.textOf("job.plan.yaml")), "the last plan is gone");
        await editor.press("Backspace", "Backspace", "Backspace");

        await editor.command("jobc: Show Kubernetes Manifest Beside");
        await until("no manifest is shown", async () => /kind: JobSet|kind: ConfigMap/.test(await editor.textOf("job.kubernetes.yaml")));
        await editor.picture("kubernetes");

        await editor.focusEditor();
        await editor.save();
        await editor.command("jobc: Build");
        await until("nothing is built", () => exists(join(directory, "out", "gpt-large", "lab", "plan.json")), 60);
        check.expect(true, "built");
        await editor.picture("build");
        check.equal(await editor.notifications(), [], "messages in the corner");
    },
};

const TASKS = {
    files: all(write("train/job.yaml", INVALID_JOB), write("README.md", "")),
    async run(editor, check, directory) {
        // A task that checks a closed file: its findings come from the terminal, through the problem matcher.
        await editor.openFile("README.md", "Markdown");
        await editor.pick("Tasks: Run Task", "jobc", "jobc: check train/job.yaml");
        const path = join(directory, "train", "job.yaml");
        await problemsBecome(editor, wantedProblems(path));
        // When it is opened, it has only the language server's findings.
        await editor.openFile("train/job.yaml");
        await editor.page.waitForTimeout(2000);
        await problemsBecome(editor, wantedProblems(path));
        check.expect(true, "each finding once");
    },
};

const ABSENT = {
    files: write("job.yaml", "version: 1\nroles:\n  train:\n    run: x\n"),
    settings: { "jobc.path": "/nowhere/jobc" },
    async run(editor, check) {
        await editor.openFile("job.yaml");
        const messages = await until("there is no notification", async () => (await editor.notifications()).length > 0 && (await editor.notifications()));
        check.expect(/the program `jobc` was not found: there is no `\/nowhere\/jobc`\. Install jobc, or name it by `jobc\.path`/.test(messages[0]), `the message: ${messages}`);
        await editor.picture("absent");
        check.equal(await editor.target(), undefined, "the target in the status bar");
    },
};

const INSTALLS = {
    // A stand-in for `uv`, which puts the program where `uv tool install` puts it. On this PATH there is no jobc.
    files: all(write("job.yaml", "version: 1\nname: x\nimage: busybox\nroles:\n  train:\n    runn: x\n"), (directory) => {
        const bin = join(directory, "..", "bin");
        mkdirSync(bin);
        const script = `#!/bin/sh\necho "$*" >~/uv-was-run\nmkdir -p ~/.local/bin && ln -s "${JOBC}" ~/.local/bin/jobc\n`;
        writeFileSync(join(bin, "uv"), script, { mode: 0o755 });
        // VS Code takes the variables of a login shell.
        writeFileSync(join(bin, "..", ".profile"), "PATH=~/bin:/usr/bin:/bin\n");
    }),
    settings: { "jobc.path": "" },
    path: (home) => `${join(home, "bin")}:/usr/bin:/bin`,
    async run(editor, check, directory) {
        await editor.openFile("job.yaml");
        const messages = await until("there is no notification", async () => (await editor.notifications()).length > 0 && (await editor.notifications()));
        check.expect(/the program `jobc` was not found: it is not on PATH\. Install jobc/.test(messages[0]), `the message: ${messages}`);
        check.equal(await editor.pressAndPick("Install", "uv"), "uv uv tool install --upgrade jobc", "the way");
        await until("nothing is installed", () => exists(join(directory, "..", "uv-was-run")), 30);
        check.equal(readFileSync(join(directory, "..", "uv-was-run"), "utf8"), "tool install --upgrade jobc\n", "the command");
        await until("there are no findings", async () => (await editor.problems()).some((problem) => problem.includes("unknown key `runn`")), 30);
        check.expect(true, "the program that was installed answers");
        await editor.picture("installed");
    },
};

function exists(path) {
    try {
        return readFileSync(path).length > 0;
    } catch {
        return false;
    }
}

const IMPORTED = {
    files: write("compose.yaml", "services:\n  web:\n    image: busybox\n    command: echo hi\n    env_file: web.env\n    gpus: all\n    container_name: mine\n"),
    async run(editor, check, directory) {
        writeFileSync(join(directory, "web.env"), "LR=0.1\n");
        await editor.openFile("compose.yaml", "Compose");
        await editor.command("jobc: Import as Job File");
        await editor.modeIs("jobc job");
        const text = await until("no job file", async () => {
            const all = await editor.textOf("job.yaml");
            return all.includes("roles:") && all;
        });
        check.expect(/LR: "?0\.1/.test(text), `the job: ${text}`);
        const printedJob = printed(JOBC, "import", join(directory, "compose.yaml")).split("\n").filter((line) => !line.startsWith("#")).join("\n");
        check.equal(text.trim(), printedJob.trim(), "the job that `jobc import` writes");
        const rows = await editor.problems();
        check.expect(rows.some((row) => / jobc J06\d\d /.test(row)), `no finding of the import: ${rows}`);
        await editor.picture("imported");
    },
};

/** Scenarios that run only when they are named. */
export const ON_DEMAND = { readme: README };

export const SCENARIOS = {
    files: FILES, mistakes: MISTAKES, json: IN_JSON, plan: PLAN, tasks: TASKS, absent: ABSENT, installs: INSTALLS, newcomer: NEWCOMER, targets: TARGETS,
    typing: TYPING, "other-extension": OTHER_EXTENSION, imported: IMPORTED,
};
