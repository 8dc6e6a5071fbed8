package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func made(t *testing.T) []byte {
	t.Helper()
	d, err := build(rows())
	if err != nil {
		t.Fatal(err)
	}
	b, err := render(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Grafana's own types read the file, with no field that they do not know.
func TestGrafanaReadsIt(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	b := made(t)
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(b); err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	again, err := render(d)
	if err != nil {
		t.Fatal(err)
	}
	// The types make null of a row's empty list of panels.
	again = bytes.ReplaceAll(again, []byte(`"panels": null`), []byte(`"panels": []`))
	if err := compare("what was read", again, b); err != nil {
		t.Error(err)
	}
}

// Every panel says what it shows, in a unit, and has a title of its own.
func TestPanels(t *testing.T) {
	titles := make(map[string]bool)
	for _, r := range rows() {
		for _, p := range r.panels {
			if p.title == "" || titles[p.title] || p.unit == "" || !strings.HasSuffix(p.description, ".") || len(p.queries) == 0 {
				t.Errorf("%s: %+v", r.title, p)
			}
			titles[p.title] = true
			for _, q := range p.queries {
				if q.expr == "" || strings.Contains(q.expr, "%!") || q.legend == "" && len(p.queries) > 1 {
					t.Errorf("%s: %+v", p.title, q)
				}
			}
			for i := 1; i < len(p.colours); i++ {
				if p.colours[i].from <= p.colours[i-1].from {
					t.Errorf("%s: colours %v", p.title, p.colours)
				}
			}
		}
	}
}

// Panels fill each line of the grid, and do not lie on each other.
func TestGrid(t *testing.T) {
	d, err := build(rows())
	if err != nil {
		t.Fatal(err)
	}
	taken := make(map[[2]uint32]bool)
	bottom := uint32(0)
	for _, p := range d.Panels {
		g := panelPosition(p)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if taken[[2]uint32{x, y}] || x >= width {
					t.Fatalf("%+v lies on another panel or outside", g)
				}
				taken[[2]uint32{x, y}] = true
			}
		}
		bottom = max(bottom, g.Y+g.H)
	}
	if len(taken) != int(bottom*width) {
		t.Errorf("%d of %d places are taken: a line has a gap", len(taken), bottom*width)
	}
}

func panelPosition(p dashboard.PanelOrRowPanel) dashboard.GridPos {
	if p.RowPanel != nil {
		return *p.RowPanel.GridPos
	}
	return *p.Panel.GridPos
}

// The file of the repository is what the code makes, the same bytes each time; a change of
// either is told with its line.
func TestCheck(t *testing.T) {
	if err := run("../dashboards/coppice.json", true); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "d.json")
	if err := run(path, false); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b, made(t)) {
		t.Fatalf("other bytes at the second time (%v)", err)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte("coppice_jobs "), []byte("coppice_job "), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(path, true); !errors.Is(err, errBehind) || !strings.Contains(err.Error(), "d.json:") {
		t.Errorf("of a changed file: %v", err)
	}
	if err := os.WriteFile(path, b[:len(b)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(path, true); !errors.Is(err, errBehind) {
		t.Errorf("of a shorter file: %v", err)
	}
}
