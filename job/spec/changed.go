package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
)

// presetKey is the setting that selects among the defaults of an algorithm.
const presetKey = "preset"

// Settings lists resolved settings (Job.Params) in their order. It returns nil if params are not a JSON object.
func Settings(params json.RawMessage) (all []param.Pair) {
	d := json.NewDecoder(bytes.NewReader(params))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil
		}
		name, _ := key.(string)
		text := string(value)
		if value[0] == '"' {
			if json.Unmarshal(value, &text) != nil {
				return nil
			}
		}
		all = append(all, param.Pair{Key: name, Value: text})
	}
	return all
}

// Complete lists the settings of a job in the order of the algorithm's settings: the resolved settings (Job.Params), and
// the settings that Job.Params leaves out because they have their default. preset is the preset that the job was given; empty:
// the default. Complete returns nil if resolved is not a JSON object.
func Complete(settings []param.Param, resolved json.RawMessage, preset string) (all []param.Pair) {
	pairs := Settings(resolved)
	if pairs == nil {
		return nil
	}
	values := make(map[string]string, len(settings))
	for _, p := range pairs {
		values[p.Key] = p.Value
	}
	for i := range settings {
		p := &settings[i]
		value, written := values[p.Name]
		switch {
		case p.Name == presetKey:
			value = cmp.Or(value, preset, p.Default)
			preset = value // the first setting of each algorithm
		case !written:
			value = p.Default
			for _, d := range p.Presets {
				if d.Preset == preset {
					value = d.Value
				}
			}
		}
		all = append(all, param.Pair{Key: p.Name, Value: value})
	}
	return all
}

// Changed lists the settings of an algorithm that differ, on one of the datasets at least, from the defaults that its preset and
// the other settings have, and the preset if it is not the default. A job that is given these alone has all of the settings, on each of the datasets. Changed
// returns all settings if there are no datasets, or if the algorithm refuses the settings.
func Changed(algorithm string, settings []param.Pair, on ...*dataset.Manifest) []param.Pair {
	a, err := registry.Find(algorithm)
	if err != nil || len(on) == 0 {
		return settings
	}
	given := make(map[string]string)
	for _, s := range settings {
		if s.Key == presetKey {
			given[presetKey] = s.Value
		}
	}
	for {
		more, ok := left(a, settings, given, on)
		if !ok {
			return settings
		}
		if len(more) == 0 {
			break
		}
		known := len(given)
		maps.Copy(given, more)
		if len(given) == known { // the algorithm resolves a value that is given to another one
			return settings
		}
	}
	for _, s := range slices.Backward(settings) { // what follows from others comes behind them
		value, ok := given[s.Key]
		if !ok || s.Key == presetKey {
			continue
		}
		delete(given, s.Key)
		if more, ok := left(a, settings, given, on); !ok || len(more) > 0 {
			given[s.Key] = value
		}
	}
	var changed []param.Pair
	params := a.Params()
	for _, s := range settings {
		if _, ok := given[s.Key]; !ok {
			continue
		}
		p := &params[slices.IndexFunc(params, func(p param.Param) bool { return p.Name == s.Key })]
		if s.Key == presetKey && s.Value == p.Default {
			continue
		}
		if p.ItemKey != "" {
			s.Value = changedItems(s.Value, on...)
		}
		changed = append(changed, s)
	}
	return changed
}

// changedItems leaves the defaults out of a list of items. Each item is an algorithm with settings.
func changedItems(text string, on ...*dataset.Manifest) string {
	items, err := param.ParseItems(text)
	if err != nil {
		return text
	}
	for i, item := range items {
		items[i].Set = Changed(item.Name, item.Set, on...)
	}
	return param.FormatItems(items)
}

// left returns the settings that a job on one of the datasets lacks, or has with another value, if it is given some of them. ok is
// false if the algorithm refuses these.
func left(a algorithms.Algorithm, settings []param.Pair, given map[string]string, on []*dataset.Manifest) (more map[string]string, ok bool) {
	values, err := values(a, given)
	if err != nil {
		return nil, false
	}
	more, params := make(map[string]string), a.Params()
	for _, m := range on {
		r, err := a.Resolve(values, m)
		if err != nil {
			return nil, false
		}
		others := Settings(r.Params)
		for _, s := range settings {
			i := slices.IndexFunc(others, func(o param.Pair) bool { return o.Key == s.Key })
			k := slices.IndexFunc(params, func(p param.Param) bool { return p.Name == s.Key })
			if i < 0 || k < 0 || !equal(&params[k], s.Value, others[i].Value) {
				more[s.Key] = s.Value
			}
		}
	}
	return more, true
}

// equal reports whether two texts are the same value of a setting.
func equal(p *param.Param, a, b string) bool {
	if a == b {
		return true
	}
	va, err := p.Parse(a)
	if err != nil {
		return false
	}
	vb, err := p.Parse(b)
	return err == nil && va == vb
}
