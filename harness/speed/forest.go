package speed

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Growing is which forest of StructRF is grown, by Coppice and its peers.
type Growing struct {
	Trees, Depth, MinSamples int
}

// growAgreement is how far scikit-learn's loss may be off Coppice's, as a share: its trees
// minimise the squared error of the labels, ours split two clusters of them.
const growAgreement = 0.5

func (g Growing) job(s *Set) (*round.Job, error) {
	r, err := structrf.New().Resolve(param.Values{
		"trees": int64(g.Trees), "max_depth": int64(g.Depth), "min_samples": int64(g.MinSamples),
	}, s.Manifest)
	if err != nil {
		return nil, err
	}
	return &round.Job{Algorithm: structrf.Name, Numerics: round.Numerics, Seed: 1, Dataset: s.Manifest.Digest(),
		Params: r.Params}, nil
}

// grow grows the forest, one tree at a time, and returns the seconds from the rows in
// memory to a model.
func (g Growing) grow(ctx context.Context, s *Set, j *round.Job) (algorithms.Model, float64, error) {
	runtime.GC() // what ran before leaves no garbage to it
	began := time.Now()
	trainer, err := structrf.New().NewTrainer(j, s.Manifest, nil)
	if err != nil {
		return nil, 0, err
	}
	k, err := structrf.New().NewKernel(j, s.Manifest)
	if err != nil {
		return nil, 0, err
	}
	if err := engine.Drive(ctx, trainer, 0, engine.NewLocal(k, s.Data, 1, nil), nothing); err != nil {
		return nil, 0, err
	}
	m, err := trainer.Model()
	return m, time.Since(began).Seconds(), err
}

func (g Growing) peerJob(kind, file string) Job {
	return Job{"kind": kind, "data": file, "seed": 1, "trees": g.Trees, "depth": g.Depth, "samples": g.MinSamples,
		"rows": oneByOne}
}

// Grow measures how long the forest takes to grow. file is the dataset's for peers;
// empty: there are none.
func (g Growing) Grow(s *Set, file string) (Case, error) {
	j, err := g.job(s)
	if err != nil {
		return Case{}, err
	}
	c := Case{
		Name: fmt.Sprintf("%s, min_samples %d", s.Name, g.MinSamples), Of: []string{fmt.Sprintf("growing %d trees", g.Trees)},
		Agreement: growAgreement, Cold: true,
		Run: func(ctx context.Context) (f Figures, err error) {
			model, seconds, err := g.grow(ctx, s, j)
			if err != nil {
				return f, err
			}
			return Figures{Seconds: []float64{seconds}, Loss: s.loss(predict(s, model))}, nil
		},
	}
	if file != "" {
		c.Jobs = map[string]Job{PeerSklearn: g.peerJob("forest", file)}
	}
	return c, nil
}

// oneByOne is how many rows are predicted one at a time for a figure.
const oneByOne = 200

// Predict measures how long the forest takes to predict all rows, and one row at a time.
func (g Growing) Predict(s *Set, file string) (Case, error) {
	j, err := g.job(s)
	if err != nil {
		return Case{}, err
	}
	var model algorithms.Model
	c := Case{
		Name:      fmt.Sprintf("%s, min_samples %d, depth %d", s.Name, g.MinSamples, g.Depth),
		Of:        []string{fmt.Sprintf("predicting %d samples", s.Manifest.Rows), "predicting one sample"},
		Agreement: growAgreement,
		Run: func(ctx context.Context) (f Figures, err error) {
			if model == nil { // the run that does not count
				if model, _, err = g.grow(ctx, s, j); err != nil {
					return f, err
				}
			}
			began := time.Now()
			predicted := predict(s, model)
			all := time.Since(began).Seconds()
			return Figures{Seconds: []float64{all, predictOne(s, model)}, Loss: s.loss(predicted)}, nil
		},
	}
	if file != "" {
		c.Jobs = map[string]Job{PeerSklearn: g.peerJob("predict", file)}
	}
	return c, nil
}

func (s *Set) refs() []dataset.RowRef {
	return s.Data.Select(0, len(s.Manifest.Shards), dataset.AllRows)
}

func (s *Set) shard(i uint32) *dataset.Rows { return s.Data.Shard(int(i)) }

// predict predicts all rows together.
func predict(s *Set, m algorithms.Model) []float32 {
	refs := s.refs()
	dst := make([]float32, len(refs)*s.Manifest.Labels)
	m.Predict(dst, refs, s.shard, m.NewScratch())
	return dst
}

// predictOne returns the mean seconds of a row that is predicted alone.
func predictOne(s *Set, m algorithms.Model) float64 {
	refs, scratch, dst := s.refs(), m.NewScratch(), make([]float32, s.Manifest.Labels)
	n := min(oneByOne, len(refs))
	began := time.Now()
	for i := range n {
		m.Predict(dst, refs[i:i+1], s.shard, scratch)
	}
	return time.Since(began).Seconds() / float64(n)
}

// loss is the mean K-L divergence of predictions of all rows.
func (s *Set) loss(predicted []float32) (sum float64) {
	labels, refs := s.Manifest.Labels, s.refs()
	for i, ref := range refs {
		for c, d := range s.shard(ref.Shard).Label(int(ref.Pos)) {
			if d > 0 {
				sum += float64(d) * math.Log(float64(d)/max(1e-12, float64(predicted[i*labels+c])))
			}
		}
	}
	return sum / float64(len(refs))
}
