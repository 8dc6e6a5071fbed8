package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
)

// classes returns the text of each class of a module by its name.
func classes(module string) map[string]string {
	found := make(map[string]string)
	for _, part := range strings.Split(module, "\n\n\nclass ")[1:] {
		name, _, _ := strings.Cut(part, "(")
		found[name] = part + "\n"
	}
	return found
}

// TestEstimators: each algorithm has a class with all its hyperparameters, which are declared, assigned and described.
func TestEstimators(t *testing.T) {
	all := registry.All()
	module := estimators(all)
	found := classes(module)
	if len(found) != len(all) {
		t.Errorf("%d classes for %d algorithms", len(found), len(all))
	}
	for _, a := range all {
		class, ok := found[a.About().Class]
		if !ok {
			t.Errorf("%s has no class %s", a.Name(), a.About().Class)
			continue
		}
		want := []string{fmt.Sprintf("_algorithm = %q", a.Name()), classNames(pythonText(a.About().When), all)[:20],
			"Parameters\n    ----------\n"}
		for _, p := range a.Params() {
			name := argumentOf(&p).name
			want = append(want, "        self."+name+" = "+name+"\n", "    "+name+" : ")
			if !regexp.MustCompile(`(?s)\n        ` + name + `: [^:]*\| None = None,\n`).MatchString(class) {
				t.Errorf("%s does not declare %s with the default None", a.Name(), p.Name)
			}
		}
		for _, arg := range common {
			if arg.name == "labels" && a.Predicts() == algorithms.Targets {
				arg.value = targetLabels
			}
			want = append(want, fmt.Sprintf("        %s: %s = %s,\n", arg.name, arg.hint, arg.value), "        self."+arg.name+
				" = "+arg.name+"\n")
		}
		for _, text := range want {
			if !strings.Contains(class, text) {
				t.Errorf("%s: the class lacks %q", a.Name(), text)
			}
		}
		number := strings.Contains(class, `_predicts = "number"`)
		if number != (a.Predicts() == algorithms.Number) {
			t.Errorf("%s predicts %v, but for Python a number: %t", a.Name(), a.Predicts(), number)
		}
		if !strings.Contains(module, fmt.Sprintf("\n    %q: %s,\n", a.Name(), a.About().Class)) {
			t.Errorf("ALGORITHMS lacks %s", a.Name())
		}
	}
	for i, line := range strings.Split(module, "\n") {
		if n := len([]rune(line)); n > lineWidth {
			t.Errorf("line %d has %d characters, at most %d are allowed: %s", i+1, n, lineWidth, line)
		}
	}
}

// TestHyperparameterNames: no hyperparameter has the name of a common argument or of a method.
func TestHyperparameterNames(t *testing.T) {
	forbidden := slices.Clone(taken)
	for _, arg := range common {
		forbidden = append(forbidden, arg.name)
	}
	for _, a := range registry.All() {
		for _, p := range a.Params() {
			if slices.Contains(forbidden, p.Name) || strings.HasPrefix(p.Name, "_") || strings.HasSuffix(p.Name, "_") {
				t.Errorf("%s: the hyperparameter %s has a name that estimators use otherwise; rename it", a.Name(), p.Name)
			}
		}
	}
}

// TestArgumentOf: the type of an argument follows from the kind of the hyperparameter.
func TestArgumentOf(t *testing.T) {
	auto := []param.PresetDefault{{Preset: "auto", Text: "5"}, {Preset: "paper", Text: "9"}}
	for _, c := range []struct {
		p               param.Param
		hint, type_, in string
	}{
		{param.Param{Kind: param.KindInt, Min: 1, Max: 10, Doc: "trees", Presets: auto}, "int | None", "int, optional",
			`Trees. Values: a whole number from 1 to 10. Default: 5. Default with preset="paper": 9.`},
		{param.Param{Kind: param.KindFloat, Min: 0, Max: 1, Doc: "rate", Default: "0.5"}, "float | None", "float, optional",
			"Rate. Values: a number from 0 to 1. Default: 0.5."},
		{param.Param{Kind: param.KindBool, Doc: "bias", Default: "true"}, "bool | None", "bool, optional",
			"Bias. Default: True."},
		{param.Param{Kind: param.KindWord, Words: []string{"a", "b"}, Doc: "kind", Default: "a"}, `Literal["a", "b"] | None`,
			`{"a", "b"}, optional`, `Kind. Default: "a".`},
		{param.Param{Kind: param.KindWord, Words: []string{"a", "b"}, Doc: "a (one) or b", Default: "a"},
			`Literal["a", "b"] | None`, `{"a", "b"}, optional`, `"a" (one) or "b". Default: "a".`},
		{param.Param{Kind: param.KindWord, Words: []string{"a", "b"}, Doc: "a: one", Default: "a if x, else b"},
			`Literal["a", "b"] | None`, `{"a", "b"}, optional`, `"a": one. Default: "a" if x, else "b".`},
		{param.Param{Kind: param.KindText, Form: "any", Doc: "file", Default: "none"}, "str | None", "str, optional",
			`File. Values: any. Default: "none".`},
	} {
		if got := argumentOf(&c.p); got.hint != c.hint || got.docType != c.type_ || got.doc != c.in || got.value != "None" {
			t.Errorf("got %+v, want %+v", got, c)
		}
	}
	if got := argumentOf(&param.Param{Name: "lambda"}).name; got != "lambda_" {
		t.Errorf("the argument of lambda is %s", got)
	}
}

