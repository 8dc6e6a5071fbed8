// Package browser looks at pages in Chromium, for tests: what a reader would see to be wrong.
package browser

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// names are those that Chromium's program may have.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// limit bounds the time that a page takes.
const limit = 8 * time.Minute

// script looks for texts of one picture that lie over each other or leave it, for small letters, and for a page that
// is wider than the window. A page that it is put into has the findings as its title.
const script = `<script>
const found = [];
for (const svg of document.querySelectorAll("svg")) {
  const frame = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll("text")].map(t => ({t, r: t.getBoundingClientRect()}));
  const name = svg.parentElement.id || (texts[0] ? texts[0].t.textContent : "");
  texts.forEach(({t, r}, i) => {
    if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1)
      found.push(name + ": text leaves the picture: " + t.textContent);
    for (const {t: other, r: o} of texts.slice(i + 1)) {
      const x = Math.min(r.right, o.right) - Math.max(r.left, o.left), y = Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top);
      const high = Math.min(r.height, o.height, r.width, o.width);
      if (x > 1 && y > 0.3 * high) found.push(name + ": texts overlap: " + t.textContent + " / " + other.textContent);
    }
  });
}
const wide = document.documentElement.scrollWidth;
if (wide > window.innerWidth) found.push("the page is " + wide + " wide in a window of " + window.innerWidth);
document.title = "found:" + found.join("|");
</script>`

// Findings shows a page, which has no scripts of its own, in a window of so many pixels and returns what a reader would
// see to be wrong. The test is skipped where there is no Chromium.
func Findings(t *testing.T, page string, width int) []string {
	t.Helper()
	out := DOM(t, strings.Replace(page, "</body>", script+"</body>", 1), width)
	_, rest, _ := strings.Cut(out, "<title>")
	title, _, ok := strings.Cut(rest, "</title>")
	list, ran := strings.CutPrefix(html.UnescapeString(title), "found:")
	if !ok || !ran {
		t.Fatalf("Chromium did not run the script of the page, whose title is still %q", title)
	}
	if list == "" {
		return nil
	}
	return strings.Split(list, "|")
}

// DOM shows a page in a window of so many pixels and returns its text as it is after its scripts have run. The test is
// skipped where there is no Chromium.
func DOM(t *testing.T, page string, width int) string {
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
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(dir, "profile"),
		fmt.Sprintf("--window-size=%d,1000", width), "--dump-dom", "file://"+path)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return string(out)
}
