package read

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Pictures makes a folder with a dark and a light image and one that is none.
func Pictures(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, c := range map[string]color.NRGBA{"dark.png": {R: 0, G: 0, B: 0, A: 255},
		"light.png": {R: 255, G: 51, B: 0, A: 255}} {
		m := image.NewNRGBA(image.Rect(0, 0, 6, 4))
		for i := range 24 {
			m.SetNRGBA(i%6, i/6, c)
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text.png"), []byte("hello"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestImageFiles(t *testing.T) {
	dir := Pictures(t)
	small := dataset.Shape{Channels: 3, Height: 1, Width: 2}
	for name, c := range map[string]struct {
		content string
		o       OpenOptions
		labels  string
	}{
		"distributions": {"image,label_a,label_b\ndark.png,0.25,0.75\nlight.png,1,0\n", OpenOptions{}, "a b"},
		"classes": {"file;what;class\ndark.png;x;night\n./light.png;y;day\n",
			OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}, "day night"},
		"row names": {"note,picture,class\nx,dark.png,1\ny,light.png,2\n", OpenOptions{CSV: CSVOptions{RowNames: "picture"},
			Labels: LabelOptions{Kind: dataset.Class}}, "1 2"},
		"ages": {"name,age\ndark.png,1\nlight.png,2.5\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 1,
			Low: 0, High: 3}, Beside: BesideOptions{Values: "age"}}, "0 1 2 3"},
		"dropped": {"image,class\ndark.png,1\nnowhere.png,\nlight.png,2\n",
			OpenOptions{Labels: LabelOptions{Kind: dataset.Class}, Missing: dataset.Missing{Drop: true}}, "1 2"},
	} {
		c.o.CSV.Images, c.o.Shape = dir, small
		src, err := OpenFile(t, "a.csv", c.content, c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		info := src.Info()
		if info.Features != 6 || info.Shape != small || strings.Join(info.LabelNames, " ") != c.labels || !info.HasRowNames ||
			info.FeatureNames != nil {
			t.Errorf("%s: %+v", name, info)
		}
		if want := map[bool]int{false: 2, true: -1}[c.o.Missing.Drop]; info.Rows != want {
			t.Errorf("%s: %d rows", name, info.Rows)
		}
		var rows []dataset.Row
		for _, r := range datasettest.Collect(t, src) {
			if !r.LeftOut {
				rows = append(rows, r)
			}
		}
		if len(rows) != 2 || !slices.Equal(rows[0].Values, make([]float64, 6)) ||
			!slices.Equal(rows[1].Values, []float64{1, 1, float64(float32(0.2)), float64(float32(0.2)), 0, 0}) {
			t.Errorf("%s: %v", name, rows)
		}
		if m, _, err := importer.Build(src, importer.Options{}); err != nil || m.Shape != small || !m.HasRowNames {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestImageFilesOfModel: for a model images have the shape of those that it was trained on.
func TestImageFilesOfModel(t *testing.T) {
	dir := Pictures(t)
	path := datasettest.WriteFile(t, "a.csv", "image,class\ndark.png,1\n")
	s := &dataset.Schema{Features: 4, Labels: 2, LabelNames: []string{"1", "2"},
		Shape: dataset.Shape{Channels: 1, Height: 2, Width: 2}}
	src, _, err := OpenFor(path, OpenOptions{CSV: CSVOptions{Images: dir}, NoLabels: true}, s)
	if err != nil || src.Info().Shape != s.Shape || len(datasettest.Collect(t, src)) != 1 {
		t.Errorf("%v", err)
	}
	if _, _, err := OpenFor(path, OpenOptions{CSV: CSVOptions{Images: dir}, NoLabels: true,
		Shape: dataset.Shape{Channels: 1, Height: 1, Width: 4}}, s); err == nil || !strings.Contains(err.Error(), "1x1x4") ||
		!strings.Contains(err.Error(), "1x2x2") {
		t.Errorf("another shape: %v", err)
	}
}

func TestImageFilesRefused(t *testing.T) {
	dir := Pictures(t)
	shape := dataset.Shape{Channels: 1, Height: 2, Width: 2}
	class := LabelOptions{Kind: dataset.Class}
	for name, c := range map[string]struct {
		content string
		o       OpenOptions
		says    []string
	}{
		"no image": {"image,class\ndark.png,1\ntext.png,2\n", OpenOptions{Shape: shape},
			[]string{"a.csv", "row 1", "line 3", `"text.png"`, "neither PNG nor JPEG"}},
		"not there": {"image,class\nno.png,1\n", OpenOptions{Shape: shape}, []string{"row 0", "line 2", `"no.png"`,
			"no such file"}},
		"outside": {"image,class\n../a.csv,1\n", OpenOptions{Shape: shape}, []string{"row 0", "../a.csv",
			"it leads out of the folder: give a folder that contains all images with --images"}},
		"folder": {"image,class\nfolder,1\n", OpenOptions{Shape: shape}, []string{"row 0", "it is not a regular file"}},
		"no name": {"image,class\n ,1\n", OpenOptions{Shape: shape},
			[]string{"row 0", "the name is empty; --missing drop"}},
		"missing name": {"image,class\nNULL,1\n", OpenOptions{Shape: shape},
			[]string{"row 0", "the name is a missing value; --missing drop"}},
		"no column": {"picture,class\nnowhere,1\n", OpenOptions{Shape: shape}, []string{"a.csv", "--row-names"}},
		"no shape":  {"image,class\ndark.png,1\n", OpenOptions{}, []string{"--shape"}},
		"channels": {"image,class\ndark.png,1\n", OpenOptions{Shape: dataset.Shape{Channels: 2, Height: 2, Width: 2}},
			[]string{"--shape 2x2x2"}},
		"feature": {"image,class\ndark.png,1\n", OpenOptions{Shape: shape, Drop: []string{"class"}}, []string{"--drop"}},
		"other folder": {"image,class\ndark.png,1\n",
			OpenOptions{Shape: shape, CSV: CSVOptions{Images: filepath.Join(dir, "nowhere")}}, []string{"nowhere"}},
		"a file": {"image,class\ndark.png,1\n",
			OpenOptions{Shape: shape, CSV: CSVOptions{Images: filepath.Join(dir, "dark.png")}}, []string{"dark.png"}},
	} {
		if c.o.Labels = class; c.o.CSV.Images == "" {
			c.o.CSV.Images = dir
		}
		src, err := OpenFile(t, "a.csv", c.content, c.o)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		for _, text := range c.says {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", name, err, text)
			}
		}
		if name == "not there" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	if _, err := OpenFile(t, "a.libsvm", "1 1:2\n", OpenOptions{CSV: CSVOptions{Images: dir}, Shape: shape}); err == nil ||
		!strings.Contains(err.Error(), "--images") {
		t.Errorf("a libsvm file: %v", err)
	}
}

// TestImageProgress: images take long, so that progress is reported after each.
func TestImageProgress(t *testing.T) {
	src, err := OpenFile(t, "a.csv", "image,class\ndark.png,1\nlight.png,2\n",
		OpenOptions{CSV: CSVOptions{Images: Pictures(t)}, Shape: dataset.Shape{Channels: 1, Height: 2, Width: 2},
			Labels: LabelOptions{Kind: dataset.Class}})
	if err != nil {
		t.Fatal(err)
	}
	var parts []float64
	_, _, err = importer.Build(src, importer.Options{Progress: func(p importer.Progress) {
		if p.Phase == "check" {
			parts = append(parts, p.Part)
		}
	}})
	if err != nil || !slices.Equal(parts, []float64{0.5, 1}) {
		t.Errorf("%v, %v", parts, err)
	}
}

// FuzzImageCSV: a CSV file that names images is read or refused; no name leaves the folder.
func FuzzImageCSV(f *testing.F) {
	dir := Pictures(f)
	f.Add("image,class\ndark.png,1\nlight.png,2\n")
	f.Add("image,class\n../../etc/passwd,1\n")
	f.Add("row_name,class\ntext.png,1\n")
	f.Add("image,class\nfolder/../dark.png,1\n\"\x00\",2\n")
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(t.TempDir(), "a.csv")
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		allocs.AtMost(t, 32*1100*len(content)+4<<20, "a CSV file of images", func() {
			src, err := Open(path, OpenOptions{CSV: CSVOptions{Images: dir}, Shape: dataset.Shape{Channels: 1, Height: 2,
				Width: 2}, Labels: LabelOptions{Kind: dataset.Class}})
			if err != nil {
				return
			}
			err = src.Scan(func(r *dataset.Row) error {
				if len(r.Values) != 4 {
					t.Fatalf("%d values", len(r.Values))
				}
				return nil
			})
			if err == nil && src.Info().Shape != (dataset.Shape{Channels: 1, Height: 2, Width: 2}) {
				t.Fatalf("%+v", src.Info())
			}
		})
	})
}

// TestImageNames: names have the separators of any system, and may be absolute if they lead into the folder; others are
// refused with what is wrong, and the advice works.
func TestImageNames(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "img")
	for _, folder := range []string{"img/sub/deep", "other"} {
		if err := os.MkdirAll(filepath.Join(top, filepath.FromSlash(folder)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := os.ReadFile(filepath.Join(Pictures(t), "light.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"img/sub/a.png", "img/sub/deep/b.png", "img/c.PNG", "other/d.png"} {
		if err := os.WriteFile(filepath.Join(top, filepath.FromSlash(name)), picture, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(top, "link")
	if os.Symlink(dir, link) != nil || os.Symlink(filepath.Join(top, "other", "d.png"),
		filepath.Join(dir, "out.png")) != nil {
		t.Skip("no symbolic links here")
	}
	read := func(folder, name string) error {
		src, err := OpenFile(t, "a.csv", "image,class\n\""+name+"\",1\n", OpenOptions{CSV: CSVOptions{Images: folder},
			Shape: dataset.Shape{Channels: 1, Height: 2, Width: 2}, Labels: LabelOptions{Kind: dataset.Class}})
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		return err
	}
	at := func(name string) string { return filepath.Join(top, filepath.FromSlash(name)) }
	for _, name := range []string{`sub\a.png`, `sub\deep\b.png`, `sub/deep\b.png`, `.\sub\a.png`, `sub\deep\..\a.png`,
		at("img/sub/a.png"), at("img") + "//sub/../c.PNG"} {
		if err := read(dir, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range [][2]string{{link, at("img/sub/a.png")}, {link, at("link/sub/a.png")}, {top, at("other/d.png")},
		{top, `img\c.PNG`}, {"/", at("other/d.png")}} {
		if err := read(c[0], c[1]); err != nil {
			t.Errorf("%s in %s: %v", c[1], c[0], err)
		}
	}
	for name, says := range map[string]string{
		at("other/d.png"): "it is outside the folder; give a folder that contains all images with --images",
		"/sub/a.png":      "it is outside the folder, which contains sub/a.png",
		`..\other\d.png`:  "it leads out of the folder: give a folder that contains all images with --images",
		"out.png":         "it is a link to a file outside the folder",
		`C:\Users\x\img\sub\a.png`: "it is a path on another machine: write the names as they are in the folder, which " +
			"contains sub/a.png",
		`\\server\share\sub\a.png`: "it is a path on another machine: write the names as they are in the folder, which " +
			"contains sub/a.png",
		"https://example.org/a.png": "it is a web address",
		`img\sub\a.png`:             "the file is in " + top + ": give --images " + top,
		at("img/img/sub/a.png"): "it is not in the folder, which contains sub/a.png: write the names as they are in " +
			"the folder",
		"sub/none.png":                "no such file",
		"c.png":                       "no such file",
		`sub\deep`:                    "it is not a regular file",
		strings.Repeat("x", 300):      "file name too long",
		"sub/" + string(rune(0)) + "": "invalid argument",
	} {
		err := read(dir, name)
		datasettest.MustContain(t, err, "a.csv", "row 0", says)
	}
}

// TestUnreadColumnsOfImages: a note lists the columns that are not read because the features are pixels.
func TestUnreadColumnsOfImages(t *testing.T) {
	o := OpenOptions{CSV: CSVOptions{Images: Pictures(t)}, Shape: dataset.Shape{Channels: 3, Height: 1, Width: 2},
		Labels: LabelOptions{Kind: dataset.Class}}
	src, err := Open(datasettest.WriteFile(t, "x.csv", "image,age,class,site\ndark.png,20,a,x\nlight.png,30,b,y\n"), o)
	if err != nil || !slices.ContainsFunc(src.Info().Notes, func(s errtext.Text) bool {
		return strings.Contains(s.String(), `pixels of images: "age" and "site"`)
	}) {
		t.Errorf("notes %q, %v", src.Info().Notes, err)
	}
	o.Beside.Groups = "site"
	src, err = Open(datasettest.WriteFile(t, "y.csv", "image,class,site\ndark.png,a,x\nlight.png,b,y\n"), o)
	if err != nil || slices.ContainsFunc(src.Info().Notes, func(s errtext.Text) bool {
		return strings.Contains(s.String(), "not read, as")
	}) {
		t.Errorf("notes %q, %v", src.Info().Notes, err)
	}
}
