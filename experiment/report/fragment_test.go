package report

import (
	"encoding/xml"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/browser"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// allowed are the elements of a fragment with their attributes. None of them can run a script, load anything or have a
// style, and no attribute is an id.
var allowed = map[string][]string{
	"div": {"class", "tabindex", "role", "aria-label"}, "h3": nil, "p": nil, "ul": nil, "li": nil, "table": {"class"},
	"caption": nil, "thead": nil, "tbody": nil, "tr": {"class"}, "th": {"scope"}, "td": nil, "strong": nil, "u": nil,
	"span": {"class"}, "figure": nil, "figcaption": nil,
	"svg":  {"class", "role", "aria-label", "width", "height", "viewBox"},
	"path": {"class", "fill", "stroke", "d", "stroke-width", "stroke-dasharray"},
	"text": {"class", "fill", "x", "y", "font-size", "textLength", "lengthAdjust"}, "g": {"transform"},
}

// checkFragment checks the elements of a fragment, and returns the texts that it shows.
func checkFragment(t *testing.T, text string) (shown string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	classes, captioned, table := make(map[string]bool), 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the fragment is not well-formed: %v", err)
		}
		switch e := token.(type) {
		case xml.CharData:
			shown += string(e)
		case xml.StartElement:
			attributes, ok := allowed[e.Name.Local]
			if !ok {
				t.Fatalf("the fragment has an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if !slices.Contains(attributes, a.Name.Local) {
					t.Errorf("an element %s has the attribute %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
				if a.Name.Local == "class" {
					for _, class := range strings.Fields(a.Value) {
						classes[class] = true
					}
				}
			}
			switch e.Name.Local {
			case "table":
				table++
			case "caption":
				captioned++
			case "th":
				if len(e.Attr) != 1 {
					t.Error("a header has no scope")
				}
			}
		}
	}
	if table == 0 || table != captioned {
		t.Errorf("%d tables have %d captions", table, captioned)
	}
	for class := range classes {
		if !regexp.MustCompile(`\.`+class+`[ ,.:>]`).MatchString(Style) && class != "report-rule" {
			t.Errorf("the style sheet has no class %s", class)
		}
	}
	return shown
}

// TestFragment: a fragment of each kind of report has only elements that a strict policy allows, whatever names methods
// and datasets have, and the page is the fragment with a frame around it.
func TestFragment(t *testing.T) {
	const hostile = `</td></div><script>alert(1)</script><img src=x onerror=alert(1)>" style="x" id='y' &amp;`
	for name, table := range pageTables() {
		checkFragment(t, written(t, table, "fragment", Options{AllTests: true}))
		table.Name += hostile
		for i := range table.Methods {
			table.Methods[i].Name += hostile
		}
		for i := range table.Datasets {
			table.Datasets[i].Name += hostile
		}
		table.Published = nil
		for i := range table.Runs {
			if table.Runs[i].Error != "" {
				table.Runs[i].Error += hostile
			}
		}
		fragment := written(t, table, "fragment", Options{AllTests: true})
		if shown := checkFragment(t, fragment); !strings.Contains(shown, hostile) {
			t.Errorf("%s: the names are not shown", name)
		}
		page := written(t, table, "html", Options{AllTests: true})
		inner := strings.NewReplacer("<h3>", "<h2>", "</h3>", "</h2>").Replace(fragment)
		if !strings.Contains(page, inner) || strings.Contains(page, "<script") || strings.Count(page, "<style>") != 1 {
			t.Errorf("%s: the page does not have the fragment, or more than that", name)
		}
		t.Logf("%s: %d bytes of fragment", name, len(fragment))
	}
}

// TestFragmentInBrowser: with the style sheet, no page is wider than the window, and no texts of figures overlap.
func TestFragmentInBrowser(t *testing.T) {
	testkit.WithoutRace(t)
	b := browser.Start(t)
	for name, table := range pageTables() {
		tab := b.Show(t, "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title></title><style>"+Style+
			"</style></head><body>"+written(t, table, "fragment", Options{AllTests: true})+"</body></html>")
		for _, width := range []int{1280, 500} {
			tab.Look(width, false)
			for _, found := range tab.Findings() {
				t.Errorf("%s, %d pixels: %s", name, width, found)
			}
		}
	}
}
