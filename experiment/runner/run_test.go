package runner

import (
	"context"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
)

// sixCells is work of six cells that take milliseconds.
func sixCells(t *testing.T) *Work {
	t.Helper()
	s, err := experiment.Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [aa-knn]\nfolds: 6"))
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Artificial(t, 60)
	w := &Work{Data: &local.Data{Manifest: m, Shards: shards}}
	if w.Plan, err = experiment.NewPlan(t.Context(), s, &s.Datasets[0], &experiment.Data{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	if w.Cells, err = w.Plan.Cells(); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestPutBesideComputing: while a record is written others compute; a cell counts once its record
// is written, in the order in which records are.
func TestPutBesideComputing(t *testing.T) {
	running, put := make(chan struct{}, 1), 0
	err := Run(t.Context(), []*Work{sixCells(t)}, Options{
		Lanes: 1,
		Put: func(_ *Work, _ *experiment.Cell, r *experiment.Record) error {
			if put == 0 {
				testkit.Receive(t, "another run to run", running)
			}
			put++
			return nil
		},
		Show: func(s Status) {
			if s.Done > put {
				t.Errorf("%d runs count, %d records are written", s.Done, put)
			}
			if s.Running > 0 && s.Done == 0 {
				select {
				case running <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil || put != 6 {
		t.Errorf("%d records, error %v", put, err)
	}
}

// TestPutFails: the run ends with the error, and nothing is written behind it.
func TestPutFails(t *testing.T) {
	full, put := errors.New("the disk is full"), 0
	err := Run(t.Context(), []*Work{sixCells(t)}, Options{Lanes: 2, Put: func(*Work, *experiment.Cell, *experiment.Record) error {
		if put++; put == 2 {
			return full
		}
		return nil
	}})
	if !errors.Is(err, full) || put != 2 {
		t.Errorf("%d records, error %v", put, err)
	}
}

// TestRunIsCancelled: what ended before is written.
func TestRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	put := 0
	err := Run(ctx, []*Work{sixCells(t)}, Options{Lanes: 1, Put: func(*Work, *experiment.Cell, *experiment.Record) error {
		put++
		cancel()
		return nil
	}})
	if !errors.Is(err, context.Canceled) || put < 1 || put > 5 {
		t.Errorf("%d records, error %v", put, err)
	}
}
