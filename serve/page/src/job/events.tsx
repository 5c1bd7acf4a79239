// The events of a job, as they happen.

import { useEffect, useState } from "preact/hooks";

import { path } from "../api";
import { clock, duration, fullTime } from "../format";
import { follow, parsed } from "../stream";
import { Table, type Column } from "../table";
import type { JobDetails, JobEvent } from "../types";

const MAX_EVENTS = 50_000;

export function Events({ job }: { job: JobDetails }) {
    const [events, set] = useState<JobEvent[]>([]);
    const [isOver, end] = useState(false);
    useEffect(() => {
        set([]);
        return follow(`${path("jobs", job.id, "events")}?follow=1`, {
            events: (found) => set((before) => [...before, ...found.flatMap((it) => (it.kind === "event" ? (parsed<JobEvent>(it) ?? []) : []))].slice(-MAX_EVENTS)),
            end: () => end(true),
            fail: () => end(true),
        });
    }, [job.id]);
    if (events.length === 0) {
        return <p class="quiet nothing">{isOver ? "No event is recorded." : "No event yet."}</p>;
    }
    const begin = Date.parse(job.submitted ?? events[0]?.time ?? "");
    const columns: Column<JobEvent & { number: number }>[] = [
        { key: "time", title: "Time", width: "4.8em", cell: ({ time }) => <time title={fullTime(time)}>{clock(time)}</time> },
        { key: "after", title: "After", width: "6em", isNumber: true, from: 560, cell: ({ time }) => duration(Date.parse(time) - begin) },
        { key: "event", title: "Event", width: "7.5em", cell: ({ event, is_warning }) => <span class={is_warning ? "state waiting" : ""}>{is_warning ? "! " : ""}{event}</span> },
        { key: "task", title: "Task", width: "minmax(4em, 10em)", from: 440, cell: ({ task, attempt }) => <span class="cut mono">{task}{attempt && attempt > 1 ? ` #${attempt}` : ""}</span> },
        { key: "message", title: "", width: "minmax(6em, 1fr)", cell: ({ message, count }) => <span class="cut" title={message}>{message}{count && count > 1 ? ` (${count} times)` : ""}</span> },
    ];
    return <Table label="Events" class="events" columns={columns} rows={events.map((event, number) => ({ ...event, number }))} keyOf={({ number }) => String(number)} rowHeight={28} />;
}
