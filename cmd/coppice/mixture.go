package main

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// mixtures are how an ensemble weighs its members: in each fold, or once where there are none.
type mixtures []*algorithms.Mixture

func (r *result) mixtures() mixtures {
	if len(r.Folds) == 0 {
		return mixtures{r.Mixture}
	}
	var all mixtures
	for i := range r.Folds {
		all = append(all, r.Folds[i].Mixture)
	}
	return all
}

// writeMixture writes the members of an ensemble with their weights and their K-L on the rows
// that the weights were fitted to.
func (r *result) writeMixture(w io.Writer) {
	all := r.mixtures()
	if all[0] == nil {
		return
	}
	title, header := "Members", []string{"", "weight", "out-of-fold K-L"}
	if len(r.Folds) > 0 {
		title = fmt.Sprintf("Members: mean and standard deviation over %d folds", len(r.Folds))
		header = []string{"", "weight", "±", "out-of-fold K-L", "±"}
	}
	fmt.Fprintf(w, "\n%s\n", title)
	t := newTable(w, header, 2, 3, 4, 5)
	for i, m := range all[0].Members {
		share := func(x *algorithms.Mixture) *algorithms.Share { return &x.Members[i] }
		weights := all.cells(func(x *algorithms.Mixture) *float64 { return &share(x).Weight })
		losses := all.cells(func(x *algorithms.Mixture) *float64 { return share(x).OutOfFoldKL })
		t.AppendRow(rowOf(append(append([]string{m.Member}, weights...), losses...)...))
	}
	one := 1.0
	together := append(all.cells(func(*algorithms.Mixture) *float64 { return &one }), all.cells(func(x *algorithms.Mixture) *float64 { return x.OutOfFoldKL })...)
	t.AppendRow(rowOf(append([]string{"ensemble"}, together...)...))
	t.Render()
}

// cells returns the mean of a number and, of folds, its deviation; - where there is none.
func (all mixtures) cells(of func(*algorithms.Mixture) *float64) []string {
	var values []float64
	for _, x := range all {
		if v := of(x); v != nil {
			values = append(values, *v)
		}
	}
	s := measures.StatOver(values)
	if len(all) == 1 {
		return []string{figure(s.Mean)}
	}
	return []string{figure(s.Mean), figure(s.Std)}
}
