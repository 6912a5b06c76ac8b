// The page: shows what the server says of table and UART, and sends what hands do. No rule of the game is here.

import { about, byId, data, fault, glyph, hint, html, languageNow, put, setLanguage, t, translatePage, valueOf } from "./words.js";
import * as cup from "./cup.js";
import * as layout from "./layout.js";
import * as timeline from "./timeline.js";

const SHORT_MS = 150; // the shortest press: keys count after 20 ms, and a screen reader or switch cannot hold
const SAID = 5; // lines kept for a screen reader that is not done with them
const HAND_MS = 500; // within this a pointer's release brings its click
const LONG_MS = 1000; // and one of the key that counts when held
const SHORTCUTS = { c: "cover", 1: "latch_a", 2: "latch_b", d: "dome", s: "shake", b: "bell", v: "void", p: "paid", k: "service", r: "announce" };
const WORKS = "#keys, #resultBox, #saveVcd, #drawer fieldset, #drawer .end"; // what does nothing without a server
const shakeKey = data.lever ? "lever" : "start";

let socket = null;
let state = null;
let events = [];
let connected = false; // at least once
let drawn = ""; // parts that are only made anew when they change

const send = (order) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(order));
  else toast(t("ui.offline"));
};

/** Have it read out: each time a line of its own, for the same words set again are not read again. */
function say(words) {
  const box = byId("say");
  box.append(html("p", {}, words));
  while (box.children.length > SAID) box.firstChild.remove();
}

// -- Hands ---------------------------------------------------------------------------------------------

const OTHER = { on: "off", off: "on", open: "closed", closed: "open" };

function move(what) {
  if (state) send({ do: "move", what, to: OTHER[state.plant[what]] });
}

function toast(words) {
  const box = byId("toast");
  box.textContent = words;
  box.classList.remove("show");
  void box.offsetWidth;
  box.classList.add("show");
  say(words);
}

/** A push button: pressed while pointer or key holds it. */
function pushable(button, key) {
  let held = false;
  let pressedAt = 0;
  let ending; // the timer of a release that is due
  let handAt = -Infinity; // when a pointer last let go: its click is no press of its own
  const press = () => {
    clearTimeout(ending);
    if (held) return;
    held = true;
    pressedAt = performance.now();
    button.classList.add("down");
    send({ do: "press", key });
  };
  const end = () => { held = false; button.classList.remove("down"); send({ do: "release", key }); };
  const release = (least = SHORT_MS) => {
    if (!held) return;
    clearTimeout(ending);
    const left = pressedAt + least - performance.now();
    if (left > 0) ending = setTimeout(end, left);
    else end();
  };
  button.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    button.setPointerCapture(event.pointerId);
    press();
  });
  button.addEventListener("pointerup", () => { handAt = performance.now(); });
  for (const kind of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) button.addEventListener(kind, () => release());
  button.addEventListener("keydown", (event) => {
    if ((event.key === " " || event.key === "Enter") && !event.repeat) press();
    if (event.key === " " || event.key === "Enter") event.preventDefault();
  });
  button.addEventListener("keyup", (event) => { if (event.key === " " || event.key === "Enter") release(); });
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  button.addEventListener("click", () => {
    const byHand = performance.now() - handAt < HAND_MS;
    handAt = -Infinity;
    if (byHand) return;
    press();
    release(key === "paid" ? LONG_MS : SHORT_MS);
  });
  return { press, release };
}

const pushes = {};
for (const button of document.querySelectorAll("[data-press]")) {
  if (button.dataset.press === "start") button.dataset.press = shakeKey;
  pushes[button.dataset.press] = pushable(button, button.dataset.press);
}
for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => move(button.dataset.move));

byId("cup").addEventListener("click", (event) => {
  const die = event.target.closest("[data-die]");
  if (die && state?.plant.dome === "open") return send({ do: "turn", die: Number(die.dataset.die) });
  const thing = event.target.closest("[data-thing]");
  if (thing) move(thing.dataset.thing);
});

function shortcutOf(event) {
  if (!byId("shortcuts").checked || event.ctrlKey || event.altKey || event.metaKey) return null;
  if (event.target.closest("input:not([type=checkbox]), select, textarea")) return null;
  const name = SHORTCUTS[event.key.toLowerCase()];
  return name === "shake" ? shakeKey : name ?? null;
}
const fingers = new Map(); // what each key of the keyboard holds down
document.addEventListener("keydown", (event) => {
  const name = shortcutOf(event);
  if (!name || event.repeat) return;
  if (pushes[name]) {
    fingers.set(event.code, pushes[name]);
    pushes[name].press();
  }
  else if (name === "announce") byId("announce").click();
  else move(name);
});
document.addEventListener("keyup", (event) => {
  fingers.get(event.code)?.release(); // whatever else is held by now
  fingers.delete(event.code);
});
window.addEventListener("blur", () => Object.values(pushes).forEach((push) => push.release()));

