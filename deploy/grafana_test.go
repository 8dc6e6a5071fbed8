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
	if len(s.Datasources) != 1 || s.Datasources[0].Type != "prometheus" || s.Datasources[0].URL != "http://prometheus:9090" {
		t.Errorf("data sources: %+v", s)
	} else if got := s.Datasources[0].JSON.Interval; got != p.Global.Interval {
		t.Errorf("Grafana believes that Prometheus scrapes every %s, and it does every %s", got, p.Global.Interval)
	}
	if len(d.Providers) != 1 || d.Providers[0].Type != "file" || !g.mounts("./grafana/dashboards", d.Providers[0].Options.Path) {
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
