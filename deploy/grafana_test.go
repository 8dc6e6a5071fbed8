package deploy

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

type sources struct {
	Datasources []struct {
		Type string `yaml:"type"`
		URL  string `yaml:"url"`
		JSON struct {
			Interval string `yaml:"timeInterval"`
		} `yaml:"jsonData"`
	} `yaml:"datasources"`
}

type providers struct {
	Providers []struct {
		Type    string `yaml:"type"`
		Options struct {
			Path string `yaml:"path"`
		} `yaml:"options"`
	} `yaml:"providers"`
}

// Grafana asks the Prometheus of compose.yml, at the pace at which it scrapes, and finds the
// dashboards where they are mounted.
func TestGrafana(t *testing.T) {
	var c compose
	var p scrape
	var s sources
	var d providers
	load(t, "compose.yml", &c)
	load(t, "prometheus.yml", &p)
	load(t, "grafana/provisioning/datasources/prometheus.yml", &s)
	load(t, "grafana/provisioning/dashboards/coppice.yml", &d)
	g := c.Services["grafana"]
	for _, folder := range []string{"datasources", "dashboards"} {
		if !g.mounts("./grafana/provisioning/"+folder, "/etc/grafana/provisioning/"+folder) {
			t.Errorf("provisioning/%s is not mounted", folder)
		}
	}
	if len(s.Datasources) != 1 || s.Datasources[0].Type != "prometheus" ||
		s.Datasources[0].URL != "http://prometheus:9090" {
		t.Errorf("data sources: %+v", s)
	} else if got := s.Datasources[0].JSON.Interval; got != p.Global.Interval {
		t.Errorf("Grafana believes that Prometheus scrapes every %s, and it does every %s", got, p.Global.Interval)
	}
	if len(d.Providers) != 1 || d.Providers[0].Type != "file" ||
		!g.mounts("./grafana/dashboards", d.Providers[0].Options.Path) {
		t.Errorf("dashboards: %+v, mounted %v", d, g.Volumes)
	}
	if home := g.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; path.Dir(home) != d.Providers[0].Options.Path {
		t.Errorf("the first page is %s", home)
	} else {
		exists(t, "grafana/dashboards/"+path.Base(home))
	}
}

// variable is a name that Grafana replaces in a query.
var variable = regexp.MustCompile(`\$\{?(\w+)`)

// Each dashboard is JSON with a name of its own, and its queries use only variables that it has.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	uids := make(map[string]bool)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			UID        string `json:"uid"`
			Panels     []panel
			Templating struct {
				List []struct{ Name string }
			}
		}
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if d.UID == "" || uids[d.UID] {
			t.Errorf("%s: the uid is %q", f, d.UID)
		}
		uids[d.UID] = true
		checkPanels(t, f, d.Panels)
		known := map[string]bool{"__rate_interval": true, "__all": true}
		for _, v := range d.Templating.List {
			known[v.Name] = true
			if n := strings.Count(string(b), "$"+v.Name) + strings.Count(string(b), "${"+v.Name+"}"); n == 0 {
				t.Errorf("%s: nothing uses the variable %s", f, v.Name)
			}
		}
		for _, m := range variable.FindAllStringSubmatch(string(b), -1) {
			if !known[m[1]] {
				t.Errorf("%s has no variable %s", f, m[0])
			}
		}
	}
}

// panel is what the tests read of a panel, or of a row of panels.
type panel struct {
	ID                       int
	Type, Title, Description string
	FieldConfig              struct{ Defaults struct{ Unit string } }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, RefID string }
}

// checkPanels reports panels without a title of their own, a description, a unit or a query, and panels that overlap or
// leave a gap in a line of the grid.
func checkPanels(t *testing.T, file string, panels []panel) {
	t.Helper()
	const width = 24 // columns of Grafana's grid
	titles, ids, taken, bottom := make(map[string]bool), make(map[int]bool), make(map[[2]int]bool), 0
	for _, p := range panels {
		if p.Title == "" || titles[p.Title] || ids[p.ID] {
			t.Errorf("%s: panel %d, %q: want a title and an id of its own", file, p.ID, p.Title)
		}
		titles[p.Title], ids[p.ID] = true, true
		if p.Type != "row" && (p.FieldConfig.Defaults.Unit == "" || !strings.HasSuffix(p.Description, ".") ||
			len(p.Targets) == 0) {
			t.Errorf("%s: panel %q: want a unit, a description and a query", file, p.Title)
		}
		for _, q := range p.Targets {
			if q.Expr == "" || q.RefID == "" {
				t.Errorf("%s: panel %q: the query %q has the name %q", file, p.Title, q.Expr, q.RefID)
			}
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if at := [2]int{x, y}; taken[at] || x >= width {
					t.Fatalf("%s: panel %q overlaps another panel or the edge", file, p.Title)
				} else {
					taken[at] = true
				}
			}
		}
		bottom = max(bottom, p.GridPos.Y+p.GridPos.H)
	}
	if len(taken) != bottom*width {
		t.Errorf("%s: the panels take %d of %d places of the grid", file, len(taken), bottom*width)
	}
}
