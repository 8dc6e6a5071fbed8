package read

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TestIncomplete: missing degrees are read as such, the only missing one of a sample follows from the others, and no
// known degree changes. Without a missing degree, the dataset equals the dataset of complete labels.
func TestIncomplete(t *testing.T) {
	build := func(kind dataset.LabelKind, rows string) (*dataset.Manifest, []*dataset.Rows, []string, error) {
		src, err := Open(datasettest.WriteFile(t, "a.csv", "x,label_a,label_b,label_c\n"+rows),
			OpenOptions{Labels: LabelOptions{Kind: kind}})
		if err != nil {
			return nil, nil, nil, err
		}
		var said []string
		m, shards, err := importer.Build(src, importer.Options{Note: func(s errtext.Text) {
			said = append(said, s.String())
		}})
		return m, shards, said, err
	}
	m, shards, said, err := build(dataset.Incomplete, "1,0.25,,NA\n2,0.5,?,0.25\n3,,nan,\n4,0.2,0.3,0.5\n5,0.1,0.1,\n")
	if err != nil {
		t.Fatal(err)
	}
	gap := dataset.MissingDegree
	want := map[uint32][]float32{0: {0.25, gap, gap}, 1: {0.5, 0.25, 0.25}, 2: {gap, gap, gap}, 3: {0.2, 0.3, 0.5},
		4: {0.1, 0.1, 0.8}}
	for _, r := range shards {
		for i, row := range r.Row {
			if got := r.Label(i); !slices.Equal(dataset.NativeBytes(got), dataset.NativeBytes(want[row])) {
				t.Errorf("sample %d: %v, want %v", row, got, want[row])
			}
		}
	}
	if !m.LabelType.Incomplete || m.Check() != nil {
		t.Errorf("%+v: %v", m, m.Check())
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "one label of 2 samples is missing") {
		t.Errorf("said %q", all)
	}

	complete := "1,0.25,0.5,0.25\n2,0,0,1\n"
	a, _, _, err := build(dataset.Incomplete, complete)
	if err != nil {
		t.Fatal(err)
	}
	b, _, _, err := build(dataset.Distributions, complete)
	if err != nil || a.Digest() != b.Digest() || a.LabelType.Incomplete {
		t.Errorf("with nothing missing: %+v, complete %+v, error %v", a, b, err)
	}

	for rows, fragment := range map[string]string{
		"1,0.25,,\n2,,,\n3,0.5,,\n":        `the label b is missing in every sample`,
		"1,0.75,0.5,\n2,0.5,0.5,0\n":       "row 0 (counted from 0): the labels that are not missing sum to 1.25, want at most 1",
		"1,-0.5,,\n2,0.5,0.5,0\n":          `label 0 "a"`,
		"1,1.5,,\n2,0.5,0.5,0\n":           "1.5 is no probability",
		"1,0.5,0.5,0\n2,0.25,0.5,0.5\n":    "the labels sum to 1.25",
		"1,0.5,,\n2,0.5,0.5,0\n,0.5,0.5,0": "the field is empty",
	} {
		if _, _, _, err := build(dataset.Incomplete, rows); err == nil || !strings.Contains(err.Error(), fragment) {
			t.Errorf("%q: error %v, want %q", rows, err, fragment)
		}
	}
	if _, _, _, err := build(dataset.Distributions, "1,0.25,,0.5\n"); err == nil ||
		!strings.Contains(err.Error(), "--labels incomplete keeps them") {
		t.Errorf("a missing degree of complete labels: error %v", err)
	}
	src, err := Open(datasettest.WriteFile(t, "a.csv", "x,label_a,label_b\n1,,\n2,1,0\n"),
		OpenOptions{Labels: LabelOptions{Kind: dataset.Incomplete}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := importer.Measure(src, &importer.Options{Checks: importer.Checks{Normalize: true}}); err == nil {
		t.Error("normalize is accepted")
	}
}
