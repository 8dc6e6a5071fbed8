package measures

import (
	"math"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

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
	loss := logLoss(p, truth)
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

// logLoss is -ln of the share of class c in p, which is renormalised as in OfRow.
func logLoss(p []float32, c int) float64 {
	sum := 0.0
	for _, v := range p {
		sum += float64(v)
	}
	share := float64(p[c])
	if sum > 0 && sum <= math.MaxFloat64 {
		share /= sum
	}
	return -num.Log(max(share, MinPrediction))
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
		Accuracy: statOf(n, right, right), LogLoss: statOf(n, sums[0], sums[1]),
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
