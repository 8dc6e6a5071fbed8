package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// group is a part of a form. Fields of Seldom are hidden until somebody asks for them.
type group struct {
	Title          string
	Fields, Seldom []*field
	Open           bool // true if Seldom has a value or a mistake
}

// field is an input of a form. It sets a key of a spec.
type field struct {
	*param.Param
	Value string
	Error string
	// Choices are the values of a field that has few; nil: it takes any text.
	Choices []string
	// Number is true if the value is a number, and Whole if it has no decimals.
	Number, Whole bool
	Hint          string // the default, if it is a short value
}

// formGroups are the keys of every spec as the form has them: as the groups of train --help, each with keys that are
// seldom given. The algorithm and the dataset are chosen before.
var formGroups = []struct {
	title        string
	keys, seldom []string
}{
	{"Job", []string{"name", "seed"}, []string{"enhance", "normalise", "binarise"}},
	{"Test samples and measures", []string{"test_fraction", "folds"}, []string{"train_fraction", "fold", "group_folds",
		"measures", "clip", "weighted_measures", "mask", "keep_predictions"}},
}

// shownSettings is how many hyperparameters are shown at once.
const shownSettings = 8

// audit is the part of the tasks that are computed twice. It belongs to a submission, not to its spec.
var audit = param.Param{Name: "audit", Kind: param.KindFloat, Doc: "fraction of the tasks that two workers compute, " +
	"so that their results can be compared", Default: "0", Min: 0, Max: 1}

// mistake is something wrong with what was typed. Field is empty if no field is at fault.
type mistake struct{ Field, Text string }

// groupsOf makes the form of an algorithm with values and mistakes.
func groupsOf(a algorithms.Algorithm, values url.Values, mistakes []mistake) (all []group) {
	common := make(map[string]*param.Param)
	for _, p := range spec.Common() {
		common[p.Name] = &p
	}
	preset := cmp.Or(values.Get("preset"), param.Auto)
	fields := func(params []*param.Param) (all []*field) {
		for _, p := range params {
			all = append(all, newField(p, preset, values, mistakes))
		}
		return all
	}
	for _, g := range formGroups {
		named := func(keys []string) (all []*param.Param) {
			for _, key := range keys {
				all = append(all, common[key])
			}
			return all
		}
		seldom := named(g.seldom)
		if len(all) > 0 {
			seldom = append(seldom, &audit)
		}
		all = append(all, group{Title: g.title, Fields: fields(named(g.keys)), Seldom: fields(seldom)})
	}
	var settings []*param.Param
	for _, p := range a.Params() {
		settings = append(settings, &p)
	}
	shown := min(len(settings), shownSettings)
	all = append(all, group{Title: "Settings of " + a.Name(), Fields: fields(settings[:shown]),
		Seldom: fields(settings[shown:])})
	for i := range all {
		all[i].Open = slices.ContainsFunc(all[i].Seldom, func(f *field) bool { return f.Value != "" || f.Error != "" })
	}
	return all
}

// newField makes the field of a key.
func newField(p *param.Param, preset string, values url.Values, mistakes []mistake) *field {
	f := &field{Param: p, Value: values.Get(p.Name), Number: p.Kind == param.KindInt || p.Kind == param.KindFloat,
		Whole: p.Kind == param.KindInt}
	switch p.Kind {
	case param.KindBool:
		f.Choices = []string{"true", "false"}
	case param.KindWord:
		f.Choices = p.Words
	}
	if text := p.Of(preset); len(text) <= 24 {
		if _, err := p.Parse(text); err == nil { // otherwise it describes the default
			f.Hint = text
		}
	}
	for _, m := range mistakes {
		if m.Field == p.Name {
			f.Error = m.Text
		}
	}
	return f
}

