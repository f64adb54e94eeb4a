// What is found while somebody types: a list below the field, by the pattern of a combobox.

const PAUSE_MS = 120;
const MOST = 10;
const MANY = new Intl.NumberFormat("en");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function marked(pieces) {
  const parts = pieces.map(({ text, is_match: isMatch }) => (isMatch ? element("mark", {}, text) : text));
  return element("bdi", { class: "name" }, ...parts);
}

function option(hit, number) {
  const about = element("span", { class: "about" }, hit.kind);
  if (hit.around.length) about.append(" in ", marked(hit.around));
  const item = element("li", { role: "option", id: `found-${number}`, "aria-selected": "false" }, marked(hit.name), about);
  for (const place of hit.places.slice(0, 1)) item.append(element("span", { class: "about" }, `${place.kind} `, marked(place.text)));
  item.dataset.href = hit.href;
  return item;
}

function rest(found) {
  const shown = found.hits.length;
  if (!found.total) return "Nothing found";
  if (found.total <= shown) return shown === 1 ? "1 found" : `${shown} found`;
  return `The first ${shown} of ${MANY.format(found.total)}: Enter shows more`;
}

function unknown(found) {
  if (found.known_columns >= found.tables) return "";
  return `. Columns of ${MANY.format(found.known_columns)} of ${MANY.format(found.tables)} tables are known so far`;
}

export function showFound(input) {
  const list = element("ul", { id: "found", role: "listbox", "aria-label": "Found" });
  const note = element("p", { class: "note", role: "status" });
  const panel = element("div", { class: "found", hidden: "" }, list, note);
  input.form.append(panel);
  for (const [key, value] of Object.entries({
    role: "combobox", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", "aria-haspopup": "listbox",
  })) input.setAttribute(key, value);

  let at = -1;
  let timer = 0;
  let asking = null;

  const options = () => [...list.children];

  function choose(number) {
    const all = options();
    at = all.length ? (number + all.length + 1) % (all.length + 1) : -1;
    if (at === all.length) at = -1;  // once around, the field itself
    for (const [index, one] of all.entries()) one.setAttribute("aria-selected", String(index === at));
    if (at < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", all[at].id);
      all[at].scrollIntoView({ block: "nearest" });
    }
  }

  function show(isShown) {
    panel.hidden = !isShown;
    input.setAttribute("aria-expanded", String(isShown));
    if (!isShown) choose(-1);
  }

  async function ask() {
    const words = input.value.trim();
    asking?.abort();
    if (!words) {
      show(false);
      return;
    }
    asking = new AbortController();
    const address = new URL(input.dataset.search, location.href);
    address.search = new URLSearchParams({ q: words, limit: String(MOST) }).toString();
    try {
      const response = await fetch(address, { signal: asking.signal, headers: { accept: "application/json" } });
      if (!response.ok) return;  // Enter shows the page, which says what is the matter
      const found = await response.json();
      list.replaceChildren(...found.hits.map(option));
      note.textContent = rest(found) + unknown(found);
      at = -1;
      input.removeAttribute("aria-activedescendant");
      show(document.activeElement === input);
    } catch (failure) {
      if (failure.name !== "AbortError") show(false);
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  input.addEventListener("focus", () => { if (list.children.length && input.value.trim()) show(true); });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const isOpen = !panel.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) ask();
      else choose(event.key === "ArrowDown" ? at + 1 : at < 0 ? options().length - 1 : at - 1);
    } else if (event.key === "Enter" && isOpen && at >= 0) {
      event.preventDefault();
      location.assign(options()[at].dataset.href);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (isOpen) show(false);
      else input.blur();
    }
  });
  // Before the field loses the focus, which would take the list away.
  list.addEventListener("mousedown", (event) => {
    const one = event.target instanceof Element ? event.target.closest("[role=option]") : null;
    if (!one) return;
    event.preventDefault();
    if (event.button === 0) location.assign(one.dataset.href);
  });
  input.addEventListener("blur", () => show(false));
}
