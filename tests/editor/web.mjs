// The playground in Chromium: served as static files from a subdirectory, driven by keys, and compared with the command line.
// Arguments are the steps to take [default: all].

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";

import { Check, JOBC, REPOSITORY, files, scratch, shown, until } from "./check.mjs";
import { compilerFindings, positions, printed } from "./compiler.mjs";
import { Page } from "./web/page.mjs";
import { serveDirectory } from "./web/serve.mjs";
import * as states from "./web/states.mjs";

const check = new Check("web");
const jobc = check.program(JOBC);
const chromium = check.program("chromium");
const { default: playwright } = await check.module("playwright-core");
const site = process.env.JOBC_WEB ?? join(REPOSITORY, "target", "web");
if (!existsSync(join(site, "jobc.wasm")) || !existsSync(join(site, "index.html"))) {
    check.needs("the playground", "`editors/web/install` and `editors/web/build`");
}

const place = scratch("web");
const { origin, address, close } = await serveDirectory(site);
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });

/** A worker whose module fails on a text with this sign. */
const TRAPPING = `{
    const Real = WebAssembly.Instance;
    WebAssembly.Instance = function (...given) {
        const real = new Real(...given).exports;
        let input;
        const exports = {
            ...real,
            jobc_input: (length) => (input = [real.jobc_input(length), length])[0],
            jobc_receive() {
                const text = new TextDecoder().decode(new Uint8Array(real.memory.buffer, ...input));
                if (text.includes("☠")) {
                    throw new WebAssembly.RuntimeError("unreachable");
                }
                return real.jobc_receive();
            },
        };
        return { exports };
    };
}
`;

const STEPS = { everyExample, target, mistake, completion, links, share, keyboard, trap, broken, ...states };

/** Steps in which something fails. */
const FAILING = ["trap", "broken", "offline"];

const { positionals: chosen } = parseArgs({ allowPositionals: true });

try {
    for (const [name, step] of Object.entries(STEPS).filter(([name]) => chosen.length === 0 || chosen.includes(name))) {
        const start = Date.now();
        const opened = await Page.open(browser, address);
        try {
            await (name in states ? step({ check, browser, address, place, site }, opened) : step(opened));
        } catch (error) {
            check.expect(false, `${name}: ${error.message}`);
            await opened.picture(join(place, `${name}-failed.png`));
        }
        const elsewhere = opened.requests.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith("data:"));
        check.equal(elsewhere, [], `${name}: requests to elsewhere`);
        if (!FAILING.includes(name)) {
            check.equal(opened.errors, [], `${name}: errors on the console`);
        }
        await opened.close();
        console.log(`web: ${name} took ${((Date.now() - start) / 1000).toFixed(0)} s`);
    }
} finally {
    await browser.close();
    close();
}
const sizes = ["jobc.wasm", "main.js"].map((name) => `${name} ${Math.round(readFileSync(join(site, name)).length / 1024)} KiB`);
check.note(sizes.join(", "));
check.end();

/** A copy of an example without what it has written. */
function copyOf(name, copyName = name) {
    const copy = join(place, copyName);
    cpSync(join(REPOSITORY, "examples", name), copy, { recursive: true, filter: (path) => !/\/(out|work|runs)$/.test(path) });
    return copy;
}

/** What `jobc build` writes: the text by path below `out`. */
function built(directory, job, ...options) {
    const out = join(directory, "out");
    const { status, stderr } = spawnSync(jobc, ["build", ...options, job], { cwd: directory, encoding: "utf8" });
    if (status !== 0) {
        throw new Error(`\`jobc build\` of ${directory} fails: ${stderr}`);
    }
    return Object.fromEntries(files(out, () => true).map((path) => [relative(out, path), readFileSync(path, "utf8")]));
}

/** The findings of `jobc check` for a text, as the page shows them. */
function native(name, text) {
    const directory = join(place, name);
    mkdirSync(directory, { recursive: true });
    const job = join(directory, "job.yaml");
    writeFileSync(job, text);
    const at = positions(Buffer.from(text));
    return compilerFindings(jobc, job).filter(({ severity }) => severity !== "note").map(({ code, start }) => {
        const { line, character } = at(start);
        return `${code} ${line + 1}:${character + 1}`;
    });
}

