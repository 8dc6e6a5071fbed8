package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// presetName is the hyperparameter that selects among defaults, and membersName the list of the members of an ensemble.
const presetName, membersName = "preset", "members"

// usedOf reads the hyperparameters of a table.
func usedOf(t *result.Table) (all hyperparameters) {
	for i := range t.Hyperparameters {
		h := &t.Hyperparameters[i]
		paper := make([]map[string]string, len(t.Datasets))
		for _, p := range h.Paper {
			for _, d := range p.Datasets {
				paper[d] = p.Values
			}
		}
		of, at := usedBy{algorithm: h.Algorithm, names: h.Names}, make(map[int]int) // by method
		for _, m := range h.Methods {
			k, ok := at[m.Method]
			if !ok {
				k = len(of.methods)
				at[m.Method] = k
				of.methods, of.at = append(of.methods, m.Method), append(of.at, make([]*Used, len(t.Datasets)))
			}
			values := make(map[string]string, len(h.Names))
			maps.Copy(values, h.Shared)
			maps.Copy(values, m.Values)
			for _, d := range m.Datasets {
				u := &Used{Method: t.Methods[m.Method].Name, Algorithm: h.Algorithm, Preset: values[presetName], Datasets: []string{t.Datasets[d].Name}, Values: values}
				for name, value := range paper[d] {
					if values[name] == value || name == presetName {
						continue
					}
					if u.Paper == nil {
						u.Paper = make(map[string]string)
					}
					u.Paper[name] = value
				}
				of.at[k][d] = u
			}
		}
		all = append(all, of)
	}
	return all
}

// blocks are the tables of hyperparameters: for each algorithm the values that readers compare, then all values that differ
// between datasets. titles are the titles of all methods of the table.
func (h hyperparameters) blocks(methods []result.Method, titles, datasets []string) []block {
	if len(h) == 0 {
		return []block{paragraph("The hyperparameters of the runs are not recorded. coppice experiment run records them, and repeats no run that has ended.")}
	}
	list := []block{paragraph("A method has the same hyperparameters in all folds of a dataset. Tables list the values that the spec sets, and values that differ from the preset paper, between methods or between datasets. " +
		"Brackets mark a value that the spec sets, and show the other value of the preset paper. The members of an ensemble are listed by name. The text below a table lists all other hyperparameters.")}
	var differing []line // between datasets: method, hyperparameter, then a cell for each dataset
	for i := range h {
		of := h[i].listed(methods)
		names := of.compared(methods)
		if len(of.methods) <= columns {
			list = append(list, of.byName(methods, titles, names))
		} else {
			for from := 0; from < len(names); from += columns {
				list = append(list, of.byMethod(methods, titles, names[from:min(from+columns, len(names))], from > 0))
			}
		}
		if text := of.others(names); text != "" {
			list = append(list, paragraph(text))
		}
		differing = append(differing, of.byDataset(methods, titles, names)...)
	}
	for from := 0; from < len(datasets) && len(differing) > 0; from += columns {
		to := min(from+columns, len(datasets))
		t := table{caption: "Hyperparameters that differ between datasets", header: slices.Concat([]string{"method", "hyperparameter"}, datasets[from:to]), texts: true}
		if from > 0 {
			t.caption += ", continued"
		}
		for _, l := range differing {
			t.lines = append(t.lines, line{cells: slices.Concat(l.cells[:2], l.cells[2+from:2+to])})
		}
		list = append(list, t)
	}
	return list
}

// listed returns the hyperparameters without methods that are the same as earlier methods.
func (u *usedBy) listed(methods []result.Method) usedBy {
	of := usedBy{algorithm: u.algorithm, names: u.names}
	for k, method := range u.methods {
		if methods[method].Same == "" {
			of.methods, of.at = append(of.methods, method), append(of.at, u.at[k])
		}
	}
	return of
}

