// Words in the chosen language, and small helpers every module uses. Holds nothing of the game.

export const data = await (await fetch("/data.json")).json();

const known = Object.keys(data.languages);
let language = localStorage.getItem("language") ?? navigator.language.slice(0, 2);
if (!known.includes(language)) language = "en";

export const languageNow = () => language;

export function setLanguage(name) {
  language = name;
  localStorage.setItem("language", name);
}

/** The word `table.name` in the chosen language; the name itself where there is none. */
export function t(path) {
  const [table, ...rest] = path.split(".");
  const name = rest.join(".");
  return data.texts[table][language][name] ?? name;
}

/** How a thing is, in words: some things have words of their own. */
export const valueOf = (thing, value) => data.texts.values[language][`${thing}_${value}`] ?? t(`values.${value}`);

export const hint = (phase) => data.hints[phase]?.text[language] ?? "";
export const about = (phase) => data.hints[phase]?.about ?? [];
export const fault = (code) => data.faults[language][code] ?? [code, ""];

export function translatePage() {
  document.documentElement.lang = data.htmlLanguages[language];
  document.title = `${t("ui.title")} – ${t("ui.subtitle")}`;
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
  for (const node of document.querySelectorAll("[data-label]")) {
    node.setAttribute("aria-label", t(node.dataset.label));
    if (node.tagName === "BUTTON") node.title = t(node.dataset.label);
  }
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an SVG element with attributes and children (elements or text). */
export function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Make an HTML element with properties and children. */
export function html(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Set text only where it differs: screen readers and layout are left alone. */
export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A die's face as a small picture with its name. */
export function glyph(face, size = 22) {
  const { figure, colour } = data.faces[face - 1];
  return svg("svg", { class: `glyph ${colour}`, width: size, height: size, role: "img", "aria-label": t(`figures.${figure}`) },
    svg("use", { href: `#${figure}` }));
}
