package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// curved is a table with learning curves and predictions: of two datasets, three methods and two folds. The
// third method has no curve, and on the second dataset one fold alone.
func curved() *result.Table {
	t := &result.Table{
		Name: "curved", Measures: []string{"kl"}, Methods: []result.Method{{Name: "slow"},
			{Name: "quick, with a name that is long enough to be cut somewhere"}, {Name: "none"}},
		Datasets: []result.Dataset{
			{Name: "faces", Rows: 20, Labels: 3, Folds: 2, Axis: &result.Labels{Names: []string{"happy", "sad", "surprised"}}},
			{Name: "ages", Rows: 20, Labels: 30, Folds: 2, Axis: &result.Labels{Scale: true, First: 16}},
		},
	}
	for d := range 2 {
		for method := range 3 {
			for fold := range 2 {
				c := result.Run{Dataset: d, Method: method, Fold: fold, State: result.Done,
					Values: []float64{.1 * float64(3-method)}, Mean: []float64{.3}, Rows: 10}
				if method < 2 {
					c.Curve = curveOf(method, fold)
				}
				if d == 0 || method < 2 || fold == 0 {
					c.Predictions = predicted(t.Datasets[d].Labels, method, fold)
				}
				t.Runs = append(t.Runs, c)
			}
		}
	}
	return t
}

// curveOf falls for 40 steps, or for 2,000; the second fold ends earlier and has every other step.
func curveOf(method, fold int) *result.Curve {
	c := &result.Curve{BeforeRefit: 2000}
	for i := 1 + fold; i <= 40-4*fold; i += 1 + fold {
		step := uint64(i)
		if method == 0 {
			step *= 50
		}
		c.Steps, c.Training = append(c.Steps, step), append(c.Training, .1+float64(1+fold)/float64(i+method))
		v := math.NaN()
		if method == 0 && i%4 == 0 {
			v = .2 + 1/float64(i)
		}
		c.Validation = append(c.Validation, v)
	}
	// of the refit
	c.Steps, c.Training, c.Validation = append(c.Steps, 2001), append(c.Training, 9), append(c.Validation, 9)
	if method > 0 {
		c.Validation = nil
	}
	return c
}

// predicted are four test samples of a fold; the samples are predicted the better the smaller their number.
func predicted(labels, method, fold int) (list []result.Predicted) {
	for i := range 4 {
		p := result.Predicted{Row: uint32(10*fold + i), True: make([]float32, labels), Predicted: make([]float32, labels)}
		for j := range labels {
			p.True[j], p.Predicted[j] = 1/float32(labels), 1/float32(labels)
		}
		shift := float32(i+1) * float32(4-method) / 20 / float32(labels)
		p.Predicted[0], p.Predicted[1] = p.Predicted[0]+shift, p.Predicted[1]-shift
		list = append(list, p)
	}
	return list
}

// TestAddLosses: losses that are not finite, and those of a refit, do not count.
func TestAddLosses(t *testing.T) {
	sums, counts := make(map[uint64]float64), make(map[uint64]int)
	c := &result.Curve{Steps: []uint64{1, 2, 3, 4}, Training: []float64{8, math.NaN(), 2, 9}, BeforeRefit: 3}
	for range 2 {
		if !addLosses(c, trainingLoss, sums, counts) {
			t.Error("the curve has no losses")
		}
	}
	if addLosses(c, validationLoss, sums, counts) || addLosses(nil, trainingLoss, sums, counts) {
		t.Error("other curves have losses")
	}
	if diff := cmp.Diff(map[uint64]float64{1: 16, 3: 4}, sums) + cmp.Diff(map[uint64]int{1: 2, 3: 2}, counts); diff != "" {
		t.Error(diff)
	}
}

