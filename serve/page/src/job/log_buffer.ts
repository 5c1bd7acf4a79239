// The lines of a log that the page keeps, within bounds.

import { plain } from "../ansi";
import type { LogLine } from "../types";

export interface Line {
    number: number;
    time: string;
    task: string;
    attempt: number;
    stream: string;
    /** As it was written, up to a length. */
    text: string;
    /** Characters that are not kept. */
    cut: number;
    ends: boolean;
}

const MAX_LINES = 100_000;
const MAX_CHARACTERS = 64_000_000;
/** The longest line that is kept whole, in characters. */
const MAX_LINE = 20_000;

export class LogBuffer {
    lines: Line[] = [];
    /** Lines that were dropped from the beginning. */
    dropped = 0;
    private characters = 0;
    private next = 1;
    /** The last line of each task that has no end yet. */
    private readonly open = new Map<string, Line>();

    add(found: LogLine[]): void {
        for (const { time, task, attempt, stream, text, ends } of found) {
            const key = `${task}\0${stream}`;
            const before = this.open.get(key);
            if (before !== undefined && before.attempt === attempt) {
                this.extend(before, text);
                before.ends = ends;
                if (ends) {
                    this.open.delete(key);
                }
                continue;
            }
            const line: Line = { number: this.next++, time, task, attempt, stream, text: "", cut: 0, ends };
            this.extend(line, text);
            this.lines.push(line);
            if (!ends) {
                this.open.set(key, line);
            }
        }
        if (this.lines.length > MAX_LINES || this.characters > MAX_CHARACTERS) {
            this.shorten();
        }
    }

    private extend(line: Line, text: string): void {
        const room = MAX_LINE - line.text.length;
        const kept = room <= 0 ? "" : text.slice(0, room);
        line.text += kept;
        line.cut += text.length - kept.length;
        this.characters += kept.length;
    }

    /** Drops a quarter at once, for each drop moves all lines. */
    private shorten(): void {
        const count = Math.ceil(this.lines.length / 4);
        for (const { text } of this.lines.splice(0, count)) {
            this.characters -= text.length;
        }
        this.dropped += count;
    }
}

/** The lines with a text in them, as their places. */
export function search(lines: Line[], wanted: string): number[] {
    const needle = wanted.toLowerCase();
    const found: number[] = [];
    for (let index = 0; index < lines.length; index += 1) {
        const text = lines[index]?.text ?? "";
        // Most lines have no escape sequence.
        if ((text.includes("\x1b") || text.includes("\r") ? plain(text) : text).toLowerCase().includes(needle)) {
            found.push(index);
        }
    }
    return found;
}
