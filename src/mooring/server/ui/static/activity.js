// What happens while a page is open: new changes and transactions at the top, and how far an audit is.
// Without this, the same pages are lists that tell what was when they were loaded.

import { tellTime } from "./main.js";

const SOON_MS = 700;
const LOOK_MS = 2000;
const HUSH_MS = 5000;
const AGAIN_MS = 30000;
const RELOADED = "mooring-reloaded";

function part(within, name) {
  return within.querySelector(`[data-part="${name}"]`);
}

function tell(within, name, text) {
  const found = part(within, name);
  if (found) found.textContent = text;
}

function tellAt(within, atMs) {
  const time = part(within, "at");
  const at = new Date(atMs).toISOString();
  time.dateTime = at;
  time.title = at;
  time.dataset.at = String(atMs);
  time.textContent = tellTime(atMs);
}

// Reloading must not go on for ever, whatever a server says.
function reload() {
  const last = Number(sessionStorage.getItem(RELOADED) ?? 0);
  if (Date.now() - last < AGAIN_MS) return false;
  sessionStorage.setItem(RELOADED, String(Date.now()));
  location.reload();
  return true;
}

// -- changes ---------------------------------------------------------------------------------------

class Live {
  constructor(bar) {
    this.bar = bar;
    this.list = document.querySelector("#events");
    this.most = Number(bar.dataset.most);
    this.last = "";
    this.isPaused = false;
    this.waiting = [];
    this.unsaid = 0;
    this.button = bar.querySelector("#pause");
    this.button.addEventListener("click", () => this.pause());
    // A browser has few connections to a server: a page that nobody sees needs none.
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", () => this.open());
    bar.hidden = false;
    this.open();
  }

  open() {
    if (this.source || document.hidden) return;
    const href = new URL(this.bar.dataset.stream, location.href);
    if (this.last) href.searchParams.set("after", this.last);
    this.source = new EventSource(href);
    this.source.addEventListener("ready", (event) => this.begin(event.lastEventId));
    this.source.addEventListener("change", (event) => this.take(event));
    this.source.addEventListener("reset", () => this.miss());
    this.source.addEventListener("error", () => this.lose());
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  begin(id) {
    this.say("live");
    // Another watcher counts otherwise: nobody knows what happened in between.
    if (this.last && id && id.split("-")[0] !== this.last.split("-")[0]) this.miss();
    // Nobody watched when the page was made: what happened since then is only told by transactions.
    if (!this.last && !new URL(this.bar.dataset.stream, location.href).searchParams.has("after")) this.lookSoon();
    if (id) this.last = id;
  }

  lose() {
    const isOver = this.source?.readyState === EventSource.CLOSED;
    if (isOver) this.close();
    this.say(isOver ? "lost" : "waiting");
  }

  miss() {
    if (this.isPaused || !reload()) tell(this.bar, "said", "Some changes were missed: load the page again");
  }

  say(state) {
    const words = { live: "Live", waiting: "Connecting again", lost: "Ended: load the page again", paused: "Paused" };
    this.bar.dataset.state = this.isPaused ? "paused" : state;
    this.state = state;
    const count = this.waiting.length ? `, ${this.waiting.length} new` : "";
    tell(this.bar, "said", this.isPaused ? `${words.paused}${count}` : words[state]);
  }

  pause() {
    this.isPaused = !this.isPaused;
    this.button.textContent = this.isPaused ? "Go on" : "Pause";
    this.button.setAttribute("aria-pressed", String(this.isPaused));
    if (!this.isPaused) for (const one of this.waiting.splice(0)) this.show(one);
    this.say(this.state);
    if (!this.isPaused) this.lookSoon();
  }

  take(event) {
    this.last = event.lastEventId;
    const change = JSON.parse(event.data);
    if (this.isPaused) {
      this.waiting.push(change);
      if (this.waiting.length > this.most) this.waiting.shift();
      this.say(this.state);
      return;
    }
    this.show(change);
    this.lookSoon();
  }

  show(change) {
    const row = document.querySelector("#event").content.firstElementChild.cloneNode(true);
    if (change.tone) part(row, "verb").classList.add(change.tone);
    for (const name of ["verb", "what", "detail"]) tell(row, name, change[name]);
    tell(row, "by", change.by ?? "");
    const link = part(row, "name");
    if (change.href) link.href = change.href;
    link.firstElementChild.textContent = change.names.join("$");
    tellAt(row, change.at_ms);
    row.classList.add("fresh");
    this.list.prepend(row);
    this.list.hidden = false;
    document.querySelector("#no-events").hidden = true;
    while (this.list.childElementCount > this.most) this.list.lastElementChild.remove();
    this.announce();
  }

  // However many there are, they are said now and then, in one sentence.
  announce() {
    this.unsaid += 1;
    this.saying ??= setTimeout(() => {
      document.querySelector("#news").textContent = `${this.unsaid} new ${this.unsaid === 1 ? "change" : "changes"}`;
      this.unsaid = 0;
      this.saying = null;
    }, HUSH_MS);
  }

  // -- transactions, which are looked for where something changed ----------------------------------

  lookSoon() {
    if (!document.querySelector("#transactions[data-newest]")) return;
    this.looking ??= setTimeout(() => this.look(), SOON_MS);
  }

  async look() {
    try {
      const answer = await fetch(this.bar.dataset.twin, { headers: { accept: "application/json" } });
      if (answer.ok && !this.isPaused) this.add((await answer.json()).transactions?.shown ?? []);
    } catch {
      // The stream says that the server is gone.
    } finally {
      this.looking = null;
    }
  }

  add(found) {
    const body = document.querySelector("#transactions tbody");
    const known = new Set([...body.children].map((row) => row.dataset.id));
    for (const one of found.toReversed()) {
      if (known.has(one.id)) continue;
      const row = document.querySelector("#transaction").content.firstElementChild.cloneNode(true);
      row.dataset.id = one.id;
      part(row, "commit").href = one.href;
      tell(row, "commit", String(one.commit));
      tell(row, "message", one.message || "–");
      tell(row, "changes", one.changes.toLocaleString("en"));
      tell(row, "by", one.by);
      tellAt(row, one.at_ms);
      row.classList.add("fresh");
      body.prepend(row);
    }
    while (body.childElementCount > 2 * this.most) body.lastElementChild.remove();
  }
}

// -- the audit -------------------------------------------------------------------------------------

async function follow(panel) {
  let audit;
  try {
    const answer = await fetch(panel.dataset.audit, { headers: { accept: "application/json" } });
    audit = answer.ok ? await answer.json() : null;
  } catch {
    audit = null;
  }
  if (audit && !audit.is_running) {
    location.reload();
    return;
  }
  if (audit?.total) {
    tell(panel, "far", `${audit.done.toLocaleString("en")} of ${audit.total.toLocaleString("en")} tables`);
    const bar = panel.querySelector("progress");
    bar.max = audit.total;
    bar.value = audit.done;
  }
  setTimeout(() => follow(panel), LOOK_MS);
}

const bar = document.querySelector(".live[data-stream]");
if (bar) new Live(bar);
const running = document.querySelector("[data-audit]");
if (running) follow(running);
