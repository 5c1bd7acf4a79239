// The packaged extension in VS Code (code-server, in Chromium), driven by keys and checked on the screen. Each scenario has its
// own window; screenshots are left in target/editor.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { Check, JOBC, REPOSITORY, scratch, shown } from "./check.mjs";
import { Editor } from "./vscode/editor.mjs";
import { ON_DEMAND, SCENARIOS } from "./vscode/scenarios.mjs";
import { installed, startCodeServer } from "./vscode/server.mjs";

const { positionals: chosen } = parseArgs({ allowPositionals: true });

const check = new Check("vscode");
const jobc = check.program(JOBC);
const chromium = check.program("chromium");
const { default: playwright } = await check.module("playwright-core");
if (!installed()) {
    check.needs("code-server");
}
const vsix = join(REPOSITORY, "editors", "vscode", "dist", "jobc.vsix");
if (!existsSync(vsix)) {
    check.needs("the package of the extension", "`tests/editor/run -k package`");
}

const place = scratch("vscode");
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
try {
    const scenarios = chosen.length === 0 ? SCENARIOS : { ...SCENARIOS, ...ON_DEMAND };
    for (const name of chosen.length === 0 ? Object.keys(SCENARIOS) : chosen) {
        await runScenario(name, scenarios[name] ?? (() => { throw new Error(`unknown scenario \`${name}\``); }));
    }
} finally {
    await browser.close();
}
check.note(`screenshots in ${shown(place)}`);
check.end();

async function runScenario(name, { files, extensions = () => [], settings, path, run }) {
    const home = join(place, name);
    const directory = join(home, "work");
    mkdirSync(directory, { recursive: true });
    files(directory);
    const start = Date.now();
    const server = await startCodeServer({ place: home, directory, extensions: [vsix, ...extensions()], settings: { "jobc.path": jobc, ...settings }, path: path?.(home) });
    let editor;
    try {
        editor = await Editor.open(browser, server.address, directory, place);
        await run(editor, check, directory);
    } catch (error) {
        check.expect(false, `${name}: ${error.message}`);
        await editor?.picture(`${name}-failed`);
    } finally {
        await editor?.close();
        server.stop();
    }
    console.log(`vscode: ${name} took ${((Date.now() - start) / 1000).toFixed(0)} s`);
}
