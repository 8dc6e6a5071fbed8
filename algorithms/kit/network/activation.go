package network

import "github.com/coppice-ldl/coppice/internal/num"

// ReLU is the rectifier y = max(0, x), whose derivative at 0 is 0.
type ReLU struct {
	bare
	Of Shape
}

// Shapes implements Layer.
func (l *ReLU) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer.
func (l *ReLU) NewSpace(uint64, int) Space { return nil }

// Forward implements Layer.
func (l *ReLU) Forward(v *Values, _ *Pass, _ Space) { num.KeepPositive(v.Y, v.X, v.X) }

// Backward implements Layer.
func (l *ReLU) Backward(v *Values, _ *Pass, _ Space) {
	if v.DX != nil {
		num.KeepPositive(v.DX, v.DY, v.Y)
	}
}

// Logistic is y = 1/(1 + exp(-x)).
type Logistic struct {
	bare
	Of Shape
}

// logisticSpace has the derivatives of the last outputs.
type logisticSpace struct{ slope []float32 }

// Shapes implements Layer.
func (l *Logistic) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer.
func (l *Logistic) NewSpace(uint64, int) Space { return new(logisticSpace) }

// Forward implements Layer.
func (l *Logistic) Forward(v *Values, _ *Pass, ws Space) {
	s := ws.(*logisticSpace)
	s.slope = resize(s.slope, len(v.Y))
	num.SigmoidPairs(v.Y, s.slope, v.X)
	num.Mul32(s.slope, v.Y)
}

// Backward implements Layer.
func (l *Logistic) Backward(v *Values, _ *Pass, ws Space) {
	if v.DX != nil {
		copy(v.DX, v.DY)
		num.Mul32(v.DX, ws.(*logisticSpace).slope)
	}
}
