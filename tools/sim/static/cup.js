// The cup from the side, and from above as an inset. Draws where things are; decides nothing.

import { data, put, svg, t, valueOf } from "./words.js";

const CX = 225;
const PLAN = { x: 492, y: 112, r: 92 };
const SIDE = 27; // of a die, from the side
const TOP = 40; // and from above

let parts = {};
let drawnRoll = null;

function build(root) {
  const defs = svg("defs");
  defs.innerHTML = `
    <linearGradient id="lacquer" x1="0" x2="1"><stop offset="0" stop-color="#0b0d0f"/><stop offset=".28" stop-color="#4a5056"/><stop offset=".5" stop-color="#1b1f22"/><stop offset="1" stop-color="#060708"/></linearGradient>
    <linearGradient id="glass" x1="0" x2="1"><stop offset="0" stop-color="#fff" stop-opacity=".34"/><stop offset=".3" stop-color="#fff" stop-opacity=".08"/><stop offset="1" stop-color="#fff" stop-opacity=".2"/></linearGradient>
    <radialGradient id="lidTop"><stop offset="0" stop-color="#596066"/><stop offset=".35" stop-color="#23282b"/><stop offset="1" stop-color="#0a0c0d"/></radialGradient>
    <radialGradient id="beam"><stop offset="0" stop-color="#ff5340" stop-opacity=".85"/><stop offset="1" stop-color="#ff5340" stop-opacity="0"/></radialGradient>`;
  root.replaceChildren(defs);
  const add = (name, attributes, ...children) => {
    const node = svg(name, attributes, ...children);
    root.append(node);
    return node;
  };
  parts = {};
  add("ellipse", { cx: CX, cy: 400, rx: 190, ry: 15, class: "shadow" });

  const body = (parts.body = add("g", { class: "body" }));
  const put_ = (name, attributes, ...children) => {
    const node = svg(name, attributes, ...children);
    body.append(node);
    return node;
  };
  // Bolts lie behind the base's front and come out of it.
  parts.lock = [-1, 1].map((side) => put_("rect", { x: CX + (side < 0 ? -128 : 104), y: 356, width: 24, height: 8, rx: 2, class: "bolt lock" }));
  parts.bar = [-1, 1].map((side) => put_("rect", { x: CX + (side < 0 ? -128 : 104), y: 341, width: 24, height: 8, rx: 2, class: "bolt bar" }));
  parts.domePins = [-84, 76].map((x) => put_("rect", { x: CX + x, y: 340, width: 8, height: 20, rx: 2, class: "bolt domeBolt" }));
  parts.dice = put_("g", { class: "dice" });
  parts.dome = put_("g", { class: "dome hand", "data-thing": "dome" },
    svg("path", { d: `M${CX - 92} 336A92 98 0 0 1 ${CX + 92} 336Z`, class: "glassBody" }),
    svg("path", { d: `M${CX - 68} 306A74 76 0 0 1 ${CX - 26} 252`, class: "shine" }));
  put_("path", { d: `M${CX - 130} 336H${CX + 130}L${CX + 122} 372H${CX - 122}Z`, class: "base" });
  put_("path", { d: `M${CX - 78} 372H${CX + 78}L${CX + 100} 400H${CX - 100}Z`, class: "foot" });
  put_("rect", { x: CX - 130, y: 332, width: 260, height: 5, rx: 2, class: "glassPlate" });
  parts.motor = put_("g", { class: "motor" }, svg("rect", { x: CX - 34, y: 376, width: 68, height: 20, rx: 5, class: "window" }),
    svg("g", { class: "rotor" }, svg("circle", { cx: CX, cy: 386, r: 8 }), svg("circle", { cx: CX + 4, cy: 386, r: 3, class: "weight" })));
  parts.led = put_("circle", { cx: CX, cy: 354, r: 8, class: "led" });
  put_("circle", { cx: CX, cy: 354, r: 8, class: "ledRim" });
  parts.cover = put_("g", { class: "cover hand", "data-thing": "cover" },
    svg("path", { d: `M${CX - 106} 334A106 112 0 0 1 ${CX + 106} 334Z`, class: "lid" }),
    svg("rect", { x: CX - 118, y: 326, width: 236, height: 9, rx: 3, class: "lidRim" }),
    svg("ellipse", { cx: CX, cy: 219, rx: 17, ry: 9, class: "knob" }),
    svg("path", { d: `M${CX - 82} 298A88 90 0 0 1 ${CX - 34} 240`, class: "shine" }));
  parts.latch = {};
  for (const [name, side] of [["latch_a", -1], ["latch_b", 1]]) {
    const x = CX + side * 133;
    const lever = svg("g", { class: "lever" },
      svg("path", { d: `M${x - 6} 366L${x - 5} 322Q${x - 5} 314 ${x - side * 6} 314H${x - side * 22}V324H${x - side * 7 + 3}L${x + 6} 366Z`, class: "arm" }),
      svg("circle", { cx: x, cy: 366, r: 9, class: "pivot" }));
    lever.style.transformOrigin = `${x}px 366px`;
    const group = put_("g", { class: "latch hand", "data-thing": name }, svg("rect", { x: x - (side < 0 ? 62 : 20), y: 300, width: 82, height: 92, class: "hit" }), lever);
    const label = svg("text", { x: x + side * 24, y: 396, class: "tag" });
    label.textContent = name === "latch_a" ? "A" : "B";
    group.append(label);
    parts.latch[name] = { lever, side };
  }

  // From above.
  const plan = (parts.plan = add("g", { class: "plan" }));
  plan.append(svg("circle", { cx: PLAN.x, cy: PLAN.y, r: PLAN.r + 6, class: "planBase" }), svg("circle", { cx: PLAN.x, cy: PLAN.y, r: PLAN.r - 4, class: "planPlate" }));
  parts.planDice = svg("g", { class: "dice" });
  parts.planGlass = svg("circle", { cx: PLAN.x, cy: PLAN.y, r: PLAN.r - 6, class: "planGlass" });
  parts.planLid = svg("g", { class: "planLid" }, svg("circle", { cx: PLAN.x, cy: PLAN.y, r: PLAN.r, class: "lidTop" }), svg("circle", { cx: PLAN.x, cy: PLAN.y, r: 14, class: "knob" }));
  plan.append(parts.planDice, parts.planGlass, parts.planLid);
  parts.planText = add("text", { x: PLAN.x, y: 224, class: "caption" });

  // Front board and beacon.
  parts.board = add("g", { class: "board" }, svg("rect", { x: 398, y: 258, width: 188, height: 62, rx: 9, class: "panel" }), svg("path", { d: "M430 320V398M554 320V398", class: "posts" }));
  parts.boardText = svg("text", { x: 492, y: 290, class: "boardText" });
  parts.board.append(parts.boardText);
  parts.beacon = add("g", { class: "beacon" }, svg("circle", { cx: 492, cy: 372, r: 46, class: "beam" }), svg("path", { d: "M474 384V372A18 19 0 0 1 510 372V384Z", class: "lens" }), svg("rect", { x: 468, y: 384, width: 48, height: 15, rx: 3, class: "lensFoot" }));
}

