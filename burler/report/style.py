"""How the page of a report looks, and the script that sorts its tables."""

STYLE = """
:root{--ink:#1b1f24;--soft:#59636e;--paper:#fff;--panel:#f6f8fa;--edge:#d8dee4;--line:#0969da;--area:#0969da22;
--good:#1a7f37;--bad:#cf222e;--other:#7d4e00;--wash:#ffebe9}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--paper:#0d1117;--panel:#161b22;--edge:#30363d;
--line:#58a6ff;--area:#58a6ff22;--good:#3fb950;--bad:#ff7b72;--other:#d29922;--wash:#3c1618}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1440px;margin:0 auto;padding:24px 16px 64px}
h1{font-size:26px;margin:0;overflow-wrap:anywhere}h2{font-size:19px;margin:32px 0 8px}
header p,small,.none,figcaption{color:var(--soft)}header p{margin:4px 0 16px}
.badge{font-size:.8em;font-weight:600;white-space:nowrap}h1 .badge{font-size:.7em}
.badge::before{content:"\\25cf\\a0"}.good{color:var(--good)}.badge.bad,.tile.bad b{color:var(--bad)}
.other{color:var(--other)}
.tiles{display:flex;flex-wrap:wrap;gap:8px}
.tile{background:var(--panel);border:1px solid var(--edge);border-radius:6px;padding:8px 14px;color:var(--soft)}
.tile b{display:block;font-size:20px;color:var(--ink);font-variant-numeric:tabular-nums}
.fatal{border:1px solid var(--bad);border-radius:6px;padding:12px 16px;margin-top:16px}
.fatal pre{margin:8px 0 0;white-space:pre-wrap;overflow-wrap:anywhere}
.scroll{overflow-x:auto;border:1px solid var(--edge);border-radius:6px}
table{border-collapse:separate;border-spacing:0;width:100%}
th,td{padding:5px 10px;text-align:left;vertical-align:top;border-bottom:1px solid var(--edge)}
tr:last-child td{border-bottom:0}
th{background:var(--panel);color:var(--soft);font-weight:600;white-space:nowrap;position:sticky;top:0}
th[tabindex]{cursor:pointer}th[aria-sort]{color:var(--ink)}
th[aria-sort=ascending]::after{content:" \\25b2"}th[aria-sort=descending]::after{content:" \\25bc"}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.text{overflow-wrap:anywhere;min-width:9em}.short{white-space:nowrap}
td:first-child,th:first-child{position:sticky;left:0;background:var(--paper)}th:first-child{background:var(--panel);z-index:1}
tr.failed td:first-child{background:var(--wash)}
svg.bar{width:7em;margin:3px 0 2px auto}.bar .rail{fill:var(--edge)}.bar .fill{fill:var(--line)}
td.number small{display:block}
.mono,.place{font:13px/1.7 ui-monospace,monospace}.pre{white-space:pre-wrap;min-width:20em}
tr.failed{background:var(--wash)}a{color:var(--line)}
details{border:1px solid var(--edge);border-radius:6px;margin:8px 0;padding:0 14px}
summary{cursor:pointer;padding:8px 0;font-weight:600;overflow-wrap:anywhere}summary small{font-weight:400}
.plots{display:flex;flex-wrap:wrap;gap:16px;padding-bottom:12px}
figure{margin:0;flex:1 1 420px;max-width:600px}
svg{width:100%;height:auto;display:block}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
svg .y{text-anchor:end}svg .x{text-anchor:middle}
svg .grid{stroke:var(--edge);fill:none}svg .area{fill:var(--area)}
svg .line{stroke:var(--line);stroke-width:2;fill:none;stroke-linejoin:round}
@media(max-width:1300px){th,td{padding:5px 7px}table{font-size:14px}td.mono{font-size:12px}}
@media(max-width:700px){main{padding:16px 8px}td.text{min-width:7em;max-width:9em}td.pre{min-width:16em;max-width:none}
figure{flex-basis:100%}}
@media print{@page{size:A4 landscape;margin:10mm}main{padding:0}.scroll{overflow:visible}
table{font-size:10px}td.mono{font-size:9px}th,td{padding:3px 5px;position:static!important}
h2{break-after:avoid}details,tr,figure{break-inside:avoid}.plots{flex-wrap:nowrap}figure{flex:1 1 0}}
"""

SCRIPT = """
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
"""
