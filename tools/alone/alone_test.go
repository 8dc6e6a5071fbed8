package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Packages are found that start goroutines: in their code, in their tests, by what they import.
func TestAlone(t *testing.T) {
	dir := t.TempDir()
	const test = "import \"testing\"\n\nfunc Test(t *testing.T) {"
	for name, text := range map[string]string{
		"go.mod":                   "module m\n\ngo 1.26.0\n",
		"quiet/a.go":               "package quiet\n\nvar Go = 1 // go func() {}()\n",
		"quiet/a_test.go":          "package quiet\n\n" + test + "}\n",
		"untested/a.go":            "package untested\n",
		"code/a.go":                "package code\n\nfunc F() { go F() }\n",
		"code/a_test.go":           "package code\n\n" + test + "}\n",
		"tests/a_test.go":          "package tests\n\n" + test + " t.Parallel() }\n",
		"outside/a_test.go":        "package outside_test\n\n" + test + " go t.Log() }\n",
		"group/a_test.go":          "package group\n\nimport \"sync\"\n\n" + test + " f := new(sync.WaitGroup).Go; f(func() {}) }\n",
		"imports/a.go":             "package imports\n\nimport _ \"m/code\"\n",
		"imports/a_test.go":        "package imports\n\n" + test + "}\n",
		"testimports/a_test.go":    "package testimports\n\nimport _ \"m/imports\"\n" + test + "}\n",
		"elsewhere/a_test.go":      "package elsewhere\n\nimport _ \"net/http/httptest\"\n" + test + "}\n",
		"alike/a_test.go":          "package alike\n\nimport _ \"net/netip\"\nimport _ \"m/quiet\"\n" + test + "}\n",
		"testsof/a_test.go":        "package testsof\n\nimport _ \"m/halfway\"\n" + test + "}\n",
		"halfway/a.go":             "package halfway\n",
		"halfway/internal_test.go": "package halfway\n\n" + test + " go t.Log() }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := list(dir, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	got, err := alone(packages)
	if want := []string{"m/alike", "m/quiet", "m/testsof"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%s, error %v, want %s", strings.Join(got, " "), err, want)
	}
}
