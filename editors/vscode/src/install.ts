// The ways to install the program on this host: tools that are there, each with its command. Nothing runs before the user chooses.

import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** One way to install jobc: what is shown, and the command that a terminal runs. */
export interface InstallWay {
    label: string;
    command: string;
}

/** The tools in the order of what is least likely to disturb other programs of the user. */
const WAYS: readonly { tool: string; label: string; command: string }[] = [
    { tool: "uv", label: "uv", command: "uv tool install --upgrade jobc" },
    { tool: "pipx", label: "pipx", command: "pipx install jobc" },
    { tool: "brew", label: "Homebrew", command: "brew install jobc" },
    { tool: "cargo-binstall", label: "cargo binstall", command: "cargo binstall jobc" },
    { tool: "cargo", label: "cargo, which compiles it for minutes", command: "cargo install --locked jobc" },
];

/** The ways whose tool is on `PATH`, the best first. */
export function installWays(isThere: (tool: string) => boolean = isOnPath): InstallWay[] {
    return WAYS.filter(({ tool }) => isThere(tool)).map(({ label, command }) => ({ label, command }));
}

/** Whether a program is on `PATH`. */
export function isOnPath(name: string, path = process.env["PATH"] ?? "", platform: NodeJS.Platform = process.platform): boolean {
    const file = platform === "win32" ? `${name}.exe` : name;
    return path.split(delimiter).some((directory) => {
        const program = join(directory, file);
        if (directory === "" || !existsSync(program)) {
            return false;
        }
        try {
            accessSync(program, constants.X_OK);
            return true;
        } catch {
            return false;
        }
    });
}
