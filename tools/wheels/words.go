package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// spellings has texts of hyperparameters in the form of the command line, each followed by the same text in the form of Python.
var spellings = []string{
	"whole numbers such as 128 or 256,128, or none", `whole numbers such as 128 or [256, 128], or "none"`,
	"CHANNELSxHEIGHTxWIDTH, row or none", `(channels, height, width), "row" or "none"`,
	"such as 1x8x8 for 64 features; row: 1x1xFEATURES", `such as (1, 8, 8) for 64 features; "row": (1, 1, features)`,
	"names of layers, such as hidden1 or convolution1,output, or none", `names of layers, such as "hidden1" or ["convolution1", "output"], or "none"`,
	"names of layers, such as hidden1 or convolution1,output, or all", `names of layers, such as "hidden1" or ["convolution1", "output"], or "all"`,
	"such as convolution1,hidden1", `such as ["convolution1", "hidden1"]`,
	" all: every layer", ` "all": every layer`,
	"such as hidden1:0.1,output:2", `such as ["hidden1:0.1", "output:2"]`,
	"LAYER:FACTOR,LAYER:FACTOR,... or none", `texts LAYER:FACTOR, or "none"`,
	"all, sqrt, or a fraction", `"all", "sqrt", or a fraction`,
	"all, sqrt (the square root of their number)", `"all", "sqrt" (the square root of their number)`,
	"auto, or a number of samples", `"auto", or a number of samples`,
	" auto tries 4, 8, 16", ` "auto" tries 4, 8, 16`,
	"a range such as 4-16", `a range such as "4-16"`,
	"adaptive or adaptive-N", `"adaptive" or "adaptive-N"`,
	"or adaptive: a twentieth", `or "adaptive": a twentieth`,
	"(with adaptive-N at most N)", `(with "adaptive-N" at most N)`,
	"a file, the name or the digest of a model on the cluster, or none", `a file, the name or the digest of a model on the cluster, or "none"`,
	"A spec file may have a list, such as [{algorithm: structrf, trees: 100}, {algorithm: ldlf}]", `Example: [StructRF(trees=100), "ldlf"]`,
	"NAME,NAME,..., each optionally with settings: NAME:KEY=VALUE:KEY=VALUE", `estimators, or texts NAME:KEY=VALUE:KEY=VALUE with the name of an algorithm in ALGORITHMS`,
	"the dataset's --range", "the parameter range",
	"unless the spec says otherwise", "unless landmarks is given",
	"features=conv", `features="conv"`,
	" (docs/design/defaults.md)", "",
	" (--shape)", "",
}

// pythonText returns a text of an algorithm or a hyperparameter as Python says it.
func pythonText(text string) string { return strings.NewReplacer(spellings...).Replace(text) }

// withWord returns a pattern of "with NAME WORD" for the words of a hyperparameter.
func withWord(p *param.Param) *regexp.Regexp {
	one := "(" + oneOf(p.Words) + ")"
	return regexp.MustCompile(`\b([Ww]ith|or) (` + p.Name + `) ` + one + `(?: or ` + one + `)?\b`)
}

// quoteWords returns a text in which conditions on other hyperparameters are Python: "with features mlp" is with features="mlp".
func quoteWords(text string, all []param.Param) string {
	for i := range all {
		p := &all[i]
		if p.Kind != param.KindWord || p.Name == "inner" { // "inner folds" is no condition
			continue
		}
		pattern := withWord(p)
		text = pattern.ReplaceAllStringFunc(text, func(found string) string {
			part := pattern.FindStringSubmatch(found)
			quoted := part[1] + " " + part[2] + `="` + part[3] + `"`
			if part[4] != "" {
				quoted += ` or "` + part[4] + `"`
			}
			return quoted
		})
	}
	return text
}

// quoteDefault returns the text of a default in which the words that are values have quotes: standard if ..., else none.
func quoteDefault(text string, p *param.Param) string {
	values := p.Words
	if p.Kind == param.KindText {
		values = []string{"none", "all", "auto"}
		text = twoUnits.ReplaceAllString(text, "[$1, $2]")
		text = members.ReplaceAllString(text, `"$1"`)
	}
	if len(values) == 0 {
		return text
	}
	return regexp.MustCompile(`(^|else |: |, or )(`+oneOf(values)+`)($|[ ,;])`).ReplaceAllString(text, `$1"$2"$3`)
}

var (
	twoUnits = regexp.MustCompile(`\b(\d{1,2}),(\d{1,2})\b`) // the default of channels; thousands have three digits
	members  = regexp.MustCompile(`\[([a-z][^\]]*)\]`)
)

// quoteOwn returns the text of a hyperparameter in which values have quotes if the text says what they mean:
// sgd (with momentum) or adam; path starts at first_decay.
func quoteOwn(text string, p *param.Param) string {
	if p.Kind != param.KindWord {
		return text
	}
	words := oneOf(p.Words)
	text = regexp.MustCompile(`(^|; |: )(`+words+`)([ ,:])`).ReplaceAllString(text, `$1"$2"$3`)
	return regexp.MustCompile(`(, | or )(`+words+`)( \(|,|:|;| or |$)`).ReplaceAllString(text, `$1"$2"$3`)
}

// oneOf returns a pattern that matches one of the words.
func oneOf(words []string) string {
	quoted := slices.Clone(words)
	for i := range quoted {
		quoted[i] = regexp.QuoteMeta(quoted[i])
	}
	return strings.Join(quoted, "|")
}

// classNames returns a text in which each algorithm has the name of its class.
func classNames(text string, all []algorithms.Algorithm) string {
	for _, a := range all {
		text = regexp.MustCompile(`(^|[ (])`+regexp.QuoteMeta(a.Name())+`($|[ ,;:.)])`).ReplaceAllString(text, "${1}"+a.About().Class+"${2}")
	}
	return text
}
