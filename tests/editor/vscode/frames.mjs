// Runs in the window of VS Code: records for each key when a frame first shows it.

/**
 * Starts to record. `opens` has the numbers of the keys, counted from 0, after which the list of suggestions should be open.
 *
 * A message that is posted before a frame is drawn arrives after it, so what it finds in the document is on the screen.
 */
export function observe(opens) {
    const editor = document.querySelector(".editor-group-container.active .monaco-editor");
    const keys = [];
    const tasks = [];
    const events = new Map();
    let text = "";
    // The keys of this line that no frame has shown yet, and the one that opens the list.
    let late = [];
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
            late = [];
            waiting = undefined;
        } else if (key.length === 1) {
            text += key;
            // A bracket may have opened the list before its first key.
            const opensList = opens.includes(keys.length) && !isListed();
            keys.push({ key, text, at: timeStamp, shown: null, opensList, listed: null });
            late.push(keys.at(-1));
            waiting = opensList ? keys.at(-1) : waiting;
        }
    }, true);
    const drawn = new MessageChannel();
    drawn.port1.onmessage = () => {
        const now = performance.now();
        const line = late.length > 0 ? cursorLine() : "";
        while (late.length > 0 && line.startsWith(late[0].text)) {
            const key = late.shift();
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
