package result

import (
	"encoding/json"
	"io"
)

// Encode writes the table as JSON. Equal tables give equal bytes.
func (t *Table) Encode(out io.Writer) error {
	if err := t.Validate(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(t)
}

// numbers are floats in JSON, or null if they are not finite.
type numbers []float64

func (n numbers) MarshalJSON() ([]byte, error) {
	list := make([]*float64, len(n))
	for i, v := range n {
		if v-v == 0 {
			v += 0 // no -0
			list[i] = &v
		}
	}
	return json.Marshal(list)
}

// plain is a Run without its methods.
type plain Run

// MarshalJSON implements json.Marshaler.
func (c Run) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plain
		Values      numbers `json:"values,omitempty"`
		Mean        numbers `json:"mean,omitempty"`
		CandidateKL numbers `json:"candidate_kl,omitempty"`
	}{plain(c), c.Values, c.Mean, c.CandidateKL})
}

// MarshalJSON implements json.Marshaler.
func (c Curve) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Steps       []uint64 `json:"steps"`
		Training    numbers  `json:"training_loss"`
		Validation  numbers  `json:"validation_loss,omitempty"`
		BeforeRefit uint64   `json:"before_refit,omitempty"`
	}{c.Steps, c.Training, c.Validation, c.BeforeRefit})
}
