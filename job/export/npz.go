// Package export writes models for programs without Coppice: as NumPy arrays, as JSON and as ONNX graphs.
package export

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/predict"
)

// Format is a format of exported models.
type Format struct {
	Name  string // also the end of the names of files, after a dot
	write func(w io.Writer, m *predict.Model) error
}

// Write writes a model, and returns the number of bytes.
func (f *Format) Write(w io.Writer, m *predict.Model) (int64, error) {
	c := &counter{to: w}
	err := f.write(c, m)
	return c.n, err
}

// counter counts the bytes that are written.
type counter struct {
	to io.Writer
	n  int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// Formats lists the formats.
func Formats() []Format { return []Format{{"npz", NPZ}, {"json", JSON}, {"onnx", ONNX}} }

// FormatOf returns the format of a name, or else the format of the end of a path; ok is false if there is none.
func FormatOf(name, path string) (f Format, ok bool) {
	for _, f := range Formats() {
		if name == f.Name || name == "" && strings.HasSuffix(strings.ToLower(path), "."+f.Name) {
			return f, true
		}
	}
	return Format{}, false
}

// About is what an exported model says of itself.
type About struct {
	Format    int    `json:"format"` // aboutFormat
	Algorithm string `json:"algorithm"`
	Digest    string `json:"digest"`  // of the model file
	Version   string `json:"version"` // of Coppice that trained the model
	Predicts  string `json:"predicts"`
	Features  int    `json:"features"`
	Labels    int    `json:"labels"`

	FeatureNames []string           `json:"feature_names,omitempty"`
	LabelNames   []string           `json:"label_names"`
	LabelType    dataset.LabelType  `json:"label_type,omitzero"`
	Categories   []dataset.Category `json:"categories,omitempty"`
	Shape        string             `json:"shape,omitempty"` // channels x height x width of the images, such as 1x8x8
	// Missing says what took the place of missing features, and Fill has these values: one for each feature.
	Missing string    `json:"missing,omitempty"`
	Fill    []float64 `json:"fill,omitempty"`
	// Bounds are the bounds of targets. Low and High have a number for each label: a prediction p in [0, 1] is the
	// target low + p*(high - low).
	Bounds    *dataset.Bounds `json:"bounds,omitempty"`
	MeanLabel []float64       `json:"mean_label,omitempty"`
	Median    *float64        `json:"median,omitempty"`
	Spec      *round.Job      `json:"spec"`
}

// aboutFormat is the version of About.
const aboutFormat = 1

// Describe describes a model.
func Describe(m *predict.Model) *About {
	p := m.Provenance
	a := &About{
		Format: aboutFormat, Algorithm: m.File.Algorithm, Digest: m.File.Digest, Version: p.Version,
		Predicts: m.Output().String(), FeatureNames: p.FeatureNames, LabelNames: m.Labels(), LabelType: p.LabelType,
		Categories: p.Reading.Categories, Shape: p.Shape.String(), Missing: p.Missing, Fill: p.Fill,
		Bounds: p.LabelType.Bounds, MeanLabel: p.MeanLabel, Median: p.Median, Spec: p.Job,
	}
	a.LabelType.Bounds = nil
	a.Features, a.Labels = m.Shape()
	if by, err := dataset.ParseMissing(p.Missing); err == nil && by.Fill { // by one number
		a.Fill = slices.Repeat([]float64{by.Value}, a.Features)
	}
	return a
}

// aboutArray is the name of the array with the About of a model.
const aboutArray = "about"

// NPZ writes the tensors of a model as NumPy arrays with the same names, and the array "about": one text, the About of
// the model as JSON.
func NPZ(w io.Writer, m *predict.Model) error {
	text, err := json.Marshal(Describe(m))
	if err != nil {
		return err
	}
	z := npy.NewArchive(w)
	for i := range m.File.Tensors {
		if err := arrayOf(z, &m.File.Tensors[i]); err != nil {
			return err
		}
	}
	return cmp.Or(z.List(aboutArray, []string{string(text)}), z.Close())
}

// arrayOf writes a tensor as an array of its type.
func arrayOf(z *npy.Archive, t *algorithms.Tensor) error {
	switch {
	case t.Name == aboutArray:
		return fmt.Errorf("the model has a tensor %q, which is the name of another array", t.Name)
	case t.F64 != nil:
		return writeArray(t.F64, t, z.Doubles)
	case t.U32 != nil:
		return writeArray(t.U32, t, z.Uints)
	}
	return writeArray(t.F32, t, z.Floats)
}

func writeArray[T npy.Element](values []T, t *algorithms.Tensor,
	begin func(name string, shape ...int) (*npy.Writer[T], error)) error {
	out, err := begin(t.Name, t.Dims...)
	if err != nil {
		return err
	}
	return cmp.Or(out.Write(values), out.Flush())
}

// JSON writes an object with the About of a model and with its tensors. A tensor has its type, its shape, and its
// values in C order. JSON has no infinite numbers, so a model with one is refused.
func JSON(w io.Writer, m *predict.Model) error {
	out := bufio.NewWriterSize(w, 1<<16)
	about, err := json.MarshalIndent(Describe(m), "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "{\n\"about\": %s,\n\"tensors\": {", about)
	for i := range m.File.Tensors {
		t := &m.File.Tensors[i]
		name, err := json.Marshal(t.Name)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		shape := strings.ReplaceAll(fmt.Sprint(t.Dims), " ", ", ")
		if len(t.Dims) == 0 {
			shape = "[]"
		}
		fmt.Fprintf(out, "\n%s: {\"dtype\": %q, \"shape\": %s, \"data\": [", name, dtype(t), shape)
		if err := values(out, t); err != nil {
			return err
		}
		out.WriteString("]}")
	}
	out.WriteString("\n}\n}\n") // Flush returns the first error
	return out.Flush()
}

// dtype returns the type of a tensor's elements, as NumPy calls it.
func dtype(t *algorithms.Tensor) string {
	switch {
	case t.F64 != nil:
		return "float64"
	case t.U32 != nil:
		return "uint32"
	}
	return "float32"
}

// values writes the values of a tensor, with as many digits as tell them from all other values of their type.
func values(out *bufio.Writer, t *algorithms.Tensor) error {
	var b []byte
	put := func(i int) {
		if i > 0 {
			out.WriteString(", ")
		}
		out.Write(b)
	}
	number := func(i int, v float64, bits int) error {
		switch {
		case math.IsInf(v, 0) || math.IsNaN(v):
			return fmt.Errorf("the tensor %s has the value %v, which JSON cannot hold; export as npz", t.Name, v)
		case v == 0 && math.Signbit(v):
			b = append(b[:0], "-0.0"...) // -0 is the integer 0 for some readers
		default:
			b = strconv.AppendFloat(b[:0], v, 'g', -1, bits)
		}
		put(i)
		return nil
	}
	for i, v := range t.F64 {
		if err := number(i, v, 64); err != nil {
			return err
		}
	}
	for i, v := range t.U32 {
		b = strconv.AppendUint(b[:0], uint64(v), 10)
		put(i)
	}
	for i, v := range t.F32 {
		if err := number(i, float64(v), 32); err != nil {
			return err
		}
	}
	return nil
}
