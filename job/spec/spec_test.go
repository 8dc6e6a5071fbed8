package spec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/protocol"
)

func testManifest(t *testing.T, rows int) *dataset.Manifest {
	t.Helper()
	m, _ := datatest.Artificial(t, rows)
	return m
}

func TestParse(t *testing.T) {
	f, err := Parse("job.yaml", []byte(`
# a job
name: first
dataset: "yeast"
seed: 18446744073709551615   # the greatest
test_fraction: 0.1
depth: 5
learning_rate: 1e-2
bias: false
optimizer: adam
`), "")
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(math.MaxUint64)
	want := protocol.Spec{
		Name: "first", Dataset: "yeast", Seed: &seed, TestFraction: 0.1,
		Set: map[string]string{"depth": "5", "learning_rate": "1e-2", "bias": "false", "optimizer": "adam"},
	}
	if diff := cmp.Diff(want, f.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestParseEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n"} {
		f, err := Parse("job.yaml", []byte(text), "")
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if diff := cmp.Diff(protocol.Spec{}, f.Spec); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// Each of these is refused on one line that begins with the place and says what
// would be right.
func TestParseErrors(t *testing.T) {
	tests := []struct{ name, text, place, says string }{
		{"unknown key", "trees: 5\nlerning_rate: 2\n", "2:1", `did you mean "learning_rate"`},
		{"unknown key lists all", "zzzzzzzz: 2\n", "1:1", "learning_rate, learning_rate_step"},
		{"out of range", "depth: 40\n", "1:8", "a whole number from 2 to 20"},
		{"not a number", "trees: five\n", "1:8", "a whole number from 1 to 1000"},
		{"a fraction", "trees: 2.5\n", "1:8", "a whole number"},
		{"an underscore", "steps: 1_000\n", "1:8", "a whole number"},
		{"not a word", "\n\noptimizer: sdg\n", "3:12", "sgd or adam"},
		{"not a boolean", "bias: yes\n", "1:7", "true or false"},
		{"infinite", "learning_rate: .inf\n", "1:16", "a number from"},
		{"not a number at all", "learning_rate: .nan\n", "1:16", "a number from"},
		{"a list", "trees: [5]\n", "1:1", "found a list, want a number"},
		{"a mapping", "trees: {a: 1}\n", "1:1", "found a mapping, want a number"},
		{"a nested block", "set:\n  trees: 5\n", "1:1", "found a mapping, want a number"},
		{"nothing", "seed:\ntrees: 5\n", "1:1", "found nothing, want a number"},
		{"an alias", "trees: &a 5\ndepth: *a\n", "1:1", "anchor"},
		{"a tag", "trees: !!int 5\n", "1:1", "a tag"},
		{"given twice", "trees: 5\ndepth: 4\ntrees: 6\n", "3:1", "already defined"},
		{"two documents", "trees: 5\n---\ntrees: 6\n", "3:", "a spec is a single document"},
		{"a list of keys", "- trees\n- depth\n", "1:1", "key: value"},
		{"a word", "hello\n", "1:1", "key: value"},
		{"a number as a key", "5: 5\n", "1:1", "a plain word"},
		{"bad YAML", "trees: 5\n  depth: 4\n", "1:", ""},
		{"a name with a space", "name: my job\n", "1:7", "letters, digits"},
		{"a name of digits", "name: \"17\"\n", "1:7", "the number of a job"},
		{"a negative seed", "seed: -1\n", "1:7", "18446744073709551615"},
		{"a fraction of all", "test_fraction: 1\n", "1:16", "from 0 to below 1"},
		{"an unknown algorithm", "trees: 5\nalgorithm: ldlg\n", "2:12", "ldlf"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("job.yaml", []byte(test.text), "")
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			text := e.Error()
			if !strings.HasPrefix(text, "job.yaml:"+test.place) || !strings.Contains(text, test.says) ||
				strings.Contains(text, "\n") {
				t.Errorf("got %q, want job.yaml:%s and %q, on one line", text, test.place, test.says)
			}
		})
	}
}

func TestParseTooLong(t *testing.T) {
	_, err := Parse("job.yaml", make([]byte, MaxBytes+1), "")
	if err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("got %v", err)
	}
}