// -- The dice's result -----------------------------------------------------------------------------------

function buildPickers() {
  const chosen = [0, 1, 2].map((i) => document.querySelector(`input[name=die${i}]:checked`)?.value);
  byId("pickers").replaceChildren(...[0, 1, 2].map((i) =>
    html("fieldset", { className: "picker" }, html("legend", {}, `${t("ui.die")} ${i + 1}`), ...data.faces.map((face, n) => {
      const input = html("input", { type: "radio", name: `die${i}`, value: n + 1, id: `die${i}-${n + 1}`, required: true });
      input.checked = String(n + 1) === chosen[i];
      return html("span", {}, input, html("label", { for: input.id, title: t(`figures.${face.figure}`) }, glyph(n + 1, 26)));
    }))));
}

byId("resultForm").addEventListener("submit", (event) => {
  event.preventDefault();
  const dice = [0, 1, 2].map((i) => Number(new FormData(event.target).get(`die${i}`)));
  send({ do: "result", dice });
});
byId("announce").addEventListener("click", () => {
  const dice = state?.dice;
  if (dice?.faces && dice.lying === "flat") send({ do: "result", dice: dice.faces });
});

// -- The drawer ------------------------------------------------------------------------------------------

function showDrawer(open) {
  byId("drawer").hidden = !open;
  byId("openDrawer").setAttribute("aria-expanded", String(open));
  (open ? byId("closeDrawer") : byId("openDrawer")).focus();
}
byId("openDrawer").addEventListener("click", () => showDrawer(byId("drawer").hidden));
byId("closeDrawer").addEventListener("click", () => showDrawer(false));
byId("drawer").addEventListener("keydown", (event) => { if (event.key === "Escape") showDrawer(false); });
byId("power").addEventListener("click", () => send({ do: "power", on: state?.world.powered === false }));
byId("restart").addEventListener("click", () => send({ do: "restart" }));
byId("renew").addEventListener("click", () => send({ do: "renew" }));
byId("bounce").addEventListener("change", (event) => send({ do: "bounce", on: event.target.checked }));
const sendLine = () => send({ do: "line", lost: byId("lost").checked, noisy: byId("noisy").checked });
byId("lost").addEventListener("change", sendLine);
byId("noisy").addEventListener("change", sendLine);
byId("mend").addEventListener("click", () => {
  send({ do: "damage", cuts: [], sticks: [] });
  send({ do: "motor", how: "ok" });
  send({ do: "bounce", on: false });
  send({ do: "line", lost: false, noisy: false });
  send({ do: "force", how: null });
});
byId("xray").addEventListener("change", (event) => send({ do: "xray", on: event.target.checked }));

const ticked = (id) => [...document.querySelectorAll(`#${id} input:checked`)].map((input) => input.value);
const sendDamage = () => send({ do: "damage", cuts: ticked("cuts"), sticks: ticked("sticks") });

function choice(type, name, value, words, onChange) {
  const input = html("input", { type, name, value });
  input.addEventListener("change", onChange);
  return html("label", { className: "check" }, input, ` ${words}`);
}

function buildDrawer() {
  byId("pry").replaceChildren(...["latch_a", "latch_b", "dome"].map((what) => {
    const button = html("button", {}, `${t("ui.pry")}: ${t(`things.${what}`)}`);
    button.dataset.pry = what;
    button.addEventListener("click", () => send({ do: "pry", what }));
    return button;
  }));
  byId("force").replaceChildren(...["chance", "flat", "stacked", "tilted"].map((how) =>
    choice("radio", "force", how, t(`ui.dice_${how}`), () => send({ do: "force", how: how === "chance" ? null : how }))));
  byId("motors").replaceChildren(...["ok", "dead", "runaway", "welded"].map((how) =>
    choice("radio", "motor", how, t(`ui.motor_${how}`), () => send({ do: "motor", how }))));
  const wires = data.contacts.filter((name) => name.startsWith("latch")).concat("cover", "dome");
  byId("cuts").replaceChildren(...wires.map((name) => choice("checkbox", "cut", name, contactName(name), sendDamage)));
  byId("sticks").replaceChildren(...[shakeKey, "bell", "void", "paid"].map((name) => choice("checkbox", "stick", name, t(`things.${name}`), sendDamage)));
}

