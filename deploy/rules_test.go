package deploy

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	rulesFile  = "prometheus/rules.yml"
	alertsPage = "../docs/reference/alerts.md"
)

var casesFiles = []string{"prometheus/rules_test.yml", "prometheus/rules_backup_test.yml",
	"prometheus/rules_certificate_test.yml"}

// TestRules: the file is one of rules, and each alert says how bad it is, what has happened, and
// what to do, with a command.
func TestRules(t *testing.T) {
	b, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := parseRules(b)
	if err != nil {
		t.Fatal(err)
	}
	alerts := make(map[string]string) // severities
	for _, g := range groups {
		for _, r := range g.Rules {
			if _, twice := alerts[r.Alert]; twice {
				t.Errorf("two alerts are called %q", r.Alert)
			}
			alerts[r.Alert] = r.Labels["severity"]
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s: severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "`coppice ") {
				t.Errorf("%s: %v", r.Alert, r.Annotations)
			}
		}
	}
	if len(alerts) < 16 {
		t.Errorf("%d alerts", len(alerts))
	}
	tried(t, alerts)
	listed(t, alerts)
}

// tried checks that each alert has a case in which it fires and one in which it does not, and that no case names
// another.
func tried(t *testing.T, alerts map[string]string) {
	t.Helper()
	fires, silent := make(map[string]bool), make(map[string]bool)
	for _, file := range casesFiles {
		var cases struct {
			Tests []struct {
				Alerts []struct {
					Name string `yaml:"alertname"`
					Want []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		load(t, file, &cases)
		for _, c := range cases.Tests {
			for _, a := range c.Alerts {
				if _, known := alerts[a.Name]; !known {
					t.Errorf("%s has %s, which is no alert", file, a.Name)
				}
				fires[a.Name], silent[a.Name] = fires[a.Name] || len(a.Want) > 0, silent[a.Name] || len(a.Want) == 0
			}
		}
	}
	for alert := range alerts {
		if !fires[alert] || !silent[alert] {
			t.Errorf("%s: a case in which it fires: %v, in which it does not: %v", alert, fires[alert], silent[alert])
		}
	}
}

// listed checks that the table of alerts, which is the only list of them, has each once with its severity, and no
// other.
func listed(t *testing.T, alerts map[string]string) {
	t.Helper()
	b, err := os.ReadFile(alertsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for _, row := range regexp.MustCompile(`(?m)^\| (Coppice\w+) \| (\w+) \|`).FindAllStringSubmatch(string(b), -1) {
		if _, twice := rows[row[1]]; twice {
			t.Errorf("%s lists %s twice", alertsPage, row[1])
		}
		rows[row[1]] = row[2]
	}
	if !maps.Equal(rows, alerts) {
		t.Errorf("%s lists %v, the alerts are %v", alertsPage, rows, alerts)
	}
}

// TestPromtool has Prometheus's own tool read the files and try the cases, where it is installed.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: apt-get install prometheus)")
	}
	for _, args := range [][]string{
		{"check", "rules", rulesFile},
		append([]string{"test", "rules"}, casesFiles...),
		{"check", "config", "--syntax-only", "prometheus.yml"},
	} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

var updateAlerts = flag.Bool("update", false, "write the alerts of docs/reference/alerts.md anew")

// TestAlertsPage: docs/reference/alerts.md has the alerts with their expressions. With -update the
// test writes them.
func TestAlertsPage(t *testing.T) {
	const first, last = "<!-- alerts from deploy/prometheus/rules.yml -->\n", "<!-- end of alerts -->\n"
	b, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := parseRules(b)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("\n| alert | severity | holds for |\n| --- | --- | --- |\n")
	for _, g := range groups {
		for _, r := range g.Rules {
			fmt.Fprintf(&text, "| %s | %s | %s |\n", r.Alert, r.Labels["severity"], r.For)
		}
	}
	text.WriteString("\n## Expressions\n\n")
	for _, g := range groups {
		for _, r := range g.Rules {
			fmt.Fprintf(&text, "%s:\n\n```promql\n%s\n```\n\n", r.Alert, strings.TrimSpace(r.Expr))
		}
	}
	page, err := os.ReadFile(alertsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), first)
	old, tail, also := strings.Cut(rest, last)
	switch {
	case !ok || !also:
		t.Fatalf("%s has no lines %q and %q", alertsPage, first, last)
	case old == text.String():
	case !*updateAlerts:
		t.Errorf("the alerts of %s are not those of %s: go test ./deploy -run TestAlertsPage -update", alertsPage, rulesFile)
	default:
		if err := os.WriteFile(alertsPage, []byte(head+first+text.String()+last+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ruleGroup is a group of alerts as Prometheus reads it: of its fields, those that are used here.
type ruleGroup struct {
	Name  string
	Rules []alertRule
}

// alertRule is an alert as Prometheus reads it.
type alertRule struct {
	Alert, Expr         string
	For                 model.Duration
	Labels, Annotations map[string]string
}

// parseRules reads alerts as strictly as Prometheus does, whose own reader (package rulefmt) imports
// a hundred packages more.
func parseRules(b []byte) ([]ruleGroup, error) {
	var file struct{ Groups []ruleGroup }
	if err := yaml.UnmarshalWithOptions(b, &file, yaml.Strict()); err != nil {
		return nil, err
	}
	var faults []error
	var names []string
	for _, g := range file.Groups {
		if g.Name == "" || slices.Contains(names, g.Name) {
			faults = append(faults, fmt.Errorf("group %q: want names, each for one group", g.Name))
		}
		names = append(names, g.Name)
		for _, r := range g.Rules {
			if err := r.check(); err != nil {
				faults = append(faults, fmt.Errorf("alert %q: %w", r.Alert, err))
			}
		}
	}
	return file.Groups, errors.Join(faults...)
}

func (r *alertRule) check() error {
	var faults []error
	if r.Alert == "" {
		faults = append(faults, errors.New("it has no name"))
	}
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr); err != nil {
		faults = append(faults, fmt.Errorf("%s: %w", r.Expr, err))
	}
	for _, texts := range []map[string]string{r.Labels, r.Annotations} {
		for name, text := range texts {
			if !model.LegacyValidation.IsValidLabelName(name) || name == model.MetricNameLabel {
				faults = append(faults, fmt.Errorf("%q is no name of a label", name))
			}
			if err := checkTemplate(text); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(faults...)
}

// templateFuncs are those of Prometheus's functions for templates that the alerts use: each takes
// a number and returns text. A template that calls another one is a fault until it stands here.
var templateFuncs = func() template.FuncMap {
	all := make(template.FuncMap)
	for _, name := range []string{"humanize", "humanize1024", "humanizeDuration", "humanizePercentage",
		"humanizeTimestamp"} {
		all[name] = func(value float64) string { return fmt.Sprint(value) }
	}
	return all
}()

// checkTemplate parses a template, and fills it in.
func checkTemplate(text string) error {
	const given = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value " +
		":= .Value}}"
	parsed, err := template.New("text").Funcs(templateFuncs).Option("missingkey=zero").Parse(given + text)
	if err != nil {
		return err
	}
	return parsed.Execute(&strings.Builder{}, struct {
		Labels, ExternalLabels map[string]string
		ExternalURL            string
		Value                  float64
	}{Value: 1})
}
