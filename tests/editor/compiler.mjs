// The output of the command line, which editors are compared with.

import { spawnSync } from "node:child_process";

/** The findings of `jobc check`, from its JSON output. */
export function compilerFindings(jobc, job) {
    const { stdout, stderr } = spawnSync(jobc, ["check", "--format", "json", job], { encoding: "utf8" });
    try {
        return JSON.parse(stdout).diagnostics;
    } catch {
        throw new Error(`\`${jobc} check ${job}\` prints no JSON: ${stdout}${stderr}`);
    }
}

/** The standard output of a command. */
export function printed(jobc, ...words) {
    return spawnSync(jobc, words, { encoding: "utf8", maxBuffer: 1 << 28 }).stdout;
}

/** Converts byte offsets to the protocol's positions, which count UTF-16 units. */
export function positions(bytes) {
    return ({ offset }) => {
        const lines = bytes.subarray(0, offset).toString("utf8").split("\n");
        return { line: lines.length - 1, character: lines.at(-1).length };
    };
}