function contactName(name) {
  const pair = /^(latch_[ab])_(n[oc])$/.exec(name);
  return pair ? `${t(`things.${pair[1]}`)} ${pair[2].toUpperCase()}` : t(`things.${name}`);
}

function drawDrawer() {
  const { plant, world } = state;
  put(byId("power"), t(world.powered === false ? "ui.power_on" : "ui.power_off"));
  const set = (selector, on) => { const input = document.querySelector(selector); if (input && input.checked !== on) input.checked = on; };
  for (const input of document.querySelectorAll("#cuts input")) set(`#cuts input[value=${input.value}]`, plant.cuts.includes(input.value));
  for (const input of document.querySelectorAll("#sticks input")) set(`#sticks input[value=${input.value}]`, plant.sticks.includes(input.value));
  set(`#motors input[value=${plant.motor}]`, true);
  set(`#force input[value=${plant.force ?? "chance"}]`, true);
  set("#bounce", plant.bounce > 0);
  set("#lost", state.lost);
  set("#noisy", state.noisy);
}

// -- Drawing ---------------------------------------------------------------------------------------------

function buildStatic() {
  translatePage();
  byId("phases").replaceChildren(...data.phases.map((phase) => {
    const item = html("li", {}, t(`phases.${phase}`));
    item.dataset.phase = phase;
    return item;
  }));
  byId("language").replaceChildren(...Object.entries(data.languages).map(([code, name]) => html("option", { value: code, selected: code === languageNow() }, name)));
  put(byId("pty"), data.pty);
  put(byId("version"), `${data.version}`);
  put(byId("shortcutList"), Object.entries(SHORTCUTS).map(([key, name]) =>
    `${key.toUpperCase()} ${name === "announce" ? t("ui.send_seen") : t(`things.${name === "shake" ? shakeKey : name}`)}`).join(" · "));
  buildPickers();
  buildDrawer();
  buildRules();
  drawEvents();
  drawn = "";
}

function buildRules() {
  const cell = (words) => html("td", {}, words);
  byId("faces").replaceChildren(html("caption", {}, t("ui.faces")), html("tbody", {}, ...data.faces.map((face, i) =>
    html("tr", {}, cell(String(i + 1)), html("td", {}, glyph(i + 1, 24)), cell(t(`figures.${face.figure}`)), cell(t(`colours.${face.colour}`))))));
  const head = ["bet", "pays", "chance"].map((name) => html("th", { scope: "col" }, t(`ui.${name}`)));
  byId("odds").replaceChildren(html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...data.bets.map((bet) =>
    html("tr", {}, html("th", { scope: "row" }, t(`bets.${bet.bet}`)), cell(bet.pays.map((n) => `${n} : 1`).join(", ")), cell(String(bet.wins))))));
}

function eventDetail(event) {
  switch (event.ev) {
    case "fault": case "clear": return fault(event.code)[0];
    case "refused": return `${t(`things.${event.what}`)}: ${t(`reasons.${event.why}`)}`;
    case "key-stuck": return t(`things.${event.key}`);
    case "boot": return `${event.cause}, ${event.ver}`;
    case "recovered": return t(`phases.${event.ph}`);
    case "service": case "link": return t(`values.${event.on ?? event.up ? "on" : "off"}`);
    case "result": return Object.entries(event.win).map(([bet, odds]) => `${t(`bets.${bet}`)} ×${odds}`).join(", ");
    case "lost": return `${event.from}–${event.to}`;
    default: return "";
  }
}

function eventNode(event) {
  const node = html("li", {}, html("span", { className: "when" }, (event.t / 1000).toFixed(2)), html("b", {}, t(`events.${event.ev}`)));
  node.dataset.ev = event.ev;
  if (event.dice) node.append(...event.dice.map((n) => glyph(n, 18)));
  const detail = eventDetail(event);
  if (detail) node.append(html("span", { className: "detail" }, detail));
  return node;
}

function drawEvents() {
  byId("events").replaceChildren(...events.toReversed().map(eventNode));
}

function takeEvents(list) {
  const quiet = events.length === 0;
  for (const event of list) {
    events.push(event);
    byId("events").prepend(eventNode(event));
    const words = `${t(`events.${event.ev}`)}. ${eventDetail(event)}`;
    if (event.ev === "refused" && !quiet) toast(words);
    else if (event.ev === "result") say(words);
  }
  events = events.slice(-60);
  while (byId("events").children.length > 60) byId("events").lastChild.remove();
}

