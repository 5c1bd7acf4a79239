// A sweep: its jobs as a table that sorts, the best value marked, and a line for each in parallel coordinates.

import { useMemo, useState } from "preact/hooks";

import { rerun, stop, useMayChange } from "./actions";
import { path } from "./api";
import { count, duration, metric } from "./format";
import { Parallel, type Axis } from "./parallel";
import { go, jobAddress } from "./route";
import { State, hasEnded } from "./state";
import { Table, sorted, type Column, type Sorting } from "./table";
import type { SweepRow } from "./types";
import { useDocument, useKeys, useNow, useTitle } from "./use";

type Better = Record<string, "lower" | "higher">;

interface Document {
    jobs: SweepRow[];
    /** Which values of a metric are better, where its job file says so. */
    better?: Better;
}

const NONE: Better = {};

export function Sweep({ id }: { id: string }) {
    useTitle(id);
    const [period, setPeriod] = useState<number | null>(2000);
    const { data, problem, again: reload } = useDocument<Document>(path("jobs", id), period);
    const now = useNow(period === null ? null : 1000);
    const mayChange = useMayChange();
    const [sorting, sort] = useState<Sorting | null>(null);
    const [selected, select] = useState<string | null>(null);
    const rows = useMemo(() => data?.jobs ?? [], [data]);
    const better = data?.better ?? NONE;
    const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
    const isOver = data !== undefined && rows.every(hasEnded);
    if ((period === null) !== isOver) {
        setPeriod(isOver ? null : 2000);
    }
    const axes = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))];
    const metrics = [...new Set(rows.flatMap(({ metrics }) => Object.keys(metrics)))];
    const best = useMemo(() => bests(rows, metrics, better), [rows, better]);
    const mark = (job: string, isChosen: boolean): void => choose(new Set(isChosen ? [...chosen, job] : [...chosen].filter((it) => it !== job)));
    const again = (): void => {
        const jobs = rows.filter(({ id: job }) => chosen.has(job)).map(({ id: job }) => job);
        void rerun(jobs).then((left) => {
            choose(new Set(left));
            reload();
        });
    };
    const columns: Column<SweepRow>[] = [
        ...(mayChange ? [{ key: "chosen", title: "", width: "2.2em", from: 420, cell: (row: SweepRow) => <input type="checkbox" aria-label={`choose ${row.id}`} checked={chosen.has(row.id)} disabled={!hasEnded(row)} onClick={(event) => event.stopPropagation()} onChange={(event) => mark(row.id, event.currentTarget.checked)} /> }] : []),
        { key: "job", title: "Job", width: "minmax(6.5em, 1.2fr)", cell: ({ id: job }) => <a href={jobAddress(job)}>{job}</a>, sort: ({ number }) => number },
        ...axes.map((name): Column<SweepRow> => ({ key: `axis ${name}`, title: name, width: "minmax(5em, 1fr)", isNumber: true, from: 520, cell: ({ values }) => <span class="cut">{metric(values[name])}</span>, sort: ({ values }) => scalar(values[name]) })),
        { key: "state", title: "State", width: "7.6em", cell: ({ state }) => <State state={state} />, sort: ({ state }) => state },
        ...metrics.map((name): Column<SweepRow> => ({
            key: `metric ${name}`, title: name, width: "minmax(5.5em, 1fr)", isNumber: true,
            cell: (row) => best.get(name) === row.id ? <strong class="best">{metric(row.metrics[name])} <span class="chip" title={`the best ${name}`}>best</span></strong> : metric(row.metrics[name]),
            sort: ({ metrics }) => scalar(metrics[name]), isDescendingFirst: better[name] === "higher",
        })),
        { key: "ran", title: "Ran", width: "6em", isNumber: true, from: 620, cell: (row) => (row.started ? duration((row.ended ? Date.parse(row.ended) : now) - Date.parse(row.started)) : ""), sort: (row) => (row.started ? (row.ended ? Date.parse(row.ended) : now) - Date.parse(row.started) : null) },
        ...(mayChange ? [{ key: "again", title: "", width: "6.5em", from: 760, cell: ({ id: job }: SweepRow) => <a href={`${jobAddress(job)}/again`} aria-label={`Run again: ${job}`}>Run again</a> }] : []),
    ];
    // Unless the user sorts, a sweep that is over begins with its best job.
    const first = metrics.find((name) => best.has(name));
    const order = sorting ?? (isOver && first !== undefined ? { key: `metric ${first}`, isDescending: better[first] === "higher" } : null);
    const shown = useMemo(() => sorted(rows, columns, order), [rows, order?.key, order?.isDescending, now]);
    useKeys((key) => {
        const at = shown.findIndex((row) => row.id === selected);
        const to = key === "j" ? at + 1 : key === "k" ? at - 1 : null;
        if (to !== null) {
            const row = shown[Math.min(shown.length - 1, Math.max(0, to))];
            select(row?.id ?? null);
        } else if (key === "Enter" && selected !== null && document.activeElement === document.body) {
            go(jobAddress(selected));
        } else if (key === "s" && mayChange && !isOver) {
            void stop(id, "All its jobs that run or wait are stopped.").then((done) => done && reload());
        } else {
            return false;
        }
        return true;
    });
    if (problem && !data) {
        return <div class="page"><h1 tabIndex={-1}>{id}</h1><p class="banner problem">{problem.message}</p></div>;
    }
    if (data === undefined) {
        return <p class="quiet loading">Loading…</p>;
    }
    const done = rows.filter(hasEnded).length;
    const lines: Axis[] = [
        ...axes.map((name) => ({ name, values: rows.map(({ values }) => values[name] ?? null) })),
        ...metrics.map((name) => ({ name, values: rows.map(({ metrics }) => metrics[name] ?? null), isResult: true })),
    ];
    return (
        <div class="page fill">
            <div class="top">
                <h1 tabIndex={-1}>{id}</h1>
                <span class="quiet">{count(rows.length, "job")}, {done} ended</span>
                <span class="space" />
                {chosen.size > 0 && <button type="button" onClick={again}>Run {count(chosen.size, "job")} again</button>}
                {mayChange && !isOver && <button type="button" class="danger" onClick={() => void stop(id, "All its jobs that run or wait are stopped.").then((it) => it && reload())}>Stop all</button>}
            </div>
            {lines.length > 1 && rows.length > 1 && <Parallel axes={lines} keys={rows.map((row) => row.id)} selected={selected} onSelect={select} better={better} />}
            <Table label={`Jobs of ${id}`} columns={columns} rows={shown} keyOf={(row) => row.id} sorting={order} onSort={sort} selected={selected} onSelect={select} rowHeight={34} />
        </div>
    );
}

/** What a value is sorted by: a number if it is one. */
function scalar(value: unknown): number | string | null {
    if (value === null || value === undefined) {
        return null;
    }
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    return typeof number === "number" && !Number.isNaN(number) ? number : String(value);
}

/** The job with the best value of each metric that says what is better. */
function bests(rows: SweepRow[], metrics: string[], better: Record<string, "lower" | "higher">): Map<string, string> {
    const found = new Map<string, string>();
    for (const name of metrics) {
        const way = better[name];
        const values = rows.flatMap(({ id, metrics }) => (typeof metrics[name] === "number" ? [[id, metrics[name]] as const] : []));
        if (way !== undefined && values.length > 1) {
            found.set(name, values.reduce((a, b) => ((way === "lower") === b[1] < a[1] ? b : a))[0]);
        }
    }
    return found;
}
