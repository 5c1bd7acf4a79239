// The line of a job file that a sentence about waiting is about.

/** What a sentence says is missing, and the field that asks for it. */
const FIELDS: [RegExp, RegExp][] = [
    [/\bGPUs?\b/i, /\bgpu:/],
    [/waits? (?:until|for)\b.*(?:succeeded|started|ready|ended)/, /\bneeds:/],
    [/\bmemory\b/i, /\bmemory:/],
    [/\bCPUs?\b/i, /\bcpu:/],
    [/\bimage\b/i, /\b(?:image|from):/],
];

/** The line from 0: that of the field in the role that is named, of the role itself, or of the field anywhere. */
export function lineOf(lines: string[], sentence: string): number | null {
    const role = /role `([^`]+)`/.exec(sentence)?.[1];
    const field = FIELDS.find(([words]) => words.test(sentence))?.[1];
    const at = role === undefined ? -1 : lines.findIndex((line) => new RegExp(`^\\s+${role.replaceAll(/[^\w-]/g, "\\$&")}:`).test(line));
    if (at >= 0) {
        const indent = (line: string): number => /^\s*/.exec(line)?.[0].length ?? 0;
        const end = lines.findIndex((line, index) => index > at && line.trim() !== "" && indent(line) <= indent(lines[at] ?? ""));
        const inside = lines.slice(at, end < 0 ? undefined : end);
        const found = field === undefined ? -1 : inside.findIndex((line) => field.test(line));
        return at + Math.max(found, 0);
    }
    const found = field === undefined ? -1 : lines.findIndex((line) => field.test(line));
    return found < 0 ? null : found;
}
