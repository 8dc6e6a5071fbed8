// Package browser looks at pages in Chromium, for tests: what a reader would see to be wrong.
package browser

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// names are those that Chromium's program may have.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

const (
	// limit bounds the time of a test with a browser, and patience the time of one step.
	limit    = 9 * time.Minute
	patience = time.Minute
)

//go:embed checks.js
var checks string

// axeFile is an environment variable with the path of axe.min.js, of the npm package axe-core.
const axeFile = "COPPICE_AXE"

// Browser is a Chromium that ends with its test.
type Browser struct{ ctx context.Context }

// Start starts Chromium. The test is skipped where there is none.
func Start(t *testing.T) *Browser {
	t.Helper()
	program := ""
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Skipf("no Chromium is installed (%s)", strings.Join(names, ", "))
	}
	dir := t.TempDir()
	limited, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program),
		chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.Flag("ignore-certificate-errors", true), // of the clusters of tests
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) { cmd.Dir = dir }))
	allocator, end := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(end)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return &Browser{ctx}
}

// Tab is a tab of a browser.
type Tab struct {
	t   *testing.T
	ctx context.Context

	mu    sync.Mutex
	found []string // what went wrong since Findings was called last
}

// Open opens a tab and shows a page in it.
func (b *Browser) Open(t *testing.T, url string) *Tab {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	t.Cleanup(end)
	tab := &Tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, tab.hear); err != nil {
		t.Fatal(err)
	}
	tab.Visit(url)
	return tab
}

// hear notes errors that a reader does not see.
func (tab *Tab) hear(event any) {
	note := func(format string, args ...any) {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		tab.found = append(tab.found, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		note("the script failed: %s", text)
	case *runtime.EventConsoleAPICalled:
		for _, a := range e.Args {
			note("the script says (%s): %s", e.Type, a.Value)
		}
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork && e.Entry.Level == log.EntryLevelError {
			note("%s: %s", e.Entry.Source, e.Entry.Text)
		}
	case *network.EventResponseReceived:
		if e.Type != network.ResourceTypeDocument && e.Response.Status >= 400 {
			note("%s: status %d", e.Response.URL, e.Response.Status)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" {
			note("a request failed: %s %s %s", e.Type, e.ErrorText, e.BlockedReason)
		}
	case *page.EventJavascriptDialogOpening:
		note("a dialog opens: %s", e.Message)
		go chromedp.Call(tab.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	}
}

// do runs actions, which must succeed.
func (tab *Tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tab.t.Fatalf("in Chromium: %v", err)
	}
}

// Visit shows another page.
func (tab *Tab) Visit(url string) {
	tab.t.Helper()
	tab.do(chromedp.Navigate(url))
}

// Eval returns the value of an expression of the page's script, which may be a promise.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatalf("in Chromium: %.200s: %v", expression, err)
	}
	return v
}

// Look shows the page in a window of so many pixels, light or dark.
func (tab *Tab) Look(width int, dark bool) {
	tab.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(width), Height: 1000, DeviceScaleFactor: 1}); err != nil {
		tab.t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
		tab.t.Fatal(err)
	}
	Eval[bool](tab, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
}

// Findings returns what is wrong with the page as it is shown now, and the errors since the last call.
func (tab *Tab) Findings() []string {
	tab.t.Helper()
	all := Eval[[]string](tab, checks)
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		tab.t.Fatal(err)
	}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil || n.Name != nil && strings.Trim(string(n.Name.Value), `" `) != "" {
			continue
		}
		if role := strings.Trim(string(n.Role.Value), `"`); slices.Contains(labelled, role) {
			all = append(all, "a "+role+" has no label")
		}
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	all, tab.found = append(all, tab.found...), nil
	return all
}

// labelled are the roles of elements that a screen reader must be able to name.
var labelled = []string{"button", "link", "textbox", "searchbox", "spinbutton", "checkbox", "radio", "combobox",
	"listbox", "slider", "progressbar", "image", "dialog"}

// Axe returns the findings of axe-core about the page as it is shown now. ok is false if axe-core is not installed:
// the environment variable COPPICE_AXE names its file.
func (tab *Tab) Axe() (findings []string, ok bool) {
	tab.t.Helper()
	path := os.Getenv(axeFile)
	if path == "" {
		return nil, false
	}
	source, err := os.ReadFile(path)
	if err != nil {
		tab.t.Fatalf("%s: %v", axeFile, err)
	}
	Eval[bool](tab, string(source)+"\n; true")
	return Eval[[]string](tab, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) =>
		v.nodes.map((n) => v.id + ": " + v.help + ": " + n.target.join(" ") + " " + n.html.slice(0, 120))))`), true
}

// Picture writes a picture of the whole page to a file.
func (tab *Tab) Picture(path string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot,
		page.CaptureScreenshotParams{CaptureBeyondViewport: new(true)})
	if err != nil {
		tab.t.Fatal(err)
	}
	if err := os.WriteFile(path, picture.Data, 0o644); err != nil {
		tab.t.Fatal(err)
	}
}

// Press types keys.
func (tab *Tab) Press(keys string) {
	tab.t.Helper()
	tab.do(chromedp.KeyEvent(keys))
}

// named is what a screen reader calls the element that has the focus.
const named = `((e) => (e.getAttribute("aria-label") || (e.labels && e.labels[0] && e.labels[0].textContent) ||
	e.textContent).trim().replace(/\s+/g, " "))(document.activeElement)`

// unseen is true if the element that has the focus does not look so. If the body has it, no element has.
const unseen = `document.activeElement !== document.body &&
	getComputedStyle(document.activeElement).outlineStyle === "none"`

// TabTo presses the key Tab until an element whose name begins so has the focus, which must be visible.
func (tab *Tab) TabTo(name string) {
	tab.t.Helper()
	var seen []string
	for range 100 {
		tab.Press("\t")
		now := Eval[string](tab, named)
		if Eval[bool](tab, unseen) {
			tab.t.Errorf("nobody sees that %q has the focus", now)
		}
		if strings.HasPrefix(now, name) {
			return
		}
		seen = append(seen, now)
	}
	tab.t.Fatalf("the key Tab does not lead to %q, but to %q", name, seen)
}

// Await waits until a page is loaded and an expression of its script is true.
func (tab *Tab) Await(what, expression string) {
	tab.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(tab.ctx, patience)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && !!(`+expression+")"))
		if cancel(); ok && err == nil { // an error: the page is about to change
			return
		}
	}
	tab.t.Fatalf("%s: not within %v; the page says:\n%s", what, patience, Eval[string](tab, "document.body.innerText"))
}

// Show opens a tab with the text of a page.
func (b *Browser) Show(t *testing.T, page string) *Tab {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	return b.Open(t, "file://"+path)
}
