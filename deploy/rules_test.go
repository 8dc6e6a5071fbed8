package deploy

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	rulesFile  = "prometheus/rules.yml"
	alertsPage = "../docs/reference/alerts.md"
)

var casesFiles = []string{"prometheus/rules_test.yml", "prometheus/rules_backup_test.yml", "prometheus/rules_certificate_test.yml"}

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

// tried checks that each alert has a case in which it fires and one in which it does not, and that no case names another.
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

// listed checks that the table of alerts, which is the only list of them, has each once with its severity, and no other.
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
