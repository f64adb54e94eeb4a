// The tree beside pages: opens namespaces without leaving the page. Without it, they are links.

const MANY = new Intl.NumberFormat("en");
const PHONE = "(width < 52rem)";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function named(text) {
  return element("bdi", { class: "name" }, text);
}

function more(count, href) {
  return element("li", { class: "more" }, element("a", { href }, `… ${MANY.format(count)} more`));
}

function branch(one) {
  const item = element("li", { class: one.is_table ? "table" : "namespace" });
  item.append(element("a", { href: one.href }, named(one.name)));
  if (one.is_table) return item;
  item.append(" ", element("span", { class: "count" }, MANY.format(one.tables)));
  if (one.twin) item.dataset.twin = one.twin;
  prepare(item);
  return item;
}

async function load(item) {
  const response = await fetch(item.dataset.twin, { headers: { accept: "application/json" } });
  if (!response.ok) throw new Error(response.statusText);
  const found = await response.json();
  const list = element("ul", {}, ...found.branches.map(branch));
  if (found.more) list.append(more(found.more, found.href));
  item.append(list);
  return list;
}

async function turn(item, button) {
  const isOpen = button.getAttribute("aria-expanded") === "true";
  let list = item.querySelector(":scope > ul");
  if (!isOpen && !list) {
    button.disabled = true;
    try {
      list = await load(item);
    } catch {
      location.assign(item.querySelector("a").href);  // which says what is the matter
      return;
    } finally {
      button.disabled = false;
    }
    button.focus();
  }
  if (list) list.hidden = isOpen;
  button.setAttribute("aria-expanded", String(!isOpen));
}

// Gives a namespace a button that opens it.
function prepare(item) {
  if (!item.dataset.twin) return;
  const link = item.querySelector(":scope > a");
  const isOpen = item.querySelector(":scope > ul") !== null;
  const button = element("button", {
    type: "button",
    class: "quiet opener",
    "aria-expanded": String(isOpen),
    "aria-label": `What is in ${link.textContent.trim()}`,
  });
  button.addEventListener("click", () => turn(item, button));
  item.prepend(button);
}

const tree = document.querySelector(".tree");
if (tree) {
  for (const item of tree.querySelectorAll("li.namespace")) prepare(item);
  // On a phone it would push the page itself out of sight.
  if (matchMedia(PHONE).matches) tree.open = false;
  const current = tree.querySelector("[aria-current]");
  const room = tree.querySelector("nav");
  if (current && room) room.scrollTop = Math.max(0, current.offsetTop - room.clientHeight / 2);
}
