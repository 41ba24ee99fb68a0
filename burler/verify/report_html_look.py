"""How the page of a verification looks, beyond the page of a run; and its script.

The filter by severity is of style alone: three boxes before the table, and rules for those that are not ticked.
"""

STYLE = """
:root{--up:#0969da;--down:#bc4c00}
@media(prefers-color-scheme:dark){:root{--up:#58a6ff;--down:#f0883e}}
h3{font-size:15px;margin:16px 0 6px}h2,h3,p,dt,dd,li{overflow-wrap:anywhere}
.error .badge{color:var(--bad)}.warning .badge{color:var(--other)}
.info .badge{color:var(--soft)}
.pick{margin:0 4px 8px 0;accent-color:var(--line)}.pick+label{margin-right:16px;cursor:pointer}
#show-error:not(:checked)~.scroll tr.error,#show-warning:not(:checked)~.scroll tr.warning,
#show-info:not(:checked)~.scroll tr.info{display:none}
td details{border:0;margin:0;padding:0}td summary{padding:0;font-weight:400}
td details[open] summary{margin-bottom:6px}td p{margin:0 0 6px}
dl{margin:0 0 6px}dt{color:var(--soft);font-weight:600}dd{margin:0 0 6px}
pre{margin:6px 0;padding:8px 12px;background:var(--panel);border:1px solid var(--edge);border-radius:6px;
overflow:auto;max-height:24em;font:13px/1.5 ui-monospace,monospace}
.whole{user-select:all}
button{font:inherit;color:var(--line);background:none;border:1px solid var(--edge);border-radius:6px;cursor:pointer}
.facts{color:var(--soft);margin:4px 0 8px}
.order{max-width:900px;margin-bottom:8px}.order svg{height:36px;border:1px solid var(--edge);border-radius:3px}
svg .up{fill:var(--up)}svg .down{fill:var(--down)}svg .level{fill:var(--edge)}
.stream>.scroll{margin-bottom:12px}
"""

SCRIPT = """
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button.copy")) {
    const text = button.parentElement.nextElementSibling;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "selected: copy it";
      }
    });
  }
}
"""
