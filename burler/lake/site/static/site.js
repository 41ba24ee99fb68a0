// Search, the theme button, tables that sort, folded parts that unfold for paper. All of it is extra: pages read without.
(function () {
  "use strict";
  var root = document.documentElement, up = document.body.dataset.up, MOST = 50;

  // ---- light and dark -----------------------------------------------------------------------------
  var button = document.querySelector(".theme"), wish = matchMedia("(prefers-color-scheme: dark)");
  function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : wish.matches; }
  function nameTheme() { button.textContent = isDark() ? "Light" : "Dark"; button.title = "Change to " + button.textContent.toLowerCase() + " colours"; }
  button.hidden = false;
  nameTheme();
  wish.addEventListener("change", nameTheme);
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("burler-lake-theme", root.dataset.theme); } catch (refused) { /* for this page only */ }
    nameTheme();
  });

  // ---- search -------------------------------------------------------------------------------------
  var form = document.querySelector(".search"), input = form.querySelector("input");
  var panel = form.querySelector(".found"), told = panel.querySelector("p"), list = panel.querySelector("ol");
  var entries = null, wanted = null, leftOut = 0;
  form.hidden = false;

  function load() { // the index comes when somebody wants to search, and once
    if (wanted) return;
    wanted = document.createElement("script");
    wanted.src = up + "assets/search-index.js";
    wanted.onload = function () { entries = read(window.BURLER_LAKE); show(); };
    wanted.onerror = function () { told.textContent = "The search's index can't be read: assets/search-index.js"; };
    document.head.append(wanted);
  }
  function entry(sort, name, place, about, href) {
    return { sort: sort, name: name, place: place, about: about, href: href, low: name.toLowerCase(), all: (name + " " + place + " " + about).toLowerCase() };
  }
  function read(lake) {
    var found = [];
    leftOut = lake.leftOut;
    lake.taps.forEach(function (tap) { found.push(entry("tap", tap[0], "", tap[2], "taps/" + tap[1] + "/index.html")); });
    lake.streams.forEach(function (stream) {
      var tap = lake.taps[stream[0]];
      found.push(entry("stream", stream[1], tap[0], stream[3], "taps/" + tap[1] + "/" + stream[2] + ".html"));
    });
    lake.fields.forEach(function (field) {
      var id = encodeURIComponent(field[3] || "f-" + field[0]);
      field[1].forEach(function (number) {
        var stream = lake.streams[number], tap = lake.taps[stream[0]];
        found.push(entry("field", field[0], tap[0] + " / " + stream[1], field[2], "taps/" + tap[1] + "/" + stream[2] + ".html#" + id));
      });
    });
    return found;
  }
  var SORTS = { tap: 0, stream: 1, field: 2 };
  function rank(item, text, words) { // the lower the better; -1: no hit
    for (var i = 0; i < words.length; i++) if (item.all.indexOf(words[i]) < 0) return -1;
    var at = item.low.indexOf(text), last = item.low.slice(item.low.lastIndexOf(".") + 1);
    if (item.low === text) return SORTS[item.sort];
    if (last === text) return 3 + SORTS[item.sort];
    if (at === 0) return 10 + SORTS[item.sort];
    if (at > 0) return (/[a-z0-9]/.test(item.low[at - 1]) ? 30 : 20) + SORTS[item.sort];
    return (item.low.indexOf(words[0]) >= 0 ? 40 : 50) + SORTS[item.sort];
  }
  function mark(node, name, text) {
    var at = name.toLowerCase().indexOf(text);
    if (at < 0 || name.toLowerCase().length !== name.length) { node.textContent = name; return; }
    var hit = document.createElement("mark");
    hit.textContent = name.slice(at, at + text.length);
    node.append(name.slice(0, at), hit, name.slice(at + text.length));
  }
  function line(item, text) {
    var li = document.createElement("li"), a = document.createElement("a");
    a.href = up + item.href;
    [["sort", item.sort], ["hit", ""], ["in", [item.place, item.about].filter(Boolean).join(" · ")]].forEach(function (part) {
      var span = document.createElement("span");
      span.className = part[0];
      if (part[0] === "hit") mark(span, item.name, text); else span.textContent = part[1];
      if (part[0] === "hit" || part[1]) a.append(span);
    });
    li.append(a);
    return li;
  }
  function show() {
    var text = input.value.trim().toLowerCase(), words = text.split(/\s+/);
    list.replaceChildren();
    panel.hidden = !text;
    if (!text) { told.textContent = ""; return; }
    if (!entries) { told.textContent = "Loading the index ..."; return; }
    var hits = [];
    entries.forEach(function (item) { var r = rank(item, text, words); if (r >= 0) hits.push([r, item]); });
    hits.sort(function (a, b) { return a[0] - b[0] || a[1].low.length - b[1].low.length || (a[1].all < b[1].all ? -1 : a[1].all > b[1].all ? 1 : 0); });
    hits.slice(0, MOST).forEach(function (hit) { list.append(line(hit[1], text)); });
    told.textContent = !hits.length ? "Nothing is called so." + (leftOut ? " The index does not hold all fields of this lake." : "")
      : hits.length === 1 ? "1 hit" : hits.length + " hits" + (hits.length > MOST ? ", the best " + MOST + " shown" : "");
  }
  function close() { panel.hidden = true; }
  input.addEventListener("focus", function () { load(); if (input.value.trim()) show(); });
  input.addEventListener("input", function () { load(); show(); });
  form.addEventListener("submit", function (event) {
    event.preventDefault();
    var first = list.querySelector("a");
    if (first) first.click();
  });
  form.addEventListener("keydown", function (event) {
    var links = Array.from(list.querySelectorAll("a")), at = links.indexOf(document.activeElement);
    if (event.key === "Escape") { input.focus(); close(); }
    else if (event.key === "ArrowDown" && links.length) { event.preventDefault(); links[Math.min(at + 1, links.length - 1)].focus(); }
    else if (event.key === "ArrowUp" && at >= 0) { event.preventDefault(); (at ? links[at - 1] : input).focus(); }
  });
  document.addEventListener("keydown", function (event) {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    input.focus();
  });
  document.addEventListener("click", function (event) { if (!form.contains(event.target) || event.target.closest("a")) close(); });
  form.addEventListener("focusout", function (event) { if (event.relatedTarget && !form.contains(event.relatedTarget)) close(); });

  // ---- tables that sort ---------------------------------------------------------------------------
  document.querySelectorAll("table[data-sortable]").forEach(function (table) {
    var heads = Array.from(table.querySelectorAll("thead th")), body = table.tBodies[0];
    function value(row, column) { var cell = row.cells[column]; return cell.dataset.value === undefined ? cell.textContent.trim().toLowerCase() : cell.dataset.value; }
    heads.forEach(function (head, column) {
      var key = document.createElement("button"), number = head.classList.contains("n");
      key.type = "button";
      key.textContent = head.textContent;
      head.replaceChildren(key);
      key.addEventListener("click", function () {
        var down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : number || column === 5;
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        var rows = Array.from(body.rows).map(function (row) { return [value(row, column), row]; });
        rows.sort(function (a, b) { var way = number ? a[0] - b[0] : a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0; return down ? -way : way; });
        rows.forEach(function (row) { body.append(row[1]); });
      });
    });
  });

  // ---- paper --------------------------------------------------------------------------------------
  var folded = [];
  addEventListener("beforeprint", function () {
    folded = Array.from(document.querySelectorAll("details:not([open]):not(.on-screen)"));
    folded.forEach(function (part) { part.open = true; });
  });
  addEventListener("afterprint", function () { folded.forEach(function (part) { part.open = false; }); });
})();
