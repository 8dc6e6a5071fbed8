package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// timed is a table whose runs take seconds that grow with trees, leaves and labels by known powers.
func timed() *result.Table {
	t := &result.Table{Name: "timed", Measures: []string{"kl"}}
	for _, labels := range []int{40, 5, 10} {
		t.Datasets = append(t.Datasets, result.Dataset{Name: fmt.Sprint("labels", labels), Rows: 20, Features: 3, Labels: labels, Folds: 2})
	}
	for _, trees := range []int{1, 2, 8} {
		t.Methods = append(t.Methods, result.Method{Name: fmt.Sprint("trees ", trees), Algorithm: "ldlf", Settings: map[string]string{"trees": fmt.Sprint(trees), "depth": "5"}})
	}
	for _, depth := range []int{3, 5, 7} {
		t.Methods = append(t.Methods, result.Method{Name: fmt.Sprint("depth ", depth), Algorithm: "ldlf", Settings: map[string]string{"trees": "4", "depth": fmt.Sprint(depth)}})
	}
	for d := range t.Datasets {
		for row := range t.Methods {
			s := t.Methods[row].Settings
			var trees, depth float64
			fmt.Sscan(s["trees"], &trees)
			fmt.Sscan(s["depth"], &depth)
			for fold := range 2 {
				seconds := .01 * trees * math.Pow(math.Exp2(depth-1), .5) * math.Pow(float64(t.Datasets[d].Labels), 2) * (1 + .1*float64(2*fold-1))
				t.Runs = append(t.Runs, result.Run{Dataset: d, Method: row, Fold: fold, State: result.Done, Values: []float64{.1}, Mean: []float64{.2}, Rows: 10, Seconds: seconds})
			}
		}
	}
	return t
}

// TestGrowth: the slopes are the powers that the seconds were made with.
func TestGrowth(t *testing.T) {
	s, err := Summarize(timed(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, g := range s.Growths {
		want := map[string]float64{"trees": 1, leaves: .5, byLabels: 2}[g.By]
		if math.Abs(float64(g.Slope)-want) > 1e-9 || g.Error > 1e-6 || g.R2 < 1-1e-9 {
			t.Errorf("%+v, want the slope %v", g, want)
		}
		if g.By == byLabels && fmt.Sprint(g.X) != "[5 10 40]" || g.By == leaves && fmt.Sprint(g.X) != "[4 16 64]" {
			t.Errorf("%s: %v", g.By, g.X)
		}
		counts[g.By]++
	}
	if counts["trees"] != 3 || counts[leaves] != 3 || counts[byLabels] != 6 {
		t.Errorf("%v", counts)
	}
	page := written(t, timed(), "html", Options{})
	for _, want := range []string{"Time of ldlf by trees<", "labels40 (slope 1.00)", "leaves of a tree, 2^(depth - 1)", "Time by labels<", "0.50 ± 0.00"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if text := written(t, timed(), "html", Options{NoTimes: true}); strings.Contains(text, "slope") {
		t.Error("without times there are slopes")
	}
}

// TestParts: figures have a bounded number of lines, and the parts of one list are told apart.
func TestParts(t *testing.T) {
	list := make([]Scored, 2*mostLines+3)
	for i := range list {
		list[i].Dataset = "long"
	}
	list[0].Dataset, list[1].Dataset = "one", "two"
	var got []string
	for _, p := range partsOf(list, func(a, b *Scored) bool { return a.Dataset == b.Dataset }) {
		got = append(got, fmt.Sprint(p.items[0].Dataset, len(p.items), p.text))
	}
	if want := "one1; two1; long6, part 1 of 3; long6, part 2 of 3; long1, part 3 of 3"; strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoGrowth: runs of a cluster have no seconds, and datasets of other methods, or of one number of labels, are
// no series.
func TestNoGrowth(t *testing.T) {
	table := timed()
	for i := range table.Runs {
		table.Runs[i].Seconds = 0
	}
	var s struct{ Growths []any }
	if err := json.Unmarshal([]byte(written(t, table, "json", Options{})), &s); err != nil || len(s.Growths) > 0 {
		t.Errorf("%v, %v", s.Growths, err)
	}
	for i := range table.Runs {
		table.Runs[i].Seconds = .09
	}
	if s, err := Summarize(table, Options{}); err != nil || len(s.Growths) > 0 {
		t.Errorf("runs that take no time: %v, %v", s.Growths, err)
	}
	sets := timed().Datasets
	sets[1].Rows++
	if groups := labelGroups(sets); len(groups) > 0 {
		t.Errorf("%v", groups)
	}
	sets = timed().Datasets
	sets[1].Labels = 40
	if groups := labelGroups(sets); len(groups) > 0 {
		t.Errorf("%v", groups)
	}
}
