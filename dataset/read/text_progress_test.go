package read

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// Where only the end of a text file tells how many rows it has, the place in it tells how far
// the work is, also in a packed one.
func TestProgressInTextFiles(t *testing.T) {
	testkit.WithoutRace(t)
	for _, kind := range []string{"csv", "csv.gz", "libsvm"} {
		path := filepath.Join(t.TempDir(), "set."+kind)
		var b bytes.Buffer
		for i := range 100_000 {
			if kind == "libsvm" {
				fmt.Fprintf(&b, "0.25,0.75 1:%d.5\n", i)
			} else {
				fmt.Fprintf(&b, "%d.5,0.25,0.75\n", i)
			}
		}
		if kind == "csv.gz" {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			z.Write(b.Bytes())
			z.Close()
			b = packed
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		src, err := Open(path, OpenOptions{Labels: LabelOptions{Columns: map[bool][]string{false: {"1",
			"2"}}[kind == "libsvm"]}})
		if err != nil {
			t.Fatal(err)
		}
		var parts []float64
		o := importer.Options{Progress: func(p importer.Progress) { parts = append(parts, p.Part) }}
		if err := importer.Blocks(src, 1000, o, func(*dataset.Rows, []string) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if n := len(parts); !slices.IsSorted(parts) || n != 100_000/importer.ProgressRows || parts[0] < 0 || parts[0] > .5 ||
			math.Abs(parts[n/2]-.5) > .2 || parts[n-1] < .95 {
			t.Errorf("%s: %d parts, %v ... %v ... %v", kind, n, parts[0], parts[n/2], parts[n-1])
		}
	}
}
