// What the playground says and shows beside its results: that it compiles, limits, a cut link, a narrow or an offline page.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { REPOSITORY, until } from "../check.mjs";
import { Page } from "./page.mjs";
import { serveDirectory } from "./serve.mjs";

const require = createRequire(import.meta.url);

/** A worker that takes two seconds for a text with this sign. */
const SLOW = `{
    const Real = WebAssembly.Instance;
    WebAssembly.Instance = function (...given) {
        const real = new Real(...given).exports;
        let input;
        const exports = {
            ...real,
            jobc_input: (length) => (input = [real.jobc_input(length), length])[0],
            jobc_receive() {
                const text = new TextDecoder().decode(new Uint8Array(real.memory.buffer, ...input));
                for (const end = performance.now() + 2000; text.includes("⏳") && performance.now() < end; ) {}
                return real.jobc_receive();
            },
        };
        return { exports };
    };
}
`;

/** While a text is compiled, the results of the one before are dimmed; nothing is dimmed by typing alone. */
export async function compiling({ check, place, site }, page) {
    await page.built(() => page.choose("#example", "hello-cpu"));
    await page.reloadWith("**/worker.js", SLOW + readFileSync(join(site, "worker.js"), "utf8"));
    await until("the page builds nothing", () => page.build());
    await page.settled();
    check.equal(await page.dimmed(), [], "what is dimmed when all is built");
    await page.cursor(0, 0);
    await page.built(async () => {
        await page.type("# ⏳\n");
        await until("the page does not say that it compiles", async () => (await page.summary()) === "compiling");
        check.equal(await page.dimmed(), ["findings", "viewer"], "what is dimmed while the text is compiled");
        await page.picture(join(place, "compiling.png"));
    });
    check.equal(await page.dimmed(), [], "what is dimmed after that");
    check.equal(await page.summary(), "no problems", "the summary after that");
}

/** A file above the limit is not compiled, which is said; a smaller one is again. */
export async function large({ check, place }, page) {
    await page.built(() => page.choose("#example", "hello-cpu"));
    const before = await page.outputs();
    await page.cursor(0, 0);
    await page.paste(`# ${"x".repeat(99)}\n`.repeat(6000));
    await until("the limit is not said", async () => (await page.notice()).includes("Files above 512 KiB are not compiled in the browser"));
    check.expect((await page.notice()).includes("job.yaml has 598 KiB"), `the notice: ${await page.notice()}`);
    check.equal(await page.dimmed(), ["findings", "viewer"], "what is dimmed above the limit");
    check.equal(await page.summary(), "not compiled", "the summary above the limit");
    await page.type("x");
    await page.picture(join(place, "large.png"));
    await page.built(async () => {
        await page.key("Control+Z");
        await page.key("Control+Z");
    });
    check.equal(await page.notice(), "", "the notice below the limit again");
    check.equal(await page.outputs(), before, "what is built below the limit again");
    check.equal([await page.dimmed(), await page.summary()], [[], "no problems"], "the state below the limit again");
}

/** Messages of links, and that they go away. */
export async function messages({ check, browser, address }, page) {
    await page.built(() => page.choose("#example", "dag"));
    const link = await page.share();
    const cut = await Page.open(browser, link.slice(0, -9));
    check.equal(await cut.status(), "The link cannot be read: the link is cut off: copy it again, up to its last character", "a cut link");
    await cut.cursor(0, 0);
    await cut.built(() => cut.type("# x\n"));
    check.equal(await cut.status(), "", "the message of a cut link after a change");
    await cut.close();
    const followed = await Page.open(browser, `${link}).`);
    check.equal([await followed.status(), await followed.text()], ["", await page.text()], "a link with the end of its sentence");
    await followed.close();
    await until("the message about the link stays", async () => (await page.status()) === "");
    await page.cursor(0, 0);
    const random = Array.from({ length: 90_000 }, () => Math.random().toString(36)[2]).join("");
    await page.built(() => page.paste(`# ${random}\n`));
    await page.click("#share");
    await until("a link that is too long", async () => /^Not shared: the files need a link of \d+ KiB/.test(await page.status()));
}

