// The expected content of the Problems panel: the compiler's findings in the file on disk, each once.

import { JOBC, until } from "../check.mjs";
import { compilerFindings } from "../compiler.mjs";

/** The panel's rows for a job: message, source and code, position. */
export const wantedProblems = (path) =>
    compilerFindings(JOBC, path).map(({ message, code, start }) => `${message} jobc ${code} [Ln ${start.line}, Col ${start.column}]`).sort();

/** Waits until the panel shows exactly these rows, or throws with the difference. */
export async function problemsBecome(editor, wanted) {
    await until(
        async () => `the panel shows\n    ${(await editor.problems()).sort().join("\n    ")}\ninstead of\n    ${wanted.join("\n    ")}`,
        async () => `${(await editor.problems()).sort()}` === `${wanted}`,
    );
}