function bannerOf() {
  const { heard, world } = state;
  if (!state.alive) return ["bad", t("ui.ended"), "", ""];
  if (world.powered === false) return ["bad", t("ui.unpowered"), "", ""];
  if (heard.fault) {
    const [cause, way] = fault(heard.fault);
    return ["fault", cause, "", `${t("ui.remedy")}: ${way}`];
  }
  if (world.out?.alarm === "on") return ["bad", t("things.alarm"), t("ui.alarm_unpaid"), ""];
  if (state.silent || !heard.phase) return ["dim", t("ui.silent"), "", ""];
  return ["hint", t(`phases.${heard.phase}`), hint(heard.phase), ""];
}

function drawBanner() {
  const [kind, title, words, way] = bannerOf();
  const box = byId("banner");
  const key = [kind, title, words, way].join("|");
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.dataset.kind = kind;
  put(byId("bannerTitle"), title);
  put(byId("bannerText"), words);
  put(byId("bannerWay"), way);
  if (kind === "fault" || kind === "bad") byId("alerts").textContent = `${title} ${way}`;
  else {
    byId("alerts").textContent = "";
    say(`${title}. ${words}`);
  }
}

function drawKeys() {
  const { plant, heard, world } = state;
  const wanted = heard.fault || world.powered === false ? [] : about(heard.phase);
  const next = new Set(wanted.map((w) => w.split("=")).filter(([thing, to]) => !to || plant[thing] !== to).map(([thing]) => thing));
  if (heard.fault) next.add("service");
  if (next.has("start") && data.lever) next.add("lever");
  if (next.has("result")) { // one after the other
    const announced = events.some((event) => event.ev === "result" && event.rd === heard.round && event.rep === heard.repeat);
    next.delete(announced ? "result" : "paid");
  }
  for (const button of document.querySelectorAll("[data-move]")) {
    const name = button.dataset.move;
    const key = `${t(`things.${name}`)}|${plant[name]}|${languageNow()}`;
    if (button.dataset.key !== key) {
      button.dataset.key = key;
      button.replaceChildren(html("b", {}, t(`things.${name}`)), html("small", {}, valueOf(name, plant[name])));
      button.setAttribute("aria-pressed", String(plant[name] === "on" || plant[name] === "closed"));
      if (name === "service") button.title = t("ui.service_tip");
    }
    button.classList.toggle("next", next.has(name));
  }
  for (const button of document.querySelectorAll("[data-press]")) {
    const name = button.dataset.press;
    if (button.dataset.key !== languageNow()) {
      button.dataset.key = languageNow();
      button.replaceChildren(html("b", {}, t(`things.${name}`)));
      if (name === "paid") button.append(html("small", {}, t("ui.hold")));
      if (name === "lever") button.append(html("small", {}, t("ui.pull3")));
    }
    button.classList.toggle("next", next.has(name));
    button.classList.toggle("down", plant.keys[name] || plant.sticks.includes(name));
  }
  byId("resultBox").classList.toggle("next", next.has("result"));
}

function drawChips() {
  const { world } = state;
  const bolts = world.bolts ?? [0, 0, 0];
  const rows = [
    ["status", `${t("ui.status_led")}: ${t(`colour_names.${state.colour}`)}`, state.colour !== "off"],
    ...["cover_lock", "cover_bar", "dome_lock"].map((name, i) => [name, `${t(`things.${name}`)}: ${t(bolts[i] >= 500 ? "ui.engaged" : "ui.withdrawn")}`, bolts[i] >= 500]),
    ["front_board", `${t("things.front_board")}: ${t(`values.${world.out?.front_board ?? "off"}`)}`, world.out?.front_board === "on"],
    ["alarm", `${t("things.alarm")}: ${t(`values.${world.out?.alarm ?? "off"}`)}`, world.out?.alarm === "on"],
  ];
  const key = JSON.stringify([rows, languageNow()]);
  if (byId("chips").dataset.key === key) return;
  byId("chips").dataset.key = key;
  byId("chips").replaceChildren(...rows.map(([name, words, on]) => {
    const chip = html("li", { className: on ? "on" : "" }, html("i", { className: `mark ${name} ${name === "status" ? state.colour : ""}` }), words);
    chip.dataset.chip = name;
    return chip;
  }));
}

