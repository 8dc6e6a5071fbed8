package deploy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

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
	for _, name := range []string{"humanize", "humanize1024", "humanizeDuration", "humanizePercentage", "humanizeTimestamp"} {
		all[name] = func(value float64) string { return fmt.Sprint(value) }
	}
	return all
}()

// checkTemplate parses a template, and fills it in.
func checkTemplate(text string) error {
	const given = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
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

// What Prometheus refuses is found.
func TestRulesFindFaults(t *testing.T) {
	const right = `
groups:
  - name: one
    rules:
      - alert: A
        expr: sum(up) == 0
        for: 30s
        labels: {severity: warning}
        annotations: {summary: "{{ $value | humanizeDuration }} of {{ $labels.name }}"}
  - name: two
    rules: []
`
	if _, err := parseRules([]byte(right)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"name: two", "name: one", "each for one group"},
		{"alert: A", "record: A", "record"},
		{"alert: A", "alert: ''", "no name"},
		{"sum(up) == 0", "sum(up == 0", "parse error"},
		{"sum(up) == 0", "''", "no expression"},
		{"for: 30s", "for: 30 seconds", "unknown unit"},
		{"for: 30s", "until: 30s", "until"},
		{"severity:", "se-verity:", "no name of a label"},
		{"severity:", "__name__:", "no name of a label"},
		{"| humanizeDuration", "| humaniseDuration", "humaniseDuration"},
		{"$labels.name", "$label.name", "$label"},
		{"$labels.name", "$labels.name | humanize", "float64"},
		{"name }}", "name }", "unexpected"},
	} {
		broken := strings.Replace(right, c[0], c[1], 1)
		if _, err := parseRules([]byte(broken)); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s in place of %s: %v, want %q", c[1], c[0], err, c[2])
		}
	}
}
