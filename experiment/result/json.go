package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Encode writes the table as JSON. Equal tables give equal bytes.
func (t *Table) Encode(out io.Writer) error {
	if err := t.Validate(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(t)
}

// Decode reads what Encode wrote, and validates it. An unknown key is an error, as is more text after the table. Errors wrap
// ErrTable, except errors of in.
func Decode(in io.Reader) (*Table, error) {
	t := new(Table)
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrTable)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("the file has more text after the table: %w", ErrTable)
	}
	return t, t.Validate()
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

func (n *numbers) UnmarshalJSON(b []byte) error {
	var list []*float64
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*n = make(numbers, len(list))
	for i, v := range list {
		(*n)[i] = math.NaN()
		if v != nil {
			(*n)[i] = *v
		}
	}
	return nil
}

// decode reads JSON in which every key must be known.
func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// plain is a Run without its methods; runJSON replaces its lists.
type plain Run

type runJSON struct {
	plain
	Values      numbers `json:"values,omitempty"`
	Mean        numbers `json:"mean,omitempty"`
	CandidateKL numbers `json:"candidate_kl,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c Run) MarshalJSON() ([]byte, error) {
	return json.Marshal(runJSON{plain(c), c.Values, c.Mean, c.CandidateKL})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Run) UnmarshalJSON(b []byte) error {
	var v runJSON
	if err := decode(b, &v); err != nil {
		return err
	}
	*c = Run(v.plain)
	c.Values, c.Mean, c.CandidateKL = v.Values, v.Mean, v.CandidateKL
	return nil
}

// curveJSON is a Curve with its lists replaced.
type curveJSON struct {
	Steps       []uint64 `json:"steps"`
	Training    numbers  `json:"training_loss"`
	Validation  numbers  `json:"validation_loss,omitempty"`
	BeforeRefit uint64   `json:"before_refit,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c Curve) MarshalJSON() ([]byte, error) {
	return json.Marshal(curveJSON{c.Steps, c.Training, c.Validation, c.BeforeRefit})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Curve) UnmarshalJSON(b []byte) error {
	var v curveJSON
	if err := decode(b, &v); err != nil {
		return err
	}
	*c = Curve{v.Steps, v.Training, v.Validation, v.BeforeRefit}
	return nil
}
