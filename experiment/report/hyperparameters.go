package report

import (
	"fmt"
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
		for _, m := range h.Methods {
			u := Used{Method: t.Methods[m.Method].Name, Algorithm: h.Algorithm, Preset: m.Values[presetName], Values: m.Values}
			for _, d := range m.Datasets {
				u.Datasets = append(u.Datasets, t.Datasets[d].Name)
			}
			all = append(all, u)
		}
	}
	return all
}

// addHyperparameters adds for each algorithm the values that readers compare, and a text with the other values, which
// all methods share.
func (d *document) addHyperparameters(s *Summary) {
	if len(s.hyperparameters) == 0 {
		return
	}
	d.add(heading("Hyperparameters"), paragraph("A method has the same hyperparameters in all folds of a dataset. "+
		"Tables list the values that the spec sets, and values that differ between methods or between datasets. "+
		"The report in JSON has the values that differ by dataset. The members of an ensemble are listed by name. The text "+
		"below a table lists all other hyperparameters."))
	for i := range s.hyperparameters {
		h := &s.hyperparameters[i]
		used := make(map[int][]map[string]string) // values, by method
		for _, m := range h.Methods {
			used[m.Method] = append(used[m.Method], m.Values)
		}
		methods := slices.DeleteFunc(s.listed(), func(method int) bool { return len(used[method]) == 0 })
		if len(methods) == 0 {
			continue
		}
		t := table{caption: h.Algorithm + ": hyperparameters", header: []string{"hyperparameter"}, texts: true}
		for _, method := range methods {
			t.header = append(t.header, s.title(method))
		}
		var others []string
		for _, name := range h.Names {
			first := used[methods[0]][0][name]
			compared := name == presetName || slices.ContainsFunc(methods, func(method int) bool {
				_, set := s.Methods[method].Settings[name]
				return set || slices.ContainsFunc(used[method], func(values map[string]string) bool {
					return values[name] != first
				})
			})
			if !compared {
				others = append(others, name+"="+first)
				continue
			}
			l := line{cells: plain(name)}
			for _, method := range methods {
				value := used[method][0][name]
				if slices.ContainsFunc(used[method], func(values map[string]string) bool { return values[name] != value }) {
					value = "by dataset"
				}
				l.cells = append(l.cells, cell{text: shownValue(&s.Methods[method], name, value)})
			}
			t.lines = append(t.lines, l)
		}
		d.addWide(t)
		if len(others) > 0 {
			d.add(paragraph(fmt.Sprintf("%s, other hyperparameters: %s.", h.Algorithm, strings.Join(others, " "))))
		}
	}
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
