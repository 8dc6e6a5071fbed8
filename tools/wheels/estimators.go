package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// lineWidth is the greatest number of characters in a line of Python.
const lineWidth = 120

// argument is a keyword of the constructors of estimators.
type argument struct {
	name    string
	hint    string // its type, for type checkers
	value   string // its default
	docType string // its type, for the docstring
	doc     string
}

// common are the arguments that all estimators have after their hyperparameters.
var common = []argument{
	{name: "random_state", hint: "int | np.random.Generator | np.random.RandomState | None", value: "None",
		docType: "int, Generator or RandomState of NumPy, optional",
		doc: "Seed of all random numbers: a whole number from 0. The same seed gives the same model, to the bit. None is " +
			"the seed 1. " +
			"A generator draws a new seed in each fit."},
	{name: "labels", hint: `Literal["distributions", "incomplete", "age", "class", "counts", "bounded"]`, value: `"distributions"`,
		docType: `{"distributions", "incomplete", "age", "class", "counts", "bounded"}`,
		doc:     `Kind of labels: "distributions"; "incomplete" (distributions in which missing degrees are NaN); "age" (a number for each sample, read as a Gaussian around it: see sigma and range); "class" (a class for each sample: the estimator is then a classifier, with predict_proba); "counts"; or "bounded" (targets that are real numbers: see bounds).`},
	{name: "sigma", hint: "float | None", value: "None", docType: "float, optional",
		doc: `Standard deviation of the Gaussian. labels="age" needs it.`},
	{name: "range", hint: "tuple[int, int] | None", value: "None", docType: "tuple of two int, optional",
		doc: "Least and greatest numeric label, such as (0, 69): one label for each whole number. With a range, " +
			"distributions and counts are ordinal."},
	{name: "bounds", hint: "tuple[float, float] | Sequence[tuple[float, float]] | None", value: "None",
		docType: "tuple of two float, or list of these, optional",
		doc: `Least and greatest target of labels="bounded", such as (0, 1): one pair for all labels, or a list with one ` +
			"pair for each label. None takes the extremes of the training samples."},
	{name: "missing", hint: `Literal["refuse", "drop", "mean", "median"] | float | None`, value: "None",
		docType: `{"refuse", "drop", "mean", "median"} or float, optional`,
		doc: `What to do about missing features: "drop" the samples, or replace missing values by a number, or by the "mean" or "median" of the training samples. ` +
			`None is "refuse", an error. predict, evaluate and score use the value, too.`},
	{name: "normalize", hint: "bool", value: "False", docType: "bool",
		doc: "Divide the labels of each sample by their sum."},
	{name: "n_jobs", hint: "int | None", value: "None", docType: "int, optional",
		doc: "Number of threads. None and -1 use all processors, -2 all but one. The model does not depend on it."},
	{name: "verbose", hint: `Literal["auto"] | bool`, value: `"auto"`, docType: `"auto" or bool`,
		doc: `True shows the progress of fit, False nothing. "auto" shows it in a terminal or a notebook.`},
}

// targetLabels is the default of labels for algorithms that only predict targets in bounds.
const targetLabels = `"bounded"`

// taken are names that the base class uses, which no hyperparameter may have.
var taken = []string{
	"evaluate", "explain", "fit", "fit_predict", "get_params", "load", "predict", "predict_class", "predict_number",
	"predict_proba", "report", "save", "score", "self", "set_params",
}

// keywords are the words of Python that name no argument.
var keywords = []string{
	"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
	"else", "except", "finally",
	"for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return",
	"try", "while", "with", "yield",
}

// estimators returns the Python module with a class for each algorithm.
func estimators(all []algorithms.Algorithm) string {
	var b strings.Builder
	b.WriteString(`"""Estimators: a class for each algorithm. This file is generated from the algorithms of the binary."""

from __future__ import annotations as _annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from coppice_ldl._base import Estimator

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ALGORITHMS",
`)
	for _, a := range all {
		fmt.Fprintf(&b, "    %q,\n", a.About().Class)
	}
	b.WriteString("]\n")
	for _, a := range all {
		writeClass(&b, a, all)
	}
	b.WriteString("\n\n# ALGORITHMS has the class of each algorithm by the name that the command line " +
		"uses.\nALGORITHMS: dict[str, type[Estimator]] = {\n")
	for _, a := range all {
		fmt.Fprintf(&b, "    %q: %s,\n", a.Name(), a.About().Class)
	}
	b.WriteString("}\n\n# Completion lists the classes alone.\nif TYPE_CHECKING:\n    del np\ndel Literal, Mapping, " +
		"Sequence, TYPE_CHECKING\n")
	return b.String()
}

