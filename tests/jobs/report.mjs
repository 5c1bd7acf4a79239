// Reports of jobs in Chromium: at three widths, in light and dark and printed. Records are written here; `jobc report` makes the pages.
// Pictures of all pages are kept in target/editor/run/report.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

import { Check, JOBC, scratch } from "../editor/check.mjs";
import { RECORDS, sweep } from "./report/records.mjs";

const check = new Check("report");
const jobc = check.program(JOBC);
const chromium = check.program("chromium");
const { default: playwright } = await check.module("playwright-core");
const { default: axe } = await check.module("axe-core");

const place = scratch("report");
const environment = { ...process.env, XDG_STATE_HOME: join(place, "state"), NO_COLOR: "1" };

/** A job that runs until it is killed, under a name of this test's own. */
const RUNNING = `version: 1
name: tested-report-${process.pid}
description: still running
image: host
roles:
  worker:
    instances: 2
    shell: sh
    resources: {memory: 64MiB}
    run: "echo started; while :; do sleep 0.2; done"
`;

const WIDTHS = [380, 800, 1600];

const { positionals: chosen } = parseArgs({ allowPositionals: true });
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
try {
    for (const [name, make] of Object.entries({ ...RECORDS, running, sweep })) {
        if (chosen.length > 0 && !chosen.includes(name)) {
            continue;
        }
        const start = Date.now();
        const page = make === running ? running() : make === sweep ? compared(name, make()) : written(name, make());
        if (page) {
            await look(name, page);
            console.log(`report: ${name} took ${((Date.now() - start) / 1000).toFixed(0)} s`);
        }
    }
} finally {
    await browser.close();
}
check.end();

function run(...words) {
    return spawnSync(jobc, words, { cwd: place, env: environment, encoding: "utf8", maxBuffer: 64 << 20 });
}

/** The page of a record. */
function written(name, job) {
    write(job);
    const page = report(name, job.record.id);
    if (page && name === "curves") {
        const text = readFileSync(page, "utf8");
        check.expect(text.includes("<desc>loss by step of 4 tasks</desc>") && text.includes("logarithmic scale"), `${name}: no curves`);
    }
    return page;
}

/** The files of a record. */
function write({ record, events = [], samples = [], logs = {}, origin, plan, file }) {
    const directory = join(place, "state", "jobc", "jobs", record.id);
    const lines = (all) => all.map((one) => `${JSON.stringify(one)}\n`).join("");
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "job.json"), JSON.stringify(record));
    writeFileSync(join(directory, "events.jsonl"), lines(events));
    writeFileSync(join(directory, "samples.jsonl"), lines(samples));
    for (const [path, content] of [["origin.json", origin && JSON.stringify(origin)], ["plan.json", plan && JSON.stringify(plan)], ["job-file", file]]) {
        if (content !== undefined) {
            writeFileSync(join(directory, path), content);
        }
    }
    for (const [task, text] of Object.entries(logs)) {
        mkdirSync(join(directory, "logs", task), { recursive: true });
        writeFileSync(join(directory, "logs", task, "000001.log"), text);
    }
}

/** The page of a sweep. */
function compared(name, { id, jobs, file }) {
    for (const job of jobs) {
        write(job);
    }
    const directory = join(place, "state", "jobc", "sweeps", id);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "sweep.json"), JSON.stringify(file));
    return report(name, id);
}

function report(name, id) {
    const path = join(place, `${name}.html`);
    const { status, stderr } = run("report", id, "-o", path);
    check.expect(status === 0, `${name}: \`jobc report\` exits with ${status}: ${stderr}`);
    return status === 0 ? path : undefined;
}

/** The page of a job while it runs. */
function running() {
    if (process.getuid() !== 0) {
        check.note("the running job needs root");
        return undefined;
    }
    const job = join(place, "running.yaml");
    writeFileSync(job, RUNNING);
    const { status, stdout, stderr } = run("run", "--detach", job);
    if (!check.expect(status === 0, `running: \`jobc run\` exits with ${status}: ${stderr}`)) {
        return undefined;
    }
    const id = stdout.trim();
    try {
        for (let tries = 0; tries < 100 && !run("logs", id).stdout.includes("started"); tries += 1) {
            spawnSync("sleep", ["0.1"]);
        }
        return report("running", id);
    } finally {
        run("kill", id);
    }
}

