// The page of `jobc serve` in Chromium, with the real server and real jobs. Arguments are the steps to take [default: all].
// JOBC_PAGE_LINK names a server that runs already, for the development of the page and for other places: then no step restarts it.

import { join } from "node:path";
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";

import { Check, JOBC, REPOSITORY, scratch } from "../editor/check.mjs";
import { pictures } from "./page/pictures.mjs";
import { Tab } from "./page/tab.mjs";
import { Server } from "./page/server.mjs";
import * as states from "./page/states.mjs";
import * as watching from "./page/watching.mjs";
import * as writing from "./page/writing.mjs";

const check = new Check("page");
const jobc = check.program(JOBC);
const chromium = check.program("chromium");
const { default: playwright } = await check.module("playwright-core");
const axe = await check.module("axe-core");
const dist = join(REPOSITORY, "serve", "page", "dist");
if (!existsSync(join(dist, "index.html.gz"))) {
    check.needs("the page of jobc serve", "`serve/page/build`");
}

const STEPS = { ...watching, ...writing, ...states, pictures };
/** Steps that are taken only when they are named. */
const NAMED = new Set(["pictures", "elsewhere"]);
/** Steps in which requests fail on purpose. */
const FAILING = new Set(["killed", "readOnly", "signIn"]);

const { positionals: chosen } = parseArgs({ allowPositionals: true });
const unknown = chosen.filter((name) => !(name in STEPS));
if (unknown.length > 0) {
    throw new Error(`no step ${unknown}; there are ${Object.keys(STEPS).join(", ")}`);
}
const place = scratch(`page-${chosen.join("-") || "all"}`);
const server = await Server.start({ jobc, dist, place });
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });

try {
    for (const [name, step] of Object.entries(STEPS).filter(([name]) => (chosen.length === 0 ? !NAMED.has(name) : chosen.includes(name)))) {
        const start = Date.now();
        const tab = await Tab.open(browser, server);
        try {
            await step({ check, browser, server, place, jobc, axe: axe.default.source }, tab);
        } catch (error) {
            check.expect(false, `${name}: ${error.stack}`);
            await tab.picture(join(place, `${name}-failed.png`));
        }
        check.equal(tab.elsewhere(), [], `${name}: requests to elsewhere`);
        const errors = FAILING.has(name) ? tab.errors.filter((text) => !/Failed to load resource|WebSocket connection/.test(text)) : tab.errors;
        check.equal(errors, [], `${name}: errors on the console`);
        await tab.close();
        console.log(`page: ${name} took ${((Date.now() - start) / 1000).toFixed(1)} s`);
    }
} finally {
    await browser.close();
    await server.stop();
}
check.end();