// specOf reads the spec of a form: only fields that are not empty count. It returns all mistakes that show without the
// dataset.
func specOf(values url.Values) (s protocol.Spec, mistakes []mistake) {
	keys := []string{"algorithm"}
	for _, p := range spec.Common() {
		if p.Name != "algorithm" {
			keys = append(keys, p.Name)
		}
	}
	set := func(key string) bool {
		text := strings.TrimSpace(values.Get(key))
		if text == "" {
			return true
		}
		err := spec.Set(&s, key, text)
		if err != nil {
			mistakes = append(mistakes, mistakeOf(err))
		}
		return err == nil
	}
	if !set("algorithm") {
		return s, mistakes
	}
	s.Algorithm = cmp.Or(s.Algorithm, spec.DefaultAlgorithm)
	for _, key := range keys[1:] {
		set(key)
	}
	if a, err := spec.Choice(s.Algorithm); err == nil {
		for _, p := range a.Params() {
			set(p.Name)
		}
	}
	s.Assigned, s.Overlap = values.Get("assigned"), values.Get("overlap") == "true"
	return s, mistakes
}

// mistakeOf returns an error about a key of a spec with the key.
func mistakeOf(err error) mistake {
	p, ok := errors.AsType[*param.Error](err)
	if !ok {
		return mistake{Text: err.Error()}
	}
	return mistake{Field: p.Name, Text: spelled(p.Reason.Parts())}
}

// refusal returns the mistake that the API found in a spec.
func refusal(e *Error) mistake {
	if e.Problem == nil || e.Problem.Form == nil || e.Problem.Form.Code != errtext.WrongSetting {
		return mistake{Text: e.Text}
	}
	form := e.Problem.Form
	text := strings.TrimPrefix(spelled(form.Text), form.Parameter+": ")
	return mistake{Field: form.Parameter, Text: text}
}

// spelled writes a text with places as a spec spells them: test_fraction in place of --test-fraction.
func spelled(parts []errtext.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Command != "":
			b.WriteString("coppice " + p.Command)
		case p.HasName && p.Option == "set": // a hyperparameter and its value
			b.WriteString(strings.Replace(p.Value, "=", ": ", 1))
		case p.HasName && p.HasVal:
			b.WriteString(strings.ReplaceAll(p.Option, "-", "_") + ": " + p.Value)
		case p.HasName:
			b.WriteString(strings.ReplaceAll(p.Option, "-", "_"))
		default:
			b.WriteString(p.Literal + p.Value)
		}
	}
	return b.String()
}

// valuesOf returns the values of a form with the spec of a job that was submitted.
func valuesOf(given json.RawMessage) (url.Values, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(given, &raw); err != nil {
		return nil, err
	}
	values := make(url.Values)
	for key, value := range raw {
		if key != "settings" {
			values.Set(key, textOf(value))
		}
	}
	var set map[string]string
	if len(raw["settings"]) > 0 {
		if err := json.Unmarshal(raw["settings"], &set); err != nil {
			return nil, err
		}
	}
	for key, value := range set {
		values.Set(key, value)
	}
	return values, nil
}

// textOf returns a JSON value as a spec has it: a text without quotes.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(value))
}

// specText writes a spec as the lines of a file.
func specText(s *protocol.Spec) string {
	given, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	values, err := valuesOf(given)
	if err != nil {
		return err.Error()
	}
	keys := []string{"algorithm", "dataset", "name", "seed"}
	for _, p := range spec.Common() {
		if !slices.Contains(keys, p.Name) {
			keys = append(keys, p.Name)
		}
	}
	if a, err := spec.Choice(s.Algorithm); err == nil {
		for _, p := range a.Params() {
			keys = append(keys, p.Name)
		}
	}
	var b strings.Builder
	for _, key := range keys {
		if text := values.Get(key); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, yamlText(text))
		}
	}
	return b.String()
}

// yamlText quotes a text that YAML would read as something else.
func yamlText(text string) string {
	if strings.ContainsAny(text, ":#,[]{}\"'&*!|>%@`\\") || strings.TrimSpace(text) != text {
		quoted, err := json.Marshal(text)
		if err == nil {
			return string(quoted)
		}
	}
	return text
}
