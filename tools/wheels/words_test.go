package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
)

// TestForms: some text of an algorithm has each form of the command line, and no docstring has it.
func TestForms(t *testing.T) {
	var texts strings.Builder
	for _, a := range registry.All() {
		texts.WriteString(a.Doc() + "\n" + a.About().When + "\n")
		for _, p := range a.Params() {
			texts.WriteString(p.Doc + "\n" + p.Wanted() + "\n" + p.Of("auto") + "\n" + p.Of("paper") + "\n")
		}
	}
	module := strings.Join(strings.Fields(estimators(registry.All())), " ")
	for i := 0; i < len(spellings); i += 2 {
		if !strings.Contains(texts.String(), spellings[i]) {
			t.Errorf("no algorithm says %q; correct it in words.go", spellings[i])
		}
		if strings.Contains(module, strings.TrimSpace(spellings[i])) {
			t.Errorf("the module says %q", spellings[i])
		}
	}
	for _, pattern := range []string{`--[a-z]`, `docs/`, `\b[Aa] spec\b`, `the spec\b`, `\d,\d+,? or`, `, auto with`} {
		if found := regexp.MustCompile(`.{40}(` + pattern + `).{20}`).FindString(module); found != "" {
			t.Errorf("the module has words of the command line: %q", found)
		}
	}
}

// TestQuotes: values are quoted where they are values, and not where they are words.
func TestQuotes(t *testing.T) {
	all := []param.Param{{Name: "features", Kind: param.KindWord, Words: []string{"linear", "mlp", "conv"}},
		{Name: "inner", Kind: param.KindWord, Words: []string{"rows", "folds"}}}
	for text, want := range map[string]string{
		"only with features mlp or conv":           `only with features="mlp" or "conv"`,
		"With features conv: 0":                    `With features="conv": 0`,
		"0.1, with features mlp and 20,000 rows":   `0.1, with features="mlp" and 20,000 rows`,
		"with features that are 0":                 "with features that are 0",
		"with inner folds":                         "with inner folds",
		"fewer than 20,000 rows or features conv,": `fewer than 20,000 rows or features="conv",`,
	} {
		if got := quoteWords(text, all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	word := &param.Param{Kind: param.KindWord, Words: []string{"number", "one-hot", "none"}}
	for text, want := range map[string]string{
		"number if the labels are numeric, else one-hot": `"number" if the labels are numeric, else "one-hot"`,
		"one-hot; with a network: none":                  `"one-hot"; with a network: "none"`,
		"numbers":                                        "numbers",
	} {
		if got := quoteDefault(text, word); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := quoteDefault("128 with a network, else none",
		&param.Param{Kind: param.KindText}); got != `128 with a network, else "none"` {
		t.Error(got)
	}
	if got := quoteDefault("none", &param.Param{Kind: param.KindInt}); got != "none" {
		t.Error(got)
	}
}

// TestClassNames: docstrings have names of classes, and papers keep their own names.
func TestClassNames(t *testing.T) {
	for text, want := range map[string]string{
		"sa-bfgs is as accurate.":      "SABFGS is as accurate.",
		"Compare it with ldlf and rf.": "Compare it with LDLForest and RandomForest.",
		"The AA-kNN of Geng 2016":      "The AA-kNN of Geng 2016",
		"a member of ensemble, for":    "a member of Ensemble, for",
	} {
		if got := classNames(text, registry.All()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
