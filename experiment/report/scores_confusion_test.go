package report

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// besides is a table of ages and of classes: two methods and two folds each.
func besides() *result.Table {
	t := &result.Table{
		Name: "besides", Measures: []string{"kl"}, Methods: []result.Method{{Name: "one"}, {Name: "two"}},
		Datasets: []result.Dataset{{Name: "ages", Rows: 20, Folds: 2}, {Name: "digits", Rows: 20, Folds: 2}},
	}
	for d := range 2 {
		for row := range 2 {
			for fold := range 2 {
				c := result.Run{Dataset: d, Method: row, Fold: fold, State: result.Done, Values: []float64{.1 * float64(2-row)},
					Mean: []float64{.3}, Rows: 10}
				if d == 0 {
					c.Scores = []float64{.25 * float64(row), .5 + .5*float64(fold)}
				} else {
					c.Confusion = [][]float64{{4, 1}, {float64(row), 5}}
				}
				t.Runs = append(t.Runs, c)
			}
		}
	}
	return t
}

// TestBeside: cumulative scores are means over folds, confusion matrices are sums, and figures show the scores of all
// methods and the matrix of the best one.
func TestBeside(t *testing.T) {
	s, err := Summarize(besides(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Scores) != 2 || s.Scores[1].Method != "two" || s.Scores[1].Within[0] != .25 || s.Scores[1].Within[1] != .75 ||
		s.Scores[1].Folds != 2 {
		t.Errorf("%+v", s.Scores)
	}
	if len(s.Confusion) != 2 || s.Confusion[1].Method != "two" || s.Confusion[1].Counts[0][0] != 8 ||
		s.Confusion[1].Counts[1][0] != 2 {
		t.Errorf("%+v", s.Confusion)
	}
	figures, err := Figures(besides(), Options{})
	if err != nil || len(figures) != 3 {
		t.Fatalf("%d figures, %v", len(figures), err)
	}
	for i, want := range []string{"average rank", "largest error", "digits: two"} {
		f, err := figures[i].Draw()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(f.Element("x"), want) {
			t.Errorf("figure %s has no %q", figures[i].Name, want)
		}
	}
}

// TestPictures: formats with text alone show the pictures of a folder where there is one.
func TestPictures(t *testing.T) {
	for format, want := range map[string]string{"md": "](<out/02-ages-cumulative-score.svg>)",
		"latex": `\includegraphics[width=84mm]{\detokenize{out/02-ages-cumulative-score.pdf}}`} {
		if text := written(t, besides(), format, Options{Pictures: "out"}); !strings.Contains(text, want) {
			t.Errorf("%s has no %q", format, want)
		}
		if text := written(t, besides(), format, Options{}); strings.Contains(text, "cumulative-score") ||
			strings.Contains(text, "Confusion") {
			t.Errorf("%s shows pictures that are nowhere", format)
		}
	}
}