// writeClass writes the class of an algorithm.
func writeClass(b *strings.Builder, a algorithms.Algorithm, all []algorithms.Algorithm) {
	var arguments []argument
	for _, p := range a.Params() {
		arg := argumentOf(&p)
		arg.doc = quoteWords(arg.doc, a.Params())
		arguments = append(arguments, arg)
	}
	arguments = append(arguments, common...)
	predicts := "distributions"
	switch a.Predicts() {
	case algorithms.Number:
		predicts = "number"
	case algorithms.Targets:
		predicts = "targets"
		at := slices.IndexFunc(arguments, func(arg argument) bool { return arg.name == "labels" })
		arguments[at].value = targetLabels
	}
	fmt.Fprintf(b, "\n\nclass %s(Estimator):\n", a.About().Class)
	writeDocstring(b, a, all, arguments)
	weighs := ""
	if algorithms.WeightsError(a) == nil {
		weighs = "    _weighs = True\n"
	}
	fmt.Fprintf(b, "\n    _algorithm = %q\n    _predicts = %q\n%s%s\n    def __init__(\n        self,\n        *,\n",
		a.Name(), predicts, weighs, forms(a.Params()))
	for _, arg := range arguments {
		b.WriteString(declaration(arg))
	}
	b.WriteString("    ) -> None:\n")
	for _, arg := range arguments {
		fmt.Fprintf(b, "        self.%s = %s\n", arg.name, arg.name)
	}
}

// declaration returns the lines that declare an argument. A long list of words has a line for each word.
func declaration(arg argument) string {
	line := fmt.Sprintf("        %s: %s = %s,\n", arg.name, arg.hint, arg.value)
	words, literal := strings.CutPrefix(arg.hint, "Literal[")
	list, rest, _ := strings.Cut(words, "]")
	if !literal || len(line) <= lineWidth {
		return line
	}
	var b strings.Builder
	fmt.Fprintf(&b, "        %s: Literal[\n", arg.name)
	for word := range strings.SplitSeq(list, ", ") {
		fmt.Fprintf(&b, "            %s,\n", word)
	}
	fmt.Fprintf(&b, "        ]%s = %s,\n", rest, arg.value)
	return b.String()
}

// argumentOf returns the argument of a hyperparameter. Its default is None: the preset decides. The argument of a
// hyperparameter with the name of a keyword ends with an underscore, which the base class removes: lambda_ is lambda.
func argumentOf(p *param.Param) argument {
	arg := argument{name: p.Name, value: "None", doc: sentence(quoteOwn(pythonText(p.Doc), p), p.Words...)}
	if slices.Contains(keywords, p.Name) {
		arg.name += "_"
	}
	switch p.Kind {
	case param.KindInt:
		arg.hint, arg.docType = "int", "int"
	case param.KindFloat:
		arg.hint, arg.docType = "float", "float"
	case param.KindBool:
		arg.hint, arg.docType = "bool", "bool"
	case param.KindWord:
		words := `"` + strings.Join(p.Words, `", "`) + `"`
		arg.hint, arg.docType = "Literal["+words+"]", "{"+words+"}"
	case param.KindText:
		var hints, types []string
		for _, one := range textTypes(p) {
			hints, types = append(hints, one.hint), append(types, one.docs)
		}
		arg.hint, arg.docType = strings.Join(hints, " | "), strings.Join(types, " or ")
	}
	arg.hint += " | None"
	arg.docType += ", optional"
	if p.Kind != param.KindBool && p.Kind != param.KindWord {
		arg.doc += " Values: " + pythonText(p.Wanted()) + "."
	}
	automatic, paper := quoteDefault(pythonText(p.Of("auto")), p), quoteDefault(pythonText(p.Of("paper")), p)
	if p.Kind == param.KindBool {
		spelled := strings.NewReplacer("true", "True", "false", "False")
		automatic, paper = spelled.Replace(automatic), spelled.Replace(paper)
	}
	arg.doc += " Default: " + automatic + "."
	if len(p.Presets) > 0 && automatic != paper {
		arg.doc += " Default with preset=\"paper\": " + paper + "."
	}
	return arg
}

