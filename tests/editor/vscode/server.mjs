// Starts code-server (VS Code in a browser) on a free port of the loopback address, with its own home directory, settings and
// extensions.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { REPOSITORY } from "../check.mjs";

const PROGRAM = join(REPOSITORY, "target", "editor", "code-server", "node_modules", "code-server", "out", "node", "entry.js");

/** Turns off prompts, downloads, guesses and animations. */
const QUIET = {
    "editor.minimap.enabled": false,
    "editor.stickyScroll.enabled": false,
    // Words of the text would look like completions of a server.
    "editor.wordBasedSuggestions": "off",
    "extensions.autoCheckUpdates": false,
    "files.autoSave": "off",
    "git.enabled": false,
    "json.schemaDownload.enable": false,
    "security.workspace.trust.enabled": false,
    "telemetry.telemetryLevel": "off",
    "window.commandCenter": false,
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.enableExperiments": false,
    "workbench.layoutControl.enabled": false,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": false,
    "workbench.welcomePage.walkthroughs.openOnInstall": false,
};

/** Whether it is installed. */
export const installed = () => existsSync(join(PROGRAM, "..", "..", "..", "..", "..", "installed"));

/** Starts it on a folder with these extensions and, if given, this PATH. Resolves to its address and a function that stops it. */
export async function startCodeServer({ place, directory, extensions, settings, path = process.env.PATH }) {
    const data = join(place, "data");
    // In a browser, settings of machine scope, such as paths, are read only from the machine settings.
    for (const whose of ["User", "Machine"]) {
        mkdirSync(join(data, whose), { recursive: true });
        writeFileSync(join(data, whose, "settings.json"), JSON.stringify({ ...QUIET, ...settings }));
    }
    const config = join(place, "config.yaml");
    writeFileSync(config, "");
    const own = ["--config", config, "--user-data-dir", data, "--extensions-dir", join(place, "extensions")];
    const env = { ...process.env, PATH: path, HOME: place, XDG_CONFIG_HOME: place, XDG_DATA_HOME: place };

    const install = extensions.flatMap((path) => ["--install-extension", path]);
    const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...own, ...install], { env, encoding: "utf8" });
    if (status !== 0 || !/was successfully installed/.test(stdout)) {
        throw new Error(`the extension cannot be installed:\n${stdout}${stderr}`);
    }

    const flags = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check",
        "--disable-workspace-trust", "--disable-getting-started-override"];
    const server = spawn(process.execPath, [PROGRAM, ...own, ...flags, directory], { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let log = "";
    const address = await new Promise((resolve, reject) => {
        const read = (chunk) => {
            log += chunk;
            const match = /HTTP server listening on (http:\S+)/.exec(log);
            if (match) {
                resolve(match[1].replace(/\/$/, ""));
            }
        };
        server.stdout.on("data", read);
        server.stderr.on("data", read);
        server.once("exit", () => reject(new Error(`code-server ended:\n${log}`)));
    });
    const stop = () => {
        try {
            // It forks; all processes are in the process group of `detached`.
            process.kill(-server.pid, "SIGKILL");
        } catch {
            // It has already exited.
        }
    };
    return { address, stop, log: () => log };
}
