// Package explain explains trained models: how much each feature matters, how much each feature adds to a prediction
// (SHAP values), the path of a sample through a tree, the splits of a forest of soft splits, and the weights of linear
// models.
//
// What trees and their samples tell is computed from the model alone. Other values are computed from samples. Equal
// models, samples and seeds give equal values, on any number of threads.
package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/predict"
)

// The methods.
const (
	Importance  = "importance"
	Permutation = "permutation"
	SHAP        = "shap"
	Path        = "path"
	Splits      = "splits"
	Weights     = "weights"
)

// Methods lists the methods that can explain a model. The first is the default.
func Methods(m *predict.Model) []string {
	if trees(m) != nil {
		return []string{Importance, SHAP, Path, Permutation}
	}
	if _, ok := m.Model.(ldlf.Router); ok {
		return []string{Splits, Path, Permutation}
	}
	if _, ok := m.Model.(maxent.Linear); ok {
		return []string{Weights, Permutation}
	}
	return []string{Permutation}
}

// trees returns the trees of a model; nil: it is not a sum of trees.
func trees(m *predict.Model) *forest.Additive {
	if a, ok := m.Model.(forest.Adds); ok {
		return a.Additive()
	}
	return nil
}

// FeatureNames returns the names of the features. A feature without a name is "feature " and its number, from 0.
func FeatureNames(m *predict.Model) []string {
	n, _ := m.Shape()
	names := make([]string, n)
	copy(names, m.Provenance.FeatureNames)
	for i := len(m.Provenance.FeatureNames); i < n; i++ {
		names[i] = "feature " + strconv.Itoa(i)
	}
	return names
}

// Block is a block of samples that a lane works on.
type Block struct {
	Rows  *dataset.Rows
	Names []string // nil if samples have none
}

// Name returns the name of sample i of the block, or else its row number in the file.
func (b *Block) Name(i int) string {
	if b.Names != nil {
		return b.Names[i]
	}
	return strconv.FormatUint(uint64(b.Rows.Row[i]), 10)
}

// eachBlock reads src in blocks. It calls work with each block on one of the threads, and take with the results in
// the order of the file. lane makes what one thread needs.
func eachBlock[L, R any](src dataset.Source, size, threads int, o importer.Options, lane func() L,
	work func(L, *Block) R, take func(*Block, R) error) error {
	type job struct {
		samples *Block
		done    chan R
	}
	n := max(1, threads)
	todo, order, failed := make(chan job, n), make(chan job, 2*n), make(chan error, 1)
	var lanes sync.WaitGroup
	for range n {
		lanes.Go(func() {
			own := lane()
			for j := range todo {
				var result R
				if ended(o.Context) == nil {
					result = work(own, j.samples)
				}
				j.done <- result
			}
		})
	}
	stop := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		var err error
		for j := range order {
			result := <-j.done
			if err != nil {
				continue
			}
			if err = ended(o.Context); err == nil {
				err = take(j.samples, result)
			}
			if err != nil {
				failed <- err
				close(stop)
			}
		}
	}()
	err := importer.Blocks(src, size, o, func(rows *dataset.Rows, names []string) error {
		select {
		case <-stop:
			return errStopped
		default:
		}
		j := job{&Block{rows, names}, make(chan R, 1)}
		order <- j
		todo <- j
		return nil
	})
	close(todo)
	close(order)
	lanes.Wait()
	<-over
	select {
	case err = <-failed:
	default:
	}
	return err
}

// errStopped ends the reading of a file after take has failed.
var errStopped = fmt.Errorf("the explanation has stopped")

// FindRow returns the sample with a name, or with a row number in the file if samples have no names.
func FindRow(src dataset.Source, name string, o importer.Options) (*Block, error) {
	var found *Block
	enough := fmt.Errorf("found")
	leftOut, count := false, o.LeftOut
	o.LeftOut = func(row int) {
		leftOut = leftOut || strconv.Itoa(row) == name
		if count != nil {
			count(row)
		}
	}
	err := importer.Blocks(src, 1, o, func(rows *dataset.Rows, names []string) error {
		b := &Block{rows, names}
		if b.Name(0) != name {
			return nil
		}
		found = b
		return enough
	})
	if found != nil {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	what := "row numbers, counted from 0"
	if src.Info().HasRowNames {
		what = "names of samples"
	} else if leftOut {
		return nil, errtext.Errorf(errtext.WrongRequest, "%s: row %s is left out because of missing values", src.Info().File,
			name)
	}
	return nil, errtext.Errorf(errtext.WrongRequest, "%s: no sample is called %q; give one of the %s", src.Info().File,
		name, what)
}

// value returns a feature of sample i.
func value(r *dataset.Rows, i int, feature uint32) float32 {
	if !r.Sparse {
		return r.X[i*r.Features+int(feature)]
	}
	columns, values := r.NonZeros(i)
	low, high := 0, len(columns)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if columns[middle] < feature {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(columns) && columns[low] == feature {
		return values[low]
	}
	return 0
}

// ended reports the error of a context, if it has one; a nil context has none.
func ended(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}

// readRow sets dst to the features of sample i.
func readRow(dst []float32, r *dataset.Rows, i int) {
	if !r.Sparse {
		copy(dst, r.Dense(i))
		return
	}
	clear(dst)
	columns, values := r.NonZeros(i)
	for j, c := range columns {
		dst[c] = values[j]
	}
}

// refsOf returns the references of the samples of a block.
func refsOf(n int) []dataset.RowRef {
	refs := make([]dataset.RowRef, n)
	for i := range refs {
		refs[i].Pos = uint32(i)
	}
	return refs
}

// Features returns the features of sample i of a block.
func (b *Block) Features(i int) []float32 {
	x := make([]float32, b.Rows.Features)
	readRow(x, b.Rows, i)
	return x
}

// softmax replaces scores by their softmax.
func softmax(scores []float64) {
	most, sum := scores[0], 0.0
	for _, s := range scores {
		most = max(most, s)
	}
	for c, s := range scores {
		scores[c] = num.Exp(s - most)
		sum += scores[c]
	}
	for c := range scores {
		scores[c] /= sum
	}
}

// blockRows is the number of samples of a block.
const blockRows = 512

// Order lists the numbers of things by a value, the greatest first, and then by number.
func Order(n int, by func(i int) float64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(by(b), by(a)) })
	return order
}
