package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// Used has the hyperparameters of a method on some datasets.
type Used struct {
	Row       string            `json:"method"`
	Algorithm string            `json:"algorithm"`
	Preset    string            `json:"preset"`
	Datasets  []string          `json:"datasets"`
	Values    map[string]string `json:"values"`
	// Paper has the values of the preset paper that differ from Values.
	Paper map[string]string `json:"paper,omitempty"`
}

// usedBy has the hyperparameters of the methods of an algorithm.
type usedBy struct {
	algorithm string
	names     []string // in the order of the algorithm's settings
	rows      []int    // the methods, in the order of the table
	// at has the hyperparameters of each of the methods by dataset; nil: the method does not support the dataset.
	at [][]*Used
}

// presetName is the hyperparameter that selects among defaults, and membersName the one with the members of an ensemble.
const presetName, membersName = "preset", "members"

// usedOf reads the hyperparameters of a table.
func usedOf(t *result.Table) (all []usedBy) {
	for i := range t.Hyperparameters {
		h := &t.Hyperparameters[i]
		paper := make([]map[string]string, len(t.Datasets))
		for _, p := range h.Paper {
			for _, d := range p.Datasets {
				paper[d] = p.Values
			}
		}
		of := usedBy{algorithm: h.Algorithm, names: h.Names}
		for _, m := range h.Methods {
			k := slices.Index(of.rows, m.Row)
			if k < 0 {
				k = len(of.rows)
				of.rows, of.at = append(of.rows, m.Row), append(of.at, make([]*Used, len(t.Datasets)))
			}
			values := maps.Clone(h.Shared)
			if values == nil {
				values = make(map[string]string)
			}
			maps.Copy(values, m.Values)
			for _, d := range m.Datasets {
				u := &Used{Row: t.Rows[m.Row].Name, Algorithm: h.Algorithm, Preset: values[presetName], Datasets: []string{t.Datasets[d].Name}, Values: values}
				for name, value := range paper[d] {
					if own, ok := values[name]; ok && own != value && name != presetName {
						if u.Paper == nil {
							u.Paper = make(map[string]string)
						}
						u.Paper[name] = value
					}
				}
				of.at[k][d] = u
			}
		}
		all = append(all, of)
	}
	return all
}

// grouped lists the hyperparameters of each method once for the datasets on which they are the same.
func grouped(all []usedBy) (list []Used) {
	for _, of := range all {
		for _, sets := range of.at {
			first := len(list)
			for _, u := range sets {
				if u == nil {
					continue
				}
				same := slices.IndexFunc(list[first:], func(o Used) bool { return maps.Equal(o.Values, u.Values) && maps.Equal(o.Paper, u.Paper) })
				if same >= 0 {
					o := &list[first+same]
					o.Datasets = append(o.Datasets, u.Datasets...)
				} else {
					own := *u
					own.Datasets = slices.Clone(u.Datasets)
					list = append(list, own)
				}
			}
		}
	}
	return list
}

// addHyperparameters adds the tables of hyperparameters: for each algorithm the values that readers compare, then all values
// that differ between datasets.
func (d *document) addHyperparameters(s *Summary) {
	d.add(heading("Hyperparameters"))
	if len(s.used) == 0 {
		d.add(paragraph("The hyperparameters of the runs are not recorded. coppice experiment run records them, and repeats no run that has ended."))
		return
	}
	d.add(paragraph("A method has the same hyperparameters in all folds of a dataset. Tables list the values that the spec sets, and values that differ from the preset paper, between methods or between datasets. " +
		"Brackets mark a value that the spec sets, and show the other value of the preset paper. The members of an ensemble are listed by name. The text below a table lists all other hyperparameters."))
	byDataset := table{texts: true}
	for i := range s.used {
		of := s.used[i].listed(s)
		listed := of.compared(s)
		if len(of.rows) <= columns {
			d.add(of.byName(s, listed))
		} else {
			for from := 0; from < len(listed); from += columns {
				d.add(of.byMethod(s, listed[from:min(from+columns, len(listed))], from > 0))
			}
		}
		if text := of.others(listed); text != "" {
			d.add(paragraph(text))
		}
		byDataset.lines = append(byDataset.lines, of.byDataset(s, listed)...)
	}
	if len(byDataset.lines) == 0 {
		return
	}
	for from := 0; from < len(s.Datasets); from += columns {
		to := min(from+columns, len(s.Datasets))
		t := table{caption: "Hyperparameters that differ between datasets", header: []string{"method", "hyperparameter"}, texts: true}
		if from > 0 {
			t.caption += ", continued"
		}
		for _, set := range s.Datasets[from:to] {
			t.header = append(t.header, set.Name)
		}
		for _, l := range byDataset.lines {
			t.lines = append(t.lines, line{cells: slices.Concat(l.cells[:2], l.cells[2+from:2+to])})
		}
		d.add(t)
	}
}

