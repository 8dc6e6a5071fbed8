package predict

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// lagging predicts the number of a block, the first ones slowest.
type lagging struct {
	algorithms.Model
	at, most atomic.Int32
}

func (*lagging) Shape() (int, int) { return 1, 1 }

func (*lagging) NewScratch() any { return nil }

func (l *lagging) Predict(dst []float32, _ []dataset.RowRef, shard func(uint32) *dataset.Rows, _ any) {
	if n := l.at.Add(1); n > l.most.Load() {
		l.most.Store(n)
	}
	number := shard(0).Row[0]
	time.Sleep(time.Duration(20-number) * 100 * time.Microsecond)
	dst[0] = float32(number)
	l.at.Add(-1)
}

// TestPredictorKeepsOrder: blocks are handed on in the order in which they came, also where
// later ones are predicted before; an error ends it.
func TestPredictorKeepsOrder(t *testing.T) {
	l, next := &lagging{}, float32(0)
	stop := errors.New("stop")
	for _, last := range []float32{20, 7} {
		next = 0
		p := newPredictor(l, 1, 4, func(b *Block) error {
			if b.values[0] != next {
				t.Errorf("block %v came as number %v", b.values[0], next)
			}
			if next++; next == last {
				return stop
			}
			return nil
		})
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			err = p.add(&dataset.Rows{N: 1, Row: []uint32{uint32(i)}}, nil)
		}
		if failed := p.end(); !errors.Is(failed, stop) || next != last {
			t.Errorf("it ended with %v after block %v", failed, next)
		}
	}
	if l.most.Load() < 2 {
		t.Error("no two blocks were predicted side by side")
	}
}
