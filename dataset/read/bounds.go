package read

import (
	"io"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Bounds of data files. They keep the memory that a file takes, and the time, in proportion to its
// size: a packed file may hold a thousand times as much as it has bytes.
const (
	// maxLine bounds a line of a libsvm file and a record of a CSV file, in bytes.
	maxLine = 32 * dataset.MaxColumns
	// maxArrays bounds the arrays of a .npz file.
	maxArrays = 1 << 12
	// A packed file may unpack to freeUnpacked bytes, or to maxRatio times its size if that is more.
	freeUnpacked = 64 << 20
	maxRatio     = 200
)

// expansionError says that what, a file or an array of one, unpacks to too many bytes; advice says
// what to do.
func expansionError(what, advice string) error {
	return dataset.Errorf(dataset.ErrFormat, "%s decompresses to more than %d times the size of the file and to more than %s; %s",
		what, maxRatio, units.Format(freeUnpacked), advice)
}

// fileSize is the size of a data file in bytes, packed if it is packed.
type fileSize int64

// unpacked returns how many bytes the file, or an array of it, may unpack to.
func (n fileSize) unpacked() int64 { return max(freeUnpacked, maxRatio*int64(n)) }

// items returns how many features the file may have, and how many values of rows may be in memory.
func (n fileSize) items() int { return max(dataset.MaxColumns, int(n)) }

// unpacking reads what a packed file unpacks to, up to left bytes.
type unpacking struct {
	in   io.Reader
	left int64
}

// Read implements io.Reader.
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, expansionError("the file", "decompress the file with gunzip first")
	}
	return n, err
}

// checkFeatures returns an error if a file has n features, and neither bytes for so many nor a model that
// reads them.
func (o *OpenOptions) checkFeatures(n int, advice string) error {
	if most := max(o.size.items(), o.modelFeatures); n > most {
		return dataset.Errorf(dataset.ErrFormat, "%s features are too many for a file of %s bytes: a file may have %s features, or one for each byte if the file has more bytes; %s",
			units.Count(n), units.Count(int(o.size)), units.Count(dataset.MaxColumns), advice)
	}
	return nil
}

// checkItems returns an error if the values of n rows, or n names, are too many to be kept in memory.
func (o *OpenOptions) checkItems(name string, n int, advice string) error {
	if n > o.size.items() {
		return dataset.Errorf(dataset.ErrFormat, "%q has %s values, too many for a file of %s bytes: a file may have %s values that are kept in memory, or one for each byte if the file has more bytes; %s",
			name, units.Count(n), units.Count(int(o.size)), units.Count(dataset.MaxColumns), advice)
	}
	return nil
}
