package experimentcmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// plannedSpecs are specs of papers' figures and tables, each row of which must go with each
// dataset that is there, and how many cells they have on these.
var plannedSpecs = []struct {
	name  string
	cells int
	data  func(t *testing.T) string // makes a folder with datasets; nil: those that tests look for
}{
	{name: "ranking-table1", cells: 4 * 82},
	{name: "ldlf-figure4", cells: 10 * (6 + 4*5 + 10)},
	{name: "structrf-figure4", cells: 10 * (5*5 + 3*5)},
	{name: "defaults", cells: 7 * 3 * 13},
	{name: "ldlf-section43", cells: 2 * 2 * (5 + 7 + 5), data: labelsFolder},
	{name: "ndf-figure2", cells: 4 * 8, data: texturesFolder},
}

// TestShippedPlans plans specs of figures and tables on data.
func TestShippedPlans(t *testing.T) {
	testkit.WithoutRace(t)
	for _, c := range plannedSpecs {
		t.Run(c.name, func(t *testing.T) {
			dir := "../../../shared/data"
			if c.data != nil {
				dir = c.data(t)
			} else if _, err := os.Stat(dir); err != nil {
				t.Skip(err)
			}
			s := specArg{Spec: "../../experiment/shipped/" + c.name + ".yaml", Data: dir}
			of, err := s.read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			a := &cli.App{Ctx: t.Context(), Stderr: new(bytes.Buffer)}
			sets, layout, err := s.reader(a, progress.New(a), of).Load(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, set := range sets {
				cells, err := set.Plan.Runs()
				if err != nil || len(set.Plan.Refused) > 0 {
					t.Errorf("%s: refused are %v, error %v", set.Plan.Dataset.Name, set.Plan.Refused, err)
				}
				n += len(cells)
			}
			if n != c.cells {
				t.Errorf("%d cells, want %d; skipped are %v", n, c.cells, layout.Skipped)
			}
		})
	}
}

// labelsFolder makes two of the datasets of ldlf-section43.yaml, by the command that stands in
// the spec.
func labelsFolder(t *testing.T) string {
	dir := t.TempDir()
	for _, labels := range []string{"5", "40"} {
		cmdtest.Works(t, "dataset", "generate", "--kind", "random", "--rows", "4000", "--features", "20", "--labels", labels,
			"--out", filepath.Join(dir, "labels"+labels+".npz"))
	}
	return dir
}

// texturesFolder makes one of the datasets of ndf-figure2.yaml, by the commands that stand in
// the spec.
func texturesFolder(t *testing.T) string {
	dir := t.TempDir()
	images := filepath.Join(dir, "images1")
	cmdtest.Works(t, "dataset", "generate", "--kind", "textures", "--seed", "1", "--out", images)
	cmdtest.Works(t, "dataset", "patches", "--images", filepath.Join(images, "images"), "--maps",
		filepath.Join(images, "maps"), "--out", filepath.Join(dir, "textures1.npz"))
	var split strings.Builder
	split.WriteString("row,test\n")
	for row := range 47040 {
		test := 0
		if row >= 31360 {
			test = 1
		}
		fmt.Fprintf(&split, "%d,%d\n", row, test)
	}
	cmdtest.Write(t, dir, "textures-split.csv", split.String())
	return dir
}
