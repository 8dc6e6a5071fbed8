package publicsets

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/version"
)

const (
	maxRedirects = 5
	silence      = time.Minute // without a byte, after which a server is given up
)

// Fetcher stores the files of sets in a folder.
type Fetcher struct {
	folder string
	show   func(string)
	client *http.Client
	quiet  time.Duration
}

// NewFetcher returns a fetcher for a folder, which must exist. show gets lines about the progress. The variables
// HTTP_PROXY, HTTPS_PROXY and NO_PROXY name proxies.
func NewFetcher(folder string, show func(string)) *Fetcher {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	t.DisableCompression = true // the digest is of the bytes that the server has
	t.MaxResponseHeaderBytes = 64 << 10
	redirect := func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("the server redirects more than %d times", maxRedirects)
		}
		if err := checkAddress(r.URL.String()); err != nil {
			return fmt.Errorf("the server redirects to %w", err)
		}
		return nil
	}
	client := &http.Client{Transport: t, CheckRedirect: redirect}
	return &Fetcher{folder: folder, show: show, client: client, quiet: silence}
}

// Path returns the path of a file in the folder.
func (f *Fetcher) Path(file string) string { return filepath.Join(f.folder, file) }

// Fetch stores the files of a set that the folder lacks, and returns their number. Each file must have its digest. A
// file of the folder with another digest is an error, and is not changed. After an error, no part of a file remains.
func (f *Fetcher) Fetch(ctx context.Context, s *Set) (fetched int, err error) {
	var missing []*File
	for i := range s.Files {
		there, err := f.isThere(ctx, &s.Files[i])
		if err != nil {
			return 0, err
		}
		if !there {
			missing = append(missing, &s.Files[i])
		}
	}
	archives := make(map[string]*os.File)
	defer func() {
		for _, a := range archives {
			a.Close()
		}
	}()
	for _, file := range missing {
		if file.Member == "" {
			err = f.download(ctx, file)
		} else {
			if archives[file.Address] == nil {
				if archives[file.Address], err = f.downloadArchive(ctx, file.Address); err != nil {
					return fetched, err
				}
			}
			err = f.unpack(ctx, archives[file.Address], file)
		}
		if err != nil {
			return fetched, err
		}
		fetched++
	}
	return fetched, nil
}

// isThere reports whether the folder has a file with its digest.
func (f *Fetcher) isThere(ctx context.Context, file *File) (bool, error) {
	path := f.Path(file.Name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return false, errtext.Errorf(errtext.WrongData, "%s: is a symbolic link to a file that does not exist; remove it, "+
				"or give another folder with {to}", path)
		}
		return false, nil
	}
	switch {
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, errtext.Errorf(errtext.WrongData, "%s: is not a file; give another folder with {to}", path)
	}
	in, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	sum := sha256.New()
	if _, err := f.copy(ctx, sum, in, "checking "+file.Name, info.Size()); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != file.SHA256 {
		return false, errtext.Errorf(errtext.WrongData, "%s: this file exists with another SHA-256: it has %s, the "+
			"dataset %s; rename the file, or give another folder with {to}", path, got, file.SHA256)
	}
	return true, nil
}

// open asks for an address, and returns the response and its length, which is -1 if it is not known. The response ends
// with an error if no byte arrives for a while.
func (f *Fetcher) open(ctx context.Context, address string) (body io.ReadCloser, length int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(f.quiet, func() { cancel(fmt.Errorf("the server sent nothing for %v", f.quiet)) })
	r := &response{ctx: ctx, timer: timer, quiet: f.quiet, cancel: cancel, address: address}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		r.Close()
		return nil, 0, err
	}
	req.Header.Set("User-Agent", "coppice/"+version.String)
	res, err := f.client.Do(req)
	if err != nil {
		err = r.failed(err)
		r.Close()
		return nil, 0, err
	}
	r.body = res.Body
	if res.StatusCode != http.StatusOK {
		r.Close()
		return nil, 0, errtext.Errorf(errtext.WrongData, "%s: the server answers %.100s; {from=FILE} names a list with "+
			"other addresses", address, res.Status)
	}
	return r, res.ContentLength, nil
}

// response is the body of a response that ends if the server is silent.
type response struct {
	ctx     context.Context
	timer   *time.Timer
	quiet   time.Duration
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	address string
	n       int64
}

// Read implements io.Reader.
func (r *response) Read(b []byte) (int, error) {
	r.timer.Reset(r.quiet)
	n, err := r.body.Read(b)
	r.timer.Stop() // a slow disk is no silence
	r.n += int64(n)
	if err != nil && err != io.EOF {
		err = r.failed(err)
	}
	return n, err
}

// failed describes an error of a request.
func (r *response) failed(err error) error {
	var request *url.Error
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, context.Canceled):
		return cause // the user has interrupted the command
	case cause != nil:
		err = cause
	case errors.As(err, &request):
		err = request.Err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the connection was cut after %s; nothing is stored", units.Format(r.n))
	}
	return fmt.Errorf("%s: %w", r.address, err)
}

// Close implements io.Closer.
func (r *response) Close() error {
	r.timer.Stop()
	if r.body != nil {
		r.body.Close()
	}
	r.cancel(nil)
	return nil
}