// compared lists the names of the preset and of the hyperparameters that the spec sets, that differ from the preset paper, or
// that differ between methods or datasets.
func (u *usedBy) compared(methods []result.Method) (list []string) {
	for _, name := range u.names {
		first, is := (*Used)(nil), name == presetName
		for k, method := range u.methods {
			_, set := methods[method].Settings[name]
			is = is || set
			for _, own := range u.at[k] {
				if own == nil {
					continue
				}
				if first == nil {
					first = own
				}
				_, other := own.Paper[name]
				is = is || other || own.Values[name] != first.Values[name]
			}
		}
		if is {
			list = append(list, name)
		}
	}
	return list
}

// others says which values all methods have of the hyperparameters that no table lists.
func (u *usedBy) others(listed []string) string {
	var values []string
	for _, name := range u.names {
		if !slices.Contains(listed, name) {
			i := slices.IndexFunc(u.at[0], func(own *Used) bool { return own != nil })
			values = append(values, name+"="+u.at[0][i].Values[name])
		}
	}
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, other hyperparameters: %s.", u.algorithm, strings.Join(values, " "))
}

// byName is a table with a line for each hyperparameter and a column for each method.
func (u *usedBy) byName(methods []result.Method, titles, names []string) table {
	t := table{caption: u.algorithm + ": hyperparameters", header: []string{"hyperparameter"}, texts: true}
	for _, method := range u.methods {
		t.header = append(t.header, titles[method])
	}
	for _, name := range names {
		l := line{cells: plain(name)}
		for k := range u.methods {
			l.cells = append(l.cells, cell{text: u.text(&methods[u.methods[k]], k, name)})
		}
		t.lines = append(t.lines, l)
	}
	return t
}

// byMethod is a table with a line for each method and a column for each hyperparameter.
func (u *usedBy) byMethod(methods []result.Method, titles, names []string, continued bool) table {
	t := table{caption: u.algorithm + ": hyperparameters", header: slices.Concat([]string{"method"}, names), texts: true}
	if continued {
		t.caption += ", continued"
	}
	for k, method := range u.methods {
		l := line{cells: plain(titles[method])}
		for _, name := range names {
			l.cells = append(l.cells, cell{text: u.text(&methods[method], k, name)})
		}
		t.lines = append(t.lines, l)
	}
	return t
}

// byDataset returns the lines of the values that differ between datasets.
func (u *usedBy) byDataset(methods []result.Method, titles, names []string) (lines []line) {
	for k, method := range u.methods {
		for _, name := range names {
			if value, _ := u.onAll(&methods[method], k, name); value != varying {
				continue
			}
			l := line{cells: plain(titles[method], name)}
			for _, own := range u.at[k] {
				text := none
				if own != nil {
					text = shownValue(&methods[method], name, own.Values[name])
				}
				l.cells = append(l.cells, cell{text: text})
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// varying stands in the place of values that differ between datasets.
const varying = "by dataset"

// text is the value of a hyperparameter of a method, and what the spec and the preset paper say of it.
func (u *usedBy) text(r *result.Method, method int, name string) string {
	value, paper := u.onAll(r, method, name)
	var marks []string
	if _, set := r.Settings[name]; set {
		marks = append(marks, "set")
	}
	if paper != "" && !(value == varying && paper == varying) {
		marks = append(marks, "paper: "+paper)
	}
	if len(marks) > 0 {
		value += " (" + strings.Join(marks, "; ") + ")"
	}
	return value
}

// onAll returns the value of a hyperparameter of a method on all datasets that the method supports, and the value of the preset
// paper there; empty: the preset has no other value.
func (u *usedBy) onAll(r *result.Method, method int, name string) (value, paper string) {
	differs := false
	for _, own := range u.at[method] {
		if own == nil {
			continue
		}
		now := shownValue(r, name, own.Values[name])
		other := now
		if of, ok := own.Paper[name]; ok {
			other = shownValue(r, name, of)
		}
		differs = differs || other != now
		value, paper = joined(value, now), joined(paper, other)
	}
	if !differs || len(r.Candidates) > 0 {
		paper = ""
	}
	return value, paper
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
		return count(n, "candidate", "candidates")
	}
	var names []string
	for _, item := range items {
		names = append(names, item.Name)
	}
	return strings.Join(names, ", ")
}
