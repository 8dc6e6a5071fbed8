// Package sources gives tests data of several kinds.
package sources

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
)

// All returns data of several kinds by name.
func All(t *testing.T) map[string]dataset.Source {
	t.Helper()
	made := func(o generate.Options) dataset.Source {
		src, err := generate.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	withNames := datasettest.SomeRows(20)
	withNames.Described.FeatureNames, withNames.Described.LabelNames, withNames.Described.HasRowNames = []string{"a", "b"},
		[]string{"c", "d"}, true
	for i := range withNames.Rows {
		withNames.Rows[i].Name = []string{"r", "", "Zoë"}[i%3]
	}
	unlabelled := datasettest.SomeRows(5)
	unlabelled.Described.Labels = 0
	for i := range unlabelled.Rows {
		unlabelled.Rows[i].Labels = nil
	}
	zeros := datasettest.SomeRows(9) // a sparse set without any value
	for i := range zeros.Rows {
		zeros.Rows[i].Values = []float64{0, math.Copysign(0, -1)}
	}
	return map[string]dataset.Source{
		"artificial": generate.Artificial(500, 1),
		"sparse":     made(generate.Options{Rows: 300, Features: 200, Labels: 4, Density: 0.02, Seed: 3}),
		"dense":      made(generate.Options{Rows: 100, Features: 20, Labels: 4, Density: 1, Seed: 3}),
		"half":       made(generate.Options{Rows: 100, Features: 20, Labels: 4, Density: 0.5, Seed: 3}),
		"one row":    datasettest.SomeRows(1),
		"names":      withNames,
		"unlabelled": unlabelled,
		"zeros":      zeros,
	}
}