function dieTop(dice, i) {
  const [x, y, turned] = dice.places[i];
  const odd = i === 2 ? dice.lying : "flat";
  const group = svg("g", { class: `die ${odd}`, "data-die": i, transform: `translate(${PLAN.x + x * 78} ${PLAN.y + y * 78}) rotate(${turned})` });
  const inner = svg("g", { class: "tumbler" });
  inner.style.setProperty("--i", i);
  const size = odd === "stacked" ? TOP + 3 : TOP;
  inner.append(svg("rect", { x: -size / 2, y: -size / 2, width: size, height: size, rx: 7, class: "cube" }));
  if (dice.faces) {
    if (odd === "tilted") { // two faces show: that is what makes it void
      inner.append(face(dice.faces[i], -size / 2 + 1, -size / 2 + 6, size * 0.52, size - 12), svg("path", { d: `M${size * 0.06} ${-size / 2}V${size / 2}`, class: "edge" }), face(dice.front[i], size * 0.1, -size / 2 + 8, size * 0.36, size - 16));
    } else inner.append(face(dice.faces[i], -15, -15, 30, 30));
  }
  group.append(inner);
  return group;
}

function face(number, x, y, width, height) {
  const { figure, colour } = data.faces[number - 1];
  return svg("use", { href: `#${figure}`, x, y, width, height, class: `glyph ${colour}`, preserveAspectRatio: "none" });
}

