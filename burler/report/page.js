"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const valueOf = (row, i, kind) => {
    const cell = row.cells[i];
    if (kind === "number") return cell.dataset.value === undefined ? -Infinity : Number(cell.dataset.value);
    return cell.textContent;
  };
  const sort = (head, i) => {
    const kind = head.dataset.kind;
    const before = head.getAttribute("aria-sort");
    const first = kind === "number" ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = before === first ? other : first;
    const sign = order === "ascending" ? 1 : -1;
    const keyed = Array.from(body.rows, (row) => [valueOf(row, i, kind), row]);
    keyed.sort(([a], [b]) => sign * (kind === "number" ? (a > b) - (a < b) : a.localeCompare(b)));
    for (const one of heads) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    body.append(...keyed.map(([, row]) => row));
  };
  heads.forEach((head, i) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(head, i));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(head, i); }
    });
  });
}
for (const link of document.querySelectorAll('a[href^="#s"]')) {
  link.addEventListener("click", () => {
    document.getElementById(link.getAttribute("href").slice(1)).open = true;
  });
}
