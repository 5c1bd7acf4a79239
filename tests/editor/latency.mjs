// Measures VS Code (code-server, in Chromium) with the extension: the time from a key to the frame that shows it, and to the list
// of suggestions, while roles are typed into a long job at an even speed. `tests/bench/editor` has the usage.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { Check, JOBC, REPOSITORY, scratch, shown } from "./check.mjs";
import { Editor } from "./vscode/editor.mjs";
import { observe } from "./vscode/frames.mjs";
import { installed, startCodeServer } from "./vscode/server.mjs";

const { values: options } = parseArgs({
    options: {
        keys: { type: "string", default: "600" },
        lines: { type: "string", default: "2000" },
        speed: { type: "string", default: "10" },
        trace: { type: "boolean", default: false },
        plain: { type: "boolean", default: false },
    },
});

/** What is typed at the end of a role: another role. The list of suggestions should be open after the key behind `|`. */
const ROLE = [
    "  extra-NUMBER:",
    "    |instances: 2",
    "    |image: python:3.12-slim",
    "    |resources: {|cpu: 2, |memory: 4GiB}",
    "    |env: {MODE: fast}",
    "    |run: python extra.py",
    "    |timeout: 1h",
    "",
];

/** A job that all built-in targets are tried for, as `tests/bench/lsp` has it. */
function longJob(lines) {
    let text = "version: 1\nname: large\nimage: pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime\nparams: {lr: 0.1}\nroles:\n";
    for (let number = 0; text.split("\n").length < lines; number++) {
        const needs = number % 10 ? `    needs: {role-${number - 1}: succeeded}\n` : "";
        text += `  role-${number}:\n    # the work of part ${number}\n${needs}    instances: 2\n    resources:\n      cpu: 4\n` +
            "      memory: 16GiB\n      shm: 2GiB\n      gpu: {count: 1, memory: 40GiB}\n    env:\n" +
            `      PART: ${number}\n      RATE: \${{ params.lr }}\n    run: |\n      python train.py --part ${number}\n    timeout: 2h\n\n`;
    }
    return text;
}

const check = new Check("latency");
const jobc = check.program(JOBC);
const chromium = check.program("chromium");
const { default: playwright } = await check.module("playwright-core");
if (!installed()) {
    check.needs("code-server");
}
const vsix = join(REPOSITORY, "editors", "vscode", "dist", "jobc.vsix");
if (!existsSync(vsix)) {
    check.needs("the package of the extension", "`just vsix`");
}

const home = scratch("latency");
const folder = join(home, "work");
mkdirSync(folder);
const text = longJob(Number(options.lines));
const name = options.plain ? "job.txt" : "job.yaml";
writeFileSync(join(folder, name), text);
const settings = {
    "jobc.path": jobc,
    // The text decides what is in it, and not what the editor adds.
    "editor.acceptSuggestionOnEnter": "off",
    "editor.autoClosingBrackets": "never",
};
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const server = await startCodeServer({ place: home, folder, extensions: [vsix], settings });
try {
    const editor = await Editor.open(browser, server.address, folder, home);
    await editor.openFile(name, options.plain ? null : "jobc job");
    if (!options.plain) {
        // The server is ready once it has completed something.
        await editor.page.locator(".codelens-decoration a").first().waitFor({ timeout: 60_000 });
    }
    const ends = text.split("\n").flatMap((line, index) => (line === "" ? [index + 1] : []));
    await editor.goTo(ends[Math.floor(ends.length / 2)]);
    await editor.page.waitForTimeout(3000);
    const load = loadavg()[0].toFixed(2);
    if (options.trace) {
        await browser.startTracing(editor.page, { path: join(home, "trace.json") });
    }
    const { lines, opens } = plan(Number(options.keys));
    await editor.page.evaluate(observe, opens);
    const late = await typeEvenly(editor, lines, 1000 / Number(options.speed));
    await editor.page.waitForTimeout(1500);
    const { keys, events, tasks } = await editor.page.evaluate(() => globalThis.latency());
    if (options.trace) {
        await browser.stopTracing();
    }
    await editor.picture("end");
    writeFileSync(join(home, "keys.json"), JSON.stringify({ keys, events, tasks }, null, 1));
    console.log(`${cpus().length} × ${cpus()[0].model}, load ${load}; ${options.lines} lines, ${options.speed} keys per second, sent up to ${late.toFixed(0)} ms late`);
    print("key to its frame", keys.map((key) => key.shown));
    print("key to suggestions", keys.filter((key) => key.opensList).map((key) => key.listed));
    print("by event timing", keys.map((_, number) => events[number] ?? 16));
    print("long tasks", tasks);
    console.log(`each key, and a picture of the end: ${shown(home)}`);
} finally {
    await browser.close();
    server.stop();
}

/** The lines to type, as their indentation and keys, and the numbers of the keys after which the list should be open. */
function plan(count) {
    const [lines, opens] = [[], []];
    for (let number = 0, typed = 0; typed < count; number++) {
        for (const line of ROLE.map((line) => line.replace("NUMBER", number))) {
            const blanks = line.match(/^ */)[0];
            const parts = line.slice(blanks.length).split("|");
            lines.push({ blanks, keys: [...parts.join("")] });
            for (const [index, part] of parts.entries()) {
                typed += part.length;
                if (index + 1 < parts.length) {
                    opens.push(typed);
                }
            }
        }
    }
    return { lines, opens };
}

/** Types at an even speed, whether or not the editor keeps up; returns by how much the script itself was late, in ms. */
async function typeEvenly(editor, lines, pause) {
    let [due, late] = [performance.now(), 0];
    const wait = () => new Promise((resolve) => setTimeout(resolve, due - performance.now()));
    for (const { blanks, keys } of lines) {
        // Indentation is not typed by hand.
        await editor.press("Shift+Home", "Shift+Home");
        await editor.insert(blanks);
        due = Math.max(due, performance.now());
        const sent = [];
        for (const key of keys) {
            await wait();
            late = Math.max(late, performance.now() - due);
            sent.push(editor.press(key));
            due += pause;
        }
        await Promise.all(sent);
        await wait();
        await editor.press("Escape", "Enter");
    }
    return late;
}

function print(what, times) {
    const sorted = times.filter((time) => time !== null).sort((a, b) => a - b);
    const none = times.length - sorted.length;
    const at = (part) => (sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] ?? 0).toFixed(1).padStart(7);
    const rest = none > 0 ? `   ${none} never` : "";
    console.log(`${what.padEnd(20)} ${String(sorted.length).padStart(4)}   median ${at(0.5)} ms   95 % ${at(0.95)} ms   most ${at(1)} ms${rest}`);
}
