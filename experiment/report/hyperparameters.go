package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
)

// presetName is the hyperparameter that selects among defaults, and membersName the list of the members of an ensemble.
const presetName, membersName = "preset", "members"

// usedOf lists the hyperparameters of each method of a table. Datasets with the same values are listed together.
func usedOf(t *result.Table) (all []Used) {
	for i := range t.Hyperparameters {
		h := &t.Hyperparameters[i]
		paper := make([]map[string]string, len(t.Datasets))
		for _, p := range h.Paper {
			for _, d := range p.Datasets {
				paper[d] = p.Values
			}
		}
		for _, m := range h.Methods {
			values := make(map[string]string, len(h.Names))
			maps.Copy(values, h.Shared)
			maps.Copy(values, m.Values)
			first := len(all)
			for _, d := range m.Datasets {
				other := maps.Clone(paper[d])
				maps.DeleteFunc(other, func(name, value string) bool { return values[name] == value || name == presetName })
				if len(other) == 0 {
					other = nil // as in a report that was read
				}
				at := slices.IndexFunc(all[first:], func(u Used) bool { return maps.Equal(u.Paper, other) })
				if at < 0 {
					at = len(all) - first
					all = append(all, Used{Method: t.Methods[m.Method].Name, Algorithm: h.Algorithm, Preset: values[presetName], Values: values, Paper: other})
				}
				all[first+at].Datasets = append(all[first+at].Datasets, t.Datasets[d].Name)
			}
		}
	}
	return all
}

// addHyperparameters adds for each algorithm the values that readers compare, and a text with the other values, which all
// methods share.
func (d *document) addHyperparameters(s *Summary) {
	d.add(heading("Hyperparameters"))
	if len(s.Hyperparameters) == 0 {
		d.add(paragraph("The hyperparameters of the runs are not recorded. coppice experiment run records them, and repeats no run that has ended."))
		return
	}
	d.add(paragraph("A method has the same hyperparameters in all folds of a dataset. Tables list the values that the spec sets, and values that differ from the preset paper, between methods or between datasets. " +
		"Brackets mark a value that the spec sets, and show the other value of the preset paper. The report in JSON has the values that differ by dataset. " +
		"The members of an ensemble are listed by name. The text below a table lists all other hyperparameters."))
	by := make(map[[2]string][]*Used) // by algorithm and method
	for i := range s.Hyperparameters {
		u := &s.Hyperparameters[i]
		key := [2]string{u.Algorithm, u.Method}
		by[key] = append(by[key], u)
	}
	for i := range s.hyperparameters {
		h := &s.hyperparameters[i]
		var methods []*result.Method
		var used [][]*Used // of each of the methods
		t := table{caption: h.Algorithm + ": hyperparameters", header: []string{"hyperparameter"}, texts: true}
		for _, method := range s.listed() {
			if own := by[[2]string{h.Algorithm, s.Methods[method].Name}]; len(own) > 0 {
				methods, used = append(methods, &s.Methods[method]), append(used, own)
				t.header = append(t.header, s.title(method))
			}
		}
		var others []string
		for _, name := range h.Names {
			if !isCompared(name, methods, used) {
				others = append(others, name+"="+used[0][0].Values[name])
				continue
			}
			l := line{cells: plain(name)}
			for k, method := range methods {
				l.cells = append(l.cells, cell{text: usedText(method, used[k], name)})
			}
			t.lines = append(t.lines, l)
		}
		d.addWide(t)
		if len(others) > 0 {
			d.add(paragraph(fmt.Sprintf("%s, other hyperparameters: %s.", h.Algorithm, strings.Join(others, " "))))
		}
	}
}

// isCompared reports whether a hyperparameter is the preset, is set by the spec, or differs from the preset paper, between
// methods or between datasets.
func isCompared(name string, methods []*result.Method, used [][]*Used) bool {
	if name == presetName {
		return true
	}
	for k, method := range methods {
		if _, set := method.Settings[name]; set {
			return true
		}
		for _, u := range used[k] {
			if _, other := u.Paper[name]; other || u.Values[name] != used[0][0].Values[name] {
				return true
			}
		}
	}
	return false
}

// varying stands in the place of values that differ between datasets.
const varying = "by dataset"

// usedText returns the value of a hyperparameter of a method on all datasets that the method supports, and what the spec and
// the preset paper say of it.
func usedText(r *result.Method, used []*Used, name string) string {
	value, paper, differs := "", "", false
	for _, u := range used {
		now := shownValue(r, name, u.Values[name])
		other := now
		if of, ok := u.Paper[name]; ok {
			other = shownValue(r, name, of)
		}
		differs = differs || other != now
		value, paper = joined(value, now), joined(paper, other)
	}
	var marks []string
	if _, set := r.Settings[name]; set {
		marks = append(marks, "set")
	}
	if differs && len(r.Candidates) == 0 && !(value == varying && paper == varying) {
		marks = append(marks, "paper: "+paper)
	}
	if len(marks) > 0 {
		value += " (" + strings.Join(marks, "; ") + ")"
	}
	return value
}

// joined returns the value of some datasets and of one more.
func joined(value, more string) string {
	if value == "" || value == more {
		return more
	}
	return varying
}

// shownValue is a value as tables show it: of members only the names, and of candidates only their number.
func shownValue(r *result.Method, name, value string) string {
	if name != membersName {
		return value
	}
	items, err := param.ParseItems(value)
	if err != nil {
		return value
	}
	if n := len(r.Candidates); n > 0 {
		return units.Plural(n, "candidate")
	}
	var names []string
	for _, item := range items {
		names = append(names, item.Name)
	}
	return strings.Join(names, ", ")
}
