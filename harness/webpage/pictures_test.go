package webpage_test

import (
	"bytes"
	"cmp"
	"flag"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/harness/browser"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// pictures is set by the command that makes the pictures of the documentation:
//
//	go test ./harness/webpage -run TestPictures -args -pictures "$PWD/docs/pictures"
var pictures = flag.String("pictures", "", "folder for the pictures of the documentation")

// maxPicture bounds the bytes of a picture.
const maxPicture = 120 << 10

// TestPictures makes the pictures of the documentation from real runs: a job that lost a worker, and an experiment with
// its report.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("pictures are made with -args -pictures FOLDER")
	}
	b := browser.Start(t)
	c := cmdtest.Start(t, 3, 3)
	dir := t.TempDir()
	study(t, c, dir)
	data := cmdtest.ArtificialFile(t, dir, "faces.csv", 4000, 1)
	args := cmdtest.Train(data, 600, "--set", "learning_rate=0.5")
	cmdtest.ModelDigest(t, cmdtest.MidWay(t, c, "forest", args, func() {
		cmdtest.Kill(t, c.Workers[0])
		testkit.Until(t, "the loss of a worker", func() bool {
			j, err := c.Client().Jobs().Get(t.Context(), "forest")
			return err == nil && len(j.Events) > 0
		})
		if err := c.Workers[0].Restart(); err != nil {
			t.Error(err)
		}
	}))
	j, err := c.Client().Jobs().Get(t.Context(), "forest")
	if err != nil || len(j.Events) == 0 {
		t.Fatalf("the job has no events: %v, %v", j, err)
	}
	root := "http://" + c.HTTP(cmdtest.Leader(t, c)) + "/ui"
	tab := b.Open(t, root)
	for _, p := range []struct {
		name, path string
	}{
		{"job", "/jobs/forest"},
		{"experiment", "/experiments/study"},
	} {
		tab.Visit(root + p.path)
		tab.Look(1100, false)
		tab.Await("the grid", `document.querySelectorAll("details").forEach((d) => { d.open = /^Runs by/.test(d.innerText) }) || true`)
		for _, f := range tab.Findings() {
			t.Errorf("%s: %s", p.name, f)
		}
		path := filepath.Join(*pictures, p.name+".png")
		tab.Picture(path)
		reduce(t, path)
	}
}

// study runs an experiment with a result that is significant.
func study(t *testing.T, c *proc.Cluster, dir string) {
	t.Helper()
	t.Setenv("COPPICE_SERVER", c.Servers())
	t.Chdir(dir) // the report says where the files are
	for i, name := range []string{"ages", "films", "genes", "moods", "scenes", "skies"} {
		cmdtest.ArtificialFile(t, dir, name+".csv", 300, uint64(i))
	}
	cmdtest.Write(t, dir, "study.yaml", `name: study
seed: 1
datasets:
  - ages.csv
  - films.csv
  - genes.csv
  - moods.csv
  - scenes.csv
  - skies.csv
folds: {k: 5}
methods:
  - ldlf
  - structrf
  - sa-bfgs
  - aa-knn
measures: [kl, chebyshev]
`)
	cmdtest.Works(t, "experiment", "run", "study.yaml")
}

// reduce cuts off what is below the first screen and gives a picture the 256 colours that it has most often, so that
// its file is small.
func reduce(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	full, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r, count := full.Bounds().Intersect(image.Rect(0, 0, 1100, 900)), make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var colours color.Palette
	for _, c := range often[:min(len(often), 256)] {
		colours = append(colours, c)
	}
	nearest := make(map[color.RGBA]uint8)
	for c := range count {
		nearest[c] = uint8(colours.Index(c))
	}
	small := image.NewPaletted(r, colours)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	if out.Len() > maxPicture {
		t.Errorf("%s has %d bytes, more than %d", path, out.Len(), maxPicture)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
