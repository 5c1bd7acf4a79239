// Texts for people.

/** A number of things: `1 line`, `2 lines`. */
export function count(number: number, noun: string): string {
    return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
