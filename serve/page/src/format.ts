// Numbers and times for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(number: number): string {
    let unit = 0;
    let value = number;
    while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        unit += 1;
    }
    return `${value >= 100 || unit === 0 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[unit]}`;
}

export function cpus(millis: number): string {
    return `${Number((millis / 1000).toFixed(2))} CPU${millis === 1000 ? "" : "s"}`;
}

export function count(number: number, noun: string): string {
    return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}

/** A duration: `0.3 s`, `42 s`, `3 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(milliseconds: number): string {
    const seconds = Math.max(0, milliseconds / 1000);
    if (seconds < 60) {
        return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.floor(seconds)} s`;
    }
    const whole = Math.floor(seconds);
    const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
    const two = (a: number, one: string, b: number, other: string): string => `${a} ${one}${b > 0 ? ` ${b} ${other}` : ""}`;
    return days > 0 ? two(days, "d", hours, "h") : hours > 0 ? two(hours, "h", minutes, "min") : two(minutes, "min", whole % 60, "s");
}

/** How long ago in one unit, for a column. */
export function age(time: string, now: number): string {
    const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
    const [limit, divisor, unit] = [[60, 1, "s"], [3600, 60, "min"], [86400 * 2, 3600, "h"], [Infinity, 86400, "d"]].find(([limit]) => seconds < (limit as number)) as [number, number, string];
    return limit === 60 && seconds < 5 ? "now" : `${Math.floor(seconds / divisor)} ${unit}`;
}

export function clock(time: string): string {
    const at = new Date(time);
    return at.toLocaleTimeString("en-GB", { hour12: false });
}

export function fullTime(time: string): string {
    return new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

/** A number of a metric: short, in as many digits as tell it apart. */
export function metric(value: unknown): string {
    if (typeof value !== "number") {
        return value === null || value === undefined ? "" : String(value);
    }
    return Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : Number(value.toPrecision(6)).toString();
}

/** A value of a plan in one line. */
export function shown(value: unknown): string {
    return value === undefined || value === null ? "—" : typeof value === "string" ? value : JSON.stringify(value);
}
