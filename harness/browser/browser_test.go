package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/browser"
)

// broken is a page with each mistake that the package finds.
const broken = `<!doctype html><html lang="en"><head><title>broken</title></head><body>
<p id="wide">wide</p><p id="a">first text</p><p id="b">second text</p>
<div id="cut"><p>is wider than its frame, without a hint</p></div>
<svg width="40" height="20"><text x="30" y="15">a long text</text></svg>
<button></button><input name="x"><p style="color: red">inline</p>
<img src="/missing.png" alt="nothing"><script src="/script.js"></script></body></html>`

// TestFindings: each mistake is found, and a page without one has none.
func TestFindings(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	serve := func(path, kind, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
			fmt.Fprint(w, text)
		})
	}
	serve("/broken", "text/html", broken)
	serve("/right", "text/html", `<!doctype html><html lang="en"><head><title>right</title><link rel="icon" href="/icon">
<link rel="stylesheet" href="/style.css"></head><body><h1>A page</h1><p>Two lines<br>of text</p>
<div class="scroll"><p>much wider than its frame</p></div><button>Press</button></body></html>`)
	serve("/style.css", "text/css", ".scroll { overflow-x: auto; width: 100px; background: local linear-gradient(red, "+
		"blue); } .scroll p { width: 3000px; }")
	serve("/icon", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>`)
	serve("/script.js", "text/javascript", `
for (const [id, style] of [["wide", "width: 900px"], ["a", "position: absolute; top: 300px; left: 0; margin: 0"],
	["cut", "overflow-x: auto; width: 99px; white-space: nowrap"],
	["b", "position: absolute; top: 302px; left: 9px; margin: 0"]]) document.getElementById(id).style.cssText = style;
console.error("a message"); setTimeout(() => { none.of.this; alert("a dialog"); }, 0); setTimeout(() => alert("a dialog"), 1);`)
	server := httptest.NewServer(mux)
	defer server.Close()
	b := browser.Start(t)
	tab := b.Open(t, server.URL+"/broken")
	tab.Look(360, true)
	all := strings.Join(tab.Findings(), "\n")
	for _, want := range []string{"the page is", "texts overlap: \"first text\" / \"second text\"",
		"text leaves the picture", "nothing shows that this scrolls: div#cut", "a button has no label", "a textbox has no label", "inline style",
		"missing.png: status 404", "a message", "none is not defined", "a dialog opens: a dialog"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not found:\n%s", want, all)
		}
	}
	tab.Visit(server.URL + "/right")
	for _, width := range []int{360, 1920} {
		tab.Look(width, false)
		if found := tab.Findings(); len(found) > 0 {
			t.Errorf("a page without mistakes, %d px: %q", width, found)
		}
	}
}