async function everyExample(page) {
    const isJob = (name) => ["job.yaml", "job.json"].some((file) => existsSync(join(REPOSITORY, "examples", name, file)));
    const names = readdirSync(join(REPOSITORY, "examples")).filter(isJob);
    const offered = await page.options("#example");
    check.equal(offered.toSorted(), names.toSorted(), "the examples");
    let compared = 0;
    for (const name of names) {
        const directory = copyOf(name);
        const job = ["job.yaml", "job.json"].find((file) => existsSync(join(directory, file)));
        await page.built(() => page.choose("#example", name));
        check.equal(await page.text(), readFileSync(join(directory, job), "utf8"), `${name}: the job`);
        if (/^code:/m.test(await page.text())) {
            // The page has no directory to pack.
            continue;
        }
        const wanted = built(directory, job);
        const found = await page.outputs();
        const { plan, ...artifacts } = found;
        check.equal(Object.keys(artifacts).toSorted(), Object.keys(wanted).toSorted(), `${name}: the files`);
        for (const [path, text] of Object.entries(wanted)) {
            compared += 1;
            check.expect(artifacts[path] === text, `${name}: ${path} differs from the file that \`jobc build\` writes`);
        }
        check.equal(plan, printed(jobc, "plan", "--format", "yaml", join(directory, job)), `${name}: the plan`);
    }
    check.note(`${names.length} examples with ${compared} files`);
}

async function target(page) {
    const directory = copyOf("dag", "dag-for-one-target");
    await page.built(() => page.choose("#example", "dag"));
    const targets = (await page.options("#target")).filter((name) => name !== "");
    check.expect(targets.length > 1, `dag has one target: ${targets}`);
    await page.built(() => page.choose("#target", targets[1]));
    const wanted = built(directory, "job.yaml", "--target", targets[1]);
    const { plan, ...artifacts } = await page.outputs();
    check.equal(Object.entries(artifacts).toSorted(), Object.entries(wanted).toSorted(), `the files for ${targets[1]}`);
}

async function mistake(page) {
    await page.built(() => page.choose("#example", "hello-cpu"));
    const before = await page.text();
    check.equal(await page.problems(), native("fine", before), "the findings of an example");
    // A wrong key: the first letter of `resources`.
    const line = before.split("\n").findIndex((text) => /^\s+resources:/.test(text));
    const column = before.split("\n")[line].indexOf("resources");
    await page.cursor(line, column + 1);
    await page.built(() => page.type("x"));
    const broken = await page.text();
    check.expect(broken.includes("rxesources:"), `typed: ${broken}`);
    const wanted = native("mistake", broken);
    check.expect(wanted.length > 0, "the mistake is none");
    check.equal(await page.problems(), wanted, "the findings of a mistake");
    const message = compilerFindings(jobc, join(place, "mistake", "job.yaml"))[0].message;
    check.expect((await page.rows())[0].includes(message), `the message is not \`${message}\`: ${await page.rows()}`);
    check.expect(/^Shown is what was built before\. The job has errors: J\d+: /.test(await page.notice()), `the notice: ${await page.notice()}`);
    check.expect((await page.outputs()).plan.includes("hello"), "the plan of before is gone");

    await page.fix();
    await until("the fix is not applied", async () => (await page.text()) === before);
    await page.settled();
    check.equal(await page.problems(), native("fixed", before), "the findings after the fix");
    check.equal(await page.notice(), "", "the notice after the fix");
    await page.picture(join(place, "mistake.png"));
}

async function completion(page) {
    await page.built(() => page.choose("#example", "hello-cpu"));
    const lines = (await page.text()).split("\n");
    const line = lines.findIndex((text) => /^\s+resources:/.test(text));
    await page.cursor(line, lines[line].length);
    const suggestions = await page.complete();
    for (const field of ["needs", "env", "data"]) {
        check.expect(suggestions.includes(field), `no completion of \`${field}\`: ${suggestions}`);
    }
    await page.key("Escape");
    await page.type("env");
    await page.accept("env");
    check.equal((await page.text()).split("\n")[line + 1]?.trim(), "env:", "the completion of `env`");
    await page.built(() => page.choose("#example", "dag"));
    await page.built(() => page.choose("#example", "hello-cpu"));
    const hovered = await page.hover(line, lines[line].indexOf("resources") + 2);
    check.expect(/CPU|memory/i.test(hovered), `the hover of \`resources\`: ${hovered}`);
}