// TestLearned: each method that has curves has one for each loss.
func TestLearned(t *testing.T) {
	s, err := Summarize(curved(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range s.Curves {
		got = append(got, fmt.Sprintf("%s %.5s %s %d of %d to %d", c.Dataset, c.Method, c.Loss, c.Folds, c.Wanted,
			c.Steps[len(c.Steps)-1]))
	}
	want := []string{"faces slow training 2 of 2 to 1800", "faces quick training 2 of 2 to 36",
		"faces slow validation 2 of 2 to 1800"}
	for _, text := range want {
		want = append(want, strings.Replace(text, "faces", "ages", 1))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestShown: the best methods of the table stand together on the test samples that all of them have, from
// the best prediction to the worst.
func TestShown(t *testing.T) {
	table := curved()
	s, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Shown) != 2 {
		t.Fatalf("%+v", s.Shown)
	}
	faces, ages := s.Shown[0], s.Shown[1]
	if faces.Methods[0] != "none" || faces.Methods[2] != "slow" || len(faces.Tested) != 6 || len(ages.Tested) != 4 {
		t.Errorf("%+v", faces)
	}
	var numbers []uint32
	for i, r := range faces.Tested {
		numbers = append(numbers, r.Number)
		if i > 0 && r.KL[0] < faces.Tested[i-1].KL[0] || !(r.KL[2] > r.KL[0]) || r.Fold != int(r.Number/10) ||
			len(r.Predicted) != 3 {
			t.Errorf("%+v", r)
		}
	}
	if diff := cmp.Diff([]uint32{0, 10, 1, 2, 12, 13}, numbers); diff != "" { // of 0, 10, 1, 11, 2, 12, 3 and 13
		t.Error(diff)
	}
	for i := range table.Runs { // no method in common with the others
		if c := &table.Runs[i]; c.Method == 1 {
			for j := range c.Predictions {
				c.Predictions[j].Row += 100
			}
		}
	}
	if s, err = Summarize(table, Options{}); err != nil || len(s.Shown[0].Methods) != 1 ||
		s.Shown[0].Methods[0] != "none" {
		t.Errorf("%+v, error %v", s.Shown[0], err)
	}
}

// TestRecordedFigures: what the figures of recorded runs say.
func TestRecordedFigures(t *testing.T) {
	figures, err := Figures(curved(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for i := range figures {
		f, err := figures[i].Draw()
		if err != nil {
			t.Fatal(err)
		}
		drawn = append(drawn, figures[i].Name+f.Element("x"))
	}
	for _, want := range []string{"faces-training-loss training loss, K-L (nats)", "faces-validation-loss slow",
		"ages-training-loss 1000", "faces-predictions surprised", "ages-predictions number", "ages-predictions true"} {
		name, text, _ := strings.Cut(want, " ")
		found := false
		for _, d := range drawn {
			found = found || strings.Contains(d[:40], name) && strings.Contains(d, ">"+text+"<")
		}
		if !found {
			t.Errorf("no figure %s has %q", name, text)
		}
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

// TestOneColour: a method has one colour in all figures of a report, whichever other methods a figure has.
func TestOneColour(t *testing.T) {
	places := map[string]int{"a": 0, "b": 1, "c": 2}
	curve := func(dataset, method string) Learned {
		return Learned{Dataset: dataset, Method: method, Loss: trainingLoss, Steps: []uint64{1, 2}, Losses: []number{2, 1},
			Folds: 1, Wanted: 1}
	}
	long := make([]number, 12)
	tested := []ShownSample{{True: long, Predicted: [][]number{long}}}
	for _, p := range slices.Concat(
		learningFigures([]Learned{curve("one", "b"), curve("two", "a"), curve("two", "b"), curve("two", "c")}, places),
		shownFigures([]Shown{{Dataset: "one", Methods: []string{"b"}, Tested: tested}}, places),
		(&Summary{Drawn: Drawn{Scores: []Scored{{Dataset: "one", Method: "b", Within: []number{0, 1}}}}}).
			scoreFigures(places)) {
		f, err := p.Draw()
		if err != nil {
			t.Fatal(err)
		}
		text := f.Element(p.Name)
		for method, place := range places {
			has := strings.Contains(text, fmt.Sprint("f-series-", place+1))
			if has != (method == "b" || strings.HasPrefix(p.Name, "two")) {
				t.Errorf("%s: the colour of method %s is there: %v", p.Name, method, has)
			}
		}
	}
}
