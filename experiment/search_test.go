package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const searching = `name: s
seed: 1
datasets: [b]
methods:
  - algorithm: ldlf
    search: {draws: DRAWS, seed: SEED, space: {SPACE}}
`

// drawn returns the settings of the methods of a search, in the order of draws.
func drawn(t *testing.T, draws int, seed, space string) (points []map[string]string) {
	t.Helper()
	text := strings.NewReplacer("DRAWS", strconv.Itoa(draws), "SEED", seed, "SPACE", space).Replace(searching)
	s, err := Parse(t.Context(), "s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Methods {
		points = append(points, r.Settings)
	}
	return points
}

// TestSearch: values are within their bounds and spread over them as the spec says.
func TestSearch(t *testing.T) {
	const n = 400
	points := drawn(t, n, "7", "learning_rate: {log: [1e-4, 1]}, depth: {int: [3, 6]}, batch_size: {log: [8, 512]}, "+
		"momentum: {real: [0.1, 0.9]}, init: [xavier, normal]")
	counts := make(map[string]int)
	for _, p := range points {
		read := func(key string, low, high float64) float64 {
			v, err := strconv.ParseFloat(p[key], 64)
			if err != nil || v < low || v > high {
				t.Fatalf("%s is %q", key, p[key])
			}
			return v
		}
		counts["rate "+strconv.Itoa(int(math.Floor(math.Log10(read("learning_rate", 1e-4, 1)))))]++
		counts["depth "+p["depth"]]++
		counts["init "+p["init"]]++
		if v := read("batch_size", 8, 512); v != math.Floor(v) {
			t.Errorf("a mini-batch of %v methods", v)
		} else if v < 64 {
			counts["small batch"]++
		}
		if read("momentum", 0.1, 0.9) < 0.5 {
			counts["low momentum"]++
		}
		if digits := strings.TrimLeft(strings.Trim(strings.Split(p["learning_rate"], "e")[0], "0"),
			"0."); len(strings.ReplaceAll(digits, ".", "")) > 3 {
			t.Errorf("learning rate %s: more than three digits", p["learning_rate"])
		}
	}
	for what, share := range map[string]float64{
		"rate -4": 0.25, "rate -3": 0.25, "rate -2": 0.25, "rate -1": 0.25, "depth 3": 0.25, "depth 4": 0.25, "depth 5": 0.25,
		"depth 6":     0.25,
		"init xavier": 0.5, "small batch": 0.5, "low momentum": 0.5,
	} {
		if got, off := float64(counts[what])/n, 4*math.Sqrt(share*(1-share)/n); math.Abs(got-share) > off {
			t.Errorf("%s: a share of %.3f, want %.2f ± %.3f", what, got, share, off)
		}
	}
}

// TestSearchIsSeeded: more draws begin with the same, another axis changes nothing of this one, and
// another seed does.
func TestSearchIsSeeded(t *testing.T) {
	const space = "learning_rate: {log: [1e-4, 1]}"
	rates := func(points []map[string]string) (list []string) {
		for _, p := range points {
			list = append(list, p["learning_rate"])
		}
		return list
	}
	few := rates(drawn(t, 6, "3", space))
	if want := []string{"0.0149", "0.00152", "0.000171", "0.00423", "0.000139", "0.00122"}; !slices.Equal(few, want) {
		t.Errorf("seed 3 draws %q, want %q", few, want)
	}
	if more := rates(drawn(t, 20, "3", space)); !slices.Equal(more[:6], few) {
		t.Errorf("20 draws begin with %q, 6 are %q", more[:6], few)
	}
	if wider := rates(drawn(t, 6, "3", "momentum: {real: [0, 0.9]}, "+space)); !slices.Equal(wider, few) {
		t.Errorf("with another axis %q, alone %q", wider, few)
	}
	if other := rates(drawn(t, 6, "4", space)); slices.Equal(other, few) {
		t.Error("another seed draws the same")
	}
	if all := drawn(t, 4, "1", "depth: {int: [3, 6]}"); len(all) != 4 {
		t.Errorf("%v: want each depth once", all)
	}
}

