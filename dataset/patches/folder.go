package patches

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset/images"
)

// OpenFolder returns the PNG and JPEG files of a folder, in the order of their names, each with the
// PNG file of the same name (but for its ending) in the folder of maps. Images are read with so
// many channels, 1 or 3.
func OpenFolder(pictures, classMaps string, channels int) (Set, error) {
	of, err := list(pictures, ".png", ".jpg", ".jpeg")
	if err != nil {
		return nil, err
	}
	classes, err := list(classMaps, ".png")
	if err != nil {
		return nil, err
	}
	f := &folder{name: pictures, channels: channels}
	for _, stem := range slices.Sorted(maps.Keys(of)) {
		path, ok := classes[stem]
		if !ok {
			return nil, fmt.Errorf("%s: the map of this image, %s, is missing", of[stem], filepath.Join(classMaps, stem+".png"))
		}
		delete(classes, stem)
		f.list = append(f.list, labelled{stem, of[stem], path})
	}
	for _, stem := range slices.Sorted(maps.Keys(classes)) {
		return nil, fmt.Errorf("%s: the image of this map is missing in %s", classes[stem], pictures)
	}
	return f, nil
}

// labelled is an image and its map.
type labelled struct{ name, image, classes string }

type folder struct {
	name     string
	channels int
	list     []labelled
}

// list returns the files of a folder with certain endings, by name without ending.
func list(dir string, endings ...string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, e := range entries {
		ending := filepath.Ext(e.Name())
		if e.IsDir() || !slices.Contains(endings, strings.ToLower(ending)) {
			continue
		}
		stem, path := strings.TrimSuffix(e.Name(), ending), filepath.Join(dir, e.Name())
		if other, ok := found[stem]; ok {
			return nil, fmt.Errorf("%s and %s have the same name and different endings: remove one of the two", other, path)
		}
		found[stem] = path
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: the folder has no file that ends in %s", dir, strings.Join(endings, ", "))
	}
	return found, nil
}

// Name implements Set.
func (f *folder) Name() string { return f.name }

// Len implements Set.
func (f *folder) Len() int { return len(f.list) }

// NameOf implements Set.
func (f *folder) NameOf(i int) string { return f.list[i].name }

// Channels implements Set.
func (f *folder) Channels() int { return f.channels }

// Image implements Set.
func (f *folder) Image(i int) (m *images.Image, err error) {
	err = withFile(f.list[i].image, func(in io.ReadSeeker) error {
		if m, err = images.Read(in, f.channels); err == nil && m.Turned {
			err = errors.New("the image has an orientation (EXIF), so its map may show the image as stored or as displayed: " +
				"rotate the image and remove the orientation, for example with ImageMagick's mogrify -auto-orient, and save a " +
				"map of the rotated image")
		}
		return err
	})
	return m, err
}

// Map implements Set.
func (f *folder) Map(i int) (m *images.Map, err error) {
	err = withFile(f.list[i].classes, func(in io.ReadSeeker) error {
		m, err = images.ReadMap(in)
		return err
	})
	return m, err
}

// withFile calls f with an open file; errors name it.
func withFile(path string, f func(io.ReadSeeker) error) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	err = f(in)
	if named := (*fs.PathError)(nil); err == nil || errors.As(err, &named) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// OpenImage reads an image for a model whose rows are patches of so many channels.
func OpenImage(path string, channels int) (m *images.Image, err error) {
	err = withFile(path, func(in io.ReadSeeker) error {
		m, err = images.Read(in, channels)
		return err
	})
	return m, err
}
