package read_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TestTurnedImages: an image is turned as its camera noted, and both an import and Inspect say how many are.
func TestTurnedImages(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	m := image.NewGray(image.Rect(0, 0, 2, 1)) // dark, then light; shown with the light pixel on top
	m.Pix[1] = 255
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	head := len("\x89PNG\r\n\x1a\n") + 25 // and the first chunk
	exif := "\x00\x00\x00\x16eXIfMM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x08\x00\x00"
	sum := crc32.ChecksumIEEE([]byte(exif[4:]))
	exif += string([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	file := b.String()
	if err := os.WriteFile(filepath.Join(dir, "a.png"), []byte(file[:head]+exif+file[head:]), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.png"), []byte(file), 0o666); err != nil {
		t.Fatal(err)
	}
	path, o := datasettest.WriteFile(t, "a.csv", "image,class\na.png,1\nb.png,2\n"),
		read.OpenOptions{CSV: read.CSVOptions{Images: dir}, Shape: dataset.Shape{Channels: 1, Height: 2, Width: 2},
			Labels: read.LabelOptions{Kind: dataset.Class}}
	src, err := read.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	rows := datasettest.Collect(t, src)
	if !slices.Equal(rows[0].Values, []float64{1, 1, 0, 0}) || !slices.Equal(rows[1].Values, []float64{0, 1, 0, 1}) {
		t.Errorf("%v", rows)
	}
	var warned []string
	if _, _, err := importer.Build(src, importer.Options{Warn: func(line errtext.Text) {
		warned = append(warned, line.String())
	}}); err != nil || !strings.Contains(strings.Join(warned, "\n"), "rotated by their EXIF orientation: 1") {
		t.Errorf("%v, %v", warned, err)
	}
	found, err := inspect.Inspect(path, o, importer.Options{})
	if err != nil || len(found.Readings) == 0 || found.Readings[0].Refused != "" || found.Refused != "" {
		t.Errorf("inspect lists %+v, %v", found.Readings, err)
	}
	if err != nil || !strings.Contains(strings.Join(found.Notes, "\n"), "rotated by their EXIF orientation: 1") {
		t.Errorf("%+v, %v", found, err)
	}
}

// Two columns that may each name the images are refused, and a note says which one does.
func TestImageColumns(t *testing.T) {
	dir := read.Pictures(t)
	o := read.OpenOptions{CSV: read.CSVOptions{Images: dir}, Shape: dataset.Shape{Channels: 1, Height: 2, Width: 2},
		Labels: read.LabelOptions{Kind: dataset.Class}}
	for _, names := range []string{"image,filename", "File,IMAGE", "name,image", "row_name,file"} {
		first, second, _ := strings.Cut(names, ",")
		path := datasettest.WriteFile(t, "a.csv", names+",class\ndark.png,light.png,1\nlight.png,dark.png,2\n")
		_, err := read.Open(path, o)
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, first, second, "--row-names")
		for column, want := range map[string]string{first: "column 0", second: "column 1"} {
			named := o
			named.CSV.RowNames = column
			src, err := read.Open(path, named)
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(errtext.Strings(src.Info().Notes), "\n"); !strings.Contains(notes,
				"the images are named in "+want) {
				t.Errorf("%s of %s: %s", column, names, notes)
			}
		}
		found, err := inspect.Inspect(path, o, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var flags []string
		for _, r := range found.Readings {
			if r.Refused == "" {
				flags = append(flags, inspect.FlagText(r.Flags))
			}
		}
		if all := strings.Join(flags, "; "); !strings.Contains(all, "--row-names "+first) ||
			!strings.Contains(all, "--row-names "+second) {
			t.Errorf("%s: readings %s, %+v", names, all, found.Readings)
		}
	}
	o.Labels.Columns = []string{"name"}
	if _, err := read.OpenFile(t, "a.csv", "image,name\ndark.png,x\nlight.png,y\n", o); err != nil {
		t.Error(err)
	}
}

// TestImageListWithoutHeader: a first line with the name of an image is a row, and a column of such names names the
// images, in a file with and without a header.
func TestImageListWithoutHeader(t *testing.T) {
	dir := read.Pictures(t)
	o := read.OpenOptions{CSV: read.CSVOptions{Images: dir}, Shape: dataset.Shape{Channels: 3, Height: 1, Width: 2},
		Labels: read.LabelOptions{Kind: dataset.Class, Columns: []string{"last"}}}
	for _, text := range []string{"dark.png,a\nlight.png,b\n", "photo,what\ndark.png,a\nlight.png,b\n",
		",photo,what\n0,dark.png,a\n1,light.png,b\n"} {
		src, err := read.Open(datasettest.WriteFile(t, "x.csv", text), o)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if n, err := importer.CountRows(src); n != 2 || err != nil {
			t.Errorf("%q: %d rows, %v", text, n, err)
		}
	}
	path := datasettest.WriteFile(t, "x.csv", "dark.png,light.png,a\nlight.png,dark.png,b\n")
	_, err := read.Open(path, o)
	var ways *dataset.WaysError
	if !errors.Is(err, dataset.ErrAmbiguous) || !errors.As(err, &ways) {
		t.Fatal(err)
	}
	for _, w := range ways.Ways {
		with, _, _ := inspect.Apply(w, o, importer.Options{})
		if _, err := read.Open(path, with); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// TestInspectImageList: inspect lists readings of an image list, and describes one that train refuses.
func TestInspectImageList(t *testing.T) {
	dir := read.Pictures(t)
	o := read.OpenOptions{CSV: read.CSVOptions{Images: dir}, Shape: dataset.Shape{Channels: 3, Height: 1, Width: 2},
		Labels: read.LabelOptions{Kind: dataset.Class}}
	for text, want := range map[string]string{
		"image,class\ndark.png,a\nlight.png,b\ndark.png,a\n": "class",
		"dark.png,a\nlight.png,b\ndark.png,a\n":              "1",
		"photo,what\ndark.png,a\nlight.png,b\ndark.png,a\n":  "what",
	} {
		path := datasettest.WriteFile(t, "x.csv", text)
		found, err := inspect.Inspect(path, o, importer.Options{})
		if err != nil || len(found.Readings) == 0 || found.Readings[0].Refused != "" || found.Readings[0].Rows != 3 {
			t.Errorf("%q: %+v, %v", text, found, err)
			continue
		}
		if flags := found.Readings[0].Flags; len(flags) != 1 || flags[0].Name != "--label-columns" || flags[0].Value != want {
			t.Errorf("%q: %+v", text, flags)
		}
	}
	if found, err := inspect.Inspect(datasettest.WriteFile(t, "x.csv", "photo,what\ndark,a\nlight,b\n"), o,
		importer.Options{}); err != nil || found.Refused == "" || len(found.Columns) != 2 {
		t.Errorf("without names of images: %+v, %v", found, err)
	}
}

// TestInspectPeople: what is read can be inspected, and the other way round but for
// missing values and sums.
func TestInspectPeople(t *testing.T) {
	for _, c := range read.PeopleCases {
		o := read.PeopleOptions(t, c.Flags)
		f, err := inspect.Inspect(filepath.Join(read.People, c.File), o, importer.Options{})
		refused := !strings.HasPrefix(c.Want, "4 x") && !strings.HasPrefix(c.Want, "3 x")
		if err == nil && refused && len(f.Warnings)+len(f.Notes) == 0 || err != nil && !refused {
			t.Errorf("%s %s: %+v, error %v", c.File, c.Flags, f, err)
		}
	}
}
