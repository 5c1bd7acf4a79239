// Parallel coordinates: an axis for each parameter and result, a line for each job. The table beside it has the same numbers.

import { metric } from "./format";
import { useWidth } from "./use";

export interface Axis {
    name: string;
    values: (string | number | boolean | null)[];
    isResult?: boolean;
}

interface Props {
    axes: Axis[];
    keys: string[];
    selected: string | null;
    onSelect(key: string): void;
    better: Record<string, "lower" | "higher">;
}

const HEIGHT = 220;
const TOP = 34;
const BOTTOM = 24;
const SIDE = 56;
/** More lines would be one surface, and slow. */
const MAX_LINES = 1000;

interface Scale {
    /** Where a value is on the axis; null without one. */
    place(value: string | number | boolean | null): number | null;
    ticks: { text: string; at: number }[];
}

/** Numbers by value, by their logarithm if they are far apart; other values in order. */
function scale({ values }: Axis): Scale {
    const present = values.filter((it) => it !== null && it !== "");
    const numbers = present.map(Number);
    const at = (share: number): number => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
    if (present.length > 0 && present.every((it) => typeof it !== "boolean") && numbers.every((it) => Number.isFinite(it))) {
        const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
        const isLogarithmic = low > 0 && high / low > 50;
        const of = (value: number): number => (isLogarithmic ? Math.log(value) : value);
        const share = (value: number): number => (high === low ? 0.5 : (of(value) - of(low)) / (of(high) - of(low)));
        const distinct = [...new Set(numbers)].sort((a, b) => a - b);
        const shown = distinct.length <= 5 ? distinct : [low, high];
        return { place: (value) => (value === null || value === "" ? null : at(share(Number(value)))), ticks: apart(shown.map((value) => ({ text: short(value), at: at(share(value)) }))) };
    }
    const distinct = [...new Set(present.map(String))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const share = (value: string): number => (distinct.length < 2 ? 0.5 : distinct.indexOf(value) / (distinct.length - 1));
    return { place: (value) => (value === null || value === "" ? null : at(share(String(value)))), ticks: apart(distinct.map((text) => ({ text: text.slice(0, 12), at: at(share(text)) }))) };
}

/** The ticks that do not cover another one; the ends stay. */
function apart(ticks: Scale["ticks"]): Scale["ticks"] {
    const shown: Scale["ticks"] = [];
    for (const tick of [ticks[0], ticks.at(-1), ...ticks.slice(1, -1)]) {
        if (tick !== undefined && shown.every(({ at }) => Math.abs(at - tick.at) >= 14)) {
            shown.push(tick);
        }
    }
    return shown;
}

function short(value: number): string {
    return value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(1) : metric(Number(value.toPrecision(3)));
}

export function Parallel({ axes, keys, selected, onSelect, better }: Props) {
    const [measure, width] = useWidth<HTMLDivElement>();
    const scales = axes.map(scale);
    const x = (index: number): number => SIDE + (index * (Math.max(width, axes.length * 70) - 2 * SIDE)) / Math.max(1, axes.length - 1);
    // The color is the rank by the last result: the best is the strongest.
    const result = axes.findLast(({ isResult }) => isResult);
    const ranked = result ? keys.map((_, index) => index).filter((index) => typeof result.values[index] === "number").sort((a, b) => Number(result.values[a]) - Number(result.values[b])) : [];
    if (result && better[result.name] === "higher") {
        ranked.reverse();
    }
    const rank = new Map(ranked.map((index, place) => [index, ranked.length < 2 ? 0 : place / (ranked.length - 1)]));
    const lines = keys.slice(0, MAX_LINES).map((key, index) => {
        const points = axes.map(({ values }, axis) => [x(axis), scales[axis]?.place(values[index] ?? null)] as const);
        const isWhole = points.every(([, y]) => y !== null && y !== undefined);
        const known = points.filter(([, y]) => y !== null && y !== undefined);
        return { key, isWhole, rank: rank.get(index), path: known.map(([px, py], at) => `${at === 0 ? "M" : "L"}${px.toFixed(1)},${(py as number).toFixed(1)}`).join("") };
    });
    const level = (it: number | undefined): string => (it === undefined ? "none" : it < 0.2 ? "best" : it < 0.6 ? "middle" : "rest");
    // What is selected is drawn last, above the others.
    const ordered = [...lines].sort((a, b) => Number(a.key === selected) - Number(b.key === selected) || (b.rank ?? 2) - (a.rank ?? 2));
    return (
        <div class="parallel" ref={measure}>
            <svg width={Math.max(width, axes.length * 70)} height={HEIGHT} role="img" aria-label={`Parallel coordinates of ${axes.map(({ name }) => name).join(", ")}; the table below has the numbers`}>
                {ordered.map((line) => (
                    <path key={line.key} d={line.path} class={`sweep-line ${line.key === selected ? "selected" : level(line.rank)}${line.isWhole ? "" : " partial"}`} onClick={() => onSelect(line.key)}>
                        <title>{line.key}</title>
                    </path>
                ))}
                {axes.map(({ name, isResult }, index) => (
                    <g key={name}>
                        <line x1={x(index)} x2={x(index)} y1={TOP} y2={HEIGHT - BOTTOM} class="axis" />
                        <text x={x(index)} y={16} class={isResult ? "axis-name result" : "axis-name"}>{name.slice(0, 16)}</text>
                        {scales[index]?.ticks.map(({ text, at }) => <text key={text} x={x(index) + (index === axes.length - 1 ? -6 : 6)} y={at + 4} class={index === axes.length - 1 ? "tick end" : "tick"}>{text}</text>)}
                    </g>
                ))}
            </svg>
        </div>
    );
}
