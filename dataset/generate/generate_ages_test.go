package generate

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/google/go-cmp/cmp"
)

// goldenAges is the digest of this set's first version.
const goldenAges = "b3de1513933266b1982af8acf8bc507c6ea390d80ba681b9cf276271f7847af0"

func TestGoldenAges(t *testing.T) {
	m, _, err := importer.Build(Ages(100, 1), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Digest(); got != goldenAges {
		t.Errorf("digest %s, want %s", got, goldenAges)
	}
	if m.Shape != (dataset.Shape{Channels: 1, Height: 32, Width: 32}) || m.LabelType.Scale.True != dataset.TrueValue ||
		m.Check() != nil {
		t.Errorf("%+v", m)
	}
}

// TestAgesShown: ages are uniform, labels are their Gaussians, and the upper third of the ellipse is the
// lighter, the older.
func TestAgesShown(t *testing.T) {
	const rows = 700
	var seen [agesCount]int
	var ages, tops []float64
	err := Ages(rows, 3).Scan(func(r *dataset.Row) error {
		age := int(r.Value)
		seen[age]++
		ages = append(ages, r.Value)
		tops = append(tops, r.Values[8*agesSide+15]) // a pixel that is hair in nearly every image
		best, sum := 0, 0.0
		for k, d := range r.Labels {
			if sum += d; d > r.Labels[best] {
				best = k
			}
		}
		if best != age || math.Abs(sum-1) > 1e-12 {
			t.Errorf("age %d: labels %v", age, r.Labels)
		}
		if k := min(age+3, agesCount-1); math.Abs(math.Log(r.Labels[age]/r.Labels[k])-math.Pow(float64(k-age)/3,
			2)/2) > 1e-9 {
			t.Errorf("age %d: labels %v", age, r.Labels)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for age, n := range seen {
		if n > 30 {
			t.Errorf("%d of %d rows have the age %d", n, rows, age)
		}
	}
	if r := correlation(ages, tops); r < 0.6 {
		t.Errorf("the correlation of age and the tone of the upper third is %.2f", r)
	}
}

func correlation(x, y []float64) float64 {
	var sx, sy, sxx, syy, sxy float64
	n := float64(len(x))
	for i := range x {
		sx, sy = sx+x[i], sy+y[i]
		sxx, syy, sxy = sxx+x[i]*x[i], syy+y[i]*y[i], sxy+x[i]*y[i]
	}
	return (sxy - sx*sy/n) / math.Sqrt((sxx-sx*sx/n)*(syy-sy*sy/n))
}

// TestAgesLines: each line darkens pixels of the ellipse once, by .15, and only few.
func TestAgesLines(t *testing.T) {
	for unit := range 50 {
		f := face{pixels: make([]float64, agesSide*agesSide), cx: 15.5, cy: 15.5, a: 10, b: 13}
		f.line(num.NewStream(num.NewKey(1, "test"), 0, uint32(unit)))
		dark := 0
		for i, v := range f.pixels {
			if v == -0.15 {
				dark++
				if !f.inside(float64(i%agesSide), float64(i/agesSide)) {
					t.Errorf("pixel %d is outside", i)
				}
			} else if v != 0 {
				t.Errorf("pixel %d is %v", i, v)
			}
		}
		if dark > 8 {
			t.Errorf("a line has %d pixels", dark)
		}
	}
}

// TestWrittenAsTheyAre: what is written of classes, exact numbers, intervals, groups and images is read back as
// the same dataset by the flags that ReadFlags has.
func TestWrittenAsTheyAre(t *testing.T) {
	classes := datasettest.SomeRows(40)
	classes.Described.LabelType.Classes, classes.Described.HasGroups, classes.Described.LabelNames = true, true,
		[]string{"a", "b", "c"}[:classes.Described.Labels]
	classes.Described.Shape = dataset.Shape{Channels: 1, Height: 1, Width: classes.Described.Features}
	for i := range classes.Rows {
		r := &classes.Rows[i]
		clear(r.Labels)
		r.Labels[i%len(r.Labels)], r.Group = 1, []string{"x", "y"}[i%2]
	}
	ranges := datasettest.SomeRows(40)
	ranges.Described.LabelType.Scale, ranges.Described.LabelNames = &dataset.Scale{Low: 5, True: dataset.TrueValue}, nil
	ranges.Described.HasValues, ranges.Described.HasIntervals, ranges.Described.Shape = true, true,
		dataset.Shape{Channels: ranges.Described.Features, Height: 1, Width: 1}
	for k := range ranges.Described.Labels {
		ranges.Described.LabelNames = append(ranges.Described.LabelNames, []string{"5", "6", "7", "8", "9"}[k])
	}
	for i := range ranges.Rows {
		ranges.Rows[i].Value, ranges.Rows[i].Interval = 5.1, [2]float64{5, 5.25}
	}
	beside := read.BesideOptions{Groups: "group"}
	scale := read.LabelOptions{Ordered: true, Low: 5, High: 5 + ranges.Described.Labels - 1}
	numbers := read.BesideOptions{Values: "value", Intervals: []string{"least", "most"}}
	for name, c := range map[string]struct {
		src   dataset.Source
		o     read.OpenOptions
		flags []string
	}{
		"classes": {classes, read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}, Beside: beside,
			Shape: classes.Described.Shape}, []string{"--labels class", "--groups group"}},
		"scale": {ranges, read.OpenOptions{Labels: scale, Beside: numbers, Shape: ranges.Described.Shape},
			[]string{"", "--values value", "--intervals least,most"}},
		"ages": {Ages(40, 1), read.OpenOptions{Labels: read.LabelOptions{Ordered: true, High: 69},
			Beside: read.BesideOptions{Values: "value"}, Shape: dataset.Shape{Channels: 1, Height: 32, Width: 32}},
			[]string{"--range 0:69", "--values value"}},
	} {
		want, _, err := importer.Build(c.src, importer.Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		info := c.src.Info()
		flags := write.ReadFlags(&info)
		if name == "scale" {
			flags[0] = ""
		}
		if !slices.Equal(flags, c.flags) {
			t.Errorf("%s: flags %q", name, flags)
		}
		for _, file := range []string{"a.csv", "a.npz"} {
			path, o := filepath.Join(t.TempDir(), file), c.o
			if file == "a.npz" {
				o.Shape = dataset.Shape{} // the file has it
			}
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			format, _ := write.FormatOf(path)
			if err := errors.Join(write.Write(f, format, c.src, importer.Options{}, write.NPZOptions{}), f.Close()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			back, err := read.Open(path, o)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, _, err := importer.Build(back, importer.Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want.LabelColumns, want.Reading = got.LabelColumns, got.Reading
			if d := cmp.Diff(want, got); d != "" || want.Digest() != got.Digest() {
				t.Errorf("%s, %s: %s", name, file, d)
			}
		}
	}
}
