// Finds the `jobc` program and looks whether it can serve an editor.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

import { isOnPath } from "./install";

/** What became of the search: a program that serves, or a sentence for the user. */
export type LocateResult = { program: string } | { problem: string };

/** How long the program may take to answer. A first start from a slow disk is meant, not a hang. */
const PROBE_TIMEOUT = 20_000;

/**
 * Where to look, first to last: the setting alone if there is one, else beside the extension, else on `PATH`, else where installers
 * put programs. An editor that was started from a desktop does not have those on its `PATH`.
 */
export function candidates(setting: string, extension: string, platform: NodeJS.Platform = process.platform): string[] {
    const name = platform === "win32" ? "jobc.exe" : "jobc";
    const directories = [join(homedir(), ".local", "bin"), join(homedir(), ".cargo", "bin")];
    if (platform !== "win32") {
        directories.push("/usr/local/bin", "/opt/homebrew/bin");
    }
    const chosen = setting.trim();
    if (chosen !== "") {
        return [chosen.replace(/^~(?=$|[/\\])/, homedir())];
    }
    return [join(extension, "bin", name), name, ...directories.map((directory) => join(directory, name))];
}

/** The first candidate that is there and knows `jobc lsp`, with the reason against each where there is none. */
export async function locate(setting: string, extension: string): Promise<LocateResult> {
    const problems: string[] = [];
    for (const program of candidates(setting, extension)) {
        const problem = await probe(program);
        if (problem === undefined) {
            return { program };
        }
        problems.push(problem);
    }
    // A program that is there but does not serve says more than one that is not there.
    const telling = problems.find((problem) => !problem.startsWith(ABSENT)) ?? problems.at(-1) ?? ABSENT;
    return { problem: setting.trim() === "" && telling.startsWith(ABSENT) ? `${ABSENT}: it is not on PATH` : telling };
}

const ABSENT = "the program `jobc` was not found";

/** The exit code for arguments that the program does not know. */
const UNKNOWN_COMMAND = 2;

function isThere(program: string): boolean {
    return isAbsolute(program) ? existsSync(program) : isOnPath(program.replace(/\.exe$/, ""));
}

/** What is wrong with a program; undefined where `PROGRAM lsp --help` succeeds, which starts no server. */
async function probe(program: string): Promise<string | undefined> {
    return await new Promise((resolve) => {
        execFile(program, ["lsp", "--help"], { timeout: PROBE_TIMEOUT }, (error, _, stderr) => {
            if (error === null) {
                resolve(undefined);
            } else if (error.code === "ENOENT" && !isThere(program)) {
                resolve(`${ABSENT}: there is no \`${program}\``);
            } else if (error.code === "ENOENT" || error.code === "ENOEXEC") {
                // The file is there: what is missing is the loader or interpreter that it names.
                resolve(`\`${program}\` cannot run on this host: it is built for another system`);
            } else if (error.code === "EACCES") {
                resolve(`\`${program}\` cannot be executed: permission denied`);
            } else if (error.code === UNKNOWN_COMMAND) {
                resolve(`\`${program}\` is too old for this extension: it has no command \`lsp\``);
            } else if (typeof error.code === "number") {
                const said = stderr.trim().split("\n", 1)[0];
                resolve(`\`${program}\` cannot run on this host: ${said || `it exits with code ${error.code}`}`);
            } else {
                resolve(`\`${program}\` cannot be started: ${error.message}`);
            }
        });
    });
}
