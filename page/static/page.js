// Live pages: the server sends the regions of the page that have changed.
"use strict";

const trouble = document.getElementById("trouble");
const away = document.getElementById("away");
let stream = null;
let over = false;
let lost = 0; // a timer: the server has not answered for a while
let refused = false; // the server has refused the stream

// update makes the children of an element equal to those of another one. It keeps elements that stay, and so the
// focus, selected text, scroll positions, ticked boxes and opened details. Rows with data-key are found by their key.
function update(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = child.nodeType === Node.ELEMENT_NODE && child.dataset.key;
    let same = key ? keyed.get(key) : at;
    if (same && !key && same.nodeType === Node.ELEMENT_NODE && same.dataset.key) same = null;
    if (!same || same.nodeName !== child.nodeName || same.nodeType !== child.nodeType) {
      old.insertBefore(child, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    if (child.nodeType !== Node.ELEMENT_NODE) {
      if (same.data !== child.data) same.data = child.data;
      continue;
    }
    for (const {name} of [...same.attributes]) {
      if (name !== "open" && !child.hasAttribute(name)) same.removeAttribute(name);
    }
    for (const {name, value} of child.attributes) {
      if (name !== "open" && same.getAttribute(name) !== value) same.setAttribute(name, value);
    }
    update(same, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// replace puts new content into a region.
function replace(id, content) {
  const region = document.getElementById(id);
  if (!region) return;
  const template = document.createElement("template");
  template.innerHTML = content;
  const focused = document.activeElement;
  update(region, template.content);
  if (document.activeElement !== focused && region.contains(focused)) focused.focus({preventScroll: true}); // it was moved
}

function follow() {
  const address = document.body.dataset.live;
  if (!address || over || stream || document.hidden) return;
  stream = new EventSource(address);
  stream.addEventListener("regions", (e) => {
    for (const [id, content] of Object.entries(JSON.parse(e.data))) replace(id, content);
  });
  stream.addEventListener("trouble", (e) => {
    trouble.textContent = JSON.parse(e.data);
    trouble.hidden = trouble.textContent === "";
  });
  stream.addEventListener("over", () => {
    over = true;
    leave();
  });
  stream.onopen = opened;
  stream.onerror = () => {
    if (!lost && !refused) lost = setTimeout(() => { away.hidden = false; }, 3000); // a proxy may end a stream at any time
    if (stream && stream.readyState === EventSource.CLOSED) { // the server has refused: it does not come again by itself
      leave();
      askWhy(address);
    }
  };
}

// askWhy shows the page again if the server has refused the caller: it then shows the login. Otherwise it says why there
// is no stream, until there is one, and follows later.
async function askWhy(address) {
  const stop = new AbortController();
  const answer = await fetch(address, {signal: stop.signal}).catch(() => null);
  if (answer && (answer.status === 401 || answer.status === 403)) {
    location.reload();
    return;
  }
  if (answer && !answer.ok) {
    const problem = await answer.json().catch(() => null);
    refused = true;
    answered();
    trouble.textContent = "The page does not show changes now, and tries again. " + (problem && problem.error || answer.statusText);
    trouble.hidden = false;
  }
  stop.abort();
  setTimeout(follow, 5000);
}

function answered() {
  clearTimeout(lost);
  lost = 0;
  away.hidden = true;
}

function opened() {
  answered();
  if (refused) trouble.hidden = true;
  refused = false;
}

function leave() {
  if (stream) stream.close();
  stream = null;
}

// A browser has few connections to a server, so a page that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => { if (document.hidden) leave(); else follow(); });
addEventListener("pagehide", leave);
addEventListener("pageshow", follow);
follow();
