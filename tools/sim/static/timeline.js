// The logic analyser: inputs and outputs of the last 30 s. Units: ms of the table's clock.

import { byId, data, put, svg, t } from "./words.js";

const ROW = 19;
const FOOT = 20;
const rows = []; // [t, word], in order of time
const offsets = [];
let at = 0;
for (const [, bits] of data.signals) {
  offsets.push(at);
  at += bits;
}

let clock = 0; // table's clock minus performance.now()
let frozen = null;
let pointer = null;
let paths = [];
let built = "";

export function add(list) {
  rows.push(...list);
  const oldest = now() - data.keepMs - 5000;
  while (rows.length > 1 && rows[1][0] < oldest) rows.shift();
}

export function clear() {
  rows.length = 0;
  clock = 0;
}

export function tick(tableNow) {
  const seen = tableNow - performance.now();
  clock = Math.abs(seen - clock) > 300 ? seen : clock + (seen - clock) * 0.1;
}

const now = () => clock + performance.now();

export function freeze(on) {
  frozen = on ? now() : null;
}

const value = (word, i) => (word >>> offsets[i]) & ((1 << data.signals[i][1]) - 1);

function build(root, width, label) {
  const height = data.signals.length * ROW + FOOT;
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.setAttribute("height", height);
  root.setAttribute("aria-label", `${t("ui.timeline")}: ${t("ui.inputs")}, ${t("ui.outputs")}`);
  root.replaceChildren();
  paths = data.signals.map(([name], i) => {
    const kind = i < 11 ? "input" : "output";
    const y = i * ROW;
    if (i % 2) root.append(svg("rect", { x: 0, y, width, height: ROW, class: "stripe" }));
    const text = svg("text", { x: label - 8, y: y + ROW - 5.5, class: "label" });
    text.textContent = t(`things.${name}`);
    const fill = svg("path", { class: `fill ${kind}` });
    const line = svg("path", { class: `wave ${kind}` });
    root.append(text, fill, line);
    return { fill, line };
  });
  for (let s = 0; s <= 30; s += 5) {
    const x = label + ((width - label - 6) * s) / 30;
    const text = svg("text", { x, y: height - 5, class: "scale" });
    text.textContent = s === 30 ? "0 s" : `−${30 - s}`;
    root.append(svg("path", { d: `M${x} 0V${height - FOOT}`, class: "grid" }), text);
  }
  root.append(svg("path", { id: "cursorLine", class: "cursorLine" }));
}

export function draw(root) {
  const width = Math.round(root.parentElement.clientWidth - 24);
  const label = width < 560 ? 112 : 158;
  const key = `${width} ${t("ui.timeline")}`;
  if (key !== built) {
    built = key;
    build(root, width, label);
  }
  const end = frozen ?? now();
  const start = end - data.keepMs;
  const scale = (width - label - 6) / data.keepMs;
  const x = (time) => (label + (Math.max(time, start) - start) * scale).toFixed(1);
  const shown = rows.filter((r, i) => r[0] <= end && (i + 1 >= rows.length || rows[i + 1][0] >= start));
  data.signals.forEach((_, i) => {
    const low = i * ROW + ROW - 4;
    const high = i * ROW + 4;
    const levelY = (v) => (v === 2 ? (low + high) / 2 : v ? high : low);
    let wave = "";
    let fill = "";
    let before = null;
    for (const [time, word] of shown) {
      const v = value(word, i);
      if (v === before) continue;
      wave += before === null ? `M${x(time)} ${levelY(v)}` : `H${x(time)}V${levelY(v)}`;
      if (v && !before) fill += `M${x(time)} ${low}V${high}`;
      if (!v && before) fill += `H${x(time)}V${low}Z`;
      before = v;
    }
    if (before !== null) wave += `H${x(end)}`;
    if (before) fill += `H${x(end)}V${low}Z`;
    paths[i].line.setAttribute("d", wave);
    paths[i].fill.setAttribute("d", fill);
  });
  const line = root.querySelector("#cursorLine");
  if (pointer !== null && pointer > label) {
    const time = start + (pointer - label) / scale;
    line.setAttribute("d", `M${pointer} 0V${data.signals.length * ROW}`);
    put(byId("cursor"), `${((time - end) / 1000).toFixed(3)} s`);
  } else {
    line.setAttribute("d", "");
    put(byId("cursor"), "");
  }
}

export function watch(root) {
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    pointer = ((event.clientX - box.left) * root.viewBox.baseVal.width) / box.width;
  });
  root.addEventListener("pointerleave", () => { pointer = null; });
}
