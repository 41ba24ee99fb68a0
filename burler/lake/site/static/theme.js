// Before the page is drawn: light or dark, if the reader has chosen. Storage may be refused.
(function () {
  "use strict";
  try {
    var chosen = localStorage.getItem("burler-lake-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (refused) { /* the system's wish stands */ }
})();
