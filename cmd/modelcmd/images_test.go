package modelcmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// putImages makes the folders images and maps, each of four images whose left is dark and of the
// class 2, and whose right is light and of the class 7.
func putImages(t *testing.T, dir string) {
	t.Helper()
	for _, folder := range []string{"images", "maps"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	palette, err := images.NewPalette([]string{"2", "7"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // the border is elsewhere in each
		m := &images.Image{Channels: 1, Height: 12, Width: 16, Pixels: make([]float32, 12*16)}
		classes := make([]uint8, len(m.Pixels))
		for k := range m.Pixels {
			m.Pixels[k] = float32(k%5) / 50
			if k%16 >= 6+i {
				m.Pixels[k], classes[k] = m.Pixels[k]+0.5, 1
			}
		}
		var picture, classMap bytes.Buffer
		if err := images.WriteGrey(&picture, m); err != nil {
			t.Fatal(err)
		}
		if err := palette.Write(&classMap, 12, 16, classes); err != nil {
			t.Fatal(err)
		}
		name := string(rune('a'+i)) + ".png"
		cmdtest.Write(t, filepath.Join(dir, "images"), name, picture.String())
		cmdtest.Write(t, filepath.Join(dir, "maps"), name, classMap.String())
	}
}

// TestLabelledImages: images and their maps become patches, and the map that a model of these puts
// together is that of the image, but for borders.
func TestLabelledImages(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	putImages(t, dir)
	var cut struct {
		Images      int
		Classes     []string
		Train, Test struct {
			Rows  int `json:"samples"`
			Shape string
		}
	}
	cmdtest.JSON(t, &cut, "dataset", "patches", "--images", at("images"), "--maps", at("maps"), "--out", at("train.npz"),
		"--test-images", "1", "--test-out", at("test.csv"),
		"--patch", "3", "--stride", "1")
	if cut.Images != 4 || strings.Join(cut.Classes, " ") != "2 7" || cut.Train.Rows != 3*10*14 || cut.Test.Rows != 10*14 ||
		cut.Train.Shape != "1x3x3" {
		t.Errorf("%+v, %+v, %+v", cut, cut.Train, cut.Test)
	}
	cmdtest.Works(t, "train", "--local", "--data", at("train.npz"), "--labels", "class", "--groups", "group",
		"--algorithm", "rf", "--set", "trees=5", "--model-out", at("m.model"))
	if shown := cmdtest.Works(t, "model", "show", at("m.model")); !strings.Contains(shown, "1x3x3") {
		t.Errorf("the model does not show the shape:\n%s", shown)
	}
	cmdtest.Works(t, "evaluate", "--model", at("m.model"), "--data", at("test.csv"), "--labels", "class",
		"--groups", "group")
	var labelled imageMap
	cmdtest.JSON(t, &labelled, "predict", "--model", at("m.model"), "--image", at("images/d.png"), "--out", at("map.png"))
	got, err := images.ReadMap(strings.NewReader(cmdtest.Read(t, at("map.png"))))
	if err != nil {
		t.Fatal(err)
	}
	want, err := images.ReadMap(strings.NewReader(cmdtest.Read(t, at("maps/d.png"))))
	if err != nil {
		t.Fatal(err)
	}
	same, sevens := 0, 0
	for k, c := range got.Classes {
		if c == want.Classes[k] {
			same++
		}
		if c == 7 {
			sevens++
		}
	}
	if got.Height != 12 || got.Width != 16 || same < 12*16-24 {
		t.Errorf("%d of %d pixels are right", same, len(want.Classes))
	}
	if l := labelled.Classes; len(l) != 2 || l[1].Class != "7" || l[1].Pixels != sevens || l[0].Share+l[1].Share != 1 ||
		labelled.Width != 16 {
		t.Errorf("%+v", labelled)
	}
	text := cmdtest.Works(t, "predict", "--model", at("m.model"), "--image", at("images/d.png"), "--out", at("map.png"))
	if !strings.Contains(text, "16 x 12 pixels") {
		t.Errorf("%s", text)
	}
	refusedImages(t, dir)
}

// refusedImages gives commands what they cannot use, in the folder of TestLabelledImages.
func refusedImages(t *testing.T, dir string) {
	t.Helper()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"predict --model @/m.model --image @/images/d.png --out @/map.csv", cli.ExitUsage, ".png"},
		{"predict --model @/m.model --image @/images/d.png --out @/map.png --format csv", cli.ExitUsage, "--format"},
		{"predict --model @/m.model --image @/images/d.png --out @/map.png --drop 1", cli.ExitUsage, "--drop"},
		{"predict --model @/m.model --image @/images/d.png --data @/test.csv --out @/map.png", cli.ExitUsage, "--image"},
		{"predict --model @/m.model --out @/map.png", cli.ExitUsage, "--data"},
		{"predict --model @/m.model --image @/images/d.png --out @/images/d.png", cli.ExitUsage, "reads that file"},
		{"predict --model @/m.model --image @/train.npz --out @/map.png", cli.ExitFailed, "train.npz"},
		{"dataset patches --images @/images --maps @/maps --out @/p.npz --patch 0", cli.ExitUsage, "patch"},
		{"dataset patches --images @/images --maps @/maps --out @/p.txt", cli.ExitUsage, "p.txt"},
		{"dataset patches --images @/images --maps @/maps --out @/p.npz --test-images 1", cli.ExitUsage, "--test-out"},
		{"dataset patches --images @/images --maps @/maps --out @/p.npz --test-images 4 --test-out @/q.npz", cli.ExitUsage,
			"4 images"},
		{"dataset patches --images @/images --maps @/images --out @/p.npz --patch 13", cli.ExitFailed,
			"smaller than a patch"},
		{"dataset patches --images @/images --maps @/nowhere --out @/p.npz", cli.ExitFailed, "nowhere"},
	} {
		e := cmdtest.Run(t, strings.Fields(strings.ReplaceAll(c.args, "@", dir))...)
		if e.Code != c.code || !strings.Contains(e.Stderr, c.says) {
			t.Errorf("%s: exit code %d, %s; want %d and %q", c.args, e.Code, e.Stderr, c.code, c.says)
		}
	}
}