// textType is a type of Python that a hyperparameter with a text may take.
type textType struct {
	form       string // its name in Estimator._forms; "" if the binary takes it as it is
	hint, docs string // for type checkers and for the docstring
}

// textTypes returns the types that a hyperparameter with a text takes. What the hyperparameter accepts decides them.
func textTypes(p *param.Param) []textType {
	accepts := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { _, err := p.Parse(text); return err == nil })
	}
	if p.ItemKey != "" {
		return []textType{{"members", "Sequence[Estimator | Mapping[str, object] | str] | str",
			"list of estimators, dicts or texts; or str"}}
	}
	anyText := accepts("no,no") // a list has no item twice
	words := !anyText && accepts("hidden1,output", "hidden1:0.5,output:2")
	text := anyText || words
	var types []textType
	if !text && accepts("3") {
		types = append(types, textType{"int", "int", "int"})
	}
	if !text && accepts("0.5") {
		types = append(types, textType{"float", "float", "float"})
	}
	if !text && accepts("8,8", "1x8x8") {
		types = append(types, textType{"list", "Sequence[int] | np.ndarray", "list of int"})
	}
	if words {
		types = append(types, textType{"list", "Sequence[str] | np.ndarray", "list of str"})
	}
	return append(types, textType{"", "str", "str"})
}

// forms returns the lines of a class that tell the base class what hyperparameters take: booleans, texts that may be
// numbers or lists, and images.
func forms(params []param.Param) string {
	var b strings.Builder
	for i := range params {
		p := &params[i]
		if p.Name == "features" && slices.Contains(p.Words, "conv") {
			b.WriteString("    _images = True\n")
		}
	}
	var lines []string
	for i := range params {
		var names []string
		switch params[i].Kind {
		case param.KindBool:
			names = []string{`"bool"`}
		case param.KindText:
			for _, one := range textTypes(&params[i]) {
				if one.form != "" {
					names = append(names, fmt.Sprintf("%q", one.form))
				}
			}
		}
		if names != nil {
			lines = append(lines, fmt.Sprintf("%q: [%s]", argumentOf(&params[i]).name, strings.Join(names, ", ")))
		}
	}
	if lines != nil {
		fmt.Fprintf(&b, "    _forms = {\n        %s,\n    }\n", strings.Join(lines, ",\n        "))
	}
	return b.String()
}

// writeDocstring writes the docstring of a class in the format of NumPy.
func writeDocstring(b *strings.Builder, a algorithms.Algorithm, all []algorithms.Algorithm, arguments []argument) {
	const indent = "    "
	about := a.About()
	fmt.Fprintf(b, "%s\"\"\"%s\n\n", indent, quoted(sentence(about.Summary)))
	python := func(text string) string { return wrapped(classNames(pythonText(text), all), indent) }
	b.WriteString(python(sentence(a.Doc())) + "\n" + python(about.When))
	section := func(title string) {
		fmt.Fprintf(b, "\n%s%s\n%s%s\n", indent, title, indent, strings.Repeat("-", len(title)))
	}
	section("Parameters")
	for _, arg := range arguments {
		b.WriteString(wrapped(arg.name+" : "+arg.docType, indent) + wrapped(arg.doc, indent+indent))
	}
	section("Attributes")
	for _, attribute := range [][2]string{
		{"n_features_in_ : int", "Number of features."},
		{"feature_names_in_ : ndarray of str", "Names of the features, if X of fit was a DataFrame with texts as column " +
			"names."},
		{"n_labels_ : int", "Number of labels."},
		{"label_names_ : ndarray of str", "Names of the labels."},
		{"classes_ : ndarray", "The classes as D of `fit` had them, in ascending order, if labels is \"class\"."},
		{"settings_ : dict", "Values of all hyperparameters, as the preset and the data decide."},
		{"learning_curve_ : dict of ndarray", "Loss after each recorded step."},
		{"result_ : dict", "The output of the command coppice train -o json."},
		{"model_ : bytes", "The model file, as the method save writes it."},
		{"model_digest_ : str", "SHA-256 of the model."},
	} {
		b.WriteString(wrapped(attribute[0], indent) + wrapped(attribute[1], indent+indent))
	}
	if about.Paper != "" {
		section("References")
		b.WriteString(wrapped(about.Paper, indent))
	}
	section("Examples")
	b.WriteString(example(a) + indent + "\"\"\"\n")
}

