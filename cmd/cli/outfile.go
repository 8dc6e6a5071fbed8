package cli

import (
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
)

// File is a file that gets its name after it is complete. A device, a pipe or a descriptor is written directly.
type File struct {
	file   *os.File
	path   string
	direct bool
}

// The modes of files before the umask: of files for users, and of files with all data of a cluster.
const (
	userFile    = 0o666
	privateFile = 0o600
)

// Create creates a temporary file next to path, so that a wrong path is found before the work is done. Commit gives the
// file its name.
func Create(path string) (*File, error) { return createWithMode(path, userFile) }

// CreatePrivate is Create for a file that only its user may read and write.
func CreatePrivate(path string) (*File, error) { return createWithMode(path, privateFile) }

func createWithMode(path string, mode fs.FileMode) (*File, error) {
	switch info, err := os.Stat(path); {
	case path == Stdout:
		return nil, Usagef("-: this output cannot go to stdout; give the name of a file (./- for a file named -)")
	case err != nil:
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a folder; give the name of a file", path)
	case IsDescriptor(path):
		return openDescriptor(path)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &File{f, path, true}, err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	// os.CreateTemp would ignore the umask.
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text()[:10]+".tmp"),
		os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: the parent folder does not exist", path)
	}
	if err != nil {
		return nil, cannotWrite(path, err)
	}
	return &File{f, path, false}, nil
}

// descriptor matches the path of a file that is open in this process.
var descriptor = regexp.MustCompile(`^(/dev/fd|/proc/self/fd)/[0-9]+$`)

// IsDescriptor reports whether a path is the path of an open regular file. The file may have no name.
func IsDescriptor(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && descriptor.MatchString(path)
}

// openDescriptor empties an open file. On macOS, the new descriptor has the offset of the open one.
func openDescriptor(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			return &File{f, path, true}, nil
		}
		f.Close()
	}
	return nil, cannotWrite(path, err)
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	if err != nil {
		err = cannotWrite(f.path, err)
	}
	return n, err
}

// Commit syncs the file and renames it to its path.
func (f *File) Commit() error {
	if f.direct {
		if err := f.file.Close(); err != nil {
			return cannotWrite(f.path, err)
		}
		return nil
	}
	err := errors.Join(f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.file.Name())
		return cannotWrite(f.path, err)
	}
	return nil
}

// Discard removes the temporary file, or empties the descriptor. After Commit it does nothing.
func (f *File) Discard() {
	if f.direct {
		f.file.Truncate(0) // fails for devices and pipes
	}
	if f.file.Close() == nil && !f.direct {
		os.Remove(f.file.Name())
	}
}

// WriteFile writes a complete file, or nothing.
func WriteFile(path string, b []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Commit()
}

// Output is a file or stdout.
type Output interface {
	io.Writer
	Commit() error
	Discard() // does nothing after Commit
}

// CheckWritable returns an error if a file that is written later cannot be written. An empty path is no file.
func CheckWritable(path string) error {
	if path == "" || IsDirect(path) {
		return nil
	}
	f, err := Create(path)
	if err != nil {
		return err
	}
	f.Discard()
	return nil
}

// IsDirect reports whether a path is a device, a pipe or a descriptor. It is written directly, and its name says no
// format.
func IsDirect(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir() || IsDescriptor(path)
}

// Stdout is the file name that means stdout.
const Stdout = "-"

// CreateOutput is Create, or stdout for "-". Stdout is refused if -o json prints there.
func (a *App) CreateOutput(path string) (Output, error) {
	if path != Stdout {
		return Create(path)
	}
	if a.JSON {
		return nil, Usagef("{out=-} and -o json both print to stdout: give only one of them")
	}
	return stdoutFile{a.Data}, nil
}

// Compressed returns an output that compresses if the format is csv.gz, and otherwise out.
func Compressed(out Output, f write.Format) Output {
	if f != write.CSVGZ {
		return out
	}
	return zipped{out, gzip.NewWriter(out)}
}

// zipped is a compressed output.
type zipped struct {
	Output
	zip *gzip.Writer
}

