package speed

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// counting is a case whose n-th run takes n seconds.
func counting(name string, runs *[]string) Case {
	n := 0.0
	return Case{
		Name: name, Of: []string{"a step", "a leaf update"},
		Run: func(context.Context) (Figures, error) {
			n++
			*runs = append(*runs, name)
			return Figures{Seconds: []float64{n, 10 * n}, Loss: 0.5}, nil
		},
	}
}

// TestMeasure: all cases run in turns, the first run of each does not count, and a row's
// figures are those of the rest.
func TestMeasure(t *testing.T) {
	var order, notes []string
	r, err := Measure(t.Context(), "ldlf", []Case{counting("a", &order), counting("b", &order)}, nil, Options{
		Runs: 3, Limit: time.Hour, Note: func(s string) { notes = append(notes, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "abababab" || r.Runs != 3 {
		t.Errorf("%s, %d runs", got, r.Runs)
	}
	if !slices.Contains(notes, "b: Coppice, run 2 of 3") || notes[0] != "a: Coppice, warm-up run, not counted" {
		t.Errorf("%q", notes)
	}
	if len(r.Rows) != 4 || r.Rows[0].Seconds != (Spread{3, 2, 4}) || r.Rows[1].Seconds != (Spread{30, 20, 40}) ||
		r.Rows[2].Name != "b" {
		t.Fatalf("%+v", r.Rows)
	}
	if x := r.Rows[0]; x.Loss != 0.5 {
		t.Errorf("%+v", x)
	}
	if r.Versions["Coppice"] == "" || r.Kind != "ldlf" {
		t.Errorf("%+v", r)
	}
}

// TestLimit: where the next run would pass the limit there are fewer, and one in any case.
func TestLimit(t *testing.T) {
	var order []string
	r, err := Measure(t.Context(), "ldlf", []Case{counting("a", &order)}, nil, Options{Runs: 9})
	if err != nil || r.Runs != 1 || len(order) != 2 {
		t.Errorf("%v: error %v", order, err)
	}
}

func TestMeasureFails(t *testing.T) {
	bad := errors.New("bad luck")
	c := Case{Name: "a", Run: func(context.Context) (Figures, error) { return Figures{}, bad }}
	if _, err := Measure(t.Context(), "ldlf", []Case{c}, nil, Options{Runs: 1}); !errors.Is(err, bad) ||
		!strings.HasPrefix(err.Error(), "a: ") {
		t.Errorf("error %v", err)
	}
}

// TestAgreement: a peer whose loss is far off does other work, and so does one without.
func TestAgreement(t *testing.T) {
	c := Case{Name: "a", Agreement: 0.1}
	for theirs, ok := range map[float64]bool{1: true, 1.09: true, 0.91: true, 1.11: false, 0.89: false, 0: false,
		math.NaN(): false, math.Inf(1): false} {
		if err := c.agrees("torch", 1, theirs); (err == nil) != ok {
			t.Errorf("1 and %v: error %v", theirs, err)
		}
	}
	if (&Case{}).agrees("torch", 1, 9) != nil {
		t.Error("losses that need not agree")
	}
}

func TestValueOf(t *testing.T) {
	text := "processor\t: 0\nmodel name\t: A : B 9\nmodel name\t: other\n"
	for key, want := range map[string]string{"model name": "A : B 9", "processor": "0", "model": ""} {
		if got := valueOf(strings.NewReader(text), key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	m := ThisMachine()
	if m.Cores < 1 || m.System == "" || m.Kernels == "" {
		t.Errorf("%+v", m)
	}
}
