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

// tables returns for each algorithm the values that readers compare, then all values that differ between datasets.
func (h hyperparameters) tables(s *Summary) []block {
	if len(h) == 0 {
		return []block{paragraph("The hyperparameters of the runs are not recorded. coppice experiment run records them, and repeats no run that has ended.")}
	}
	blocks := []block{paragraph("A method has the same hyperparameters in all folds of a dataset. Tables list the values that the spec sets, and values that differ from the preset paper, between methods or between datasets. " +
		"Brackets mark a value that the spec sets, and show the other value of the preset paper. The members of an ensemble are listed by name. The text below a table lists all other hyperparameters.")}
	var differing []line // between datasets: method, hyperparameter, then a cell for each dataset
	for i := range h {
		of := h[i].listed(s.Methods)
		names := of.compared(s.Methods)
		blocks = append(blocks, of.values(s, names)...)
		differing = append(differing, of.byDataset(s, names)...)
	}
	for from := 0; from < len(s.Datasets) && len(differing) > 0; from += columns {
		to := min(from+columns, len(s.Datasets))
		t := table{caption: "Hyperparameters that differ between datasets", header: []string{"method", "hyperparameter"}, texts: true}
		if from > 0 {
			t.caption += ", continued"
		}
		for _, set := range s.Datasets[from:to] {
			t.header = append(t.header, set.Name)
		}
		for _, l := range differing {
			t.lines = append(t.lines, line{cells: slices.Concat(l.cells[:2], l.cells[2+from:2+to])})
		}
		blocks = append(blocks, t)
	}
	return blocks
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

// values returns the values of the hyperparameters with the given names, and a text with the other values, which all methods
// share. A table has a column for each method, or, if there are too many methods, a column for each hyperparameter.
func (u *usedBy) values(s *Summary, names []string) (blocks []block) {
	caption := u.algorithm + ": hyperparameters"
	if len(u.methods) <= columns {
		t := table{caption: caption, header: []string{"hyperparameter"}, texts: true}
		for _, method := range u.methods {
			t.header = append(t.header, s.title(method))
		}
		for _, name := range names {
			l := line{cells: plain(name)}
			for k, method := range u.methods {
				l.cells = append(l.cells, cell{text: u.text(&s.Methods[method], k, name)})
			}
			t.lines = append(t.lines, l)
		}
		blocks = append(blocks, t)
	} else {
		for some := range slices.Chunk(names, columns) {
			t := table{caption: caption, header: slices.Concat([]string{"method"}, some), texts: true}
			if len(blocks) > 0 {
				t.caption += ", continued"
			}
			for k, method := range u.methods {
				l := line{cells: plain(s.title(method))}
				for _, name := range some {
					l.cells = append(l.cells, cell{text: u.text(&s.Methods[method], k, name)})
				}
				t.lines = append(t.lines, l)
			}
			blocks = append(blocks, t)
		}
	}
	var others []string
	for _, name := range u.names {
		if !slices.Contains(names, name) {
			i := slices.IndexFunc(u.at[0], func(own *Used) bool { return own != nil })
			others = append(others, name+"="+u.at[0][i].Values[name])
		}
	}
	if len(others) > 0 {
		blocks = append(blocks, paragraph(fmt.Sprintf("%s, other hyperparameters: %s.", u.algorithm, strings.Join(others, " "))))
	}
	return blocks
}

// byDataset returns the lines of the values that differ between datasets.
func (u *usedBy) byDataset(s *Summary, names []string) (lines []line) {
	for k, method := range u.methods {
		for _, name := range names {
			if value, _ := u.onAll(&s.Methods[method], k, name); value != varying {
				continue
			}
			l := line{cells: plain(s.title(method), name)}
			for _, own := range u.at[k] {
				text := none
				if own != nil {
					text = shownValue(&s.Methods[method], name, own.Values[name])
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
