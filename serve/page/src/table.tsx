// One table for everything: it draws only the rows that are seen, sorts, and is walked through by keys.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { useWidth } from "./use";

export interface Column<Row> {
    key: string;
    title: string;
    /** A track of the grid. */
    width: string;
    cell(row: Row): ComponentChildren;
    /** What the column is sorted by. */
    sort?(row: Row): number | string | null | undefined;
    /** Whether the highest value comes first when the column is first sorted by. */
    isDescendingFirst?: boolean;
    isNumber?: boolean;
    /** Only where the table has this width, in pixels. */
    from?: number;
}

export interface Sorting {
    key: string;
    isDescending: boolean;
}

interface Props<Row> {
    label: string;
    columns: Column<Row>[];
    rows: Row[];
    keyOf(row: Row): string;
    /** The row that keys act on, by its key. */
    selected?: string | null;
    onSelect?(key: string): void;
    sorting?: Sorting | null;
    onSort?(sorting: Sorting): void;
    /** The end of the rows is near. */
    onEnd?(): void;
    rowHeight?: number;
    class?: string;
    total?: number;
}

const OVERSCAN = 8;

export function Table<Row>({ label, columns, rows, keyOf, selected, onSelect, sorting, onSort, onEnd, rowHeight = 38, class: more = "", total }: Props<Row>) {
    const [measure, width] = useWidth<HTMLDivElement>();
    const body = useRef<HTMLDivElement>(null);
    const [view, setView] = useState({ top: 0, height: 800 });
    const look = (): void => {
        const element = body.current;
        if (element !== null) {
            setView({ top: element.scrollTop, height: element.clientHeight });
        }
    };
    useLayoutEffect(() => {
        const observer = new ResizeObserver(look);
        if (body.current !== null) {
            observer.observe(body.current);
        }
        look();
        return () => observer.disconnect();
    }, []);
    const shown = columns.filter(({ from }) => from === undefined || width >= from);
    const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN);
    const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN);
    useEffect(() => {
        if (last >= rows.length && rows.length > 0) {
            onEnd?.();
        }
    }, [last, rows.length]);
    // The row of the keys is brought into view when it changes.
    const at = selected === undefined || selected === null ? -1 : rows.findIndex((row) => keyOf(row) === selected);
    useLayoutEffect(() => {
        const element = body.current;
        if (element === null || at < 0) {
            return;
        }
        const top = at * rowHeight;
        if (top < element.scrollTop) {
            element.scrollTop = top;
        } else if (top + rowHeight > element.scrollTop + element.clientHeight) {
            element.scrollTop = top + rowHeight - element.clientHeight;
        }
    }, [selected]);
    const style = { gridTemplateColumns: shown.map((it) => it.width).join(" ") };
    const sort = (column: Column<Row>): void => onSort?.({ key: column.key, isDescending: sorting?.key === column.key ? !sorting.isDescending : column.isDescendingFirst ?? false });
    const order = ({ key }: Column<Row>): "ascending" | "descending" | "none" => (sorting?.key !== key ? "none" : sorting.isDescending ? "descending" : "ascending");
    return (
        <div class={`table ${more}`} role="table" aria-label={label} aria-rowcount={(total ?? rows.length) + 1} aria-colcount={shown.length} ref={measure}>
            <div role="rowgroup" class="head">
                <div role="row" aria-rowindex={1} class="row" style={style}>
                    {shown.map((column) => (
                        <div role="columnheader" key={column.key} class={column.isNumber ? "number" : ""} aria-sort={onSort && column.sort ? order(column) : undefined}>
                            {onSort && column.sort ? (
                                <button type="button" class="plain" onClick={() => sort(column)}>
                                    {column.title}<span aria-hidden="true" class="order">{{ ascending: "▲", descending: "▼", none: "" }[order(column)]}</span>
                                </button>
                            ) : (
                                column.title
                            )}
                        </div>
                    ))}
                </div>
            </div>
            <div role="rowgroup" class="body" ref={body} onScroll={look} tabIndex={rows.length * rowHeight > view.height ? 0 : undefined} aria-label={`rows of ${label}`}>
                <div role="presentation" class="sizer" style={{ height: `${rows.length * rowHeight}px` }}>
                    {rows.slice(first, last).map((row, index) => {
                        const key = keyOf(row);
                        return (
                            <div
                                role="row"
                                key={key}
                                aria-rowindex={first + index + 2}
                                class={key === selected ? "row selected" : "row"}
                                data-key={key}
                                style={{ ...style, height: `${rowHeight}px`, top: `${(first + index) * rowHeight}px` }}
                                onClick={() => onSelect?.(key)}
                            >
                                {shown.map((column) => (
                                    <div role="cell" key={column.key} class={column.isNumber ? "number" : ""}>{column.cell(row)}</div>
                                ))}
                            </div>
                        );
                    })}
                </div>
            </div>
        </div>
    );
}

/** Rows in the order of a column; those without a value come last. */
export function sorted<Row>(rows: Row[], columns: Column<Row>[], sorting: Sorting | null): Row[] {
    const by = columns.find(({ key }) => key === sorting?.key)?.sort;
    if (by === undefined || sorting === null) {
        return rows;
    }
    const sign = sorting.isDescending ? -1 : 1;
    return [...rows].sort((a, b) => {
        const [one, other] = [by(a), by(b)];
        if (one === null || one === undefined || other === null || other === undefined) {
            return Number(one === null || one === undefined) - Number(other === null || other === undefined);
        }
        return sign * (typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true }));
    });
}