function dieSide(dice, i) {
  const [x, y] = dice.places[i];
  const odd = i === 2 ? dice.lying : "flat";
  const lift = odd === "stacked" ? SIDE + 6 : odd === "tilted" ? 8 : 0;
  const group = svg("g", { class: `die ${odd}`, transform: `translate(${CX + x * 92} ${330 - SIDE / 2 - lift + (y - 0.6) * 5}) rotate(${odd === "tilted" ? -27 : 0})` });
  const inner = svg("g", { class: "tumbler" });
  inner.style.setProperty("--i", i);
  const h = SIDE / 2;
  inner.append(svg("path", { d: `M${-h} ${-h}L${-h + 6} ${-h - 7}H${h + 6}L${h} ${-h}Z`, class: "cubeTop" }), svg("rect", { x: -h, y: -h, width: SIDE, height: SIDE, rx: 3, class: "cube" }));
  if (dice.faces) inner.append(face(dice.front[i], -9, -9, 18, 18));
  group.append(inner);
  return group;
}

/** Draw `state`. */
export function draw(root, state, xray) {
  if (!parts.body || !root.contains(parts.body)) build(root);
  const { plant, world, dice } = state;
  const [lock, bar, domeLock] = world.bolts ?? [0, 0, 0];
  parts.cover.classList.toggle("off", plant.cover === "off");
  parts.dome.classList.toggle("off", plant.dome === "open");
  root.classList.toggle("xray", xray);
  root.classList.toggle("covered", plant.cover === "on");
  for (const [name, { lever, side }] of Object.entries(parts.latch)) {
    lever.style.transform = `rotate(${plant[name] === "closed" ? 0 : side * 66}deg)`;
  }
  parts.lock.forEach((pin, i) => { pin.style.transform = `translateX(${(i ? 1 : -1) * lock * 0.02}px)`; });
  parts.bar.forEach((pin, i) => { pin.style.transform = `translateX(${(i ? 1 : -1) * bar * 0.034}px)`; });
  parts.domePins.forEach((pin) => { pin.style.transform = `translateY(${-domeLock * 0.017}px)`; });
  root.classList.toggle("locked", lock >= 500);
  root.classList.toggle("barred", bar >= 500);
  parts.body.classList.toggle("moving", Boolean(world.moving));
  parts.motor.classList.toggle("driven", world.out?.agitator === "on" && world.out?.agitator_enable === "on");
  const [r, g, b] = (world.status ?? [0, 0, 0]).map((part) => Math.min(255, part * 5));
  parts.led.style.fill = r + g + b ? `rgb(${r} ${g} ${b})` : "#1c2122";
  parts.led.style.filter = r + g + b ? `drop-shadow(0 0 6px rgb(${r} ${g} ${b}))` : "";
  parts.planLid.classList.toggle("off", plant.cover === "off");
  parts.planGlass.classList.toggle("off", plant.dome === "open");
  parts.board.classList.toggle("on", world.out?.front_board === "on");
  put(parts.boardText, t("ui.board_text"));
  put(parts.planText, t("ui.above"));
  parts.beacon.classList.toggle("on", world.out?.alarm === "on");
  const tumbling = dice.tumbling;
  parts.dice.classList.toggle("tumbling", tumbling);
  parts.planDice.classList.toggle("tumbling", tumbling);
  root.classList.toggle("turnable", plant.dome === "open");
  const key = JSON.stringify(dice);
  if (key !== drawnRoll) {
    drawnRoll = key;
    const order = [0, 1, 2].sort((a, c) => dice.places[a][1] - dice.places[c][1] || a - c);
    parts.dice.replaceChildren(...order.map((i) => dieSide(dice, i)));
    parts.planDice.replaceChildren(...[0, 1, 2].map((i) => dieTop(dice, i)));
  }
  const words = ["cover", "latch_a", "latch_b", "dome"].map((name) => `${t(`things.${name}`)}: ${valueOf(name, plant[name])}`);
  if (dice.faces) words.push(dice.lying === "flat" ? dice.faces.map((n) => t(`figures.${data.faces[n - 1].figure}`)).join(", ") : t(`ui.seen_${dice.lying}`));
  const label = `${t("ui.cup")}. ${words.join("; ")}`;
  if (root.getAttribute("aria-label") !== label) root.setAttribute("aria-label", label);
}

/** Let the bolt that held be seen. */
export function rattle(root, by) {
  const node = { cover_lock: parts.lock, cover_bar: parts.bar, dome_lock: parts.domePins, latch_a: [parts.latch?.latch_a.lever], latch_b: [parts.latch?.latch_b.lever], cover: [parts.cover] }[by];
  for (const pin of node ?? []) {
    pin.classList.remove("held");
    void root.getBoundingClientRect();
    pin.classList.add("held");
  }
}