// A value that only the dataset shows to be wrong is still found in the file.
func TestLocate(t *testing.T) {
	f, err := Parse("job.yaml", []byte("trees: 3\noutputs: 10\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Resolve(f.Spec, testManifest(t, 100))
	if err = f.Locate(err); err == nil || !strings.HasPrefix(err.Error(),
		"job.yaml:2:10: outputs: got 10 outputs, but a tree of depth 7 has 63 split nodes") {
		t.Errorf("got %v", err)
	}
	other := errors.New("other")
	if got := f.Locate(other); got != other {
		t.Errorf("Locate changed %v to %v", other, got)
	}
}

func TestResolve(t *testing.T) {
	m := testManifest(t, 100)
	seed := uint64(9)
	tests := []struct {
		name string
		spec protocol.Spec
		want dataset.Split
		jobs int
	}{
		{"defaults", protocol.Spec{}, dataset.Split{Seed: 1, ValidationFraction: 0.2, ValidationMin: 20}, 0},
		{"seed and fraction", protocol.Spec{Seed: &seed, TestFraction: 0.25}, dataset.Split{Seed: 9, TestFraction: 0.25,
			ValidationFraction: 0.2, ValidationMin: 20}, 0},
		{"folds", protocol.Spec{Folds: 10}, dataset.Split{Seed: 1, Folds: 10, ValidationFraction: 0.2, ValidationMin: 20},
			10},
		{"listed folds", protocol.Spec{Folds: 3, Assigned: "ab"}, dataset.Split{Seed: 1, Folds: 3, Assigned: "ab",
			ValidationFraction: 0.2, ValidationMin: 20}, 3},
		{"paper", protocol.Spec{Set: map[string]string{"preset": "paper"}}, dataset.Split{Seed: 1}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j, err := Resolve(test.spec, m)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, j.Split); diff != "" {
				t.Error(diff)
			}
			if j.Algorithm != DefaultAlgorithm || j.Numerics != round.Numerics || j.Dataset != m.Digest() ||
				j.Seed != j.Split.Seed || j.Folds != test.jobs {
				t.Errorf("got %+v", j)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	m := testManifest(t, 100)
	tests := []struct {
		name, key string
		spec      protocol.Spec
	}{
		{"fraction of all", "test_fraction", protocol.Spec{TestFraction: 1}},
		{"negative fraction", "test_fraction", protocol.Spec{TestFraction: -0.1}},
		{"not a number", "test_fraction", protocol.Spec{TestFraction: math.NaN()}},
		{"one fold", "folds", protocol.Spec{Folds: 1}},
		{"unknown measures", "measures", protocol.Spec{Measures: "odd"}},
		{"unknown clip", "clip", protocol.Spec{Clip: "none"}},
		{"too many predictions", "keep_predictions",
			protocol.Spec{Folds: 2, KeepPredictions: pointer[int64](MaxPredictions + 1)}},
		{"fewer than no predictions", "keep_predictions", protocol.Spec{Folds: 2, KeepPredictions: pointer[int64](-1)}},
		{"more folds than rows", "folds", protocol.Spec{Folds: 101}},
		{"negative folds", "folds", protocol.Spec{Folds: -2}},
		{"both", "test_fraction", protocol.Spec{Folds: 5, TestFraction: 0.1}},
		{"listed folds without number", "folds", protocol.Spec{Assigned: "ab"}},
		{"unknown setting", "deph", protocol.Spec{Set: map[string]string{"deph": "3"}}},
		{"wrong setting", "depth", protocol.Spec{Set: map[string]string{"depth": "x"}}},
		{"unknown algorithm", "algorithm", protocol.Spec{Algorithm: "x"}},
		{"normalisation without --enhance", "normalise", protocol.Spec{Normalise: "sum"}},
		{"threshold without --enhance", "binarise", protocol.Spec{Binarise: pointer(0.5)}},
		{"enhancement and mask", "mask", protocol.Spec{Algorithm: "sa-bfgs", Enhance: "lp", Binarise: pointer(0.5),
			Mask: "0.5"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Resolve(test.spec, m)
			var p *param.Error
			if !errors.As(err, &p) || p.Name != test.key {
				t.Errorf("got %v, want an error about %s", err, test.key)
			}
			if _, flag, ok := strings.Cut(test.name, "without "); ok && err != nil && !strings.Contains(err.Error(), flag) {
				t.Errorf("%v does not name %s", err, flag)
			}
		})
	}
}

// TestUnknownSetting checks that the error about an unknown key begins with the settings of the algorithm.
func TestUnknownSetting(t *testing.T) {
	err := Set(&protocol.Spec{Algorithm: "quadratic"}, "sead", "5")
	const want = `quadratic has no such setting (did you mean "seed"?); its settings are preset, `
	if text := fmt.Sprint(err); !strings.Contains(text, want) ||
		!strings.Contains(text, "; the other keys of a job are alg") {
		t.Errorf("%v, want %s", err, want)
	}
}

// Each setting's default can be given if it is a value, and no setting has the name of a common key.
func TestKeys(t *testing.T) {
	for _, a := range registry.All() {
		seen := make(map[string]bool)
		for _, name := range namesOf(slices.Concat(Common(), a.Params())) {
			if seen[name] {
				t.Errorf("%s: two keys are named %s", a.Name(), name)
			}
			seen[name] = true
		}
		for _, p := range a.Params() {
			if strings.ContainsAny(p.Default, ": ") {
				continue
			}
			if err := Set(&protocol.Spec{Algorithm: a.Name()}, p.Name, p.Default); err != nil {
				t.Errorf("%s: the default of %s: %v", a.Name(), p.Name, err)
			}
		}
	}
}

// No text makes the parser panic, and what it takes can be set again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "trees: 5\n", "a: [b, {c: d}]\n", "x: &a\n", "depth: 4\n---\n", "\"seed\": 'x'\n",
		"? a\n: b\n", "{trees: 3, depth: 4}", "%YAML 1.2\n---\ntrees: 1", "a: |\n  b\n",
		"algorithm: sa-iis\npreset: paper\nnewton_steps: 3\n",
		"algorithm: dldl\nfeatures: conv\nshape: 1x8x8\nchannels: 16,32\nhidden: 128\nrates: output:2\n",
		"algorithm: ensemble\nmembers:\n  - algorithm: structrf\n    trees: 7\n  - ldlf\n",
		"algorithm: ensemble\nmembers: [rf, {algorithm: ldlf}]\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var file *File
		var err error
		allocs.AtMost(t, 4<<10*len(b)+16<<20, "a spec", func() { file, err = Parse("f", b, "") })
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T %v is no *Error", err, err)
			}
			return
		}
		again := protocol.Spec{Algorithm: file.Algorithm} // whose settings the others are
		for name, value := range file.Set {
			if err := Set(&again, name, value); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func pointer[T any](v T) *T { return &v }

// A job keeps predictions where rows are held out, and as many as its spec says.
func TestKeepPredictions(t *testing.T) {
	m, _ := datatest.Artificial(t, 100)
	for _, c := range []struct {
		yaml string
		want int64
	}{
		{"steps: 1\n", 0}, {"test_fraction: 0.1\n", DefaultPredictions}, {"folds: 2\n", DefaultPredictions},
		{"folds: 2\nkeep_predictions: 5000\n", 5000}, {"folds: 2\nkeep_predictions: 0\n", 0}, {"keep_predictions: 7\n", 0},
	} {
		f, err := Parse("s.yaml", []byte(c.yaml), "")
		if err != nil {
			t.Fatal(err)
		}
		if j, err := Resolve(f.Spec, m); err != nil || j.Predictions != c.want {
			t.Errorf("%q: %+v, %v, want %d", c.yaml, j, err, c.want)
		}
	}
}