// example returns the lines of the docstring that train a model of the algorithm on random data.
func example(a algorithms.Algorithm) string {
	const indent = "    "
	class := a.About().Class
	labels, call, shape := "rng.dirichlet(np.ones(3), size=60)", class+"().fit(X, D)", "(60, 3)"
	if a.Predicts() == algorithms.Number {
		labels, call, shape = "rng.integers(0, 70, size=60)", class+`(labels="age", sigma=2.0, range=(0, 69)).fit(X, D)`,
			"(60,)"
	}
	if a.Predicts() == algorithms.Targets {
		labels, call = "rng.random((60, 3))", class+"(bounds=(0, 1)).fit(X, D)"
	}
	var b strings.Builder
	for _, line := range []string{
		"import numpy as np", "from coppice_ldl import " + class, "rng = np.random.default_rng(0)",
		"X, D = rng.random((60, 4)), " + labels,
		"model = " + call, "model.predict(X).shape",
	} {
		b.WriteString(indent + ">>> " + line + "\n")
	}
	return b.String() + indent + shape + "\n"
}

// sentence begins a text with a capital letter and ends it with a full stop. A text that begins with a value keeps its
// first letter.
func sentence(text string, values ...string) string {
	first, _, _ := strings.Cut(text, " ")
	first = strings.TrimSuffix(first, ":")
	if text != "" && text[0] >= 'a' && text[0] <= 'z' && !slices.Contains(values, first) {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// quoted returns a text for the inside of a docstring.
func quoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"""`, `\"\"\"`).Replace(text)
}

// wrapped breaks a text into lines of a docstring, each with the indent and a line end.
func wrapped(text, indent string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(quoted(text)) {
		n := len([]rune(word))
		switch {
		case width == 0:
			b.WriteString(indent)
			width = len(indent) + n
		case width+1+n > lineWidth:
			b.WriteString("\n" + indent)
			width = len(indent) + n
		default:
			b.WriteByte(' ')
			width += 1 + n
		}
		b.WriteString(word)
	}
	b.WriteByte('\n')
	return b.String()
}

// spellings has texts of hyperparameters in the form of the command line, each followed by the same text in the form of
// Python.
var spellings = []string{
	"whole numbers such as 128 or 256,128, or none", `whole numbers such as 128 or [256, 128], or "none"`,
	"CHANNELSxHEIGHTxWIDTH, row or none", `(channels, height, width), "row" or "none"`,
	"such as 1x8x8 for 64 features; row: 1x1xFEATURES", `such as (1, 8, 8) for 64 features; "row": (1, 1, features)`,
	"names of layers, such as hidden1 or convolution1,output, or none",
	`names of layers, such as "hidden1" or ["convolution1", "output"], or "none"`,
	"names of layers, such as hidden1 or convolution1,output, or all",
	`names of layers, such as "hidden1" or ["convolution1", "output"], or "all"`,
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
	"a file, the name or the digest of a model on the cluster, or none",
	`a file, the name or the digest of a model on the cluster, or "none"`,
	"A spec file may have a list, such as [{algorithm: structrf, trees: 100}, {algorithm: ldlf}]",
	`Example: [StructRF(trees=100), "ldlf"]`,
	"NAME,NAME,..., each optionally with settings: NAME:KEY=VALUE:KEY=VALUE",
	`estimators, or texts NAME:KEY=VALUE:KEY=VALUE with the name of an algorithm in ALGORITHMS`,
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

// quoteWords returns a text in which conditions on other hyperparameters are Python: "with features mlp" is with
// features="mlp".
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

// quoteDefault returns the text of a default in which the words that are values have quotes: standard if ..., else
// none.
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
		text = regexp.MustCompile(`(^|[ (])`+regexp.QuoteMeta(a.Name())+`($|[ ,;:.)])`).ReplaceAllString(text,
			"${1}"+a.About().Class+"${2}")
	}
	return text
}
