package ensemble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The number of members that an ensemble has.
const (
	leastMembers = 2
	mostMembers  = 20
)

// kin are the algorithms that may be members.
type kin []algorithms.Algorithm

// member is an algorithm with settings.
type member struct {
	algorithms.Algorithm
	label    string       // its name, with a number where a member before it has the same
	values   param.Values // that were given
	resolved algorithms.Resolved
}

// check returns why a text names no members.
func (k kin) check(text string) error {
	_, err := k.parse(text)
	return err
}

// parse reads the members and the settings that were given.
func (k kin) parse(text string) ([]member, error) {
	items, err := param.ParseItems(text)
	if err != nil {
		return nil, err
	}
	wrong := fmt.Errorf("got %s, want %d to %d", units.Plural(len(items), "member"), leastMembers, mostMembers)
	if len(items) > mostMembers {
		return nil, wrong
	}
	members, labels := make([]member, len(items)), labelled(names(items))
	for i, item := range items {
		m := &members[i]
		m.label = labels[i]
		if m.Algorithm, err = k.find(item.Name); err != nil {
			return nil, err
		}
		if m.values, err = valuesOf(m.Params(), item.Set); err != nil {
			return nil, fmt.Errorf("%s: %w", m.label, err)
		}
	}
	if len(items) < leastMembers { // a wrong name is said first
		return nil, wrong
	}
	return members, nil
}

func names(items []param.Item) (all []string) {
	for _, item := range items {
		all = append(all, item.Name)
	}
	return all
}

// find returns the algorithm of a name, which may be a member.
func (k kin) find(name string) (algorithms.Algorithm, error) {
	var names []string
	for _, a := range k {
		if a.Predicts() == algorithms.Distribution {
			names = append(names, a.Name())
		}
	}
	known := strings.Join(names, ", ")
	if name == Name {
		return nil, fmt.Errorf("an ensemble cannot be a member of an ensemble; possible members are %s", known)
	}
	for _, a := range k {
		switch {
		case a.Name() != name:
		case a.Predicts() != algorithms.Distribution:
			return nil, fmt.Errorf("%s predicts %s, but members must predict %s; possible members are %s", name, a.Predicts(),
				algorithms.Distribution, known)
		default:
			return a, nil
		}
	}
	return nil, fmt.Errorf("algorithm %q is unknown%s; possible members are %s", name, param.Suggest(name, names), known)
}

// valuesOf reads the settings of a member.
func valuesOf(params []param.Param, set []param.Pair) (param.Values, error) {
	values := make(param.Values)
	for _, pair := range set {
		i := slices.IndexFunc(params, func(p param.Param) bool { return p.Name == pair.Key })
		if i < 0 {
			return nil, unknownSetting(params, pair.Key)
		}
		if values.Has(pair.Key) {
			return nil, param.Errorf(pair.Key, "the setting is given twice")
		}
		v, err := params[i].Parse(pair.Value)
		if err != nil {
			return nil, err
		}
		values[pair.Key] = v
	}
	return values, nil
}

func unknownSetting(params []param.Param, name string) error {
	var names []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	return param.Errorf(name, "there is no such setting%s; the settings are %s", param.Suggest(name, names),
		strings.Join(names, ", "))
}

// resolve reads the members and has each fill in its settings for a dataset. Errors are
// *param.Error.
func (k kin) resolve(text string, m *dataset.Manifest) ([]member, error) {
	members, err := k.parse(text)
	if err != nil {
		return nil, param.Errorf("members", "%v", err)
	}
	for i := range members {
		own := &members[i]
		if own.resolved, err = own.Resolve(own.values, m); err != nil {
			return nil, param.Errorf("members", "%s: %v", own.label, err)
		}
		if m.HasWeights {
			if err := algorithms.WeightsError(own.Algorithm); err != nil {
				return nil, param.Errorf("members", "%v", err)
			}
		}
		if own.resolved.Weights != "" {
			return nil, param.Errorf("members", "%s: init_from: a member of an ensemble cannot start from given weights",
				own.label)
		}
		if _, err := pairs(own.resolved.Params); err != nil {
			return nil, param.Errorf("members", "%s: %v", own.label, err)
		}
	}
	return members, nil
}

// format returns the text of resolved members: each with all of its settings.
func format(members []member) string {
	items := make([]param.Item, len(members))
	for i := range members {
		set, _ := pairs(members[i].resolved.Params) // resolve has read them
		items[i] = param.Item{Name: members[i].Name(), Set: set}
	}
	return param.FormatItems(items)
}

var errSettings = errors.New("the settings of a member must be a JSON object of plain values")

// pairs reads resolved settings, a JSON object of numbers, texts and flags, in their order.
func pairs(raw json.RawMessage) (list []param.Pair, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errSettings
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errSettings
		}
		value, err := d.Token()
		if err != nil {
			return nil, errSettings
		}
		if _, nested := value.(json.Delim); nested {
			return nil, errSettings
		}
		list = append(list, param.Pair{Key: fmt.Sprint(key), Value: fmt.Sprint(value)})
	}
	return list, nil
}

// labelled returns names that differ: a second structrf is "structrf 2".
func labelled(names []string) (labels []string) {
	same := make(map[string]int)
	for _, name := range names {
		same[name]++
		label := name
		if n := same[name]; n > 1 {
			label = fmt.Sprintf("%s %d", name, n)
		}
		labels = append(labels, label)
	}
	return labels
}
