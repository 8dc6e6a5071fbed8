package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// table is an algorithm's settings with their defaults for one dataset.
type table struct {
	a        algorithms.Algorithm
	manifest *dataset.Manifest
	params   []param.Param
	defaults param.Values
}

// variant is a set of settings with a name.
type variant struct {
	name   string
	values param.Values
}

// newTable reads the defaults off the resolved settings, whose JSON form has every setting
// of the table.
func newTable(a algorithms.Algorithm, m *dataset.Manifest) (*table, error) {
	r, err := a.Resolve(nil, m)
	if err != nil {
		return nil, fmt.Errorf("the defaults: %w", err)
	}
	t := &table{a: a, manifest: m, params: a.Params()}
	t.defaults, err = valuesOf(t.params, r.Params)
	return t, err
}

// valuesOf reads resolved settings.
func valuesOf(params []param.Param, raw json.RawMessage) (param.Values, error) {
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &texts); err != nil {
		return nil, fmt.Errorf("the resolved settings: %w", err)
	}
	v := make(param.Values)
	for _, p := range params {
		if p.NotWritten {
			continue
		}
		text, ok := texts[p.Name]
		switch left := !ok && p.DefaultLeftOut; {
		case left && p.Kind == param.KindInt:
			text, ok = json.RawMessage(p.Default), true
		case left && slices.Contains(p.Words, p.Default): // help may describe a default that is no word
			text, ok = json.RawMessage(strconv.Quote(p.Default)), true
		}
		if !ok && (p.DefaultLeftOut || p.LeftOut != "" && v["preset"] == p.LeftOut) {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("the resolved settings lack %s", p.Name)
		}
		value, err := valueOf(p.Kind, text)
		if err != nil {
			return nil, fmt.Errorf("the resolved %s: %w", p.Name, err)
		}
		v[p.Name] = value
		delete(texts, p.Name)
	}
	for name := range texts {
		return nil, fmt.Errorf("the resolved settings have %s, which is not in the table", name)
	}
	return v, nil
}

// valueOf reads a value as param.Values holds it.
func valueOf(k param.Kind, text json.RawMessage) (value any, err error) {
	switch k {
	case param.KindInt:
		return read[int64](text)
	case param.KindFloat:
		return read[float64](text)
	case param.KindBool:
		return read[bool](text)
	}
	return read[string](text)
}

func read[T any](text json.RawMessage) (any, error) {
	var v T
	err := json.Unmarshal(text, &v)
	return v, err
}

// least has every whole number at its least.
func (t *table) least() param.Values {
	return t.whole(func(lo, _ float64) float64 { return lo })
}

// middle has every whole number between its least and its default, so that the job is short
// and not trivial.
func (t *table) middle() param.Values {
	return t.whole(func(lo, def float64) float64 { return lo + math.Floor(math.Sqrt(max(0, def-lo))) })
}

// whole sets the whole numbers. One that does not go with the others keeps its default.
func (t *table) whole(f func(lo, def float64) float64) param.Values {
	v := make(param.Values)
	for _, p := range t.params {
		if p.Kind == param.KindInt {
			v[p.Name] = int64(f(p.Min, float64(t.defaults[p.Name].(int64))))
		}
		if p.ItemKey != "" {
			v[p.Name] = t.items(t.defaults[p.Name].(string), f)
		}
	}
	for {
		_, err := t.a.Resolve(v, t.manifest)
		var wrong *param.Error
		if !errors.As(err, &wrong) {
			return v
		}
		if _, ok := v[wrong.Name]; !ok {
			return v // newJob reports it
		}
		delete(v, wrong.Name)
	}
}

// items sets the whole numbers of each algorithm of a list.
func (t *table) items(list string, f func(lo, def float64) float64) string {
	items, err := param.ParseItems(list)
	if err != nil {
		return list // newJob reports it
	}
	for i := range items {
		a, err := kin.Find(items[i].Name)
		if err != nil {
			return list
		}
		own, err := newTable(a, t.manifest)
		if err != nil {
			return list
		}
		items[i].Set = nil
		values := own.whole(f)
		for _, p := range own.params {
			if value, ok := values[p.Name]; ok {
				items[i].Set = append(items[i].Set, param.Pair{Key: p.Name, Value: fmt.Sprint(value)})
			}
		}
	}
	return param.FormatItems(items)
}

// with returns the middle with one more setting.
func (t *table) with(name string, value any) param.Values {
	v := t.middle()
	v[name] = value
	return v
}

