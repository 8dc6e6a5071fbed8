// Live pages: the server sends the regions of the page that have changed.
"use strict";

const trouble = document.getElementById("trouble");
const away = document.getElementById("away");
let stream = null;

// replace puts new content into a region, and keeps the focus, the chosen boxes and the scroll positions in it.
function replace(id, content) {
  const region = document.getElementById(id);
  if (!region) return;
  const focused = region.contains(document.activeElement) ? place(region, document.activeElement) : null;
  const checked = [...region.querySelectorAll("input:checked")].map((box) => box.name + "=" + box.value);
  const open = [...region.querySelectorAll("details")].map((d) => d.open);
  const scrolled = [...region.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
  region.innerHTML = content;
  for (const box of region.querySelectorAll("input[type=checkbox]")) {
    box.checked = checked.includes(box.name + "=" + box.value);
  }
  region.querySelectorAll("details").forEach((d, i) => { if (i < open.length) d.open = open[i]; });
  region.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = scrolled[i] || 0; });
  if (focused !== null) {
    const again = region.querySelectorAll("a, button, input, select, summary, [tabindex]")[focused];
    if (again) again.focus({preventScroll: true});
  }
}

// place returns the number of an element among those of its region that can have the focus.
function place(region, element) {
  return [...region.querySelectorAll("a, button, input, select, summary, [tabindex]")].indexOf(element);
}

function follow() {
  const address = document.body.dataset.live;
  if (!address || stream || document.hidden) return;
  stream = new EventSource(address);
  stream.addEventListener("regions", (e) => {
    for (const [id, content] of Object.entries(JSON.parse(e.data))) replace(id, content);
  });
  stream.addEventListener("trouble", (e) => {
    trouble.textContent = JSON.parse(e.data);
    trouble.hidden = trouble.textContent === "";
  });
  stream.addEventListener("over", leave);
  stream.onopen = () => { away.hidden = true; };
  stream.onerror = () => {
    away.hidden = false;
    if (stream && stream.readyState === EventSource.CLOSED) { // the server has refused: it does not come again by itself
      leave();
      setTimeout(follow, 5000);
    }
  };
}

function leave() {
  if (stream) stream.close();
  stream = null;
}

// A browser has few connections to a server, so a page that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => { if (document.hidden) leave(); else follow(); });
addEventListener("pagehide", leave);
follow();
