// Lines of a log as runs of text with colors. What else a line asks of a terminal is dropped; nothing of it is HTML.

export interface Run {
    text: string;
    class: string;
}

/** Escape sequences: CSI, OSC and the like up to their end, and two-byte ones; then other control characters. */
const ESCAPES = /\x1b\[([0-9;:?<=>!]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?|\x9b[0-9;:?]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
/** What turns text around, which would show other text than there is. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

interface Style {
    color: number | null;
    ground: number | null;
    bold: boolean;
    dim: boolean;
    italic: boolean;
    underline: boolean;
}

const PLAIN: Style = { color: null, ground: null, bold: false, dim: false, italic: false, underline: false };

/** A color of the 256 or of all as one of 16, which have enough contrast on both grounds. */
function nearest(red: number, green: number, blue: number): number {
    const max = Math.max(red, green, blue);
    if (max - Math.min(red, green, blue) < 40) {
        return max > 170 ? 7 : max > 85 ? 8 : 0;
    }
    const bit = (value: number): number => Number(value > max * 0.6);
    return bit(red) + 2 * bit(green) + 4 * bit(blue) + (max > 200 ? 8 : 0);
}

function indexed(number: number): number {
    if (number < 16) {
        return number;
    }
    if (number >= 232) {
        const level = (number - 232) * 10 + 8;
        return nearest(level, level, level);
    }
    const at = number - 16;
    const level = (it: number): number => (it === 0 ? 0 : 55 + it * 40);
    return nearest(level(Math.floor(at / 36)), level(Math.floor(at / 6) % 6), level(at % 6));
}

function apply(style: Style, codes: string): Style {
    const numbers = codes === "" ? [0] : codes.split(/[;:]/).map(Number);
    let next = { ...style };
    for (let at = 0; at < numbers.length; at += 1) {
        const code = numbers[at] ?? 0;
        if (code === 0) {
            next = { ...PLAIN };
        } else if (code === 1) {
            next.bold = true;
        } else if (code === 2) {
            next.dim = true;
        } else if (code === 3) {
            next.italic = true;
        } else if (code === 4) {
            next.underline = true;
        } else if (code === 22) {
            next.bold = next.dim = false;
        } else if (code === 23) {
            next.italic = false;
        } else if (code === 24) {
            next.underline = false;
        } else if (code >= 30 && code <= 37) {
            next.color = code - 30;
        } else if (code >= 90 && code <= 97) {
            next.color = code - 82;
        } else if (code === 39) {
            next.color = null;
        } else if (code >= 40 && code <= 47) {
            next.ground = code - 40;
        } else if (code >= 100 && code <= 107) {
            next.ground = code - 92;
        } else if (code === 49) {
            next.ground = null;
        } else if (code === 38 || code === 48) {
            const isIndexed = numbers[at + 1] === 5;
            const color = isIndexed ? indexed(numbers[at + 2] ?? 0) : nearest(numbers[at + 2] ?? 0, numbers[at + 3] ?? 0, numbers[at + 4] ?? 0);
            next[code === 38 ? "color" : "ground"] = color;
            at += isIndexed ? 2 : 4;
        }
    }
    return next;
}

function classes({ color, ground, bold, dim, italic, underline }: Style): string {
    const all = [color === null ? "" : `c${color}`, ground === null ? "" : `g${ground}`, bold ? "bold" : "", dim ? "dim" : "", italic ? "italic" : "", underline ? "underline" : ""];
    return all.filter((it) => it !== "").join(" ");
}

/** The text alone. */
export function plain(text: string): string {
    return afterReturn(text).replace(ESCAPES, "").replace(TURNS, "�");
}

/** What a terminal shows of a line that was written over, as progress bars do. */
function afterReturn(text: string): string {
    const trimmed = text.endsWith("\r") ? text.slice(0, -1) : text;
    const at = trimmed.lastIndexOf("\r");
    return at < 0 ? trimmed : trimmed.slice(at + 1);
}

export function runs(text: string): Run[] {
    const shown = afterReturn(text).replace(TURNS, "�");
    const found: Run[] = [];
    let style = PLAIN;
    let from = 0;
    const add = (to: number): void => {
        if (to > from) {
            found.push({ text: shown.slice(from, to), class: classes(style) });
        }
    };
    for (const match of shown.matchAll(ESCAPES)) {
        add(match.index);
        from = match.index + match[0].length;
        if (match[2] === "m") {
            style = apply(style, match[1] ?? "");
        }
    }
    add(shown.length);
    return found;
}