/** Opens a page in every size and color scheme. */
async function look(name, path) {
    const { size } = statSync(path);
    check.expect(size < 3 << 20, `${name}: ${size} bytes`);
    for (const colorScheme of ["light", "dark"]) {
        for (const width of WIDTHS) {
            const what = `${name}, ${colorScheme}, ${width}`;
            const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
            const page = await context.newPage();
            const [errors, requests] = [[], []];
            page.on("console", (message) => errors.push(message.text()));
            page.on("pageerror", (error) => errors.push(error.message));
            page.on("request", (request) => requests.push(request.url()));
            const address = pathToFileURL(path).href;
            await page.goto(address);
            check.equal(requests, [address], `${what}: requests`);
            check.equal(errors, [], `${what}: errors on the console`);
            check.equal(await page.evaluate(layout), [], `${what}: layout`);
            const height = await page.evaluate(() => document.documentElement.scrollHeight);
            await page.screenshot({ path: join(place, `${name}-${colorScheme}-${width}.png`), fullPage: true, clip: { x: 0, y: 0, width, height: Math.min(height, 6000) } });
            if (width === 800) {
                await accessible(what, page);
            }
            if (width === 800 && colorScheme === "light") {
                await printed(what, page);
            }
            await context.close();
        }
    }
}

/** What is wrong with the layout of the page: wider than the window, or labels over each other or outside of their drawing. */
function layout() {
    const wrong = [];
    if (document.documentElement.scrollWidth > window.innerWidth) {
        const wide = [...document.querySelectorAll("main *")].filter((element) => element.getBoundingClientRect().right > window.innerWidth + 1 && !element.closest(".wide, .rows, svg"));
        wrong.push(`the page is ${document.documentElement.scrollWidth} wide: ${wide.slice(0, 3).map((element) => element.outerHTML.slice(0, 80))}`);
    }
    for (const svg of document.querySelectorAll("svg")) {
        const outer = svg.getBoundingClientRect();
        const labels = [...svg.querySelectorAll("text.tick")].map((text) => ({ words: text.textContent, box: text.getBoundingClientRect() }));
        for (const { words, box } of labels) {
            if (box.left < outer.left - 1 || box.right > outer.right + 1 || box.bottom > outer.bottom + 1) {
                wrong.push(`${svg.querySelector("title")?.textContent}: the label ${words} is outside`);
            }
        }
        for (const [place, { words, box }] of labels.entries()) {
            for (const other of labels.slice(place + 1, place + 40)) {
                if (box.left < other.box.right && other.box.left < box.right && box.top < other.box.bottom - 1 && other.box.top < box.bottom - 1) {
                    wrong.push(`${svg.querySelector("title")?.textContent}: the labels ${words} and ${other.words} overlap`);
                }
            }
        }
    }
    return wrong.slice(0, 10);
}

/** axe-core finds nothing wrong: contrast, names, headings, focus. */
async function accessible(what, page) {
    // Folded parts are checked as well, and rows that are all alike once.
    await page.evaluate(() => {
        document.querySelectorAll("details").forEach((details) => {
            details.open = true;
        });
        document.querySelectorAll("tr:nth-child(n + 30), .log div:nth-child(n + 10), details:nth-of-type(n + 10)").forEach((element) => element.remove());
    });
    await page.evaluate(axe.source);
    const violations = await page.evaluate(async () => {
        const { violations } = await globalThis.axe.run();
        return violations.map(({ id, nodes }) => `${id}: ${nodes.length} such as ${nodes[0].html.slice(0, 160)}: ${nodes[0].failureSummary}`);
    });
    check.equal(violations, [], `${what}: axe-core`);
}

/** On paper nothing is cut off, and folded logs are there. */
async function printed(what, page) {
    await page.reload();
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    const wrong = await page.evaluate(() => {
        const cut = [...document.querySelectorAll(".rows, .wide, pre")].filter((element) => getComputedStyle(element).overflowY !== "visible");
        const background = getComputedStyle(document.body).backgroundColor;
        const folded = [...document.querySelectorAll("details .log")].filter((log) => log.children.length > 0 && log.getBoundingClientRect().height === 0);
        return [...cut.map((element) => element.className), ...folded.map((log) => log.parentElement.id), ...(background === "rgb(255, 255, 255)" ? [] : [background])];
    });
    check.equal(wrong, [], `${what}: on paper`);
    await page.emulateMedia({ media: null });
}
