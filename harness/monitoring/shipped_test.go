package monitoring_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/goccy/go-yaml"
)

// The files with queries that are shipped.
const (
	metricsPage   = "../../metrics/METRICS.md"
	dashboardFile = "../../deploy/grafana/dashboards/coppice.json"
	rulesFile     = "../../deploy/prometheus/rules.yml"
)

// shippedQuery is a query as Prometheus gets it.
type shippedQuery struct {
	where    string // a file's kind, and the place in it
	question string // of metrics/METRICS.md, or the title of the dashboard's row
	panel    string // title; empty elsewhere
	expr     string
}

// shippedQueries lists every query that users are given.
func shippedQueries(t *testing.T) []shippedQuery {
	t.Helper()
	return slices.Concat(pageQueries(t), dashboardQueries(t), ruleQueries(t))
}

// inText finds what stands in metrics/METRICS.md between backticks, with a metric's name and more.
var inText = regexp.MustCompile("`([^`]*coppice_\\w+[^`\\w][^`]*|[^`]+coppice_\\w+)`")

// pageQueries lists the queries of metrics/METRICS.md: its promql blocks, and those within its text.
func pageQueries(t *testing.T) (all []shippedQuery) {
	t.Helper()
	question, block := "", []string(nil)
	in := false
	for line := range strings.Lines(cmdtest.Read(t, metricsPage)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "```promql":
			in, block = true, nil
		case line == "```" && in:
			all = append(all, shippedQuery{where: "METRICS.md", question: question, expr: strings.Join(block, "\n")})
			in = false
		case in:
			block = append(block, line)
			continue
		case strings.HasSuffix(line, "?") || strings.HasSuffix(line, ":"):
			question = strings.TrimLeft(line, "# ")
		}
		for _, m := range inText.FindAllStringSubmatch(line, -1) {
			all = append(all, shippedQuery{where: "METRICS.md", question: question, expr: m[1]})
		}
	}
	if len(all) < 15 {
		t.Fatalf("%d queries in METRICS.md", len(all))
	}
	return all
}

// grafana is what a test reads of a dashboard.
type grafana struct {
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Type, Name, Definition string }
	}
}

// fromGrafana puts values in the places of Grafana's variables: every job, every process, and
// rates over ten seconds, as for scrapes once a second on a machine that is busy.
var fromGrafana = strings.NewReplacer("$__rate_interval", "10s", "$name", ".*", "$instance", ".*")

// dashboardQueries lists the queries of the dashboard's panels, and of its variables as the
// series from which they take their values.
func dashboardQueries(t *testing.T) (all []shippedQuery) {
	t.Helper()
	var g grafana
	if err := json.Unmarshal([]byte(cmdtest.Read(t, dashboardFile)), &g); err != nil {
		t.Fatal(err)
	}
	row := ""
	for _, p := range g.Panels {
		if p.Type == "row" {
			row = p.Title
		}
		for _, target := range p.Targets {
			all = append(all, shippedQuery{where: "dashboard", question: row, panel: p.Title,
				expr: fromGrafana.Replace(target.Expr)})
		}
	}
	values := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	for _, v := range g.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := values.FindStringSubmatch(v.Definition)
		if m == nil {
			t.Fatalf("the variable %s is %q", v.Name, v.Definition)
		}
		all = append(all, shippedQuery{where: "dashboard", question: "variable " + v.Name, expr: "group by (" + m[2] + ") (" +
			m[1] + ")"})
	}
	if len(all) < 40 {
		t.Fatalf("%d queries in the dashboard", len(all))
	}
	return all
}

// ruleQueries lists the expressions of the alerts.
func ruleQueries(t *testing.T) (all []shippedQuery) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(cmdtest.Read(t, rulesFile)), &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			all = append(all, shippedQuery{where: "rules.yml", question: r.Alert, expr: r.Expr})
		}
	}
	if len(all) < 7 {
		t.Fatalf("%d alerts", len(all))
	}
	return all
}
