// The packaged extension in VS Code (code-server, in Chromium), driven by keys and read from the screen. Each scene is a
// window of its own; pictures of each are left in target/editor.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { Check, JOBC, REPOSITORY, scratch, shown } from "./check.mjs";
import { Editor } from "./vscode/editor.mjs";
import { ON_DEMAND, SCENES } from "./vscode/scenes.mjs";
import { installed, startCodeServer } from "./vscode/server.mjs";

const { positionals: chosen } = parseArgs({ allowPositionals: true });

const check = new Check("vscode");
const jobc = check.program(JOBC);
const chromium = check.program("chromium");
const { default: playwright } = await check.module("playwright-core");
if (!installed()) {
    check.skip("code-server is not installed; `tests/editor/install` installs it");
}
const vsix = join(REPOSITORY, "editors", "vscode", "dist", "jobc.vsix");
if (!existsSync(vsix)) {
    check.skip("the extension is not packaged; `tests/editor/run -c extension` packages it");
}

const place = scratch("vscode");
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
try {
    const scenes = chosen.length === 0 ? SCENES : { ...SCENES, ...ON_DEMAND };
    for (const name of chosen.length === 0 ? Object.keys(SCENES) : chosen) {
        await playScene(name, scenes[name] ?? check.skip(`there is no scene \`${name}\``));
    }
} finally {
    await browser.close();
}
check.note(`pictures in ${shown(place)}`);
check.end();

async function playScene(name, { files, extensions = () => [], settings, play }) {
    const home = join(place, name);
    const folder = join(home, "work");
    mkdirSync(folder, { recursive: true });
    files(folder);
    const start = Date.now();
    const server = await startCodeServer({ place: home, folder, extensions: [vsix, ...extensions()], settings: { "jobc.path": jobc, ...settings } });
    let editor;
    try {
        editor = await Editor.open(browser, server.address, folder, place);
        await play(editor, check, folder);
    } catch (error) {
        check.expect(false, `${name}: ${error.message}`);
        await editor?.picture(`${name}-failed`);
    } finally {
        await editor?.close();
        server.stop();
    }
    console.log(`vscode: ${name} took ${((Date.now() - start) / 1000).toFixed(0)} s`);
}
