package read

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/tempdir"
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

// tempFile makes a temporary file for up to size bytes in the folder that TMPDIR names, and
// removes its name: the system deletes the file when it is closed or the program ends.
func tempFile(size int64) (*os.File, error) {
	if err := files.CheckSpace(os.TempDir(), size); err != nil {
		return nil, err
	}
	return tempdir.File("columns")
}

// openSized opens a file, and returns its size.
func openSized(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// emptyFile is what errors say of a file with nothing in it.
const emptyFile = "the file is empty"

// errFound ends a scan.
var errFound = errors.New("found")

// fileContents lists the variables of a .mat or .npz file, for messages.
type fileContents []string

func (h *fileContents) add(name, kind string, shape ...int) {
	if name == "" || len(*h) > maxListed { // one more than are listed
		return
	}
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = fmt.Sprint(n)
	}
	*h = append(*h, fmt.Sprintf("%.100s (%s)", name, strings.TrimSpace(strings.Join(dims, " x ")+" "+kind)))
}

// missing returns an error that says that a file has no such variable, lists the variables
// of the file, and names the flag that chooses another.
func (h fileContents) missing(what, name, flag string, err error) error {
	return dataset.Errorf(err, "the file has no %s %q; it has %s; name the right one with %s", what, name, h.list(), flag)
}

func (h fileContents) list() string {
	list := strings.Join(h[:min(maxListed, len(h))], ", ")
	switch {
	case len(h) == 0:
		return "nothing"
	case len(h) > maxListed:
		return list + ", ..."
	}
	return list
}

// maxListed bounds the list.
const maxListed = 20

// closers is a Reader that closes several things, in order.
type closers struct {
	io.Reader
	all []io.Closer
}

// Close closes everything.
func (c *closers) Close() (err error) {
	for _, one := range c.all {
		err = errors.Join(err, one.Close())
	}
	return err
}