// listed returns the hyperparameters without methods that are the same as earlier ones.
func (u *usedBy) listed(s *Summary) usedBy {
	of := usedBy{algorithm: u.algorithm, names: u.names}
	for k, row := range u.rows {
		if s.Rows[row].Same == "" {
			of.rows, of.at = append(of.rows, row), append(of.at, u.at[k])
		}
	}
	return of
}

// compared lists the names of the preset and of the hyperparameters that the spec sets, that differ from the preset paper, or
// that differ between methods or datasets.
func (u *usedBy) compared(s *Summary) (list []string) {
	for _, name := range u.names {
		first, is := "", name == presetName
		for k, row := range u.rows {
			_, set := s.Rows[row].Settings[name]
			is = is || set
			for _, own := range u.at[k] {
				if own == nil {
					continue
				}
				value := own.Values[name]
				_, differs := own.Paper[name]
				is = is || differs || first != "" && value != first
				first = value
			}
		}
		if is {
			list = append(list, name)
		}
	}
	return list
}

// others says which values the hyperparameters have that no table lists.
func (u *usedBy) others(listed []string) string {
	var values []string
	for _, name := range u.names {
		if !slices.Contains(listed, name) {
			values = append(values, name+"="+u.any().Values[name])
		}
	}
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, other hyperparameters: %s.", u.algorithm, strings.Join(values, " "))
}

// any returns the hyperparameters of the first method on its first dataset.
func (u *usedBy) any() *Used {
	i := slices.IndexFunc(u.at[0], func(own *Used) bool { return own != nil })
	return u.at[0][i]
}

// byName is a table with a line for each hyperparameter and a column for each method.
func (u *usedBy) byName(s *Summary, names []string) table {
	t := table{caption: u.algorithm + ": hyperparameters", header: []string{"hyperparameter"}, texts: true}
	for _, row := range u.rows {
		t.header = append(t.header, s.title(row))
	}
	for _, name := range names {
		l := line{cells: plain(name)}
		for k := range u.rows {
			l.cells = append(l.cells, cell{text: u.text(s, k, name)})
		}
		t.lines = append(t.lines, l)
	}
	return t
}

// byMethod is a table with a line for each method and a column for each hyperparameter.
func (u *usedBy) byMethod(s *Summary, names []string, continued bool) table {
	t := table{caption: u.algorithm + ": hyperparameters", header: append([]string{"method"}, names...), texts: true}
	if continued {
		t.caption += ", continued"
	}
	for k, row := range u.rows {
		l := line{cells: plain(s.title(row))}
		for _, name := range names {
			l.cells = append(l.cells, cell{text: u.text(s, k, name)})
		}
		t.lines = append(t.lines, l)
	}
	return t
}

// byDataset returns the lines of the values that differ between datasets: the method, the hyperparameter, then a cell for
// each dataset.
func (u *usedBy) byDataset(s *Summary, names []string) (lines []line) {
	for k, row := range u.rows {
		for _, name := range names {
			if value, _ := u.onAll(s, k, name); value != varying {
				continue
			}
			l := line{cells: plain(s.title(row), name)}
			for _, own := range u.at[k] {
				text := none
				if own != nil {
					text = shownValue(&s.Rows[row], name, own.Values[name])
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

// onAll returns the value of a hyperparameter of a method on all datasets that the method supports, and the value of the preset
// paper there; empty: the preset has no other value.
func (u *usedBy) onAll(s *Summary, method int, name string) (value, paper string) {
	r, differs := &s.Rows[u.rows[method]], false
	for _, own := range u.at[method] {
		if own == nil {
			continue
		}
		now, other := shownValue(r, name, own.Values[name]), own.Values[name]
		if of, ok := own.Paper[name]; ok {
			other = of
		}
		other = shownValue(r, name, other)
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

// text is the value of a hyperparameter of a method, and what the spec and the preset paper say of it.
func (u *usedBy) text(s *Summary, method int, name string) string {
	value, paper := u.onAll(s, method, name)
	var marks []string
	if _, set := s.Rows[u.rows[method]].Settings[name]; set {
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

// shownValue is a value as tables show it: of members only the names, and of candidates only their number.
func shownValue(r *result.Row, name, value string) string {
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