/** No serious finding of axe, with a job that has findings, comments and hints, in both color schemes. */
export async function accessible({ check, place }, page) {
    const source = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
    await page.built(() => page.choose("#example", "dag"));
    for (const state of ["fine", "errors", "code", "import", "narrow"]) {
        if (state === "errors") {
            await page.cursor(0, 0);
            await page.built(() => page.type("# a comment\nextra: x\n"));
        } else if (state === "code") {
            await page.click("#findings .code");
        } else if (state === "import") {
            await page.key("Escape");
            await page.click("#import");
        } else if (state === "narrow") {
            await page.key("Escape");
            await page.resize(380, 760);
        }
        for (const scheme of ["light", "dark"]) {
            await page.prefer(scheme);
            await page.settled();
            check.equal(await page.axe(source), [], `serious findings of axe, ${state}, ${scheme}`);
            await page.picture(join(place, `${state}-${scheme}.png`));
        }
    }
}

/** The script of a role is the shell's. */
export async function highlighted({ check, place }, page) {
    await page.built(() => page.choose("#example", "hello-cpu"));
    await page.cursor(0, 0);
    await page.key("Control+A");
    const job = "version: 1\nname: x\nimage: python:3.12-slim\nroles:\n  a:\n    run: |\n      if true; then\n\n        run: 3\n      fi\n    timeout: 1h\n";
    await page.built(() => page.paste(job));
    const found = await until("the shell's words are not known", async () => {
        const types = await page.tokens(job, "jobc");
        return types[6].some((type) => type.endsWith(".shell")) && types;
    });
    const languages = found.map((types) => [...new Set(types.map((type) => type.split(".").at(-1)).filter((it) => it !== ""))].join());
    check.equal(languages, ["yaml", "yaml", "yaml", "yaml", "yaml", "yaml", "shell", "", "shell", "shell", "yaml", ""], "the languages of the lines of a job");
    check.expect(found[6].includes("keyword.shell"), `\`if\` is ${found[6]}`);
    await page.picture(join(place, "highlighted.png"));
}

/** A file of another tool becomes the job, with findings at its own lines; what cannot be read is said in the dialog. */
export async function imported({ check, place }, page) {
    await page.click("#import");
    await page.focus("#import-dialog textarea");
    await page.paste("services:\n  train:\n    image: busybox\n    cpus: many\n");
    await page.click("#convert");
    await until("the dialog does not say what is wrong", async () => /^line 4: /.test(await page.refused()));
    await page.picture(join(place, "import-refused.png"));
    await page.key("Escape");
    const source = readFileSync(join(REPOSITORY, "tests/foreign/sbatch/torchrun.sbatch"), "utf8");
    await page.click("#import");
    await page.built(async () => {
        await page.chooseFile("#import-dialog input", "train.sbatch", source);
        await until("the file is not read", async () => (await page.value("#import-dialog textarea")) === source);
        await page.click("#convert");
    });
    check.expect(/^version: 1\n/.test(await page.text()), `what was imported: ${await page.text()}`);
    const rows = await page.rows();
    check.expect(rows.some((row) => /train\.sbatch:\d+:\d+$/.test(row)), `no finding of the batch script: ${rows}`);
    await page.picture(join(place, "imported.png"));
}

/** On a phone there is one pane at a time. */
export async function narrow({ check, place }, page) {
    await page.built(() => page.choose("#example", "dag"));
    check.equal(await page.visible(["#job", "#built", "#panes"]), ["#job", "#built"], "the panes of a wide page");
    await page.resize(380, 760);
    check.equal(await page.visible(["#job", "#built", "#panes"]), ["#job", "#panes"], "the panes of a narrow page");
    await page.picture(join(place, "narrow-job.png"));
    await page.click("#show-built");
    check.equal(await page.visible(["#job", "#built"]), ["#built"], "the other pane of a narrow page");
    await until("the page is wider than its window", () => page.isNarrow());
    await page.picture(join(place, "narrow-built.png"));
    await page.click("#show-job");
    await page.cursor(0, 0);
    await page.built(() => page.type("extra: x\n"));
    await page.picture(join(place, "narrow-error.png"));
    await page.resize(1440, 900);
    check.equal(await page.visible(["#job", "#built", "#panes"]), ["#job", "#built"], "the panes of a page that is wide again");
}

/** After one visit the page needs no server. */
export async function offline({ check, browser, site }) {
    const server = await serveDirectory(site);
    const page = await Page.open(browser, server.address, { serviceWorkers: "allow" });
    const before = await page.outputs();
    await page.stored();
    server.close();
    await page.reload();
    await until("the page builds nothing offline", () => page.build(), 60);
    await page.settled();
    check.equal(await page.outputs(), before, "what is built offline");
    await page.built(() => page.choose("#example", "dag"));
    check.equal(page.errors.filter((error) => !error.includes("ERR_CONNECTION_REFUSED")), [], "errors of the page offline");
    await page.close();
}
