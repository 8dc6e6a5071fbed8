package webpage_test

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/browser"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

var looks = flag.String("looks", "", "folder for pictures of all views, each at all widths and in both themes")

// maxViews bounds the pages that a test looks at.
const maxViews = 60

// hostileFile writes a data file whose columns have markup as names.
func hostileFile(t *testing.T, dir string) string {
	t.Helper()
	path := cmdtest.ArtificialFile(t, dir, "hostile.csv", 300, 1)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(b), "\n")
	return cmdtest.Write(t, dir, "hostile.csv",
		`<img src=x onerror=alert(1)>,"a ""b"" </script>",x2,"label_<svg onload=alert(2)>",label_1,label_2`+"\n"+rows)
}

// fill gives a cluster jobs of all states, an experiment, models, and two workers that say markup of themselves. Its
// real workers have ended at the end.
func fill(t *testing.T, c *proc.Cluster) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("COPPICE_SERVER", c.Servers())
	data := hostileFile(t, dir)
	train := func(name string, more ...string) {
		t.Helper()
		cmdtest.Works(t, append([]string{"train", "--data", data, "--test-fraction", "0.2", "--name", name},
			more...)...)
	}
	train("first", "--algorithm", "sa-bfgs", "--set", "iterations=40")
	train("second", "--algorithm", "aa-bp", "--seed", "2", "--steps", "40")
	spec := cmdtest.Write(t, dir, "table.yaml", `name: table
seed: 1
datasets:
  - hostile.csv
folds: {k: 2}
methods:
  - aa-knn
  - aa-bp
measures: [kl, chebyshev]
`)
	cmdtest.Works(t, "experiment", "run", spec, "--data", dir)
	for _, w := range c.Workers { // from here on, ghosts have all tasks
		cmdtest.Kill(t, w)
	}
	job, err := c.Client().Jobs().Get(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	g := haunt(t, c, "ghost", job.Dataset)
	g.answers.Store(true)
	submit := func(name string) {
		t.Helper()
		cmdtest.Works(t, "job", "submit", "--dataset", job.Dataset, "--name", name, "--algorithm", "sa-bfgs")
	}
	await := func(name string, state protocol.JobState) {
		t.Helper()
		testkit.Until(t, name+" to be "+string(state), func() bool {
			j, err := c.Client().Jobs().Get(t.Context(), name)
			return err == nil && j.State == state
		})
	}
	submit("broken")
	await("broken", protocol.Failed)
	g.answers.Store(false)
	bad := haunt(t, c, "sick", job.Dataset)
	bad.beat.Problem = markup
	submit("running")
	submit("paused")
	cmdtest.Works(t, "job", "pause", "paused")
	submit("cancelled")
	cmdtest.Works(t, "job", "cancel", "cancelled")
	await("running", protocol.Running)
}

// look is a way to look at a view.
type look struct {
	width int
	dark  bool
}

// looksAt returns how a test looks at a view: at the sections in all ways, at the other views in two.
func looksAt(path string) []look {
	if *looks == "" && (testing.Short() || !slices.Contains(sections, path)) {
		return []look{{360, false}, {1920, true}}
	}
	return []look{{360, false}, {360, true}, {768, false}, {768, true}, {1920, false}, {1920, true}}
}

// sections are views that links must lead to.
var sections = []string{"/ui", "/ui/jobs", "/ui/workers", "/ui/coordinators", "/ui/audit", "/ui/experiments",
	"/ui/datasets", "/ui/models", "/ui/submit"}

// TestViews: every view that links of the page lead to is in order in Chromium, narrow and wide, light and dark.
// Nothing is wider than the window, no texts overlap, every control has a label, no script or request fails, the policy
// is kept, and axe-core, where it is installed, finds nothing. Texts of strangers are texts.
func TestViews(t *testing.T) {
	testkit.WithoutRace(t)
	b := browser.Start(t)
	c := cmdtest.Start(t, 3, 2)
	fill(t, c)
	root := "http://" + c.HTTP(cmdtest.Leader(t, c))
	tab := b.Open(t, root+"/ui")
	next := []string{"/ui", "/ui/compare?job=first&job=second", "/ui/no/such/page", "/ui/jobs?state=nonsense"}
	seen, axed := make(map[string]bool), false
	for len(next) > 0 && len(seen) < maxViews {
		path := next[0]
		if next = next[1:]; seen[pattern(path)] {
			continue
		}
		seen[pattern(path)] = true
		tab.Visit(root + path)
		for _, l := range looksAt(path) {
			tab.Look(l.width, l.dark)
			found := tab.Findings()
			if l == (look{360, false}) || l == (look{1920, true}) { // axe-core takes long, and sees both themes so
				more, ok := tab.Axe()
				found, axed = append(found, more...), axed || ok
			}
			for _, f := range found {
				t.Errorf("%s, %d px, dark %v: %s", path, l.width, l.dark, f)
			}
			if *looks != "" {
				name := strings.Trim(strings.ReplaceAll(pattern(path), "/", "-"), "-")
				tab.Picture(filepath.Join(*looks, fmt.Sprintf("%s-%d-%v.png", name, l.width, l.dark)))
			}
		}
		for _, link := range browser.Eval[[]string](tab, "[...document.querySelectorAll('a[href]')].map((a) => a.href)") {
			u, err := url.Parse(link)
			if err == nil && "http://"+u.Host == root && u.Fragment == "" && !strings.Contains(u.Path, "/download/") {
				next = append(next, u.RequestURI())
			}
		}
	}
	for _, want := range sections {
		if !seen[want] {
			t.Errorf("no link leads to %s", want)
		}
	}
	t.Logf("%d views: %v", len(seen), seen)
	if !axed {
		t.Log("axe-core is not installed: it has not looked at the views (COPPICE_AXE=axe.min.js)")
	}
}

var (
	queryValue = regexp.MustCompile(`=[^&]*`)
	question   = regexp.MustCompile(`/[^/]+/(delete|cancel|pause|share|transfer)$`)
)

// pattern returns what pages have in common that differ only in the values of a query, or in the thing that a question
// is about. The states of jobs are kept.
func pattern(path string) string {
	path, query, _ := strings.Cut(path, "?")
	path = question.ReplaceAllString(strings.TrimSuffix(path, "/"), "/any/$1")
	switch {
	case query == "":
		return path
	case strings.HasPrefix(query, "state="):
		return path + "?" + query
	}
	return path + "?" + queryValue.ReplaceAllString(query, "")
}
