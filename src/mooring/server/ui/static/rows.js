// Rows: the columns that are marked go into one parameter, and empty fields stay out of addresses.

const form = document.querySelector("form[data-columns]");
const filter = document.querySelector("form[data-filter]");

form?.addEventListener("submit", () => {
  const boxes = [...form.querySelectorAll("input[data-column]")];
  const marked = boxes.filter((one) => one.checked);
  for (const one of boxes) one.disabled = true;
  if (!marked.length || marked.length === boxes.length) return;
  const columns = document.createElement("input");
  columns.type = "hidden";
  columns.name = "columns";
  columns.value = marked.map((one) => quoted(one.dataset.column)).join(",");
  form.append(columns);
});

filter?.addEventListener("submit", () => {
  for (const one of filter.querySelectorAll("input[name]")) one.disabled ||= one.value.trim() === "";
});

// Coming back by the browser's button, everything can be chosen again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  form?.querySelector("input[name=columns]")?.remove();
  for (const one of document.querySelectorAll("form[data-columns] input, form[data-filter] input")) one.disabled = false;
});

// A name as the server reads it: one that could be taken for several stands in quotes.
function quoted(name) {
  return /[",\r\n]|^\s/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
}