// TestModelWithoutPatches: a model of rows that are no images labels none.
func TestModelWithoutPatches(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.Write(t, dir, "x.csv", clitest.Kinds()), filepath.Join(dir, "m")
	cmdtest.Works(t, "train", "--local", "--data", data, "--labels", "class", "--algorithm", "rf", "--set", "trees=2",
		"--model-out", model)
	if e := cmdtest.Run(t, "predict", "--model", model, "--image", data, "--out",
		filepath.Join(dir, "map.png")); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "does not read patches") {
		t.Errorf("%d, %s", e.Code, e.Stderr)
	}
}

// TestImagesOfCSV: a model is trained on the images that a CSV file names, resized, and predicts
// others by their names.
func TestImagesOfCSV(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	putImages(t, dir)
	labels := "image,class\n"
	for range 12 {
		labels += "a.png,left\nb.png,left\nc.png,right\nd.png,right\n"
	}
	data, folder, model := cmdtest.Write(t, dir, "labels.csv", labels), filepath.Join(dir, "images"),
		filepath.Join(dir, "m.model")
	cmdtest.Works(t, "train", "--local", "--data", data, "--images", folder, "--shape", "1x3x8", "--labels", "class",
		"--algorithm", "rf", "--set", "trees=5", "--model-out", model)
	if shown := cmdtest.Works(t, "model", "show", model); !strings.Contains(shown, "images of 1x3x8") {
		t.Errorf("%s", shown)
	}
	wanted := cmdtest.Write(t, dir, "wanted.csv", "image\na.png\nd.png\n")
	out := cmdtest.Works(t, "predict", "--model", model, "--data", wanted, "--images", folder, "--out", "-")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "a.png,") ||
		!strings.HasSuffix(lines[1], ",left") || !strings.HasSuffix(lines[2], ",right") {
		t.Errorf("%s", out)
	}
	cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--images", folder, "--labels", "class")
	var inspected struct {
		Features int `json:"features"`
	}
	cmdtest.JSON(t, &inspected, "dataset", "inspect", data, "--images", folder, "--shape", "3x2x2", "--labels", "class")
	if inspected.Features != 12 {
		t.Errorf("%+v", inspected)
	}
	for args, says := range map[string]string{
		"dataset inspect @/labels.csv --images @/images --labels class":                                 "--shape",
		"dataset inspect @/labels.csv --images @/images --labels class --shape 8x8":                     "shape",
		"dataset inspect @/labels.csv --images @/maps/a.png --labels class --shape 1x2x2":               "a.png",
		"evaluate --model @/m.model --data @/labels.csv --images @/images --shape 3x1x8 --labels class": "3x1x8",
	} {
		if e := cmdtest.Run(t, strings.Fields(strings.ReplaceAll(args, "@", dir))...); e.Code == cli.ExitOK ||
			!strings.Contains(e.Stderr, says) {
			t.Errorf("%s: exit code %d, %s; want %q", args, e.Code, e.Stderr, says)
		}
	}
}