function drawResult() {
  const { dice, plant, world } = state;
  const seen = dice.faces && dice.lying === "flat" && !dice.tumbling && plant.cover === "off";
  const why = seen ? "" : dice.tumbling ? "tumbling" : plant.cover === "on" ? "covered" : dice.lying === "flat" ? "" : dice.lying;
  const key = JSON.stringify([seen && dice.faces, why, state.host, languageNow(), world.lamps]);
  if (key === drawn) return;
  drawn = key;
  byId("announce").disabled = !seen;
  byId("seenDice").replaceChildren(...(seen ? dice.faces.map((n) => glyph(n, 26)) : []));
  put(byId("seenWhy"), why ? t(`ui.seen_${why}`) : "");
  put(byId("resultNote"), state.host === "host_program" ? t("ui.program_is_host") : "");
  put(byId("won"), (world.lamps ?? []).map((name) => t(`bets.${name}`)).join(", ") || t("ui.none"));
}

function drawAll() {
  const { heard } = state;
  for (const item of byId("phases").children) {
    const here = item.dataset.phase === heard.phase;
    item.classList.toggle("here", here);
    if (here) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
  }
  document.body.dataset.phase = heard.phase ?? "";
  put(byId("round"), String(heard.round));
  put(byId("repeat"), String(heard.repeat));
  byId("repeatBox").classList.toggle("some", heard.repeat > 0);
  put(byId("host"), t(`ui.${state.host}`));
  cup.draw(byId("cup"), state, byId("xray").checked);
  layout.draw(byId("layout"), state, events.findLast((event) => event.ev === "result" && event.rd === heard.round)?.win ?? {});
  drawBanner();
  drawKeys();
  drawChips();
  drawResult();
  drawDrawer();
}

// -- The server --------------------------------------------------------------------------------------------

const HANDLERS = {
  state(message) {
    state = message;
    timeline.tick(message.now);
    drawAll();
  },
  trace(message) { timeline.add(message.rows); },
  events(message) { takeEvents(message.events); },
  blocked(message) {
    cup.rattle(byId("cup"), message.by);
    toast(t(`blocked.${message.by}`));
  },
  reply(message) { if (message.err) toast(`${t("things.result")}: ${t(`reasons.${message.err}`)}`); },
  renewed() {
    events = [];
    byId("events").replaceChildren();
    timeline.clear();
  },
  bye() {},
};

/** Another table may have taken the place of the one this page was made for: other keys, another version. */
async function reloadIfOther() {
  try {
    const now = await (await fetch("/data.json")).json();
    if (JSON.stringify(now) !== JSON.stringify(data)) location.reload();
  } catch { /* gone again: the next connection asks anew */ }
}

function reachable(yes) {
  document.body.classList.toggle("offline", !yes);
  for (const part of document.querySelectorAll(WORKS)) part.inert = !yes;
}

function connect() {
  socket = new WebSocket(`ws://${location.host}/socket`);
  socket.addEventListener("open", () => {
    HANDLERS.renewed();
    reachable(true);
    if (connected) reloadIfOther();
    connected = true;
    if (byId("xray").checked) send({ do: "xray", on: true });
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    HANDLERS[message.kind](message);
  });
  socket.addEventListener("close", () => {
    reachable(false);
    const box = byId("banner");
    Object.assign(box.dataset, { kind: "bad", key: "" });
    put(byId("bannerTitle"), t("ui.offline"));
    put(byId("alerts"), t("ui.offline"));
    put(byId("bannerText"), "");
    put(byId("bannerWay"), "");
    setTimeout(connect, 1500);
  });
}

// -- Choices that are remembered -----------------------------------------------------------------------------

byId("language").addEventListener("change", (event) => {
  setLanguage(event.target.value);
  buildStatic();
  byId("banner").dataset.key = "";
  if (state) drawAll();
});

const dark = window.matchMedia("(prefers-color-scheme: dark)");
function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}
setTheme(localStorage.getItem("theme"));
byId("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const name = now === "dark" ? "light" : "dark";
  localStorage.setItem("theme", name);
  setTheme(name);
});
byId("shortcuts").checked = localStorage.getItem("shortcuts") !== "off";
byId("shortcuts").addEventListener("change", (event) => localStorage.setItem("shortcuts", event.target.checked ? "on" : "off"));

byId("freeze").addEventListener("change", (event) => timeline.freeze(event.target.checked));
timeline.watch(byId("timeline"));
let lastFrame = 0;
function frame(time) {
  if (time - lastFrame > 90) {
    lastFrame = time;
    timeline.draw(byId("timeline"));
  }
  requestAnimationFrame(frame);
}

buildStatic();
connect();
requestAnimationFrame(frame);
window.addEventListener("resize", () => { if (state) drawAll(); });