// download stores the file at an address.
func (f *Fetcher) download(ctx context.Context, file *File) error {
	body, length, err := f.open(ctx, file.Address)
	if err != nil {
		return err
	}
	defer body.Close()
	if file.Bytes > 0 && length >= 0 && length != file.Bytes {
		return fmt.Errorf("%s: the file has %d bytes; the list says %d", file.Address, length, file.Bytes)
	}
	return f.store(ctx, body, file, max(length, file.Bytes), file.Address)
}

// store writes a file and gives the file its name if the digest is right. size is -1 or 0 if it is not known.
func (f *Fetcher) store(ctx context.Context, in io.Reader, file *File, size int64, from string) error {
	path := f.Path(file.Name)
	if err := checkRoom(f.folder, file.Name, size); err != nil {
		return err
	}
	out, err := cli.Create(path)
	if err != nil {
		return err
	}
	defer out.Discard()
	sum := sha256.New()
	most := int64(maxBytes)
	if file.Bytes > 0 {
		most = file.Bytes
	}
	n, err := f.copy(ctx, io.MultiWriter(out, sum), io.LimitReader(in, most+1), "fetching "+file.Name, size)
	if err != nil {
		return err
	}
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case n > most:
		return fmt.Errorf("%s: the file has more than %d bytes", from, most)
	case got != file.SHA256:
		return fmt.Errorf("%s: the file has the SHA-256 %s; want %s; the file is not stored", from, got, file.SHA256)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: another program has made this file meanwhile; fetch again", path)
	}
	return out.Commit()
}

// checkRoom refuses a file for which the disk of a folder has no room.
func checkRoom(folder, name string, size int64) error {
	if free, known := files.Free(folder); known && free < size {
		return errtext.Errorf(errtext.WrongData, "%s: no space left: %s has %s, but only %s are free; give another folder "+
			"with {to}", folder, name, units.Format(size), units.Format(free))
	}
	return nil
}

// copy copies until the end of in or of the context, and shows the progress. size is at most 0 if it is not known.
func (f *Fetcher) copy(ctx context.Context, out io.Writer, in io.Reader, doing string, size int64) (int64, error) {
	var n int64
	buf := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		got, err := in.Read(buf)
		if _, wrong := out.Write(buf[:got]); wrong != nil {
			return n, wrong
		}
		n += int64(got)
		line := doing + ": " + units.Format(n)
		if size > 0 {
			line = fmt.Sprintf("%3d %%  %s of %s", 100*min(n, size)/size, line, units.Format(size))
		}
		f.show(line)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// downloadArchive stores an archive in a file of the folder that has no name.
func (f *Fetcher) downloadArchive(ctx context.Context, address string) (*os.File, error) {
	body, length, err := f.open(ctx, address)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if err := checkRoom(f.folder, "the archive", length); err != nil {
		return nil, err
	}
	out, err := os.CreateTemp(f.folder, ".archive.*.tmp")
	if err != nil {
		return nil, err
	}
	err = os.Remove(out.Name())
	if err == nil {
		var n int64
		n, err = f.copy(ctx, out, io.LimitReader(body, maxBytes+1), "fetching "+address, length)
		if n > maxBytes {
			err = fmt.Errorf("%s: the archive has more than %d bytes", address, int64(maxBytes))
		}
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// unpack stores a member of a zip or tar.gz archive. Nothing else of the archive is written.
func (f *Fetcher) unpack(ctx context.Context, archive *os.File, file *File) error {
	from := file.Address + ": " + file.Member
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	var magic [2]byte
	if _, err := archive.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return err
	}
	switch string(magic[:]) {
	case "PK":
		z, err := zip.NewReader(archive, info.Size())
		if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
			return fmt.Errorf("%s: the zip archive cannot be read: %w", file.Address, err)
		}
		for _, m := range z.File {
			if m.Name != file.Member || !m.Mode().IsRegular() {
				continue
			}
			in, err := m.Open()
			if err != nil {
				return fmt.Errorf("%s: %w", from, err)
			}
			defer in.Close()
			return f.store(ctx, named{in, from}, file, file.Bytes, from)
		}
	case "\x1f\x8b":
		if _, err := archive.Seek(0, io.SeekStart); err != nil {
			return err
		}
		in, err := gzip.NewReader(bufio.NewReader(archive))
		if err != nil {
			return fmt.Errorf("%s: the tar.gz archive cannot be read: %w", file.Address, err)
		}
		for t := tar.NewReader(interruptible{ctx, io.LimitReader(in, maxBytes)}); ; {
			m, err := t.Next()
			if err == io.EOF {
				break
			}
			if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return fmt.Errorf("%s: the tar.gz archive cannot be read: %w", file.Address, err)
			}
			if m.Typeflag == tar.TypeReg && strings.TrimPrefix(m.Name, "./") == file.Member {
				return f.store(ctx, named{t, from}, file, file.Bytes, from)
			}
		}
	default:
		return fmt.Errorf("%s: is neither a zip nor a tar.gz archive", file.Address)
	}
	return fmt.Errorf("%s: the archive has no such file", from)
}

// named is a reader whose errors begin with a name.
type named struct {
	io.Reader
	name string
}

// Read implements io.Reader.
func (r named) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", r.name, err)
	}
	return n, err
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r interruptible) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
