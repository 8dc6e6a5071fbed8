package dataset

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/internal/units"
)

// Bounds of data files. They keep the memory that a file takes, and the time, in proportion to its
// size: a packed file may hold a thousand times as much as it has bytes.
const (
	// maxColumns bounds the columns of a CSV file. Other files may have more features than that, or
	// keep more values of rows in memory, if they have a byte for each of them.
	maxColumns = 1 << 20
	// maxLine bounds a line of a libsvm file and a record of a CSV file, in bytes.
	maxLine = 32 * maxColumns
	// maxArrays bounds the arrays of a .npz file.
	maxArrays = 1 << 12
	// maxName bounds the name of a column, a class or a row, in bytes.
	maxName = 1 << 12
	// A packed file may unpack to freeUnpacked bytes, or to maxRatio times its size if that is more.
	freeUnpacked = 64 << 20
	maxRatio     = 200
)

// fileSize is the size of a data file in bytes, packed if it is packed.
type fileSize int64

// unpacked returns how many bytes the file, or an array of it, may unpack to.
func (n fileSize) unpacked() int64 { return max(freeUnpacked, maxRatio*int64(n)) }

// items returns how many features the file may have, and how many values of rows may be in memory.
func (n fileSize) items() int { return max(maxColumns, int(n)) }

// expansionError says that what, a file or an array of one, unpacks to too many bytes; advice says
// what to do.
func expansionError(what, advice string) error {
	return kindErrorf(ErrFormat, "%s decompresses to more than %d times the size of the file and to more than %s; %s",
		what, maxRatio, units.Format(freeUnpacked), advice)
}

// checkFeatures returns an error if a file has n features, and neither bytes for so many nor a model that
// reads them.
func (o *OpenOptions) checkFeatures(n int, advice string) error {
	if most := max(o.size.items(), o.modelFeatures); n > most {
		return kindErrorf(ErrFormat, "%s features are too many for a file of %s bytes: a file may have %s features, or one for each byte if the file has more bytes; %s",
			units.Count(n), units.Count(int(o.size)), units.Count(maxColumns), advice)
	}
	return nil
}

// checkItems returns an error if the values of n rows, or n names, are too many to be kept in memory.
func (o *OpenOptions) checkItems(name string, n int, advice string) error {
	if n > o.size.items() {
		return kindErrorf(ErrFormat, "%q has %s values, too many for a file of %s bytes: a file may have %s values that are kept in memory, or one for each byte if the file has more bytes; %s",
			name, units.Count(n), units.Count(int(o.size)), units.Count(maxColumns), advice)
	}
	return nil
}

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

// checkNames returns an error for a name that is too long; what says what the names name.
func checkNames(what string, names []string) error {
	for i, name := range names {
		if err := checkName(name); err != nil {
			return fmt.Errorf("the name of %s %d (counted from 0) %w", what, i, err)
		}
	}
	return nil
}

// checkName says why a name cannot be read; the error's text is a predicate.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("has %s bytes, at most %s are allowed", units.Count(len(name)), units.Count(maxName))
	}
	return nil
}
