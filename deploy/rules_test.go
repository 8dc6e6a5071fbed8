package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const (
	rulesFile = "prometheus/rules.yml"
	casesFile = "prometheus/rules_test.yml"
)

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
	alerts := make(map[string]bool)
	for _, g := range groups {
		for _, r := range g.Rules {
			if alerts[r.Alert] {
				t.Errorf("two alerts are called %q", r.Alert)
			}
			alerts[r.Alert] = true
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s: severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "`coppice ") {
				t.Errorf("%s: %v", r.Alert, r.Annotations)
			}
		}
	}
	if len(alerts) < 7 {
		t.Errorf("%d alerts", len(alerts))
	}
	described(t, alerts)
}

// described checks that each alert has a case and a paragraph, and that these name no other.
func described(t *testing.T, alerts map[string]bool) {
	name := regexp.MustCompile(`Coppice[A-Z]\w+`)
	for _, file := range []string{casesFile, "../docs/operations.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for alert := range alerts {
			if !strings.Contains(string(b), alert) {
				t.Errorf("%s does not have %s", file, alert)
			}
		}
		for _, found := range name.FindAllString(string(b), -1) {
			if !alerts[found] {
				t.Errorf("%s has %s, which is no alert", file, found)
			}
		}
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
		{"test", "rules", casesFile},
		{"check", "config", "prometheus.yml"},
	} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
