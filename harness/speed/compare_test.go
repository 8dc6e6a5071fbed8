package speed

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

func row(name string, least, median, greatest float64) Result {
	return Result{Name: name, Of: "a step", Seconds: Spread{Median: median, Min: least, Max: greatest}}
}

func saved(t *testing.T, v any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "old.json")
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCompare: ratios are earlier medians by later ones; what only one report has is
// named; spreads that overlap are no difference; machines and versions that differ are.
func TestCompare(t *testing.T) {
	zen := Machine{Processor: "Zen", Cores: 2, System: "linux/amd64", Features: []string{"AVX2"}, Kernels: "AVX2", Memory: 1}
	before := &Report{Kind: "ldlf", Machine: zen, Versions: map[string]string{"Go": "1.25", "Coppice": "1"}, Rows: []Result{
		row("a", 5, 6, 7), row("b", 1, 2, 3), row("gone", 1, 1, 1), row("slow", 1, 1, 1),
	}}
	other := zen
	other.Processor, other.Memory = "Xeon", 2
	now := &Report{Kind: "ldlf", Machine: other, Versions: map[string]string{"Go": "1.26", "Coppice": "1"}, Rows: []Result{
		row("a", 2, 3, 4), row("b", 2, 4, 5), row("new", 1, 1, 1), row("slow", 2, 2, 2),
	}}
	read, err := ReadReport(saved(t, before), "ldlf")
	if err != nil {
		t.Fatal(err)
	}
	c := Compare("old.json", read, now)
	want := []Was{{"a", "a step", 2, true}, {"b", "a step", 0.5, false}, {"slow", "a step", 0.5, true}}
	if len(c.Rows) != len(want) {
		t.Fatalf("%+v", c.Rows)
	}
	for i := range want {
		if c.Rows[i] != want[i] {
			t.Errorf("%+v, want %+v", c.Rows[i], want[i])
		}
	}
	if got := strings.Join(c.Missing, "; "); got != "new, a step (only in the new report); gone, a step (only in the old report)" {
		t.Errorf("missing: %s", got)
	}
	if c.Machines != "before Zen; now Xeon" || c.Versions != "before Go 1.25; now Go 1.26" {
		t.Errorf("machines: %q, versions: %q", c.Machines, c.Versions)
	}
	if same := Compare("x", now, now); same.Machines != "" || same.Versions != "" || same.Missing != nil {
		t.Errorf("a report against itself: %+v", same)
	}
}

// TestReadReport refuses what cannot be compared.
func TestReadReport(t *testing.T) {
	for says, v := range map[string]any{
		"of bench ldlf, want bench forest": Report{Kind: "ldlf"},
		"of an unknown kind":               map[string]int{"runs": 1},
		"is not an output of":              []int{1},
		"impossible times":                 Report{Kind: "forest", Rows: []Result{{Name: "x"}}},
	} {
		if _, err := ReadReport(saved(t, v), "forest"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v", says, err)
		}
	}
	if _, err := ReadReport(filepath.Join(t.TempDir(), "none"), "ldlf"); !os.IsNotExist(err) {
		t.Errorf("no file: error %v", err)
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

// FuzzReport: whatever a file has, it is refused or can be compared.
func FuzzReport(f *testing.F) {
	good, err := json.Marshal(Report{Kind: "ldlf", Rows: []Result{row("a", 1, 2, 3)}, Versions: map[string]string{"Go": "1"}})
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range []string{string(good), "", "{}", `{"kind":"ldlf","rows":[{}]}`, `{"kind":"ldlf","rows":[{"seconds":{"min":-1,"median":1e999}}]}`} {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r *Report
		var err error
		allocs.AtMost(t, 256*len(b)+64<<10, "a report", func() { r, err = parseReport(b, "ldlf") })
		if err != nil {
			return
		}
		for _, x := range Compare("old", r, r).Rows {
			if !(x.Ratio > 0) || x.Apart && x.Ratio == 1 {
				t.Errorf("%+v", x)
			}
		}
	})
}
