package modelcmd

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/units"
)

// MeasuresCmd compares two arrays of distributions, for libraries. Its measures have float64 input.
type MeasuresCmd struct {
	True      string `required:"" placeholder:"FILE" help:"The .npy file of the true label distributions."`
	Predicted string `required:"" placeholder:"FILE" help:"The .npy file of the predicted label distributions."`
	Clip      string `default:"none" enum:"none,pyldl" help:"pyldl: clip probabilities at 2.2e-16 in the measures in which PyLDL clips them."`
	Normalize bool   `help:"Divide the probabilities of each sample by their sum, whatever it is."`
	Out       string `required:"" placeholder:"FILE" help:"The .npz file for the measures of each sample."`
}

// Run implements `coppice measures`.
func (c *MeasuresCmd) Run(a *cli.App) error {
	if err := cli.CheckNotInput("--out", c.Out, c.True, c.Predicted); err != nil {
		return err
	}
	how := measures.NoClip
	if c.Clip != "none" {
		how = measures.Clip(c.Clip)
	}
	d, err := c.open("D_true", c.True)
	if err != nil {
		return err
	}
	defer d.Close()
	p, err := c.open("D_pred", c.Predicted)
	if err != nil {
		return err
	}
	defer p.Close()
	if d.rows != p.rows || d.columns != p.columns {
		return cli.Usagef("the true distributions have the shape %d x %d, but the predicted distributions have %d x %d",
			d.rows, d.columns, p.rows, p.columns)
	}
	all := slices.Concat(measures.All, measures.More)
	values := make([][]float64, len(all))
	for i := range d.rows {
		x, err := d.next(i)
		if err != nil {
			return err
		}
		y, err := p.next(i)
		if err != nil {
			return err
		}
		ten, more := measures.ClippedRow(x, y, how), measures.MoreOfRow(x, y, how)
		for k, v := range append(ten[:], more[:]...) {
			values[k] = append(values[k], v)
		}
	}
	if err := cmp.Or(d.End(), p.End()); err != nil {
		return err
	}
	out, err := cli.Create(c.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	z := npy.NewArchive(out)
	for k, m := range all {
		w, err := z.Doubles(m.Name, d.rows)
		if err == nil {
			err = cmp.Or(w.Write(values[k]), w.Flush())
		}
		if err != nil {
			return err
		}
	}
	if err := cmp.Or(z.Close(), out.Commit()); err != nil {
		return err
	}
	type shown struct {
		Name           string `json:"name"`
		Title          string `json:"title"`
		Formula        string `json:"formula"`
		HigherIsBetter bool   `json:"higher_is_better"`
	}
	var list []shown
	for _, m := range all {
		list = append(list, shown{Name: m.Name, Title: m.Title, Formula: m.Formula, HigherIsBetter: m.HigherIsBetter})
	}
	return a.Print(list, func(w io.Writer) {
		fmt.Fprintf(w, "measures of %s: %s\n", units.Plural(d.rows, "sample"), c.Out)
	})
}

// matrixFile is a .npy file with the distributions of samples.
type matrixFile struct {
	*npy.Reader
	io.Closer
	name          string
	normalize     bool // accepts every sum that is not 0
	rows, columns int
	values        []float64
}

func (c *MeasuresCmd) open(name, path string) (*matrixFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := npy.NewReader(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		f.Close()
		return nil, cli.Usagef("%s: %w", name, err)
	}
	m := &matrixFile{Reader: r, Closer: f, name: name, normalize: c.Normalize}
	var ok bool
	if m.rows, m.columns, ok = r.Dims(); !ok || r.Fortran && m.columns > 1 || len(r.Shape) != 2 || m.columns < 1 {
		f.Close()
		return nil, cli.Usagef("%s: the array has the shape %v; want two dimensions, samples x labels, in C order",
			name, r.Shape)
	}
	m.values = make([]float64, m.columns)
	return m, nil
}

// next reads the distribution of a sample, which is valid until the next call.
func (m *matrixFile) next(i int) ([]float64, error) {
	if err := m.ReadFloats(m.values); err != nil {
		return nil, fmt.Errorf("%s: row %d (counted from 0): %w", m.name, i, err)
	}
	sum := 0.0
	for _, v := range m.values {
		sum += v
	}
	for j, v := range m.values { // as rows of data are read
		if !(v >= -importer.DefaultTolerance*math.Abs(sum)) || v > 1e300 {
			return nil, cli.Usagef("%s: row %d (counted from 0), label %d: %v is not a probability", m.name, i, j, v)
		}
		m.values[j] = max(v, 0)
	}
	if sum == 0 {
		return nil, cli.Usagef("%s: row %d (counted from 0): all probabilities are 0", m.name, i)
	}
	if !m.normalize && math.Abs(sum-1) > importer.DefaultTolerance {
		return nil, cli.Usagef("%s: row %d (counted from 0): the probabilities sum to %.6g, want 1 within %v; {normalize} "+
			"divides the probabilities of each sample by their sum", m.name, i, sum, importer.DefaultTolerance)
	}
	return m.values, nil
}
