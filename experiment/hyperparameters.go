package experiment

import (
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/job/spec"
)

// hyperparameters returns what result.Table.Hyperparameters has; nil: the outline does not record them.
func (o *Outline) hyperparameters() (list []result.Hyperparameters) {
	byRow := make([]map[int]*round.CellRow, len(o.Sets)) // by dataset
	for d := range o.Sets {
		set := &o.Sets[d]
		if set.Job == nil {
			continue
		}
		if set.Paper == nil {
			return nil
		}
		byRow[d] = make(map[int]*round.CellRow)
		for i, row := range set.Rows {
			byRow[d][row] = &set.Job.Cells.Rows[i]
		}
	}
	at, all := make(map[string]int), []*complete(nil) // by algorithm: the place in both lists
	for row := range o.Table.Rows {
		for d := range o.Sets {
			own := byRow[d][row]
			if own == nil {
				continue
			}
			i, ok := at[own.Algorithm]
			if !ok {
				c, err := newComplete(own.Algorithm)
				if err != nil {
					return nil
				}
				i = len(list)
				at[own.Algorithm], all = i, append(all, c)
				list = append(list, result.Hyperparameters{Algorithm: own.Algorithm, Names: c.names()})
			}
			values := all[i].values(string(own.Params), o.Table.Rows[row].Preset)
			if values == nil {
				return nil
			}
			addMethod(&list[i], row, d, values)
		}
	}
	for i := range list {
		list[i].Paper = o.paper(all[i], list[i].Algorithm)
		share(&list[i])
	}
	return list
}

// addMethod adds the values of a row on a dataset. The rows come one after another.
func addMethod(h *result.Hyperparameters, row, dataset int, values map[string]string) {
	for i := len(h.Methods) - 1; i >= 0 && h.Methods[i].Row == row; i-- {
		if m := &h.Methods[i]; maps.Equal(m.Values, values) {
			m.Datasets = append(m.Datasets, dataset)
			return
		}
	}
	h.Methods = append(h.Methods, result.MethodValues{Row: row, ValuesOn: result.ValuesOn{Datasets: []int{dataset}, Values: values}})
}

// paper returns the hyperparameters of the preset paper of an algorithm.
func (o *Outline) paper(c *complete, algorithm string) (list []result.ValuesOn) {
	for d := range o.Sets {
		params, ok := o.Sets[d].Paper[algorithm]
		if !ok {
			continue
		}
		values := c.values(string(params), "paper")
		if values == nil {
			continue
		}
		if i := slices.IndexFunc(list, func(v result.ValuesOn) bool { return maps.Equal(v.Values, values) }); i >= 0 {
			list[i].Datasets = append(list[i].Datasets, d)
		} else {
			list = append(list, result.ValuesOn{Datasets: []int{d}, Values: values})
		}
	}
	return list
}

// share moves the values that all methods have on all datasets to h.Shared.
func share(h *result.Hyperparameters) {
	h.Shared = maps.Clone(h.Methods[0].Values)
	for _, m := range h.Methods[1:] {
		maps.DeleteFunc(h.Shared, func(name, value string) bool { return m.Values[name] != value })
	}
	for i := range h.Methods {
		m := &h.Methods[i]
		m.Values = maps.Clone(m.Values) // methods may have the same map
		maps.DeleteFunc(m.Values, func(name, _ string) bool { _, shared := h.Shared[name]; return shared })
		if len(m.Values) == 0 {
			m.Values = nil // as in a table that was read
		}
	}
	if len(h.Shared) == 0 {
		h.Shared = nil
	}
}

// complete lists all hyperparameters of jobs of an algorithm. Many jobs have the same.
type complete struct {
	settings []param.Param
	known    map[[2]string]map[string]string // by resolved settings and preset
}

func newComplete(algorithm string) (*complete, error) {
	a, err := registry.Find(algorithm)
	if err != nil {
		return nil, err
	}
	return &complete{a.Params(), make(map[[2]string]map[string]string)}, nil
}

func (c *complete) names() (list []string) {
	for i := range c.settings {
		list = append(list, c.settings[i].Name)
	}
	return list
}

// values returns the value of each hyperparameter; nil: resolved is not a JSON object.
func (c *complete) values(resolved, preset string) map[string]string {
	key := [2]string{resolved, preset}
	if values, ok := c.known[key]; ok {
		return values
	}
	var values map[string]string
	for _, p := range spec.Complete(c.settings, []byte(resolved), preset) {
		if values == nil {
			values = make(map[string]string, len(c.settings))
		}
		values[p.Key] = p.Value
	}
	c.known[key] = values
	return values
}