/** A line of the job leads to the lines that `jobc why` names for it, and each of them back. */
async function links(page) {
    const directory = copyOf("hello-cpu", "hello-cpu-with-links");
    await page.built(() => page.choose("#example", "hello-cpu"));
    const lines = (await page.text()).split("\n");
    await linked(page, directory, lines.findIndex((text) => /^ +resources:/.test(text)));

    // The pointer takes precedence over the cursor for as long as it is there.
    const other = lines.findIndex((text) => /^\s+run:/.test(text));
    await page.point(0, other);
    await page.sentenceOf((text) => /^\d+ lines? in \d+ files?: roles\.\w+\.run$/.test(text), "the line under the pointer");
    await page.leave();
    await page.sentenceOf((text) => text.includes(".resources.cpu"), "the cursor after the pointer has left");

    // What the job does not have: a default.
    const config = (await page.keysOfOutputs()).find((key) => key.endsWith("config.json"));
    const text = (await page.outputs())[config];
    await page.select(config);
    await page.point(1, text.split("\n").findIndex((it) => it.includes('"JOBC_')));
    await page.sentenceOf((it) => it === "From what jobc tells every process", "a default");
    check.equal(await page.markedLines(0, "other"), [], "the line of a default in the job");
    await page.leave();

    // Nothing is linked to a job with errors.
    await page.cursor(0, 0);
    await page.built(() => page.type("extra: x\n"));
    await page.sentenceOf((it) => it === "", "a job with errors");
    check.equal(await page.linkedFiles(), {}, "the marks with errors");
}

/** One line of the job: the sentence, the marks, and by keys through all that it causes and back. */
async function linked(page, directory, line) {
    const { fields, effects } = effectsOf(directory, line);
    const name = fields.join(", ");
    const numbers = {};
    for (const key of new Set(effects.map(({ key }) => key))) {
        numbers[key] = new Set(effects.filter((it) => it.key === key).map(({ line }) => line)).size;
    }
    const number = Object.values(numbers).reduce((sum, it) => sum + it, 0);
    check.expect(Object.keys(numbers).length > 1, `${name} is in one file`);

    await page.cursor(line, 0);
    const said = `${number} lines in ${Object.keys(numbers).length} files: ${name}`;
    await page.sentenceOf((text) => text === said, said);
    const marks = await page.linkedFiles();
    check.equal(Object.entries(marks).toSorted(), Object.entries(numbers).map(([key, it]) => [key, [it, it]]).toSorted(), `the marks of files for ${name}`);
    check.equal(await page.markedLines(0, "own"), [line], `the mark of ${name}`);

    for (let step = 0; step < number; step += 1) {
        await page.key("F4");
        const here = await until(`F4 leads to no other line of ${name}`, async () => {
            const [key, { focused, line }] = [await page.selected(), await page.at(1)];
            return focused && effects.find((it) => !it.seen && it.key === key && it.line === line);
        });
        effects.filter(({ key, line }) => key === here.key && line === here.line).forEach((it) => (it.seen = true));
        const what = `${here.key}:${here.line + 1}`;
        // Several lines have the same sentence.
        await until(`${what} is not marked`, async () => (await page.markedLines(1, "own")).join() === String(here.line));
        await page.sentenceOf((text) => text.startsWith("From ") && text.includes(`(job.yaml, line ${line + 1})`), what);
        check.expect((await page.markedLines(0, "other")).includes(line), `the job's line is not marked for ${what}`);
    }
    check.equal(effects.filter(({ seen }) => !seen), [], `lines of ${name} that F4 leaves out`);
    await page.key("Shift+F4");
    await until("Shift+F4 does not lead to the job", async () => {
        const at = await page.at(0);
        return at.focused && at.line === line;
    });
    await page.sentenceOf((text) => text === said, `${said}, again`);
    await until(`${name} marks nothing in the file that is shown`, async () => (await page.markedLines(1, "other")).length > 0);
    for (const scheme of ["dark", "light"]) {
        await page.prefer(scheme);
        const wanted = { signs: ['"◆"', '"●"'], framed: true };
        await until(`in ${scheme}, lines are marked by a color alone`, async () => JSON.stringify(await page.signs()) === JSON.stringify(wanted));
        await page.picture(join(place, `links-${line + 1}-${scheme}.png`));
    }
    check.note(said);
}

