package measures

import (
	"encoding/json"
	"math"
)

// MarshalJSON implements json.Marshaler: {"mean":0.07,"std":0.02}, where what is not finite
// is null.
func (s Stat) MarshalJSON() ([]byte, error) {
	return json.Marshal(statJSON{finite(s.Mean), finite(s.Std)})
}

// UnmarshalJSON implements json.Unmarshaler; what is absent or null becomes NaN.
func (s *Stat) UnmarshalJSON(b []byte) error {
	var v statJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = Stat{orNaN(v.Mean), orNaN(v.Std)}
	return nil
}

// statOf returns mean and population standard deviation of n values from their sum and the
// sum of their squares.
func statOf(n, sum, squares float64) Stat {
	mean := sum / n
	return Stat{mean, math.Sqrt(max(squares/n-float64(mean*mean), 0))}
}

// StatOver returns mean and population standard deviation of values.
func StatOver(values []float64) Stat {
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	for _, v := range values {
		d := v - mean
		squares += float64(d * d)
	}
	return Stat{mean, math.Sqrt(squares / n)}
}

// overFolds returns the Stat over folds of the means that of gives.
func overFolds[T any](folds []T, of func(*T) Stat) Stat {
	var means []float64
	for i := range folds {
		means = append(means, of(&folds[i]).Mean)
	}
	return StatOver(means)
}
