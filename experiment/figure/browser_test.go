package figure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/browser"
)

// TestInBrowser: in no figure of any kind do texts overlap or leave it.
func TestInBrowser(t *testing.T) {
	var page strings.Builder
	page.WriteString("<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title></title><style>" + Style() + "</style></head><body>")
	for name, example := range examples() {
		f, err := example.Figure()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&page, "<div id=%q>%s</div>\n", name, f.Element(name))
	}
	page.WriteString("</body></html>")
	tab := browser.Start(t).Show(t, page.String())
	tab.Look(800, false)
	for _, found := range tab.Findings() {
		t.Error(found)
	}
}
