package measures

import "math"

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
	e := Errors{MAE: statOf(n, sums[0], sums[1])}
	for _, rows := range sums[2:] {
		e.Scores = append(e.Scores, shareOf(rows, n))
	}
	return e
}

// shareOf is rows/n, and 0 of no rows, so that JSON can say it.
func shareOf(rows, n float64) float64 {
	if n == 0 {
		return 0
	}
	return rows / n
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
