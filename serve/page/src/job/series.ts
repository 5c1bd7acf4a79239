// Numbers over time: of samples, and of lines of the log that name some, such as `loss: 0.5`.

import { plain } from "../ansi";
import type { LogLine, Sample } from "../types";

export interface Series {
    name: string;
    /** In milliseconds since the epoch. */
    times: number[];
    values: (number | null)[];
}

/** A series has at most so many points; then every second one is dropped. */
const MAX_POINTS = 4000;
/** More tasks than this are drawn as their sum. */
const MAX_LINES = 8;
/** Names of numbers in a log, at most. */
const MAX_NAMES = 8;

class Track implements Series {
    times: number[] = [];
    values: (number | null)[] = [];
    private step = 1;
    private skipped = 0;

    constructor(readonly name: string) {}

    add(time: number, value: number): void {
        this.skipped += 1;
        if (this.skipped < this.step) {
            return;
        }
        this.skipped = 0;
        this.times.push(time);
        this.values.push(value);
        if (this.times.length > MAX_POINTS) {
            this.times = this.times.filter((_, index) => index % 2 === 0);
            this.values = this.values.filter((_, index) => index % 2 === 0);
            this.step *= 2;
        }
    }
}

type Kind = "cpu" | "memory" | "read" | "written" | "utilization" | "gpuMemory";

export class UsageSeries {
    private readonly tracks = new Map<string, { task: string; kind: Kind; track: Track }>();
    private readonly before = new Map<string, { time: number; cpu: number | null; read: number | null; written: number | null }>();

    tasks(): string[] {
        return [...new Set([...this.tracks.values()].map(({ task }) => task))];
    }

    add(sample: Sample | undefined): void {
        if (sample === undefined) {
            return;
        }
        const time = Date.parse(sample.time);
        const { task } = sample;
        const put = (kind: Kind, value: number | null | undefined, name = task): void => {
            if (value === null || value === undefined || !Number.isFinite(value) || value < 0) {
                return;
            }
            const key = `${kind}\0${name}`;
            let found = this.tracks.get(key);
            if (found === undefined) {
                found = { task, kind, track: new Track(name) };
                this.tracks.set(key, found);
            }
            found.track.add(time, value);
        };
        const [cpu, read, written] = [sample.cpu_usec ?? null, sample.read_bytes ?? null, sample.written_bytes ?? null];
        const last = this.before.get(task);
        const seconds = last === undefined ? 0 : (time - last.time) / 1000;
        if (last !== undefined && seconds > 0.05) {
            const rate = (now: number | null, then: number | null): number | null => (now === null || then === null || now < then ? null : (now - then) / seconds);
            const used = rate(cpu, last.cpu);
            put("cpu", used === null ? (sample.cpu_millis ?? 0) / 1000 : used / 1e6);
            put("read", rate(read, last.read));
            put("written", rate(written, last.written));
        }
        this.before.set(task, { time, cpu, read, written });
        put("memory", sample.memory);
        sample.gpu?.forEach(({ gpu, utilization, memory }, index) => {
            const name = `${task} ${gpu ?? index}`;
            put("utilization", utilization, name);
            put("gpuMemory", memory, name);
        });
    }

    cpu = (task?: string): Series[] => this.of(["cpu"], task);
    memory = (task?: string): Series[] => this.of(["memory"], task);
    gpuUtilization = (task?: string): Series[] => this.of(["utilization"], task);
    gpuMemory = (task?: string): Series[] => this.of(["gpuMemory"], task);

    disk(task?: string): Series[] {
        const [read, written] = [this.of(["read"], task), this.of(["written"], task)];
        const named = (all: Series[], what: string): Series[] => all.map((it) => ({ ...it, name: `${it.name} ${what}` }));
        const all = [...named(read, "read"), ...named(written, "written")];
        return all.some(({ values }) => values.some((it) => it !== null && it > 0)) ? all : [];
    }

    private of(kinds: Kind[], only?: string): Series[] {
        const found = [...this.tracks.values()].filter(({ task, kind }) => kinds.includes(kind) && (only === undefined || task === only)).map(({ track }) => ({ name: track.name, times: track.times, values: track.values }));
        return found.length > MAX_LINES ? [total(found)] : found;
    }
}

/** The sum of many series, in steps of seconds. */
function total(series: Series[]): Series {
    const sums = new Map<number, Map<string, number>>();
    for (const { name, times, values } of series) {
        times.forEach((time, index) => {
            const second = Math.floor(time / 1000) * 1000;
            const of = sums.get(second) ?? new Map<string, number>();
            of.set(name, values[index] ?? 0);
            sums.set(second, of);
        });
    }
    const times = [...sums.keys()].sort((a, b) => a - b);
    return { name: `sum of ${series.length}`, times, values: times.map((time) => [...(sums.get(time)?.values() ?? [])].reduce((a, b) => a + b, 0)) };
}

/** `loss: 0.5`, `"eval.loss": 1e-3`, `acc=0.9`; the name begins with a letter. */
const NUMBERS = /(?:^|[\s,;{("'[|])([A-Za-z][\w./-]{0,39})["']?\s?[:=]\s?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?=$|[\s,;})"'\]|%])/gi;
/** The longest line that is read for numbers, in characters. */
const MAX_LINE = 2000;
/** What is a number of a line and nothing that is measured. */
const COUNTERS = /^(step|epoch|iter|iteration|rank|local_rank|pid|port|line|version|seed|id|index|time|date)$/i;

export class MetricSeries {
    private readonly tracks = new Map<string, Map<string, Track>>();

    add(line: LogLine | undefined): void {
        if (line === undefined || line.text.length > MAX_LINE) {
            return;
        }
        const text = line.text.includes("\x1b") ? plain(line.text) : line.text;
        for (const [, name = "", number = ""] of text.matchAll(NUMBERS)) {
            if (COUNTERS.test(name)) {
                continue;
            }
            const of = this.tracks.get(name) ?? new Map<string, Track>();
            if (!this.tracks.has(name)) {
                if (this.tracks.size > 200) {
                    continue;
                }
                this.tracks.set(name, of);
            }
            const track = of.get(line.task) ?? new Track(line.task);
            of.set(line.task, track);
            track.add(Date.parse(line.time), Number(number));
        }
    }

    /** What was written at least twice, most often first. */
    named(only?: string): { name: string; series: Series[] }[] {
        const points = (of: Map<string, Track>): number => [...of.values()].reduce((sum, { times }) => sum + times.length, 0);
        return [...this.tracks]
            .filter(([, of]) => [...of.values()].some(({ times }) => times.length > 1))
            .sort(([, a], [, b]) => points(b) - points(a))
            .slice(0, MAX_NAMES)
            .map(([name, of]) => ({ name, series: [...of.values()].filter((track) => only === undefined || track.name === only).map(({ name, times, values }) => ({ name, times, values })).slice(0, 24) }));
    }
}
