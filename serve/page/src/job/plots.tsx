// Plots: CPU, memory, I/O and GPUs of the tasks, and the numbers that the log names.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { path } from "../api";
import { color } from "../color";
import { bytes, metric } from "../format";
import { follow, parsed } from "../stream";
import type { JobDetails, LogLine, Sample } from "../types";
import { useWidth } from "../use";
import { TaskChoice } from "./task_choice";
import { MetricSeries, UsageSeries, type Series } from "./series";

const FRAME = 500;
/** How many lines of the log are read for numbers. */
const TAIL = 50_000;
const COLORS = ["--plot-1", "--plot-2", "--plot-3", "--plot-4", "--plot-5", "--plot-6"];
const HEIGHT = 190;

/** Both streams of a job as series. */
function useSeries(id: string): { usage: UsageSeries; metrics: MetricSeries; version: number; isOver: boolean } {
    const [state, set] = useState({ usage: new UsageSeries(), metrics: new MetricSeries(), version: 0, isOver: false });
    useEffect(() => {
        const [usage, metrics] = [new UsageSeries(), new MetricSeries()];
        set({ usage, metrics, version: 0, isOver: false });
        let timer = 0;
        const draw = (): void => {
            timer ||= setTimeout(() => {
                timer = 0;
                set((before) => ({ ...before, version: before.version + 1 }));
            }, FRAME);
        };
        const over = (): void => set((before) => ({ ...before, version: before.version + 1, isOver: true }));
        const stops = [
            follow(`${path("jobs", id, "samples")}?follow=1`, {
                events(events) {
                    events.forEach((event) => event.kind === "sample" && usage.add(parsed<Sample>(event)));
                    draw();
                },
                end: over,
                fail: over,
            }),
            follow(`${path("jobs", id, "logs")}?follow=1&tail=${TAIL}`, {
                events(events) {
                    events.forEach((event) => event.kind === "line" && metrics.add(parsed<LogLine>(event)));
                    draw();
                },
            }),
        ];
        return () => {
            stops.forEach((stop) => stop());
            clearTimeout(timer);
        };
    }, [id]);
    return state;
}

export function Plots({ job }: { job: JobDetails }) {
    const { usage, metrics, version, isOver } = useSeries(job.id);
    const begin = Date.parse(job.started ?? job.submitted ?? "");
    const [task, setTask] = useState("");
    const tasks = usage.tasks();
    const groups = useMemo(() => {
        const only = task === "" ? undefined : task;
        return [
            ...metrics.named(only).map(({ name, series }) => ({ title: name, unit: metric, series })),
            { title: "CPU", unit: (it: number) => `${Number(it.toPrecision(3))}`, series: usage.cpu(only) },
            { title: "Memory", unit: bytes, series: usage.memory(only) },
            { title: "Disk I/O per second", unit: bytes, series: usage.disk(only) },
            { title: "GPU utilization, %", unit: (it: number) => `${Math.round(it)}`, series: usage.gpuUtilization(only) },
            { title: "GPU memory", unit: bytes, series: usage.gpuMemory(only) },
        ].filter(({ series }) => series.some(({ times }) => times.length > 0));
    }, [usage, metrics, version, task]);
    return (
        <div class="plots">
            {tasks.length > 1 && (
                <p class="tools">
                    <TaskChoice tasks={tasks} value={task} onChange={setTask} all="all tasks" />
                </p>
            )}
            {groups.length === 0 && <p class="quiet nothing">{isOver ? "The job was too short for a sample, and its log names no numbers." : "No sample yet; there is one each second."}</p>}
            <div class="grid">{groups.map(({ title, unit, series }) => <Plot key={title} title={title} unit={unit} series={series} begin={begin} />)}</div>
        </div>
    );
}

interface PlotProps {
    title: string;
    unit(value: number): string;
    series: Series[];
    begin: number;
}

/** The columns that uPlot draws: one of times, and one for each series with nulls where it has no value. */
function columns(series: Series[], begin: number): uPlot.AlignedData {
    const times = [...new Set(series.flatMap(({ times }) => times))].sort((a, b) => a - b);
    const at = new Map(times.map((time, index) => [time, index]));
    const values = series.map((one) => {
        const column: (number | null | undefined)[] = new Array(times.length).fill(undefined);
        one.times.forEach((time, index) => {
            column[at.get(time) as number] = one.values[index] ?? null;
        });
        return column;
    });
    return [times.map((time) => (time - begin) / 1000), ...values] as uPlot.AlignedData;
}

function Plot({ title, unit, series, begin }: PlotProps) {
    const [measure, width] = useWidth<HTMLElement>();
    const place = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const [dark, setDark] = useState(matchMedia("(prefers-color-scheme: dark)").matches);
    useEffect(() => {
        const query = matchMedia("(prefers-color-scheme: dark)");
        const listen = (): void => setDark(query.matches);
        query.addEventListener("change", listen);
        return () => query.removeEventListener("change", listen);
    }, []);
    const names = series.map(({ name }) => name).join("\0");
    useEffect(() => {
        if (place.current === null) {
            return undefined;
        }
        const style = getComputedStyle(place.current);
        const axis = { stroke: color("--plot-text"), grid: { stroke: color("--plot-grid"), width: 1 }, ticks: { stroke: color("--plot-grid"), width: 1 }, font: `11px ${style.fontFamily}` };
        const options: uPlot.Options = {
            width: Math.max(width, 200),
            height: HEIGHT,
            scales: { x: { time: false } },
            legend: { show: false },
            cursor: { sync: { key: "jobc" }, points: { size: 6 } },
            axes: [
                { ...axis, size: 30, values: (_, all) => all.map((it) => (it >= 3600 ? `${Number((it / 3600).toFixed(1))} h` : it >= 120 ? `${Number((it / 60).toFixed(1))} min` : `${Number(it.toFixed(1))} s`)) },
                { ...axis, size: 68, values: (_, all) => all.map((it) => unit(it)) },
            ],
            series: [{}, ...series.map(({ name }, index) => ({ label: name, stroke: color(COLORS[index % COLORS.length] as string), width: 1.5, spanGaps: true, dash: index >= COLORS.length ? [5, 4] : [], points: { show: series[index] !== undefined && series[index].times.length < 3 } }))],
        };
        plot.current = new uPlot(options, columns(series, begin), place.current);
        return () => plot.current?.destroy();
    }, [names, dark]);
    useEffect(() => plot.current?.setSize({ width: Math.max(width, 200), height: HEIGHT }), [width]);
    useEffect(() => plot.current?.setData(columns(series, begin)), [series]);
    const all = series.flatMap(({ values }) => values.filter((it) => it !== null));
    const last = series.map(({ values }) => values.at(-1)).filter((it) => it !== undefined && it !== null);
    const summary = all.length === 0 ? "" : `min ${unit(all.reduce((a, b) => Math.min(a, b)))}, max ${unit(all.reduce((a, b) => Math.max(a, b)))}${last.length === 1 ? `, last ${unit(last[0] as number)}` : ""}`;
    return (
        <figure class="plot" ref={measure}>
            <figcaption><strong>{title}</strong> <span class="quiet">{summary}</span></figcaption>
            <div ref={place} role="img" aria-label={`${title}: ${summary}`} />
            {series.length > 1 && <p class="legend">{series.slice(0, 12).map(({ name }, index) => <span key={name} class={`key k${index % COLORS.length}`}>{name}</span>)}{series.length > 12 && <span>and {series.length - 12} more</span>}</p>}
        </figure>
    );
}