// Write implements io.Writer.
func (z zipped) Write(b []byte) (int, error) { return z.zip.Write(b) }

func (z zipped) Commit() error {
	if err := z.zip.Close(); err != nil {
		return err
	}
	return z.Output.Commit()
}

type stdoutFile struct{ io.Writer }

func (stdoutFile) Commit() error { return nil }

func (stdoutFile) Discard() {}

// OutputName returns how messages name the file of --out.
func OutputName(path string) string {
	if path == Stdout {
		return "stdout"
	}
	return path
}

// PrintBeside is Print, but if --out is stdout, the text goes to stderr.
func (a *App) PrintBeside(out string, v any, text func(w io.Writer)) error {
	if out == Stdout {
		text(a.Stderr)
		return nil
	}
	return a.Print(v, text)
}

// OutputFlag is a flag that names a file to write.
type OutputFlag struct{ Flag, Path string }

// CheckDistinct refuses two outputs that are the same file, because the second would replace the first.
func CheckDistinct(outputs ...OutputFlag) error {
	taken := make(map[string]string)
	for _, o := range outputs {
		if o.Path == "" {
			continue
		}
		place := placeOf(o.Path)
		if first := taken[place]; first != "" {
			return Usagef("%s %s: %s writes to this file, too; give another name", o.Flag, o.Path, first)
		}
		taken[place] = o.Flag
	}
	return nil
}

// placeOf returns the absolute path of a file without symbolic links, whether the file exists or not.
func placeOf(path string) string {
	if path == Stdout {
		return path
	}
	if full, err := filepath.EvalSymlinks(path); err == nil {
		path = full
	} else if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// CreateCSV creates the file that has what in CSV. It returns nil if the flag is not given.
func (o OutputFlag) CreateCSV(what string) (*File, error) {
	switch {
	case o.Path == "":
		return nil, nil
	case o.Path != Stdout && !strings.HasSuffix(strings.ToLower(o.Path), ".csv") && !IsDirect(o.Path):
		return nil, Usagef("%s %s: %s is written as CSV, so the name must end in .csv", o.Flag, o.Path, what)
	}
	return Create(o.Path)
}

// CheckNotInput refuses an output file that the command also reads.
func CheckNotInput(flag, out string, inputs ...string) error {
	written, err := os.Stat(out)
	if err != nil || !written.Mode().IsRegular() {
		return nil // nothing can be lost
	}
	for _, in := range inputs {
		for _, file := range read.FilesOf(in) {
			if read, err := os.Stat(file); err == nil && os.SameFile(written, read) {
				return Usagef("%s %s: this command reads that file; give another name", flag, out)
			}
		}
	}
	return nil
}

// FormatFlag is the format of a table that a command writes to --out.
type FormatFlag struct {
	Format string `enum:",csv,csv.gz,npz,parquet" default:"" placeholder:"F" help:"Format of --out: csv, csv.gz, npz or, for samples and predictions, parquet (default: from the end of the file's name; csv for stdout, devices and descriptors)."`
}

// FormatOf returns the format of a file to write, which is no Parquet file; errors are usage errors.
func (f *FormatFlag) FormatOf(path string) (write.Format, error) {
	format, err := f.SamplesFormatOf(path)
	if err == nil && format == write.Parquet {
		return "", Usagef("%s: this table cannot be written as Parquet; give a name that ends in .csv, .csv.gz or .npz", path)
	}
	return format, err
}

// SamplesFormatOf is FormatOf for samples and predictions, which may be a Parquet file.
func (f *FormatFlag) SamplesFormatOf(path string) (write.Format, error) {
	ending, ok := write.FormatOf(path)
	given := write.Format(f.Format)
	switch {
	case ok && given != "" && given != ending:
		return "", Usagef("{format=%s}: %s ends in .%s", given, path, ending)
	case ok:
		return ending, nil
	case given != "":
		return given, nil
	case path == Stdout || IsDirect(path):
		return write.CSV, nil
	}
	return "", Usagef("%s: the format of the file to write is unknown; give {format}, or a name that ends in .csv, "+
		".csv.gz, .npz or .parquet", path)
}