/** The fields of a line of the job, and the lines from 0 that it causes, by `jobc why`, with the page's key of each file. */
function effectsOf(directory, line) {
    const { status, stdout, stderr } = spawnSync(jobc, ["why", "--format", "json", `job.yaml:${line + 1}`], { cwd: directory, encoding: "utf8" });
    if (status !== 0) {
        throw new Error(`\`jobc why\` fails: ${stderr}`);
    }
    const { fields, effects } = JSON.parse(stdout);
    return {
        fields: fields.map((field) => field.slice(1).replaceAll("/", ".")),
        effects: effects.map(({ file, line }) => ({ key: file.replace(/^out\//, ""), line: line - 1 })),
    };
}

async function share(page) {
    await page.built(() => page.choose("#example", "torchrun-4x8"));
    await page.cursor(0, 0);
    await page.built(() => page.type("# größer → \n"));
    const targets = (await page.options("#target")).filter((name) => name !== "");
    await page.built(() => page.choose("#target", targets[0]));
    const [text, outputs] = [await page.text(), await page.outputs()];
    const link = await page.share();
    check.expect(link.startsWith(`${address}#1=`), `the link: ${link}`);
    const other = await Page.open(browser, link);
    check.equal(await other.text(), text, "the shared job");
    check.equal(await other.outputs(), outputs, "what is built of the shared job");
    check.equal(await other.value("#target"), targets[0], "the shared target");
    check.equal(other.errors, [], "errors on the console of the shared page");
    await other.close();
    const bad = await Page.open(browser, `${address}#1=AAAA`);
    check.expect((await bad.status()).startsWith("The link cannot be read"), `a damaged link: ${await bad.status()}`);
    await bad.close();
    check.note(`a shared job of ${text.length} characters has a link of ${link.length}`);
}

async function keyboard(page) {
    const keys = await page.keysOfOutputs();
    await page.focus('#outputs [aria-selected="true"]');
    await page.key("ArrowDown");
    check.equal(await page.selected(), keys[1], "an arrow selects the next file");
    await page.key("End");
    check.equal(await page.selected(), keys.at(-1), "the key End selects the last file");
    await page.built(async () => {
        await page.cursor(0, 0);
        await page.type("extra: x\n");
    });
    const title = printed(jobc, "explain", (await page.problems())[0].split(" ")[0]).split("\n")[0].replace(/^#\s*/, "");
    const explained = await page.explain();
    check.expect(explained.includes(title), `the page of a code is not \`${title}\`: ${explained.slice(0, 200)}`);
    const seen = new Set();
    for (const scheme of ["light", "dark"]) {
        await page.prefer(scheme);
        seen.add(await until(`page and editor differ in ${scheme}`, async () => {
            const { page: around, editor } = await page.backgrounds();
            return around === editor && editor;
        }));
        await page.picture(join(place, `${scheme}.png`));
    }
    for (const [width, height] of [[1280, 720], [700, 900]]) {
        await page.resize(width, height);
        await until(`the editors are not as wide as their panels at ${width}`, () => page.fits());
    }
    check.equal(seen.size, 2, "the backgrounds of light and dark");
    check.note(`screenshots in ${shown(place)}`);
}

/** After a failure of the compiler the next change starts another one. */
async function trap(page) {
    await page.reloadWith("**/worker.js", TRAPPING + readFileSync(join(site, "worker.js"), "utf8"));
    await until("the page builds nothing", () => page.build());
    const before = await page.outputs();
    await page.cursor(0, 0);
    await page.type("☠");
    await until("the page does not say that the compiler has failed", async () => (await page.status()).startsWith("The compiler has failed"));
    await page.built(() => page.key("Control+Z"));
    check.equal(await page.outputs(), before, "what is built after a failure");
    check.equal(await page.status(), "", "the status after a failure");
}

/** Without its module the page says why. */
async function broken(page) {
    await page.reloadWith("**/jobc.wasm", "no module");
    const said = await page.summary();
    check.expect(said.startsWith("the playground does not start"), `a page with a broken module says: ${said}`);
}
