// What a reader would see to be wrong with the page that is shown, as a list of texts.
(() => {
  const found = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.body.querySelectorAll("*")].filter((e) => shown(e, e.getBoundingClientRect()).right > root.clientWidth + 1);
    found.push("the page is " + root.scrollWidth + " wide in a window of " + root.clientWidth + ": " + wide.slice(0, 3).map(name).join(", "));
  }
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const r = text.getBoundingClientRect();
      if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
        found.push("text leaves the picture " + name(svg) + ": " + text.textContent);
    }
  }
  for (const e of document.querySelectorAll("body *")) {
    const style = getComputedStyle(e);
    if (e.tagName === "TEXTAREA" || !/auto|scroll/.test(style.overflowX) || e.scrollWidth <= e.clientWidth + 1) continue;
    if (!style.backgroundAttachment.includes("local")) found.push("nothing shows that this scrolls: " + name(e));
  }
  const lines = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (node.textContent.trim() === "" || ["SCRIPT", "STYLE", "TITLE", "OPTION"].includes(parent.tagName)) continue;
    if (!parent.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) {
      const s = shown(parent, r);
      if (s.right - s.left > 2 && s.bottom - s.top > 2) lines.push({node, r: s});
    }
  }
  lines.sort((a, b) => a.r.top - b.r.top);
  lines.forEach((a, i) => {
    for (let k = i + 1; k < lines.length && lines[k].r.top < a.r.bottom; k++) {
      const b = lines[k];
      if (a.node === b.node) continue;
      const x = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left), y = Math.min(a.r.bottom, b.r.bottom) - b.r.top;
      const size = Math.min(...[a.r, b.r].flatMap((r) => [r.bottom - r.top, r.right - r.left]));
      if (x > 1 && y > 0.3 * size) found.push("texts overlap: " + short(a.node.textContent) + " / " + short(b.node.textContent));
    }
  });
  for (const e of document.querySelectorAll("img[src=x], [onerror], main [style]")) found.push("markup that no page writes: " + name(e));
  return [...new Set(found)].slice(0, 20);

  // shown returns the part of a rectangle that the ancestors of an element do not cut off.
  function shown(element, rect) {
    let {left, right, top, bottom} = rect;
    for (let e = element; e && e !== document.body && e !== root; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (e.tagName !== "svg" && (style.overflowX !== "visible" || style.overflowY !== "visible")) {
        const f = e.getBoundingClientRect();
        left = Math.max(left, f.left); right = Math.min(right, f.right);
        top = Math.max(top, f.top); bottom = Math.min(bottom, f.bottom);
      }
      if (style.position === "absolute" || style.position === "fixed") break;
    }
    return {left, right, top, bottom};
  }
  function name(e) {
    const id = e.id ? "#" + e.id : "", first = e.classList[0] ? "." + e.classList[0] : "";
    return e.tagName.toLowerCase() + id + first + " " + short(e.textContent);
  }
  function short(text) { return JSON.stringify(text.trim().replace(/\s+/g, " ").slice(0, 60)); }
})()
