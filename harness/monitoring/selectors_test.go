package monitoring_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	prometheus "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/coppice-ldl/coppice/harness/proc"
)

var promql = parser.NewParser(parser.Options{})

// selector is what a query expects of the metrics of a cluster.
type selector struct {
	metric string
	labels []string          // that matchers, by and on name
	values map[string]string // of matchers with =
}

// fromScrapes are the labels that Prometheus itself gives every series.
var fromScrapes = []string{"instance", "job"}

// ofPrometheus are the metrics that Prometheus itself makes.
var ofPrometheus = []string{"up"}

// selectors lists what a query selects, but for what Prometheus itself makes. A label by which
// an aggregation groups is expected of everything below it, and one by which an operator matches of
// both of its sides.
func selectors(query string) ([]selector, error) {
	e, err := promql.ParseExpr(query)
	if err != nil {
		return nil, err
	}
	var all []selector
	parser.Inspect(e, func(n parser.Node, above []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok && !slices.Contains(ofPrometheus, v.Name) {
			all = append(all, selects(v, above))
		}
		return nil
	})
	return all, nil
}

func selects(v *parser.VectorSelector, above []parser.Node) selector {
	s := selector{metric: v.Name, values: make(map[string]string)}
	for _, m := range v.LabelMatchers {
		if m.Name == prometheus.MetricNameLabel {
			continue
		}
		s.labels = append(s.labels, m.Name)
		if m.Type == labels.MatchEqual {
			s.values[m.Name] = m.Value
		}
	}
	child := parser.Node(v)
	for _, n := range slices.Backward(above) {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			// What is above an aggregation sees no other labels.
			s.labels = append(s.labels, n.Grouping...)
			return s.tidy()
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil && m.On {
				s.labels = append(s.labels, m.MatchingLabels...)
			}
			if n.Op.IsSetOperator() && n.Op != parser.LOR && n.RHS == child {
				return s.tidy() // the left side's labels are the result's
			}
		}
		child = n
	}
	return s.tidy()
}

// tidy leaves out the labels that Prometheus gives, and what is there twice.
func (s selector) tidy() selector {
	slices.Sort(s.labels)
	s.labels = slices.DeleteFunc(slices.Compact(s.labels), func(l string) bool { return slices.Contains(fromScrapes, l) })
	for _, l := range fromScrapes {
		delete(s.values, l)
	}
	return s
}

// exposed is what processes expose: the values of each label of each metric.
type exposed map[string]map[string]map[string]bool

// add adds the series of one process.
func (x exposed) add(series proc.Series) error {
	for s := range maps.Keys(series) {
		m, err := promql.ParseMetric(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		name := m.Get(prometheus.MetricNameLabel)
		if x[name] == nil {
			x[name] = make(map[string]map[string]bool)
		}
		m.Range(func(l labels.Label) {
			if x[name][l.Name] == nil {
				x[name][l.Name] = make(map[string]bool)
			}
			x[name][l.Name][l.Value] = true
		})
	}
	return nil
}

// lacks says what of a selector no process exposes; empty where all is there.
func (x exposed) lacks(s selector) string {
	of, ok := x[s.metric]
	if !ok {
		return "no metric " + s.metric
	}
	for _, l := range s.labels {
		if of[l] == nil {
			return fmt.Sprintf("%s has no label %s", s.metric, l)
		}
	}
	for l, v := range s.values {
		if !of[l][v] {
			return fmt.Sprintf("%s has no %s=%q", s.metric, l, v)
		}
	}
	return ""
}

// faults lists what the shipped queries select and no process exposes, and what is no query.
func (x exposed) faults(queries []shippedQuery) (all []string) {
	for _, q := range queries {
		found, err := selectors(q.expr)
		if err != nil {
			all = append(all, fmt.Sprintf("%s, %s%s: %s: %v", q.where, q.question, q.panel, q.expr, err))
			continue
		}
		for _, s := range found {
			if what := x.lacks(s); what != "" {
				all = append(all, fmt.Sprintf("%s, %s %s: %s: %s", q.where, q.question, q.panel, q.expr, what))
			}
		}
	}
	return all
}

// What no process exposes is found: a metric, a label of a matcher, of by and of on, a value.
func TestSelectorsFindFaults(t *testing.T) {
	x := make(exposed)
	if err := x.add(proc.Series{
		`coppice_jobs{state="done"}`: 1, `coppice_leader`: 1, `coppice_phase_seconds_bucket{phase="commit",le="+Inf"}`: 3,
		`coppice_phase_seconds_sum{phase="commit"}`: 3,
	}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`sum by (state) (coppice_jobs{state="done"} and on (instance) (coppice_leader == 1))`:                  "",
		`histogram_quantile(0.5, sum by (le, phase) (rate(coppice_phase_seconds_bucket{instance=~".*"}[1m])))`: "",
		`up{job="coordinator"} == 0`:                                          "",
		`max by (instance) (sum by (state) (coppice_jobs))`:                   "",
		`sum by (state) (coppice_leader == 1 and on (instance) coppice_jobs)`: "coppice_leader has no label state",
		`sum by (state) (coppice_jobs or coppice_leader)`:                     "coppice_leader has no label state",
		`sum(coppice_job)`:                                          "no metric coppice_job",
		`sum(coppice_jobs{state="gone"})`:                           `no state="gone"`,
		`sum(coppice_jobs{status=~".+"})`:                           "no label status",
		`sum by (name) (coppice_jobs)`:                              "no label name",
		`coppice_jobs and on (worker) coppice_jobs`:                 "no label worker",
		`rate(coppice_phase_seconds_count[5m])`:                     "no metric coppice_phase_seconds_count",
		`sum by (phase (coppice_phase_seconds_sum)`:                 "parse error",
		`sum(coppice_jobs) / rate(coppice_leader)`:                  "expected type range vector",
		`sum without (le) (coppice_jobs{state="done", le!="+Inf"})`: "no label le",
	} {
		faults := strings.Join(x.faults([]shippedQuery{{expr: query}}), "\n")
		if want == "" && faults != "" || !strings.Contains(faults, want) {
			t.Errorf("%s: %q, want %q", query, faults, want)
		}
	}
}
