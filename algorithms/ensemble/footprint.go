package ensemble

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Bytes beside the arrays of what is estimated.
const (
	headBytes = 1 << 10 // of a child's numbers
	fileBytes = 8 << 10 // of a model file: names and shapes
	nameBytes = 32      // of a row: its name, and its number on a scale
)

// memory estimates the memory of a trainer: the members' models, as files and to predict with,
// and until the weights are known the predictions of all rows by each member, encoded and
// decoded.
func (k kin) memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	members, err := k.resolve(c.Members, m)
	if err != nil {
		return algorithms.Footprint{} // fits has refused the job
	}
	f := algorithms.Footprint{Model: 16 + 8*int64(len(members))}
	for i := range members {
		own, err := members[i].Footprint(&round.Job{Params: members[i].resolved.Params}, m)
		if err == nil {
			f.Model += own.Model
		}
	}
	f.State = 2*f.Model + int64(len(members))*fileBytes + int64(c.units(len(members), c.InnerFolds))*headBytes
	if c.heldOut(c.InnerFolds) > 0 {
		f.State += 2 * int64(len(members)) * int64(m.Rows) * (predictions.RowBytes(m.Labels) + nameBytes)
	}
	return f
}
