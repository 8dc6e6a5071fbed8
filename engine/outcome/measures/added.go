package measures

import (
	"math"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// OfDistribution are the measures More.
type OfDistribution struct {
	Spearman         Stat `json:"spearman"`
	JensenShannon    Stat `json:"jensen_shannon"`
	ZeroOne          Stat `json:"zero_one"`
	ErrorProbability Stat `json:"error_probability"`
}

// Stats lists the measures in the order of More.
func (o *OfDistribution) Stats() [CountMore]*Stat {
	return [CountMore]*Stat{&o.Spearman, &o.JensenShannon, &o.ZeroOne, &o.ErrorProbability}
}

// moreWidth is the number of sums of More: the measures, then their squares.
const moreWidth = 2 * CountMore

// addMore adds a row to the sums of More.
func addMore(sums []float64, row MoreRow) {
	for i, v := range row {
		sums[i] += v
		sums[CountMore+i] += float64(v * v)
	}
}

// moreFrom reads the sums of n rows.
func moreFrom(n float64, sums []float64) *OfDistribution {
	o := new(OfDistribution)
	for i, s := range o.Stats() {
		*s = StatOf(n, sums[i], sums[CountMore+i])
	}
	return o
}

// moreOverFolds returns the measures over folds.
func moreOverFolds(folds []OfDistribution) *OfDistribution {
	o := new(OfDistribution)
	for i, s := range o.Stats() {
		*s = overFolds(folds, func(f *OfDistribution) Stat { return *f.Stats()[i] })
	}
	return o
}

// MaxConfusion is the greatest number of classes whose confusion matrix is kept: 80 KB of
// sums, some 25 KB of JSON.
const MaxConfusion = 100

// Classes are the measures of predicted classes: the predicted class of a row is the one of
// the greatest share, of equal ones the lowest. All but the deviation of Accuracy and LogLoss
// over rows come from counts of the rows together, not from rows.
type Classes struct {
	Accuracy Stat `json:"accuracy"`
	// MeanRecall and MeanJaccard are means over the classes that are present in the truth,
	// of TP/(TP + FN) and TP/(TP + FP + FN).
	MeanRecall  Stat `json:"mean_recall"`
	MeanJaccard Stat `json:"mean_jaccard"`
	// LogLoss is the mean of -ln p of the true class, p at least MinPrediction.
	LogLoss Stat `json:"log_loss"`
	// Confusion counts rows by true and by predicted class; nil: more than MaxConfusion.
	// Over folds it is the sum.
	Confusion [][]uint64 `json:"confusion,omitempty"`
}

// classWidth is the number of sums of C classes: the log loss and its square, rows by true
// class, by predicted class and by both where they are the same, then the matrix.
func classWidth(classes int) int {
	n := 2 + 3*classes
	if classes <= MaxConfusion {
		n += classes * classes
	}
	return n
}

// addClass adds a row to the sums of classes.
func addClass(sums []float64, d, p []float32) {
	n, truth, predicted := len(d), dataset.Greatest(d), dataset.Greatest(p)
	// The log loss is -ln of the true class's probability in p, which is divided by its sum as in OfRow.
	sum := 0.0
	for _, v := range p {
		sum += float64(v)
	}
	share := float64(p[truth])
	if sum > 0 && sum <= math.MaxFloat64 {
		share /= sum
	}
	loss := -num.Log(max(share, MinPrediction))
	sums[0] += loss
	sums[1] += float64(loss * loss)
	counts := sums[2:]
	counts[truth]++
	counts[n+predicted]++
	if truth == predicted {
		counts[2*n+truth]++
	}
	if matrix := counts[3*n:]; len(matrix) > 0 {
		matrix[truth*n+predicted]++
	}
}

// classesFrom reads the sums of so many classes.
func classesFrom(sums []float64, classes int) *Classes {
	counts := sums[2:]
	truth, predicted, hits, matrix := counts[:classes], counts[classes:2*classes], counts[2*classes:3*classes], counts[3*classes:]
	n, right, present, recall, jaccard := 0.0, 0.0, 0.0, 0.0, 0.0
	for c, t := range truth {
		n, right = n+t, right+hits[c]
		if t > 0 {
			present++
			recall += hits[c] / t
			jaccard += hits[c] / (t + predicted[c] - hits[c])
		}
	}
	r := &Classes{
		Accuracy: StatOf(n, right, right), LogLoss: StatOf(n, sums[0], sums[1]),
		MeanRecall: Stat{recall / present, math.NaN()}, MeanJaccard: Stat{jaccard / present, math.NaN()},
	}
	for c := 0; c < len(matrix); c += classes {
		row := make([]uint64, classes)
		for i, v := range matrix[c : c+classes] {
			row[i] = uint64(v)
		}
		r.Confusion = append(r.Confusion, row)
	}
	return r
}

// classesOverFolds returns the measures over folds.
func classesOverFolds(folds []Classes) *Classes {
	r := &Classes{
		Accuracy:    overFolds(folds, func(c *Classes) Stat { return c.Accuracy }),
		MeanRecall:  overFolds(folds, func(c *Classes) Stat { return c.MeanRecall }),
		MeanJaccard: overFolds(folds, func(c *Classes) Stat { return c.MeanJaccard }),
		LogLoss:     overFolds(folds, func(c *Classes) Stat { return c.LogLoss }),
	}
	for i := range folds {
		for t, row := range folds[i].Confusion {
			if len(r.Confusion) == t {
				r.Confusion = append(r.Confusion, make([]uint64, len(row)))
			}
			for p, n := range row {
				if p < len(r.Confusion[t]) {
					r.Confusion[t][p] += n
				}
			}
		}
	}
	return r
}

// MaxScore is the greatest error that a cumulative score is given for, beside 0 and the whole
// numbers between.
const MaxScore = 10

// scoreSlack is added to an error that a cumulative score allows, for rounding.
const scoreSlack = 1e-9

// Errors are the absolute errors of one predicted number for each row.
type Errors struct {
	MAE Stat `json:"mae"`
	// Scores are the cumulative scores of 0 to MaxScore: the share of rows whose error is
	// at most that, and 1e-9. Over folds they are means.
	Scores []float64 `json:"within"`
}

// OnScale are the errors of three numbers that a predicted distribution over a scale gives.
type OnScale struct {
	Expected Errors `json:"expected"` // Σ y p
	Median   Errors `json:"median"`   // the least y whose cumulative share is a half
	Mode     Errors `json:"mode"`     // the y of the greatest share
}

// OfNumber are the errors of a predicted number, and of the whole number below it.
type OfNumber struct {
	Number  Errors `json:"number"`
	Floored Errors `json:"floored"`
}

// errorWidth is the number of sums of one predicted number: errors, their squares, and rows
// by cumulative score.
const errorWidth = 2 + MaxScore + 1

// addError adds an error to the sums.
func addError(sums []float64, truth, predicted float64) {
	e := math.Abs(predicted - truth)
	sums[0] += e
	sums[1] += float64(e * e)
	for s := range sums[2:] {
		if e <= float64(s)+scoreSlack {
			sums[2+s]++
		}
	}
}

// errorsFrom reads the sums of n rows.
func errorsFrom(n float64, sums []float64) Errors {
	e := Errors{MAE: StatOf(n, sums[0], sums[1])}
	for _, rows := range sums[2:] {
		e.Scores = append(e.Scores, rows/max(n, 1)) // 0 of no rows, so that JSON can say it
	}
	return e
}

// errorsOverFolds returns the errors over folds of those that of gives.
func errorsOverFolds[T any](folds []T, of func(*T) *Errors) Errors {
	e := Errors{MAE: overFolds(folds, func(f *T) Stat { return of(f).MAE }), Scores: make([]float64, MaxScore+1)}
	for i := range folds {
		for s, v := range of(&folds[i]).Scores {
			if s < len(e.Scores) {
				e.Scores[s] += v / float64(len(folds))
			}
		}
	}
	return e
}
