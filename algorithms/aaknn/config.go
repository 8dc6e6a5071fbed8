package aaknn

import (
	"errors"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "aa-knn"

// autoK is the k that is chosen by the training rows.
const autoK = "auto"

// Config holds the settings of a job.
type Config struct {
	Preset  string
	K       string // auto, or a number
	Scaling string
}

// settingsOf lists what a spec may say, in the order of help texts. Preset paper has the k of
// Geng 2016's experiments; his toolbox has 4 by default.
func settingsOf(paper, loss string) param.Table[Config] {
	return param.Table[Config]{
		param.Word("preset", "auto adapts the defaults to the dataset; paper uses "+paper+" and raw features",
			func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
		param.Text("k", "number of neighbours of a sample. auto tries 4, 8, 16, ... up to a quarter of the training "+
			"samples, and takes the k with the lowest leave-one-out "+loss+". The time grows with the square of the number "+
			"of samples",
			"auto, or a number of samples from 1", autoK, checkK, func(c *Config) *string {
				return &c.K
			}).Preset(param.Paper, "5").InPaper(),
		scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	}
}

// checkK reports why a value of k is wrong.
func checkK(text string) error {
	if text == autoK {
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 32); err != nil || n == 0 || text[0] == '+' {
		return errors.New("want auto, or a number of samples from 1")
	}
	return nil
}

// neighbours returns k; 0: auto.
func (c *Config) neighbours() int {
	n, _ := strconv.Atoi(c.K) // checked
	return n
}

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if !given.Has("scaling") && c.Preset == param.Auto {
		c.Scaling = scaling.Rule(m)
	}
}

// fits refuses more neighbours than rows.
func (c *Config) fits(m *dataset.Manifest) error { return c.fitsRows(m.Rows) }

func (c *Config) fitsRows(rows int) error {
	if k := c.neighbours(); k > rows {
		return param.Errorf("k", "%d neighbours, but there are only %d training samples", k, rows)
	}
	return nil
}

// candidates lists the k that auto chooses among, for so many training rows: each has as many
// other rows.
func candidates(rows int) []int {
	list := []int{min(4, max(1, rows-1))}
	for k := 8; k <= rows/4; k *= 2 {
		list = append(list, k)
	}
	return list
}
