// What every page does beyond HTML: keys, copying, times, the theme, and finding while typing.
// Nothing is made from text but text: no name, whatever it holds, becomes markup.

import { showFound } from "./search.js";

const YEAR_S = 31536000;
const LATER_MS = 30000;

function isTyping(target) {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

// -- times, which go on while a page is looked at ------------------------------------------------

const UNITS = [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "always" });

export function tellTime(atMs) {
  const passedS = (atMs - Date.now()) / 1000;
  if (Math.abs(passedS) < 5) return "just now";
  if (passedS < 0) return words.format(...inUnits(passedS, Math.trunc));
  // A week of which a second has passed is seven days, not six of them.
  const [number, , lengthS] = inUnits(passedS, Math.round);
  return words.format(...inUnits(number * lengthS, Math.round));
}

function inUnits(seconds, cut) {
  const [unit, lengthS] = UNITS.find(([, s]) => Math.abs(seconds) >= s) ?? UNITS.at(-1);
  return [cut(seconds / lengthS), unit, lengthS];
}

export function tellTimes(within = document) {
  for (const one of within.querySelectorAll("time[data-at]")) one.textContent = tellTime(Number(one.dataset.at));
}

// -- copying ---------------------------------------------------------------------------------------

async function copy(button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl-C";
    const shown = button.parentElement?.querySelector("code");
    if (shown) getSelection()?.selectAllChildren(shown);
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

// -- the theme -------------------------------------------------------------------------------------

function turnTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `mooring-theme=${root.dataset.theme}; path=/; max-age=${YEAR_S}; samesite=strict`;
}

// -- keys ------------------------------------------------------------------------------------------

const GO = { b: "browse", t: "trash", a: "activity", p: "runs" };
let isGoing = false;

function go(key) {
  isGoing = false;
  const word = GO[key];
  const link = word && [...document.querySelectorAll(".sections a")].find((one) => new URL(one.href).pathname.endsWith(`/${word}`));
  link?.click();
}

function step(by) {
  const links = [...document.querySelectorAll("[data-list] a:not(.beside)")].filter((one) => one.offsetParent);
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1);
  links[next].focus();
}

function up() {
  const crumbs = document.querySelectorAll(".crumbs a");
  crumbs[crumbs.length - 2]?.click();
}

const KEYS = {
  "/": () => document.querySelector("#search")?.focus(),
  "?": () => document.querySelector("#keys")?.showModal(),
  j: () => step(1),
  k: () => step(-1),
  u: up,
  g: () => { isGoing = true; setTimeout(() => { isGoing = false; }, 1200); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const act = isGoing ? () => go(event.key) : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// -- what must be typed to confirm -----------------------------------------------------------------

function guard(input) {
  const button = input.form?.querySelector("button");
  const look = () => { button.disabled = input.value.trim() !== input.dataset.typed.trim(); };
  input.addEventListener("input", look);
  look();
}

// -- finding rows of a table that is on the page already ------------------------------------------

function sift(box) {
  const input = box.querySelector("input");
  const rows = [...document.getElementById(box.dataset.sift).tBodies[0].rows];
  const texts = rows.map((row) => row.cells[0].textContent.toLowerCase() + " " + (row.cells[1]?.textContent ?? "").toLowerCase());
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let found = 0;
    rows.forEach((row, at) => {
      row.hidden = !texts[at].includes(wanted);
      if (!row.hidden) found += 1;
    });
    box.querySelector("small").textContent = wanted ? `${found.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  });
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-copy]") : null;
  if (button) copy(button);
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
// Coming back to a page by the browser's button, it can be sent again.
addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

document.querySelector("#theme")?.addEventListener("click", turnTheme);
document.querySelector("#show-keys")?.addEventListener("click", KEYS["?"]);
for (const input of document.querySelectorAll("input[data-typed]")) guard(input);
for (const box of document.querySelectorAll("[data-sift]")) sift(box);
const search = document.querySelector("#search");
if (search) showFound(search);
// On a phone, not all tabs fit.
for (const one of document.querySelectorAll(".sections [aria-current], .tabs [aria-current]")) {
  // The bar alone is moved: the page stays at its top.
  const bar = one.parentElement;
  bar.scrollLeft = Math.max(0, one.offsetLeft + one.offsetWidth - bar.offsetLeft - bar.clientWidth);
}
tellTimes();
setInterval(tellTimes, LATER_MS);
