// Runs in the window of VS Code: records for each key when a frame first shows it.

/**
 * Starts to record. `opens` has the numbers of the keys, counted from 0, that should open the list of suggestions.
 *
 * A message that is posted before a frame is drawn arrives after it, so what it finds in the document is on the screen.
 */
export function observe(opens) {
    const editor = document.querySelector(".editor-group-container.active .monaco-editor");
    const keys = [];
    const tasks = [];
    const events = new Map();
    let text = "";
    let waiting;

    // The frame, by our own clock.
    const cursorLine = () => {
        const top = editor.querySelector(".cursors-layer .cursor")?.style.top;
        const line = [...editor.querySelectorAll(".view-line")].find((line) => line.style.top === top);
        return line?.textContent.replaceAll("\u00a0", " ").trimStart() ?? "";
    };
    // VS Code shows the list 100 ms before it gets the class `visible`.
    const isListed = () => editor.querySelector(".suggest-widget[monaco-visible-content-widget] .monaco-list-row .label-name") !== null;
    addEventListener("keydown", ({ key, timeStamp }) => {
        if (key === "Enter") {
            text = "";
        } else if (key.length === 1) {
            text += key;
            keys.push({ key, text, at: timeStamp, shown: null, listed: null });
            waiting = opens.includes(keys.length - 1) && !isListed() ? keys.at(-1) : waiting;
        }
    }, true);
    const drawn = new MessageChannel();
    drawn.port1.onmessage = () => {
        const now = performance.now();
        const late = keys.filter((key) => key.shown === null);
        const line = late.length > 0 ? cursorLine() : "";
        for (const key of late.filter((key) => line.startsWith(key.text))) {
            key.shown = now - key.at;
        }
        if (waiting && isListed()) {
            waiting.listed = now - waiting.at;
            waiting = undefined;
        }
    };
    const frame = () => {
        drawn.port2.postMessage(null);
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);

    // The same by the browser's clock, in steps of 8 ms; it leaves out what takes less than 16 ms.
    const ofKeys = ["keydown", "keypress", "beforeinput", "input"];
    new PerformanceObserver((list) => {
        for (const { name, startTime, duration } of list.getEntries().filter((entry) => ofKeys.includes(entry.name))) {
            events.set(startTime, Math.max(duration, events.get(startTime) ?? 0));
        }
    }).observe({ type: "event", durationThreshold: 16 });
    // What keeps the window from drawing for more than 50 ms.
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });

    globalThis.latency = () => ({ keys, tasks, events: [...events.values()] });
}
