// The betting layout from above, its 39 lamps as they are. Places of the fields only; odds come with the data.

import { data, languageNow, put, svg, t } from "./words.js";

const FIGURES = data.faces.map((face) => face.figure);
const COLOURS = ["red", "green", "blue"];
const NUMBERS = data.lamps.filter((name) => /^n\d+$/.test(name));
const pays = Object.fromEntries(data.bets.map((bet) => [bet.bet, bet.pays]));

// Rows of [height, [name, share of the width]…].
const row = (height, names, shares) => [height, names.map((name, i) => [name, shares ? shares[i] : 1])];
const WIDE = [
  row(74, ["small", "triple", "big"], [3.5, 5, 3.5]),
  row(72, FIGURES.map((name) => `${name}3`)),
  row(112, FIGURES),
  row(70, [...COLOURS.flatMap((c) => [1, 2, 3].map((n) => c + n)), "colour3"]),
  row(66, NUMBERS),
];
const NARROW = [
  row(62, ["small", "big"]),
  row(50, ["triple", "colour3"]),
  row(96, FIGURES.slice(0, 3)),
  row(96, FIGURES.slice(3)),
  row(58, FIGURES.slice(0, 3).map((name) => `${name}3`)),
  row(58, FIGURES.slice(3).map((name) => `${name}3`)),
  ...COLOURS.map((c) => row(46, [1, 2, 3].map((n) => c + n))),
  row(54, NUMBERS.slice(0, 7)),
  row(54, NUMBERS.slice(7)),
];

let cells = {};
let built = null;

function text(x, y, words, cls) {
  const node = svg("text", { x, y, class: cls });
  node.textContent = words;
  return node;
}

function odds(name) {
  const paid = pays[name];
  return paid.length > 1 ? `${paid[0]}–${paid.at(-1)}` : String(paid[0]);
}

function field(name, x, y, w, h) {
  const group = svg("g", { class: "cell", "data-lamp": name }, svg("rect", { x: x + 2, y: y + 2, width: w - 4, height: h - 4, rx: 7 }));
  const title = svg("title");
  title.textContent = `${t(`bets.${name}`)} – ${odds(name)} : 1`;
  group.append(title);
  const cx = x + w / 2;
  const single = FIGURES.indexOf(name);
  const three = FIGURES.findIndex((figure) => name === `${figure}3`);
  const coloured = /^(red|green|blue)([123])$/.exec(name);
  if (single >= 0) {
    const size = Math.min(h - 44, w - 16);
    group.append(use(name, cx - size / 2, y + 8, size), text(cx, y + h - 24, t(`bets.${name}`), "name"), text(cx, y + h - 9, `× ${odds(name)}`, "odds"));
  } else if (three >= 0) {
    const size = Math.min(24, (w - 12) / 3.2);
    for (let i = 0; i < 3; i++) group.append(use(FIGURES[three], cx + (i - 1.5) * (size + 2) + 1, y + 11, size));
    group.append(text(cx, y + h - 11, `× ${odds(name)}`, "odds"));
  } else if (coloured) {
    for (let i = 0; i < 3; i++) group.append(svg("rect", { x: cx + (i - 1.5) * 15 + 1.5, y: y + h / 2 - 18, width: 12, height: 12, rx: 3, class: `dot ${i < Number(coloured[2]) ? coloured[1] : ""}` }));
    group.append(text(cx, y + h - 11, `× ${odds(name)}`, "odds"));
  } else if (name === "colour3" && w < 90) {
    COLOURS.forEach((colour, i) => group.append(svg("rect", { x: cx + (i - 1.5) * 15 + 1.5, y: y + h / 2 - 18, width: 12, height: 12, rx: 6, class: `dot ${colour}` })));
    group.append(text(cx, y + h - 11, `× ${odds(name)}`, "odds"));
  } else if (name.startsWith("n")) {
    group.append(text(cx, y + h / 2 + 3, name.slice(1), "number"), text(cx, y + h - 9, `× ${odds(name)}`, "odds"));
  } else {
    group.append(text(cx, y + h / 2 + 1, t(`bets.${name}`), "big"), text(cx, y + h - 10, `${name === "small" ? "4–10 · " : name === "big" ? "11–17 · " : ""}× ${odds(name)}`, "odds"));
  }
  const pay = group.querySelector(".odds");
  pay.dataset.odds = pay.textContent;
  return group;
}

function use(figure, x, y, size) {
  const colour = data.faces[FIGURES.indexOf(figure)].colour;
  return svg("use", { href: `#${figure}`, x, y, width: size, height: size, class: `glyph ${colour}` });
}

function build(root, narrow) {
  const rows = narrow ? NARROW : WIDE;
  const width = narrow ? 360 : 660;
  cells = {};
  root.replaceChildren();
  let y = 0;
  for (const [height, list] of rows) {
    const total = list.reduce((sum, [, share]) => sum + share, 0);
    let x = 0;
    for (const [name, share] of list) {
      const w = (width * share) / total;
      cells[name] = field(name, x, y, w, height);
      root.append(cells[name]);
      x += w;
    }
    y += height;
  }
  root.setAttribute("viewBox", `0 0 ${width} ${y}`);
}

/** Draw the lamps of `state`; `win`: what the device said of the odds that a lit field pays. */
export function draw(root, state, win) {
  const narrow = window.matchMedia("(max-width: 640px)").matches;
  const key = `${narrow} ${languageNow()}`;
  if (key !== built) {
    built = key;
    build(root, narrow);
  }
  const lit = new Set(state.world.lamps ?? []);
  for (const [name, cell] of Object.entries(cells)) {
    cell.classList.toggle("lit", lit.has(name));
    const pay = cell.querySelector(".odds");
    const words = lit.has(name) && win[name] ? pay.textContent.replace(/×.*/, `× ${win[name]}`) : pay.dataset.odds;
    put(pay, words);
  }
  const words = [...lit].map((name) => t(`bets.${name}`)).join(", ");
  const label = `${t("ui.layout")}. ${t("ui.lit")}: ${words || t("ui.none")}`;
  if (root.getAttribute("aria-label") !== label) root.setAttribute("aria-label", label);
}