// words lists each value of each word and each switch, where the settings can be resolved.
func (t *table) words() (list []variant) {
	for _, p := range t.params {
		values := []any{true, false}
		if p.Kind == param.KindWord {
			values = nil
			for _, w := range p.Words {
				values = append(values, w)
			}
		}
		for _, value := range values {
			if p.Kind != param.KindWord && p.Kind != param.KindBool || value == t.defaults[p.Name] {
				continue
			}
			if v := t.with(p.Name, value); t.resolves(v) {
				list = append(list, variant{fmt.Sprintf("%s %v", p.Name, value), v})
			}
		}
	}
	return list
}

// ends lists each number at its ends.
func (t *table) ends() (list []variant) {
	for _, p := range t.params {
		for _, end := range []float64{p.Min, p.Max} {
			switch p.Kind {
			case param.KindInt:
				list = append(list, variant{fmt.Sprintf("%s %.0f", p.Name, end), t.with(p.Name, int64(end))})
			case param.KindFloat:
				list = append(list, variant{fmt.Sprintf("%s %v", p.Name, end), t.with(p.Name, end)})
			}
		}
	}
	return list
}

// resolves reports whether a job of the suite, which has no folds, can have the settings.
func (t *table) resolves(v param.Values) bool {
	r, err := t.a.Resolve(v, t.manifest)
	if d, ok := t.a.(algorithms.Divider); ok && err == nil {
		_, err = d.Divided(r.Params, new(dataset.Split), t.manifest)
	}
	return err == nil
}

// checkSettings checks the table itself, and that Resolve refuses what it does not have:
// numbers beyond the ends, unknown words, values of another type, unknown names. An error
// names the setting. Resolved settings, given again, are resolved to the same bytes.
func checkSettings(a algorithms.Algorithm, m *dataset.Manifest) error {
	t, err := newTable(a, m)
	if err != nil {
		return err
	}
	if a.Name() == "" || a.Doc() == "" {
		return fmt.Errorf("the algorithm lacks its name or its line of help")
	}
	for i, p := range t.params {
		if p.Name == "" || p.Doc == "" || p.Default == "" {
			return fmt.Errorf("setting %d (%s) lacks its name, its words of help or its default", i, p.Name)
		}
		if slices.ContainsFunc(t.params[:i], func(q param.Param) bool { return q.Name == p.Name }) {
			return fmt.Errorf("%s is in the table twice", p.Name)
		}
		for _, bad := range badValues(&p) {
			if err := t.refuses(p.Name, bad); err != nil {
				return err
			}
		}
	}
	if err := t.refuses("no such setting", int64(1)); err != nil {
		return err
	}
	for _, v := range append(t.words(), variant{"the defaults", nil}, variant{"the least", t.least()},
		variant{"the middle", t.middle()}) {
		if err := t.resolvesTwice(v.values); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

// badValues lists values that a setting does not take.
func badValues(p *param.Param) []any {
	bad := []any{nil, []int{1}}
	switch p.Kind {
	case param.KindInt:
		return append(bad, int64(p.Min)-1, int64(p.Max)+1, int64(math.MinInt64), int64(math.MaxInt64), p.Min, "1")
	case param.KindFloat:
		below, above := math.Nextafter(p.Min, math.Inf(-1)), math.Nextafter(p.Max, math.Inf(1))
		return append(bad, below, above, math.NaN(), math.Inf(1), math.Inf(-1), int64(1), "0.5")
	case param.KindBool:
		return append(bad, int64(1), "true")
	}
	return append(bad, int64(1), true, "", "no such word")
}

// refuses returns an error unless Resolve refuses a value and names the setting.
func (t *table) refuses(name string, bad any) error {
	_, err := t.a.Resolve(param.Values{name: bad}, t.manifest)
	var wrong *param.Error
	if !errors.As(err, &wrong) || wrong.Name != name || wrong.Reason == "" {
		return fmt.Errorf("%s: the value %v (%T) gives the error %v, want a *param.Error of that setting", name,
			bad, bad, err)
	}
	return nil
}

func (t *table) resolvesTwice(v param.Values) error {
	r, err := t.a.Resolve(v, t.manifest)
	if err != nil {
		return err
	}
	again, err := valuesOf(t.params, r.Params)
	if err != nil {
		return err
	}
	second, err := t.a.Resolve(again, t.manifest)
	if err != nil {
		return fmt.Errorf("the resolved settings are refused: %w", err)
	}
	if string(second.Params) != string(r.Params) {
		return fmt.Errorf("the resolved settings %s are resolved to %s", r.Params, second.Params)
	}
	return nil
}
