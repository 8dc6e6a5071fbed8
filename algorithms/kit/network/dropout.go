package network

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Dropout sets a value of a row to 0 with probability Rate, and multiplies the others by
// 1/(1-Rate) (Srivastava et al. 2014). It does so in training only. Whether value j of a row is
// kept depends on the seed, the layer, the mini-batch and the original number of the row: it is
// number j mod 4 of block j/4 of the stream (key, step, row).
type Dropout struct {
	bare
	Of   Shape
	Rate float64 // at least 0, below 1
}

// dropoutSpace has what the values of the last block were multiplied by.
type dropoutSpace struct {
	key    num.Key
	factor []float32
}

// Shapes implements Layer.
func (l *Dropout) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer.
func (l *Dropout) NewSpace(seed uint64, i int) Space {
	return &dropoutSpace{key: num.NewKey(seed, fmt.Sprintf("dropout/%d", i))}
}

// Forward implements Layer.
func (l *Dropout) Forward(v *Values, p *Pass, ws Space) {
	copy(v.Y, v.X)
	if !p.Training {
		return
	}
	s, n := ws.(*dropoutSpace), l.Of.Size()
	s.factor = resize(s.factor, len(v.X))
	for i := range p.Samples {
		l.draw(s.factor[i*n:(i+1)*n], s.key, p.Step, p.Samples[i].Row)
	}
	num.Mul32(v.Y, s.factor)
}

// Backward implements Layer.
func (l *Dropout) Backward(v *Values, _ *Pass, ws Space) {
	if v.DX != nil {
		copy(v.DX, v.DY)
		num.Mul32(v.DX, ws.(*dropoutSpace).factor)
	}
}

// draw sets a row's factors: a value is kept where its random number is at least Rate·2³².
func (l *Dropout) draw(factor []float32, key num.Key, step uint64, row uint32) {
	least, kept := l.least(), math.Float32bits(float32(1/(1-l.Rate)))
	for block := 0; 4*block < len(factor); block++ {
		random := num.Philox(key, [4]uint32{uint32(step), uint32(step >> 32), row, uint32(block)})
		part := factor[4*block : min(4*block+4, len(factor))]
		for j := range part {
			keep := uint32(0)
			if uint64(random[j&3]) >= least {
				keep = 1
			}
			part[j] = math.Float32frombits(kept & -keep)
		}
	}
}

// least returns the least random number of a value that is kept: Rate·2³², rounded up.
func (l *Dropout) least() uint64 {
	bound := l.Rate * (1 << 32)
	n := uint64(bound)
	if float64(n) < bound {
		n++
	}
	return n
}
