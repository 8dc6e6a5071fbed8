package predict

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// CalibrationCurve compares predicted with observed values in bins of equal counts, for each label and over all labels.
type CalibrationCurve struct {
	// All has the pairs of all labels together. Targets are scaled to [0, 1] by their bounds there.
	All Calibration `json:"all"`
	// Labels has each label, in its unit; empty: the model predicts a number.
	Labels []Calibration `json:"labels,omitempty"`
}

// Calibration is of one label, or of all. Its error is the expected calibration error: the mean over bins, weighted by
// their counts, of |mean prediction - mean observation|. (Naeini, Cooper, Hauskrecht: Obtaining Well Calibrated
// Probabilities Using Bayesian Binning, AAAI 2015.)
type Calibration struct {
	Label string           `json:"label,omitempty"`
	Count int              `json:"count"` // of pairs
	Error float64          `json:"expected_calibration_error"`
	Bins  []CalibrationBin `json:"bins"`
}

// CalibrationBin has the pairs of consecutive predictions. Low and High are the least and the greatest prediction;
// Predicted and Observed are means.
type CalibrationBin struct {
	Count     int     `json:"count"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Predicted float64 `json:"predicted"`
	Observed  float64 `json:"observed"`
}

// pair is a prediction and what was observed.
type pair struct{ predicted, observed float32 }

// Pairs collects predictions and observations.
type Pairs struct {
	model  *Model
	scale  *dataset.Scale  // with the true number, if a number is predicted
	bounds *dataset.Bounds // of targets; nil: there are none
	labels [][]pair
	count  int
}

// NewPairs returns Pairs without pairs. t is the type of the labels.
func (m *Model) NewPairs(t dataset.LabelType) (*Pairs, error) {
	p := &Pairs{model: m, labels: make([][]pair, m.outputWidth())}
	if m.Output() == algorithms.Number {
		p.scale = t.Scale
	}
	var err error
	p.bounds, err = m.TargetBounds()
	return p, err
}

// Add adds sample i of a block, which has labels. Missing degrees are left out.
func (p *Pairs) Add(b *Block, i int) error {
	if p.count += len(p.labels); p.count > MaxScores {
		return errtext.Errorf(errtext.WrongData, "{calibration}: the samples have more than %s labels altogether; give "+
			"fewer samples", units.Count(MaxScores))
	}
	predicted := b.Row(i)
	if p.scale != nil {
		p.labels[0] = append(p.labels[0], pair{predicted[0], float32(p.scale.Number(b.Rows, i))})
		return nil
	}
	for k, d := range b.Rows.Label(i) {
		if d == d {
			p.labels[k] = append(p.labels[k], pair{predicted[k], d})
		}
	}
	return nil
}

// Curve returns the curve with at most so many bins for each label. The samples may come in any order.
func (p *Pairs) Curve(bins int) *CalibrationCurve {
	if p.scale != nil {
		return &CalibrationCurve{All: calibrationOf("", p.labels[0], bins)}
	}
	c := new(CalibrationCurve)
	var all []pair
	for k, pairs := range p.labels {
		c.Labels = append(c.Labels, calibrationOf(p.model.Labels()[k], pairs, bins))
		for _, one := range pairs {
			if b := p.bounds; b != nil {
				scaled := func(v float32) float32 { return float32((float64(v) - b.Low[k]) / (b.High[k] - b.Low[k])) }
				one = pair{scaled(one.predicted), scaled(one.observed)}
			}
			all = append(all, one)
		}
	}
	c.All = calibrationOf("", all, bins)
	return c
}

// calibrationOf sorts pairs by prediction, and divides them into bins of equal counts. Equal predictions are in the
// same bin, so there may be fewer bins, and their counts may differ.
func calibrationOf(label string, pairs []pair, bins int) Calibration {
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.predicted, b.predicted), cmp.Compare(a.observed, b.observed))
	})
	n := len(pairs)
	c := Calibration{Label: label, Count: n, Bins: []CalibrationBin{}}
	for from, k := 0, 1; from < n; k++ {
		to := int(int64(k) * int64(n) / int64(bins))
		for to > 0 && to < n && pairs[to].predicted == pairs[to-1].predicted {
			to++
		}
		if to <= from {
			continue
		}
		b := CalibrationBin{Count: to - from, Low: float64(pairs[from].predicted), High: float64(pairs[to-1].predicted)}
		for _, one := range pairs[from:to] {
			b.Predicted += float64(one.predicted)
			b.Observed += float64(one.observed)
		}
		b.Predicted /= float64(b.Count)
		b.Observed /= float64(b.Count)
		c.Error += float64(float64(b.Count) / float64(n) * math.Abs(b.Predicted-b.Observed))
		c.Bins, from = append(c.Bins, b), to
	}
	return c
}

// Scaled returns the calibration of a label with means in fractions of its bounds, if the model predicts targets.
func (p *Pairs) Scaled(c Calibration, label int) Calibration {
	if p.bounds == nil {
		return c
	}
	low, width := p.bounds.Low[label], p.bounds.High[label]-p.bounds.Low[label]
	c.Error, c.Bins = c.Error/width, slices.Clone(c.Bins)
	for i := range c.Bins {
		for _, v := range []*float64{&c.Bins[i].Low, &c.Bins[i].High, &c.Bins[i].Predicted, &c.Bins[i].Observed} {
			*v = (*v - low) / width
		}
	}
	return c
}

// MaxBins bounds the bins of a calibration curve.
const MaxBins = 1000

// CheckBins returns an error unless a curve can have so many bins.
func CheckBins(bins int) error {
	if bins < 1 || bins > MaxBins {
		return errtext.Errorf(errtext.WrongOption, "{bins=%s}: want 1 to %s bins", strconv.Itoa(bins), units.Count(MaxBins))
	}
	return nil
}
