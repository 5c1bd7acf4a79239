// What the Problems panel must show: what the compiler finds in the file on disk, each once.

import { JOBC, until } from "../check.mjs";
import { compilerFindings } from "../compiler.mjs";

/** Whether a finding is about a target that was just tried: such notes are dots in the text, and not in the panel. */
const isQuiet = ({ severity, code }) => severity === "note" && /^J04/.test(code);

/** The panel's rows for a job, as they are read: message, source and code, place. */
export const wantedProblems = (path) =>
    compilerFindings(JOBC, path).filter((finding) => !isQuiet(finding)).map(({ message, code, start }) => `${message} jobc ${code} [Ln ${start.line}, Col ${start.column}]`).sort();

/** Waits until the panel shows exactly these rows, or tells how it differs. */
export async function problemsBecome(editor, wanted) {
    await until(
        async () => `the panel shows\n    ${(await editor.problems()).sort().join("\n    ")}\nin place of\n    ${wanted.join("\n    ")}`,
        async () => `${(await editor.problems()).sort()}` === `${wanted}`,
    );
}
