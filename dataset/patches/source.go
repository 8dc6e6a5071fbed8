package patches

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
)

// Options says which patches are rows.
type Options struct {
	Cut
	// Ignore lists classes, by name, whose pixels are the centre of no row.
	Ignore []string
	// Progress, if set, is called after each map that New reads; its error ends New.
	Progress func(done, of int) error
}

// maxClasses bounds the classes of a set.
const maxClasses = 256

// Patches are the patches of a set of images, with what a pass over its maps found.
type Patches struct {
	set     Set
	cut     Cut
	ignored map[images.Class]bool
	names   []string
	number  map[images.Class]int // of a class, its place in names
	rows    []int                // by image
}

// New reads all maps of a set and returns its patches.
func New(set Set, o Options) (*Patches, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &Patches{set: set, cut: o.Cut, ignored: map[images.Class]bool{}, number: map[images.Class]int{}}
	found := map[images.Class]bool{}
	for i := range set.Len() {
		m, err := set.Map(i)
		if err == nil && o.along(m.Height)*o.along(m.Width) == 0 {
			err = fmt.Errorf("the image has %d x %d pixels (width x height), and is smaller than a patch of %d x %d: %w", m.Width, m.Height, o.Size, o.Size, errSmall)
		}
		if err == nil {
			err = p.look(m, found, o.Ignore)
		}
		if err != nil {
			return nil, fmt.Errorf("%sthe map of %s: %w", prefix(set), set.NameOf(i), err)
		}
		if o.Progress != nil {
			if err := o.Progress(i+1, set.Len()); err != nil {
				return nil, err
			}
		}
	}
	return p, p.order(found, o.Ignore)
}

// look counts the rows of a map and notes their classes.
func (p *Patches) look(m *images.Map, found map[images.Class]bool, ignore []string) error {
	rows, at := 0, p.cut.centre()
	err := p.cut.places(m.Height, m.Width, func(left, top int) error {
		class := m.Classes[(top+at)*m.Width+left+at]
		if !found[class] {
			if found[class] = true; len(found) > maxClasses+len(ignore) {
				return fmt.Errorf("the maps have more than %d classes; want one value for each class", maxClasses)
			}
			if slices.Contains(ignore, class.String()) {
				p.ignored[class] = true
			}
		}
		if !p.ignored[class] {
			rows++
		}
		return nil
	})
	p.rows = append(p.rows, rows)
	return err
}

// order sorts the classes that were found and numbers them.
func (p *Patches) order(found map[images.Class]bool, ignore []string) error {
	var classes []images.Class
	for class := range found {
		if !p.ignored[class] {
			classes = append(classes, class)
		}
	}
	if len(p.ignored) < len(ignore) {
		return fmt.Errorf("%sthe classes to ignore are %v, but only %d of these classes occur", prefix(p.set), ignore, len(p.ignored))
	}
	if len(classes) == 0 {
		return fmt.Errorf("%sno pixel of the maps has a class", prefix(p.set))
	}
	slices.Sort(classes)
	for i, class := range classes {
		p.number[class] = i
		p.names = append(p.names, class.String())
	}
	return nil
}

// Images is the number of images.
func (p *Patches) Images() int { return p.set.Len() }

// Rows returns the patches of images [from, to) as rows of classes, image by image, each image
// row by row. The group of a row is the name of its image.
func (p *Patches) Rows(from, to int) dataset.Source { return &source{p, from, to} }

type source struct {
	*Patches
	from, to int // images
}

// Info implements dataset.Source.
func (s *source) Info() dataset.Info {
	shape := s.cut.shape(s.set.Channels())
	info := dataset.Info{
		File: s.set.Name(), Features: shape.Size(), Shape: shape, Labels: len(s.names), LabelNames: s.names,
		LabelType: dataset.LabelType{Classes: true}, HasGroups: true,
	}
	for _, n := range s.rows[s.from:s.to] {
		info.Rows += n
	}
	return info
}

// Scan implements dataset.Source.
func (s *source) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, s.Info().Features), Labels: make([]float64, len(s.names))}
	for i := s.from; i < s.to; i++ {
		if err := s.scanImage(i, &row, f); err != nil {
			return err
		}
	}
	return nil
}

// scanImage calls f with the rows of an image.
func (s *source) scanImage(i int, row *dataset.Row, f func(*dataset.Row) error) error {
	row.Group = s.set.NameOf(i)
	img, classes, err := s.read(i)
	if err != nil {
		return fmt.Errorf("%simage %s: %w", prefix(s.set), row.Group, err)
	}
	at := s.cut.centre()
	return s.cut.places(img.Height, img.Width, func(left, top int) error {
		class := classes.Classes[(top+at)*img.Width+left+at]
		if s.ignored[class] {
			return nil
		}
		number, known := s.number[class]
		if !known {
			return fmt.Errorf("%simage %s: its map changed while it was read: %w", prefix(s.set), row.Group, dataset.ErrChanged)
		}
		clear(row.Labels)
		row.Labels[number] = 1
		s.cut.copyPatch(row.Values, img, left, top)
		if err := f(row); err != nil {
			return err
		}
		row.Number++
		return nil
	})
}

// read reads an image and its map.
func (s *source) read(i int) (*images.Image, *images.Map, error) {
	img, err := s.set.Image(i)
	if err != nil {
		return nil, nil, err
	}
	classes, err := s.set.Map(i)
	if err != nil {
		return nil, nil, err
	}
	if img.Height != classes.Height || img.Width != classes.Width {
		return nil, nil, fmt.Errorf("the image has %d x %d pixels (width x height), but its map has %d x %d", img.Width, img.Height, classes.Width, classes.Height)
	}
	return img, classes, nil
}

func prefix(set Set) string {
	if set.Name() == "" {
		return ""
	}
	return set.Name() + ": "
}
