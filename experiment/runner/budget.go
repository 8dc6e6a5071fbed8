package runner

import "github.com/coppice-ldl/coppice/experiment"

// Budget bounds the computing time of the cells of some rows together.
type Budget struct {
	Limit float64 // seconds
	Spent float64 // seconds, in earlier runs
}

// Budgets lists the budget of each row of a spec; earlier runs have spent so many seconds of each row's budget.
func Budgets(s *experiment.Spec, spent []float64) []*Budget {
	list, of := make([]*Budget, len(s.Rows)), make(map[*experiment.Budget]*Budget)
	for i := range s.Rows {
		b := s.Rows[i].Budget
		if b == nil {
			continue
		}
		if of[b] == nil {
			of[b] = &Budget{Limit: b.Limit.Seconds()}
		}
		of[b].Spent += spent[i]
		list[i] = of[b]
	}
	return list
}