func TestSearchErrors(t *testing.T) {
	for search, want := range map[string]string{
		"{draws: 3}":                                   "s.yaml:6:5: search: the keys draws",
		"{space: {depth: [3, 4]}}":                     "s.yaml:6:5: search: the keys draws",
		"{draws: 0, space: {depth: [3]}}":              `s.yaml:6:21: draws: "0" is not a whole number from 1`,
		"{draws: 3, spaces: {depth: [3]}}":             `s.yaml:6:24: search: unknown key "spaces" (did you mean "space"?); the keys are draws, seed, space`,
		"{draws: 3, space: {}}":                        "s.yaml:6:24: space: the space is empty",
		"{draws: 3, space: {deph: [3]}}":               `s.yaml:6:32: unknown setting deph of ldlf (did you mean "depth"?)`,
		"{draws: 3, space: {depth: [3, x]}}":           `depth: "x" is not a whole number`,
		"{draws: 3, space: {depth: 3}}":                "s.yaml:6:39: depth: want a mapping",
		"{draws: 3, space: {depth: {int: [3]}}}":       "s.yaml:6:40: depth: int: want two numbers",
		"{draws: 3, space: {depth: {int: [3, 99]}}}":   `s.yaml:6:49: depth: "99" is not a whole number from 2 to 20`,
		"{draws: 3, space: {depth: {real: [3, 4.5]}}}": `s.yaml:6:50: depth: "4.5" is not a number, or not a whole number if the setting needs one`,
		"{draws: 3, space: {depth: {int: [5, 3]}}}": "s.yaml:6:45: depth: the lower bound 5 is not below " +
			"the upper bound 3",
		"{draws: 3, space: {momentum: {log: [0, 0.5]}}}": "s.yaml:6:48: momentum: the lower bound 0 of a logarithmic range " +
			"is not above 0",
		"{draws: 3, space: {depth: {int: [3, 4], real: [3, 4]}}}": "s.yaml:6:32: depth: " +
			"want a list of values, or one of the keys real, log, int",
		"{draws: 5, space: {depth: {int: [3, 6]}}}": "s.yaml:6:24: search: " +
			"space is too small: it has at most 4 different points, want 5 draws",
		"{draws: 20001, space: {momentum: [0, 0.5]}}": `draws: "20001" is not a whole number from 1`,
		"{draws: 20000, space: {learning_rate: {log: [1e-9, 1]}}}": "s.yaml:6:28: search: " +
			"space is too small: it has at most 8,103 different points, want 20,000 draws; numbers are rounded to 3 digits",
		"{draws: 20, space: {depth: [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]}}": "s.yaml:6:25: search: " +
			"space is too small: 2,000 tries gave 1 different points, want 20 draws",
		"{draws: 3, space: {depth: [3, 4]}}\n    grid: {trees: [1, 2]}": "s.yaml:6:5: search: the keys grid and search " +
			"exclude each other",
		"{draws: 3, seed: -1, space: {depth: [3, 4]}}":                    `seed: "-1" is not a whole number`,
		"{draws: 3, space: {depth: [3, 4, 5]}}\n    settings: {depth: 3}": "depth: the method gives this setting twice",
	} {
		text := "name: s\nseed: 1\ndatasets: [b]\nmethods:\n  - algorithm: ldlf\n    search: " + search
		if _, err := Parse(t.Context(), "s.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", search, err, want)
		}
	}
}

// TestSearchEnds: a search of any number of draws from any space ends soon, and with its context.
func TestSearchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const text = "name: s\ndatasets: [b]\nmethods:\n  - algorithm: ldlf\n    search: {draws: %d, space: {learning_rate: " +
		"{log: [%v, 1]}}}"
	if _, err := Parse(ctx, "s.yaml", fmt.Appendf(nil, text, 100, 1e-3)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(1e-9, 0.99).Draw(t, "low")
		draws := rapid.IntRange(1, 1000).Draw(t, "draws")
		s, err := Parse(context.Background(), "s.yaml", fmt.Appendf(nil, text, draws, low))
		if err == nil && len(s.Methods) != draws || err != nil && !strings.Contains(err.Error(), "space is too small") {
			t.Errorf("%d methods, error %v", len(s.Methods), err)
		}
		if values := int(valuesBetween(low, 1, false)); err != nil && 20*draws < values {
			t.Errorf("%d draws from %d values: %v", draws, values, err)
		}
		seen := make(map[string]bool)
		value := between("real", low, 1, false)
		for i := range 2000 {
			seen[value(float64(i)/2000)] = true
		}
		if len(seen) > int(valuesBetween(low, 1, false)) {
			t.Errorf("there are %d values from %v on, at most %v were expected", len(seen), low, valuesBetween(low, 1, false))
		}
	})
}

// TestGrids: a list of grids has the points of each, one after the other.
func TestGrids(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods:\n  - {algorithm: structrf, grid: "+
		"[{}, {trees: 200, min_samples: [5, 10]}, {preset: auto}]}"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range s.Methods {
		names = append(names, r.Name)
	}
	if want := []string{"structrf", "structrf trees=200 min_samples=5", "structrf trees=200 min_samples=10",
		"structrf auto"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// TestChooseByValidation: a share of the training rows is one of equal parts.
func TestChooseByValidation(t *testing.T) {
	for share, folds := range map[string]string{"0.1": "10", "1/9": "9", "0.5": "2", "0.05": "20", ".33": "3"} {
		s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [{algorithm: rf, search: {draws: "+
			"3, space: {trees: {int: [5, 50]}}}, choose: {validation: "+share+"}}]"))
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Methods[0]; len(s.Methods) != 1 || r.Name != "rf, chosen of 3" || r.Settings["weights"] != "validated" ||
			r.Settings["inner_folds"] != folds {
			t.Errorf("%s: %+v", share, s.Methods)
		}
	}
	for choose, want := range map[string]string{
		"{validation: 0.15}": "s.yaml:3:71: choose: validation: \"0.15\" is not 1/n of the training samples with " +
			"a whole n from 2 to 20, such",
		"{validation: 0}":             "is not 1/n of the training samples",
		"{validation: 1}":             "is not 1/n of the training samples",
		"{validation: 1/30}":          "is not 1/n of the training samples",
		"{validation: x}":             "is not 1/n of the training samples",
		"{validation: 1/0}":           "is not 1/n of the training samples",
		"{inner: 3, validation: 0.1}": "s.yaml:3:69: choose: the keys validation and inner exclude each other",
	} {
		_, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [{algorithm: rf, grid: {trees: [1, "+
			"2]}, choose: "+choose+"}]"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", choose, err, want)
		}
	}
}