// TestTextTypes: what a hyperparameter with a text accepts decides the types of its argument.
func TestTextTypes(t *testing.T) {
	found := make(map[string]string)
	for _, a := range registry.All() {
		for _, p := range a.Params() {
			if p.Kind == param.KindText {
				arg := argumentOf(&p)
				found[a.Name()+" "+p.Name] = strings.TrimSuffix(arg.hint, " | None")
			}
		}
	}
	for name, want := range map[string]string{
		"ldlf hidden": "int | Sequence[int] | np.ndarray | str", "ldlf channels": "int | Sequence[int] | np.ndarray | str",
		"ldlf shape":  "Sequence[int] | np.ndarray | str",
		"ldlf freeze": "Sequence[str] | np.ndarray | str", "ldlf rates": "Sequence[str] | np.ndarray | str",
		"ldlf init_layers": "Sequence[str] | np.ndarray | str", "ldlf init_from": "str",
		"structrf features": "float | str", "aa-knn k": "int | str",
		"ensemble members": "Sequence[Estimator | Mapping[str, object] | str] | str",
	} {
		if found[name] != want {
			t.Errorf("%s: %s, want %s", name, found[name], want)
		}
	}
}

// TestDocstringText: a text of an algorithm cannot end the docstring or be an escape sequence.
func TestDocstringText(t *testing.T) {
	if got, want := wrapped(`a """ b \n`, "  "), "  a \\\"\\\"\\\" b \\\\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := wrapped(strings.Repeat("word ", 60), "    "); strings.Count(got, "\n") != 3 ||
		strings.Count(got, "word") != 60 {
		t.Errorf("300 characters in lines:\n%s", got)
	}
	long := argument{name: "kind", hint: `Literal["` + strings.Repeat("x", 80) + `", "second"] | None`, value: "None"}
	if got := declaration(long); strings.Count(got, "\n") != 4 ||
		!strings.HasSuffix(got, "            \"second\",\n        ] | None = None,\n") {
		t.Errorf("a long list of words:\n%s", got)
	}
}

// python returns the path of Python 3, or skips the test.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	return path
}

// TestEstimatorsInPython: Python compiles the module and finds the classes, their algorithms and their parameters. The
// base class here has nothing.
func TestEstimatorsInPython(t *testing.T) {
	py, dir := python(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "coppice_ldl"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"coppice_ldl/__init__.py": "", "coppice_ldl/_base.py": "class Estimator:\n    pass\n",
		"coppice_ldl/estimators.py": estimators(registry.All()),
		"check.py": `
import inspect
from coppice_ldl import estimators
for name, cls in estimators.ALGORITHMS.items():
    assert cls._algorithm == name and cls.__name__ in estimators.__all__ and cls.__doc__
    parameters = list(inspect.signature(cls).parameters)
    assert all(getattr(cls(**{p: p}), p) == p for p in parameters), name
    print(name, cls.__name__, *parameters)
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), py, "-W", "error", "check.py")
	c.Dir = dir
	text, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var want strings.Builder
	for _, a := range registry.All() {
		fmt.Fprintf(&want, "%s %s", a.Name(), a.About().Class)
		for _, p := range a.Params() {
			want.WriteString(" " + argumentOf(&p).name)
		}
		for _, arg := range common {
			want.WriteString(" " + arg.name)
		}
		want.WriteByte('\n')
	}
	if string(text) != want.String() {
		t.Errorf("Python finds:\n%s\nwant:\n%s", text, want.String())
	}
}
